# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# warm.sh: the first session of each program starts alone, as far as others of that program go, until it makes progress
# (or ends, or takes too long): it fills caches that the others then find, of shaders above all. To be sourced by
# dispatch.sh. What has warmed up is told by files (attempt-N/progressed), for the next dispatcher too.

warm_up_ms=0              # how long the others wait at most; 0: they don't
declare -gA program_of=() # session -> its program, a clean word (queue.tsv)
declare -gA warm_by=()    # program -> the session that warms it up
declare -gA warm_ms=()    # program -> since when
declare -gA warmed=()     # program -> 1

warm::open() {
  local name program
  warm_up_ms=${policy[warm_up_ms]:-0}
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

warm::round() { # a new look at the queue: who has waited for long enough waits no more; else pause_ms knows when
  local program left_ms
  for program in "${!warm_by[@]}"; do
    left_ms=$((${warm_ms[$program]} + warm_up_ms - round_ms))
    ((left_ms > 0)) || warm::reached "${warm_by[$program]}" "$((warm_up_ms / 1000)) s are over"
    ((left_ms <= 0 || left_ms > pause_ms)) || pause_ms=$left_ms
  done
}

warm::first() { # <session> -> first: the one of its program that comes before it; 1 when it waits for none
  first=${warm_by[${program_of[$1]:-all}]-}
  [[ $first && $first != "$1" ]]
}

warm::all_wait() { # whether all that are queued are of programs that are just being warmed up
  local program
  for program in "${!queued_program[@]}"; do
    [[ ${warm_by[$program]-} && ${life_of[${warm_by[$program]}]-} != queued ]] || return
  done
}

warm::started() { # <session>
  local program=${program_of[$1]:-all} now_ms
  [[ ! ${warmed[$program]-} && ! ${warm_by[$program]-} ]] || return 0
  clock::now_ms
  warm_by[$program]=$1 warm_ms[$program]=$now_ms waiting_stale=1
  pause_ms=$((warm_up_ms < pause_ms ? warm_up_ms : pause_ms))
  dispatch::journal "warming $1"
}

warm::reached() { # <session> <why>
  local program=${program_of[$1]:-all}
  [[ ${warm_by[$program]-} == "$1" ]] || return 0
  warmed[$program]=1 waiting_stale=1
  unset "warm_by[$program]"
  dispatch::journal "warm $1 $2"
}

warm::failed() { # <session> : before it had warmed anything up; the next one is the first
  local program=${program_of[$1]:-all}
  [[ ${warm_by[$program]-} != "$1" ]] || unset "warm_by[$program]"
}
