#!/usr/bin/env bats
# The small pure parts of the dispatcher: names in tmux and screen, GPU grants, markers, outcomes.

# shellcheck disable=SC2016,SC2034,SC2154 # literal dollars are meant; values come through variables
load library

setup() {
  source_library record end evidence marker attempt multiplexer gpus
  run=$BATS_TEST_TMPDIR run_id=bench-20260101T000000Z-9f3c
}

@test "a window is named after its session and its run, and its attempt from the second on" {
  mux::name stairs_flat 1
  same "$mux_name" stairs_flat_9f3c
  mux::name stairs_flat 12
  same "$mux_name" stairs_flat_9f3c_a12
}

@test "the multiplexer is the one that is wanted, or none" {
  mkdir "$BATS_TEST_TMPDIR/bin"
  printf '#!/bin/sh\n' >"$BATS_TEST_TMPDIR/bin/screen"
  chmod +x "$BATS_TEST_TMPDIR/bin/screen"
  local PATH=$BATS_TEST_TMPDIR/bin multiplexer
  mux::choose ''
  same "$multiplexer" screen
  run mux::choose tmux
  ((status))
}

choose() { # <how many> <expected, `none` when they are not to be had>
  local chosen=none
  gpus::choose "$1" || chosen=none
  same "$chosen" "$2"
}

@test "the least loaded GPUs are chosen, in the order in which they are allowed" {
  gpus::allow 2,0,5 0
  choose 1 2
  choose 2 2,0
  gpus::take 2
  choose 1 0
  choose 3 0,5,2
  choose 4 none
  choose 0 ''
}

@test "no GPU gets more than its limit, and what is given back is free again" {
  gpus::allow 0,1 1
  gpus::take 0
  choose 1 1
  choose 2 none
  gpus::take 1
  choose 1 none
  choose 0 ''
  gpus::give_back 0
  choose 1 0
}

@test "what is no list of GPUs allows none" {
  gpus::allow - 4
  same "${#gpus_allowed[@]}" 0
  gpus::allow '0,x[$(touch pwned)],1' 0
  same "${gpus_allowed[*]}" '0 1'
  choose 1 0
}

outcome_of() { # <completeness> <cause> <expected>
  record=([completeness]=$1 [cause]=$2)
  attempt::outcome
  same "$outcome" "$3"
}

@test "the outcome follows from completeness and cause" {
  outcome_of complete exited succeeded
  outcome_of complete stopped succeeded
  outcome_of complete lost succeeded
  outcome_of partial stopped cancelled
  outcome_of none stopped cancelled
  outcome_of partial lost lost
  outcome_of none lost lost
  outcome_of partial signal partial
  outcome_of none launch_failed failed
  outcome_of none exited failed
  outcome_of garbage unheard_of failed
}

@test "a marker finds its processes exactly, and a whole run's by its id" {
  local pids one ten
  COMBORUN_SESSION=$run_id/env_p1/1 sleep 30 3>&- &
  one=$!
  COMBORUN_SESSION=$run_id/env_p1/10 sleep 30 3>&- &
  ten=$!
  for _ in {1..100}; do # until both have become `sleep`
    marker::pids "$run_id/" && ((${#pids[@]} == 2)) && break
    sleep 0.02
  done
  marker::pids "$run_id/env_p1/1"
  same "${pids[*]}" "$one"
  marker::sweep "$run_id/env_p1/1" 0 5
  run marker::pids "$run_id/env_p1/1"
  ((status))
  kill -0 "$ten"
  marker::sweep "$run_id/" 0 5
}

@test "the end is written in the room that was set aside, and holds what people need" {
  local records=7 successes=3 completeness=partial
  mkdir -p "$run/sessions/a_b/attempt-2"
  end::reserve "$run/sessions/a_b/attempt-2"
  end::write "$run/sessions/a_b/attempt-2" 1.5 2.5 139 signal $'two\nlines'
  same "$(<"$run/sessions/a_b/attempt-2/end")" "attempt=2
started=1.5
ended=2.5
code=139
signal=11
cause=signal
completeness=partial
records=7
successes=3
note=two lines"
  same "$(ls -A "$run/sessions/a_b/attempt-2")" end
}

@test "who comes first before the beginning has the attempt" {
  attempt::forestall a_b 1 stopped 'before it began'
  record::read "$run/sessions/a_b/attempt-1/end"
  same "${record[cause]}/${record[note]}" 'stopped/before it began'
  run attempt::forestall a_b 1 launch_failed late
  ((status))
}

@test "the latest attempt is the highest that somebody granted, claimed or ended" {
  mkdir -p "$run"/sessions/a_b/attempt-{1,2,10,11,x}
  : >"$run/sessions/a_b/attempt-2/claim"
  : >"$run/sessions/a_b/attempt-10/grant"
  : >"$run/sessions/a_b/attempt-x/claim"
  local attempt
  attempt::latest a_b
  same "$attempt" 10
  attempt::latest nobody
  same "$attempt" 0
}
