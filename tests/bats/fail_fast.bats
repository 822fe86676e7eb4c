#!/usr/bin/env bats
# fail_fast.sh: which ends count, and when they are enough.

# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a process; values come through variables
load library

setup() {
  source_library record clock hold fail_fast
  run=$BATS_TEST_TMPDIR
  mkdir -p "$run/dispatch"
  declare -gA policy=([fail_fast]=2 [fail_fast_percent]=0)
  declare -gA life_of=() flag_of=() outcome_of=() attempt_of=()
  order=() left=1 halted=''
  resumed_ms=0
}

ends() { # <session> <outcome> <time>
  order+=("$1")
  life_of[$1]=ended outcome_of[$1]=$2 attempt_of[$1]=1 flag_of[$1]=''
  mkdir -p "$run/sessions/$1/attempt-1"
  printf 'ended=%s\n' "$3" >"$run/sessions/$1/attempt-1/end"
}

queue::size() { all=${#order[@]}; }
dispatch::halt() { halted=$1; }

counted() { # <session>... : just these do
  local names=("${!fail_fast_counted[@]}")
  same "$(printf '%s\n' "${names[@]}" | sort | tr '\n' ' ')" "$(printf '%s\n' "$@" | sort | tr '\n' ' ')"
}

@test "what had failed when a person said resume counts no more, in a dispatcher that lives" {
  ends a failed 1000000001.5
  ends b partial 1000000002.5
  ends c succeeded 1000000003.5
  fail_fast::heed a 1000000001.5
  fail_fast::heed b 1000000002.5
  fail_fast::check
  same "$halted" '2 of 3 sessions ended without success; the limit is 2'
  printf 'at=1000000003.0\n' >"$run/dispatch/resumed"
  hold::resumed
  ends d lost 1000000004.5
  halted=''
  fail_fast::recount
  fail_fast::check
  counted d
  same "$halted" ''
}

@test "neither what is no part of the run any more counts, nor what goes on" {
  ends a failed 1000000001.5
  ends b failed 1000000001.5
  ends c failed 1000000001.5
  flag_of[a]=dropped life_of[b]=queued
  fail_fast::recount
  counted c
  goes_on() { [[ $1/$2 == c/1 ]]; }
  fail_fast::recount goes_on
  same "${#fail_fast_counted[@]}" 0
}

@test "who starts again is forgiven once, and only if it was counted" {
  ends a failed 1000000001.5
  ends b failed 1000000009.5
  printf 'at=1000000005.0\n' >"$run/dispatch/resumed"
  hold::resumed
  fail_fast::recount
  fail_fast::forgive a
  fail_fast::forgive a
  counted b
  fail_fast::forgive b
  same "${#fail_fast_counted[@]}" 0
}

@test "what is found at a start halts the run, unless it is held already or has ended" {
  ends a failed 1000000001.5
  ends b failed 1000000002.5
  fail_fast::recount
  left=0
  fail_fast::look
  same "$halted" ''
  left=1
  printf 'kind=paused\n' >"$run/dispatch/hold"
  fail_fast::look
  same "$halted" ''
  rm "$run/dispatch/hold"
  fail_fast::look
  same "$halted" '2 of 2 sessions ended without success; the limit is 2'
}
