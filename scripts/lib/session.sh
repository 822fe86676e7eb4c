# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# session.sh: supervise one command. Sourced by a generated script, which holds the data (docs/architecture.md).
#
#   bash session.sh ATTEMPT     0: the end is on record, whatever it is    64: usage    73: can't write here
#                               75: an earlier attempt still lives         76: this attempt has been made
set -uo pipefail

session_library=${BASH_SOURCE[0]%/*}
source "$session_library/record.sh"
source "$session_library/evidence.sh"
source "$session_library/end.sh"
source "$session_library/marker.sh"
source "$session_library/multiplexer.sh"
source "$session_library/ahead.sh"
source "$session_library/secrets.sh"
source "$session_library/command.sh"

session::die() { # <code> <message> : it never began; the dispatcher hears of it, and decides
  printf 'session: %s\n' "$2" >&2
  (($1 == 76)) || session::tell refused "$1"
  exit "$1"
}

session::tell() { # <what> [word] : the dispatcher, if there is one; <> never waits for a reader
  [[ -p ${run-}/dispatch/fifo ]] && printf '%s %s %s %s\n' "$1" "$name" "$session_attempt" "${2-}" 1<>"$run/dispatch/fifo"
}

session::prepare() { # <attempt> [multiplexer] [role] [FIFO] : everything that the command line may name
  session_attempt=${1-} session_mux=${2:-none} session_role=${3:-supervisor}
  [[ $session_attempt =~ ^[1-9][0-9]*$ ]] || session::die 64 'usage: bash session.sh ATTEMPT'
  session_script=${BASH_SOURCE[1]}
  [[ $session_script == /* ]] || session_script=$(cd -- "$(dirname -- "$session_script")" && pwd)/session.sh
  session_directory=${session_script%/*}
  run=${session_directory%/sessions/*}
  session_at=$session_directory/attempt-$session_attempt
  read -r run_id 2>/dev/null <"$run/id" || session::die 66 "$run is no run directory"
  session_marker=$run_id/$name/$session_attempt
  [[ $session_role == ahead ]] && ahead::wait "${4-}"
  record::read "$session_at/grant"
  local gpus=${record[gpus]-}
  [[ $gpus =~ ^[0-9]+(,[0-9]+)*$ ]] || gpus=''
  session::export "$gpus"
}

session::export() { # <gpus>
  local commas=${1//[^,]/}
  export COMBORUN_RUN=$run_id COMBORUN_RUN_DIR=$run COMBORUN_RESULTS_DIR=$run/results
  export COMBORUN_OUTPUT_DIR=$session_at/out COMBORUN_ATTEMPT=$session_attempt
  export COMBORUN_EPISODES=$count COMBORUN_FIRST_EPISODE=$first COMBORUN_LAST_EPISODE=$((first + count - 1))
  export COMBORUN_GPUS=$1 COMBORUN_GPU=${1%%,*} COMBORUN_GPU_COUNT=$((${#1} > 0 ? ${#commas} + 1 : 0))
}

session::run() {
  [[ $session_role == command ]] && command::set_up
  local pid='' pid_start='' code='' interrupted='' now started follower=''
  trap '' HUP QUIT TSTP
  trap 'session::forward INT "interrupted in its window"' INT
  trap 'session::forward TERM "its supervisor was told to end"' TERM
  session::claim
  record::now
  started=$now
  command::become </dev/null >>"$session_at/log" 2>&1 &
  pid=$!
  session::begin
  session::follow
  session::await
  session::end
  wait "$follower" 2>/dev/null # ends with the command, once it has shown the last lines
  exit 0
}

session::lock() { # and a folder with room for the end; all that can be done before there is a slot
  [[ -e $session_at/claim ]] && session::die 76 "attempt $session_attempt has been made"
  [[ -d $session_at/out ]] || mkdir -p -- "$session_at/out" || session::die 73 "can't make $session_at/out"
  { exec 9>>"$session_directory/lock"; } 2>/dev/null || session::die 73 "can't write in $session_directory"
  flock -w "${COMBORUN_LOCK_S:-10}" 9 || session::die 75 "an earlier attempt of $name still holds the lock"
  end::reserve "$session_at" || session::die 73 "can't write in $session_at: is the disk full?"
}

session::claim() { # under the lock: an attempt is made once
  [[ $session_role == ahead ]] || session::lock
  set -o noclobber
  { : >"$session_at/claim"; } 2>/dev/null || session::die 76 "attempt $session_attempt has been made"
  set +o noclobber
  local start state boot
  process::look $$
  process::boot
  printf '%s\n' "supervisor=$$" "supervisor_start=$start" "boot=$boot" "count=$count" "success=${success-}" \
    "${results[@]/#/results=}" 2>/dev/null >"$session_at/claim" && : >>"$session_at/log" && return
  rm -f -- "$session_at/claim"
  session::die 73 "can't write in $session_at: is the disk full?"
}

session::begin() {
  local state start boot mux_name address='' supervisor_start
  process::boot
  process::look $$
  supervisor_start=$start
  process::look "$pid" && pid_start=$start
  mux::name "$name" "$session_attempt"
  case $session_mux in
    tmux) address=$mux_name ;;
    screen) address=${STY-} ;;
  esac
  record::write "$session_at/begin" "attempt=$session_attempt" "started=$started" \
    "supervisor=$$" "supervisor_start=$supervisor_start" "pid=$pid" "pid_start=$pid_start" "boot=$boot" \
    "host=$HOSTNAME" "multiplexer=$session_mux" "address=$address" ${SCREENDIR:+"screendir=$SCREENDIR"} \
    "gpus=$COMBORUN_GPUS" "first=$first" "count=$count"
}

session::follow() { # what the window shows; the log itself is written by the command, with no pipe in between
  (
    trap - HUP
    trap '' INT QUIT TSTP
    exec tail -n +1 -f -s 0.1 --pid="$pid" -- "$session_at/log"
  ) 9>&- 2>/dev/null &
  follower=$!
}

session::forward() { # <signal> <why>
  interrupted=$2
  [[ $pid ]] || return 0
  kill "-$1" -- "-$pid" 2>/dev/null || kill "-$1" "$pid" 2>/dev/null
}

session::await() { # -> code; a signal that is caught ends `wait` early
  local state start
  while :; do
    wait "$pid"
    code=$?
    process::look "$pid" || break
    [[ $start == "$pid_start" && $state != [ZX] ]] || break
  done
  wait "$pid" 2>/dev/null
  local again=$?
  ((again == 127)) || code=$again
}

session::end() { # tell that the slot is free before anything else: somebody waits for it
  local now cause=exited note='' pids=() grace=${COMBORUN_GRACE_S:-5}
  record::now
  kill -KILL -- "-$pid" 2>/dev/null
  session::tell free
  [[ $session_mux == none ]] || kill "$follower" 2>/dev/null
  session::cause
  session::alone || marker::sweep "$session_marker" "$grace" 5 || note+=" processes survive: ${pids[*]}"
  local records successes completeness files witness=''
  evidence::files "$session_at/out" "${results[@]}"
  evidence::count "${success-}" "${files[@]}" || note+=" the success pattern is no regular expression"
  [[ $cause == exited ]] && witness=$code # to save and leave when told to, with 0, is not to have done the work
  evidence::judge "$count" "$witness" "${#results[@]}"
  end::write "$session_at" "$started" "$now" "$code" "$cause" "$note"
  session::tell ended
}

session::alone() { # whether the command left nothing behind, for one that was short enough to tell without a search
  marker::none_since "$session_marker" "$pid" $((${now%.*} - ${started%.*} + 1))
}

session::cause() { # -> cause note grace
  ((code > 128 && code <= 192)) && cause=signal
  [[ -e $session_at/.failure ]] && cause=launch_failed && IFS= read -r note <"$session_at/.failure"
  [[ $interrupted ]] && cause=stopped note=$interrupted
  [[ -e $session_at/stop ]] && cause=stopped note='' grace=0
}
