# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# measured.sh: when the dispatcher measures (measure.sh), and what it was told. To be sourced by dispatch.sh, which hears
# `measured run NUMBER`. Nobody waits for nvidia-smi.

measure_fresh_ms=${COMBORUN_FRESH_MS:-5000}      # an older answer starts nothing that asks for memory
measure_number=0                                 # of the last that was asked for
measure_answer=0                                 # of the last that was answered, as far as it was
measure_asked_ms=0 measure_told_ms=0             # when the one was asked for, and the other measured
measure_pid='' measure_inner=''                  # it is under way; our pids are not those that the driver tells
declare -gA gpu_uuid=() gpu_used=() gpu_total=() # index -> what it is called; MiB
declare -gA gpu_told=()                          # index -> 1: the driver named its processes, and each is known
declare -gA held_mib=()                          # "MARKER INDEX" -> MiB
declare -gA resident_mib=()                      # MARKER -> MiB of main memory that nobody else has
host_mib='' available_mib=''

measure::open() {
  local inode
  [[ $measure_fresh_ms =~ ^[1-9][0-9]{0,8}$ ]] || measure_fresh_ms=5000
  inode=$(readlink /proc/self/ns/pid 2>/dev/null)
  [[ $inode == 'pid:[4026531836]' ]] || measure_inner=1 # of the first namespace of any Linux
}

measure::ask() { # the answer comes as a message
  local now_ms
  measure::asking && return
  clock::now_ms
  measure_number=$((measure_number + 1)) measure_asked_ms=$now_ms
  measure::work "$measure_number" </dev/null 3>&- 4>&- 8>&- &
  measure_pid=$!
}

measure::asking() { # whether one is under way, or its message is; it gives up by itself, unless somebody killed it
  local now_ms
  [[ $measure_pid ]] || return
  clock::now_ms
  ((now_ms - measure_asked_ms < 2000)) && return
  kill -0 "$measure_pid" 2>/dev/null && ((now_ms - measure_asked_ms < 4000 * ${COMBORUN_GPU_S:-5} + 10000))
}

measure::again() { # <milliseconds> : unless it was asked for less than that ago; else pause_ms says when
  local now_ms left_ms
  measure::asking && return
  clock::now_ms
  left_ms=$((measure_asked_ms + $1 - now_ms))
  if ((measure_number == 0 || left_ms <= 0)); then
    measure::ask
  else
    pause_ms=$((left_ms < pause_ms ? left_ms : pause_ms))
  fi
}

measure::fresh() { # whether the last answer still counts
  local now_ms
  ((measure_answer)) || return
  clock::now_ms
  ((now_ms - measure_told_ms <= measure_fresh_ms))
}

measure::heard() { # <number> : 1 when it is not the one that is waited for
  local what a b c d number='' whole=''
  (($1 == measure_number && $1 > measure_answer)) || return
  measure_answer=$1 measure_told_ms=0 measure_pid=''
  gpu_used=() gpu_total=() gpu_told=() held_mib=() resident_mib=() host_mib='' available_mib=''
  while read -r what a b c d; do
    case $what in
      number) measure::numbers "$a" "$b" && number=$a measure_told_ms=$b ;;
      gpu) measure::numbers "$a" "$c" "$d" && gpu_uuid[$a]=$b gpu_used[$a]=$c gpu_total[$a]=$d ;;
      told) gpu_told[$a]=1 ;;
      held) measure::numbers "$b" "$c" && held_mib["$a $b"]=$c ;;
      memory) measure::numbers "$a" "$b" && host_mib=$a available_mib=$b ;;
      resident) measure::numbers "$b" && resident_mib[$a]=$b ;;
      .) whole=1 ;;
    esac
  done 2>/dev/null <"$run/dispatch/measured"
  [[ $whole && $number == "$1" ]] || gpu_used=() gpu_total=() host_mib='' # a full disk: unknown
  return 0
}

measure::numbers() { # <text>...
  local text
  for text in "$@"; do [[ $text =~ ^(0|[1-9][0-9]{0,14})$ ]] || return; done
}
