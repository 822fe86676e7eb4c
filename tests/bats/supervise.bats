#!/usr/bin/env bats
# supervise.sh: how a supervisor hears of its command's end.

# shellcheck disable=SC2030,SC2031,SC2034,SC2154,SC2317 # values come through variables; await calls the stand-ins
load library

setup() {
  source_library record supervise
  cd "$BATS_TEST_TMPDIR" || return
  pid=4194305 pid_start=1 waits='' # above every pid that there can be: it is gone
  wait() {
    waits+=x
    return 143
  }
}

@test "a command that the shell has reaped without knowing it is not waited for again, and its code is unknown" {
  jobs() { printf '%s\n' 17 "$pid" 18; }
  supervise::await || true # as the library calls it, without -e
  same "$code/$waits" /x
}

@test "a command whose end the shell knows has the code that it tells, whatever signal came just then" {
  jobs() { printf '%s\n' 17 "1$pid"; }
  supervise::await || true # as the library calls it, without -e
  same "$code/$waits" 143/xx
}
