# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# fail_fast.sh: halt a run in which too many sessions have ended for good without success, as a number or as a share of
# all. To be sourced by dispatch.sh. What had failed when a person last said `resume` counts no more.

fail_fast_count=0 # sessions

fail_fast::heed() { # <session> <time of its end> : it has ended for good
  [[ $1 != after && ${outcome_of[$1]} == @(failed|partial|lost) ]] || return 0
  hold::forgiven "$2" && return
  fail_fast_count=$((fail_fast_count + 1))
}

fail_fast::forgive() { # one of them starts again
  ((fail_fast_count == 0)) || fail_fast_count=$((fail_fast_count - 1))
}

fail_fast::check() {
  local all why=''
  ((policy[fail_fast] || policy[fail_fast_percent])) || return 0
  queue::size
  ((policy[fail_fast] && fail_fast_count >= policy[fail_fast])) && why="the limit is ${policy[fail_fast]}"
  ((policy[fail_fast_percent] && all && fail_fast_count * 100 >= policy[fail_fast_percent] * all)) &&
    why="the limit is ${policy[fail_fast_percent]} %"
  [[ $why ]] && ((fail_fast_count)) || return 0
  dispatch::halt "$fail_fast_count of $all sessions ended without success; $why"
}
