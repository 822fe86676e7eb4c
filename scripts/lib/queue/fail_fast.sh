# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# fail_fast.sh: halt a run in which too many sessions have ended for good without success, as a number or as a share of
# all. To be sourced by dispatch.sh and slurm_settle.sh. What had failed when a person last said `resume` counts no more.

declare -gA fail_fast_counted=() # session that counts -> 1

fail_fast::heed() { # <session> <time of its end> : it has ended for good
  [[ $1 != after && ${outcome_of[$1]} == @(failed|partial|lost) ]] || return 0
  hold::forgiven "$2" || fail_fast_counted[$1]=1
}

fail_fast::forgive() { # <session> : it starts again
  unset "fail_fast_counted[$1]"
}

fail_fast::recount() { # [function: whether one that has ended, SESSION ATTEMPT, goes on] : all anew, as their ends tell
  local name
  fail_fast_counted=()
  for name in "${order[@]}"; do
    [[ ${life_of[$name]} == ended && ${flag_of[$name]} != dropped ]] || continue
    [[ ${outcome_of[$name]} == @(failed|partial|lost) ]] || continue
    [[ ! ${1-} ]] || ! "$1" "$name" "${attempt_of[$name]}" || continue
    record::read "$run/sessions/$name/attempt-${attempt_of[$name]}/end"
    fail_fast::heed "$name" "${record[ended]-}"
  done
}

fail_fast::look() { # not only when one ends. A hold needs no second reason: who lifts it forgives what had failed
  hold::look
  [[ $hold ]] || ((left == 0)) || fail_fast::check
}

fail_fast::check() {
  local all why='' count=${#fail_fast_counted[@]}
  ((count && (policy[fail_fast] || policy[fail_fast_percent]))) || return 0
  queue::size
  ((policy[fail_fast] && count >= policy[fail_fast])) && why="the limit is ${policy[fail_fast]}"
  ((policy[fail_fast_percent] && all && count * 100 >= policy[fail_fast_percent] * all)) &&
    why="the limit is ${policy[fail_fast_percent]} %"
  [[ ! $why ]] || dispatch::halt "$count of $all sessions ended without success; $why"
}
