# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# short.sh: when a session that ran out of memory may start again: alone, and with more memory free than there was when
# it had failed. To be sourced by dispatch.sh. What was free then is in attempt-N/free. Nobody waits for nvidia-smi.
#
# Who ran beside others of this run (attempt-N/beside, of fewer.sh) needs no more than was free then: alone it has what
# they had, too, and when all of them ran out together everything is free before it is asked.
# A run must end: after a while alone is enough, with whatever is free then.

short_patience_ms=$((${COMBORUN_MEMORY_WAIT_S:-1800} * 1000)) short_asked_ms=0
declare -gA short_of=() # session -> gpu_memory or host_memory: it ran out of that
declare -gA short_ms=() # session -> since when it could have started but for the memory
declare -gA free_mib=() # GPU -> MiB, as last told; nothing is unknown

short::ran_out() { # <session> <attempt> <class> : what is free now was not enough
  local memory at=$run/sessions/$1/attempt-$2
  [[ $3 == @(gpu_memory|host_memory) ]] || return 0
  short_of[$1]=$3
  unset "short_ms[$1]"
  [[ -e $at/free ]] && return
  if [[ $3 == gpu_memory ]]; then
    record::read "$at/grant"
    short::ask "$at/free" "${record[gpus]-}"
  else
    host::memory
    record::write "$at/free" "memory=${memory##*=}"
  fi
}

short::forget() { # <session>
  unset "short_of[$1]" "short_ms[$1]"
}

short::ask() { # <file> [GPUs] : how much is free on each of them, `0:1234,1:99`; in the background
  {
    local gpus row list=''
    host::ask_gpus "$run/dispatch/policy.tsv"
    host::hear_gpus ''
    for row in "${gpus[@]}"; do
      [[ $row =~ index=([0-9]+)\ used_mib=([0-9]+)\ total_mib=([0-9]+) ]] || continue
      [[ ! $2 || ,$2, == *,"${BASH_REMATCH[1]}",* ]] || continue
      list+=${list:+,}${BASH_REMATCH[1]}:$((BASH_REMATCH[3] - BASH_REMATCH[2]))
    done
    record::write "$1" "gpus=$list"
    printf 'memory run 0\n' 1<>"$run/dispatch/fifo"
  } </dev/null 3>&- 4>&- 8>&- &
}

short::heard() { # an answer has come
  local pair list
  free_mib=()
  record::read "$run/dispatch/free" || return 0
  list=${record[gpus]-}
  for pair in ${list//,/ }; do
    [[ $pair =~ ^[0-9]{1,4}:[0-9]{1,9}$ ]] && free_mib[${pair%:*}]=${pair#*:}
  done
  return 0
}

short::choose() { # <session> -> chosen: the GPUs for it; 1 when it has to wait
  if [[ ${short_of[$1]} == host_memory ]] || ((wants[$1] == 0)); then
    short::alone_in_run "$1" && admit::choose "$1"
  else
    short::alone_on_gpus "$1"
  fi
}

short::impatient() { # <session> : whether it has waited for long, while nothing but the memory kept it
  local now_ms
  clock::now_ms
  [[ ${short_ms[$1]-} ]] || short_ms[$1]=$now_ms
  pause_ms=$((pause_ms < 500 ? pause_ms : 500))
  ((now_ms - short_ms[$1] >= short_patience_ms))
}

short::alone_in_run() { # <session>
  local memory free before
  ((busy == 0)) || return
  short::impatient "$1" && return
  short::before "$1"
  if [[ ${short_of[$1]} == gpu_memory ]]; then
    command -v nvidia-smi >/dev/null || return 0 # no grant and nobody to ask: to be alone is all that can be had
    short::look_again
    short::more_on "${!free_mib[@]}"
  else
    host::memory
    free=${memory##*=}
    [[ $free ]] && ((free > before))
  fi
}

short::alone_on_gpus() { # <session> -> chosen
  local gpu idle=0 before
  for gpu in "${gpus_allowed[@]}"; do
    ((gpus_load[$gpu] == 0)) && gpus::is_open "$gpu" && idle=$((idle + 1))
  done
  ((idle >= wants[$1])) || return
  short::before "$1"
  short::impatient "$1" && before=-1
  ((before < 0)) || short::look_again
  admit::choose "$1" short::suits
}

short::suits() { # <GPU> : reads before
  ((gpus_load[$1] == 0)) || return
  ((before < 0)) || short::more_on "$1"
}

short::before() { # <session> -> before: what was free when it had failed, on the fullest of its GPUs; 0 when unknown
  local pair list
  local headroom=${policy[headroom_gpu_mib]:-128}
  before=''
  record::read "$run/sessions/$1/attempt-${attempt_of[$1]}/free"
  list=${record[gpus]-},${record[memory]:+all:${record[memory]}}
  for pair in ${list//,/ }; do
    [[ $pair =~ ^(all|[0-9]{1,4}):[0-9]{1,15}$ ]] || continue
    [[ $before ]] && ((${pair#*:} >= before)) || before=${pair#*:}
  done
  before=${before:-0}
  [[ ! -e $run/sessions/$1/attempt-${attempt_of[$1]}/beside ]] ||
    before=$((before > headroom ? before - headroom - 1 : 0)) # no two measurements are quite the same
}

short::look_again() { # now and then
  local now_ms
  clock::now_ms
  ((short_asked_ms == 0 || now_ms - short_asked_ms >= ${COMBORUN_MEMORY_ASK_MS:-5000})) || return 0
  short_asked_ms=$now_ms
  short::ask "$run/dispatch/free" ''
}

short::more_on() { # <GPU>... : whether each has more free than `before`; unknown is no
  local gpu
  (($#)) || return
  for gpu in "$@"; do
    [[ ${free_mib[$gpu]-} ]] && ((free_mib[$gpu] > before)) || return
  done
}

short::reserve() { # <session> <run, or GPUs> : nothing else of this run starts there while it lives
  local where
  for where in ${2//,/ }; do
    [[ $where =~ ^(run|[0-9]{1,4})$ ]] && reserved_for[$where]=$1
  done
  return 0
}

short::release() { # <session> : the others may start again where it was alone
  local where
  for where in "${!reserved_for[@]}"; do
    [[ ${reserved_for[$where]} == "$1" ]] && unset "reserved_for[$where]"
  done
  return 0
}
