# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# warm.sh: the first session of each program starts alone, as far as others of that program go, until it makes progress
# (or ends, or takes too long): it fills caches that the others then find, of shaders above all. To be sourced by
# dispatch.sh. What has warmed up is told by files (attempt-N/progressed), for the next dispatcher too.

warm_up_ms=0                # how long the others wait at most; 0: they don't
declare -gA program_of=()   # session -> its program, a clean word (queue.tsv)
declare -gA warm_by=()      # program -> the session that warms it up
declare -gA warm_ms=()      # program -> since when
declare -gA warmed=()       # program -> 1
declare -gA waiting_warm=() # session -> the one that it waits for

warm::open() {
  local name program
  warm_up_ms=${policy[warm_up_ms]:-0}
  waiting_warm=()
  ((warm_up_ms)) || return 0
  for name in "${order[@]}"; do
    program=${program_of[$name]:-all}
    [[ -e $run/sessions/$name/attempt-${attempt_of[$name]:-0}/progressed ]] && warmed[$program]=1
  done
  for name in "${order[@]}"; do # one that a former dispatcher has started
    [[ ${life_of[$name]-} == @(starting|running|orphaned) ]] && warm::started "$name"
  done
  return 0
}

warm::holds_back() { # <session>
  local program=${program_of[$1]:-all} now_ms left_ms
  [[ ! ${warmed[$program]-} && ${warm_by[$program]-} && ${warm_by[$program]} != "$1" ]] || return
  clock::now_ms
  left_ms=$((warm_ms[$program] + warm_up_ms - now_ms))
  if ((left_ms <= 0)); then
    warm::reached "${warm_by[$program]}" "$((warm_up_ms / 1000)) s are over"
    return 1
  fi
  pause_ms=$((left_ms < pause_ms ? left_ms : pause_ms))
}

warm::started() { # <session>
  local program=${program_of[$1]:-all} now_ms
  [[ ! ${warmed[$program]-} && ! ${warm_by[$program]-} ]] || return 0
  clock::now_ms
  warm_by[$program]=$1 warm_ms[$program]=$now_ms
  dispatch::journal "warming $1"
}

warm::reached() { # <session> <why>
  local program=${program_of[$1]:-all}
  [[ ${warm_by[$program]-} == "$1" ]] || return 0
  warmed[$program]=1 waiting_warm=() waiting_stale=1
  unset "warm_by[$program]"
  dispatch::journal "warm $1 $2"
}

warm::failed() { # <session> : before it had warmed anything up; the next one is the first
  local program=${program_of[$1]:-all}
  [[ ${warm_by[$program]-} != "$1" ]] || unset "warm_by[$program]"
}
