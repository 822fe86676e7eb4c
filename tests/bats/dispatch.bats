#!/usr/bin/env bats
# The small pure parts of the dispatcher: names in tmux and screen, GPU grants, markers, outcomes.

# shellcheck disable=SC2016,SC2034,SC2154 # literal dollars are meant; values come through variables
load library

setup() {
  source_library record end evidence marker attempt multiplexer clock policy request gpus measure measured promise lease leased room
  measure_answer=1 memory_asked=0
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

pick() { # <how many> <expected, `none` when they are not to be had>
  local chosen=none
  request::read asking "$1"
  gpus::pick "${kind_of[asking]}" asking || chosen=none
  same "$chosen" "$2"
}

@test "the least loaded GPUs are picked, in the order in which they are allowed, and given in that of their numbers" {
  gpus::allow 2,0,5,10 9
  pick 1 2
  pick 2 0,2
  request::read somebody 1
  promise::take somebody 2
  pick 1 0
  pick 4 0,2,5,10
  pick 5 none
  pick 0 ''
}

@test "no GPU gets more than its limit or than its cap, and what is given back is free again" {
  gpus::allow 0,1 2
  local who
  for who in a b c; do request::read "$who" 1; done
  promise::take a 0
  promise::take b 0
  pick 1 1
  pick 2 none
  gpus::cap 1 1
  promise::take c 1
  pick 1 none
  pick 0 ''
  promise::give_back a
  pick 1 0
}

@test "who says nothing of its memory has its GPU alone, unless a limit is said" {
  gpus::allow 0,1 0
  request::read a 1
  promise::take a 0
  pick 2 none
  pick 1 1
}

@test "what is no list of GPUs allows none" {
  gpus::allow - 4
  same "${#gpus_allowed[@]}" 0
  gpus::allow '0,x[$(touch pwned)],1' 0
  same "${gpus_allowed[*]}" '0 1'
  pick 1 0
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
class=crashed
completeness=partial
records=7
successes=3
peak_memory_kib=
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

@test "a window that is opened ahead does not spoil the end of a session that never begins" {
  mv() { # between what is written and its place
    end::reserve "$run/sessions/a_b/attempt-1"
    command mv "$@"
  }
  attempt::forestall a_b 1 stopped 'before it began'
  unset -f mv
  record::read "$run/sessions/a_b/attempt-1/end"
  same "${record[cause]}/${record[note]}" 'stopped/before it began'
}

@test "the latest attempt is the highest that somebody granted, claimed or ended" {
  mkdir -p "$run"/sessions/a_b/attempt-{1,2,10,11,x}
  : >"$run/sessions/a_b/attempt-2/claim"
  echo gpus= >"$run/sessions/a_b/attempt-10/grant"
  : >"$run/sessions/a_b/attempt-11/grant" # cut off before anything was in it
  : >"$run/sessions/a_b/attempt-x/claim"
  local attempt
  attempt::latest a_b
  same "$attempt" 10
  attempt::latest nobody
  same "$attempt" 0
}

@test "what opens a window ignores no INT and no QUIT, though the dispatcher does" {
  mkdir "$run/dispatch"
  trap '' HUP INT QUIT
  mux::quietly grep SigIgn /proc/self/status
  wait "$!"
  trap - HUP INT QUIT
  local ignored
  read -r _ ignored <"$run/dispatch/out"
  same $((16#$ignored & 6)) 0
}
