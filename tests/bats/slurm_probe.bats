#!/usr/bin/env bats
# slurm_probe.sh: when a look at a run asks Slurm anew. What asks is replaced, so that it can be counted.

# shellcheck disable=SC2034,SC2154 # values come through variables; each test has a shell of its own
load library

setup() {
  source_library record clock evidence end attempt policy retry slurm_probe
  run=$BATS_TEST_TMPDIR/grid-20260101T000000Z-abcd run_id=grid-20260101T000000Z-abcd
  mkdir -p "$run/slurm"
  printf 'at=%s\n' "$EPOCHREALTIME" >"$run/slurm/states"
  asked=0
}

@test "an answer that is young is not asked for again, unless more was submitted since" {
  slurm_state::ask() { asked=$((asked + 1)); }
  slurm_probe::open
  same "$asked" 0
  printf '7\t1\t1\t2\t0\n' >"$run/slurm/jobs"
  touch -d '1 hour ago' "$run/slurm/jobs"
  slurm_probe::open
  same "$asked" 0
  touch -d '1 second' "$run/slurm/jobs"
  slurm_probe::open
  same "$asked" 1
}
