#!/usr/bin/env bats
# slurm_words.sh, slurm_state.sh, slurm_life.sh, slurm_close.sh, slurm_due.sh: what is told from files and from an answer of
# squeue, without a Slurm.

# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # values come through variables; each test has a shell of its own
load library

setup() {
  source_library record clock evidence end attempt policy retry slurm_life slurm_due slurm_lock
  run=$BATS_TEST_TMPDIR/grid-20260101T000000Z-abcd run_id=grid-20260101T000000Z-abcd
  mkdir -p "$run"/{sessions/env_one/attempt-1,slurm/out,dispatch}
  cd "$run" || return
  at=$run/sessions/env_one/attempt-1
  printf 'env_one\t0\t-\n' >dispatch/queue.tsv
  printf 'attempts\t3\nretry_lost\t1\nretry_crashed\t1\n' >dispatch/policy.tsv
  policy::read dispatch/policy.tsv
}

try() { # <command>... : as the library calls it, where a part of it may fail
  "$@" || true
}

refused() { # <command>...
  if "$@"; then return 1; fi
}

means() { # <text of the task's output> <cause, or nothing>
  local cause='' note=''
  printf '%s\n' "$1" >slurm/out/7_0
  slurm_words::find "$run/slurm/out/7_0" 0 || cause=''
  same "$cause" "$2"
}

answer() { # <line of squeue>...
  printf '%s\n' "at=$EPOCHREALTIME" "$@" >slurm/states
  try slurm_state::read
}

claimed() { # <nonce> [task] : long ago
  printf '%s\n' boot=elsewhere count=1 "nonce=$1" "job=${2:-7_0}" restart=0 >"$at/claim"
  touch -d '1 hour ago' "$at/claim"
}

@test "why Slurm ended a task is told in its own words" {
  local cancelled='slurmstepd-n1: error: *** JOB 2 ON n1 CANCELLED AT 2026-11-22T06:06:43'
  means "$cancelled ***" stopped
  means "$cancelled DUE TO TIME LIMIT ***" timed_out
  means "$cancelled DUE TO PREEMPTION ***" preempted
  means "$cancelled DUE TO JOB REQUEUE ***" preempted
  means "$cancelled DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***" lost
  means $'slurmstepd: error: Exceeded job memory limit\n'"$cancelled ***" host_memory
  means 'slurmstepd: error: Detected 1 oom-kill event(s) in StepId=2.batch. Some of the step tasks have been OOM Killed.' host_memory
  means 'the program says: CANCELLED AT once DUE TO TIME LIMIT' ''
  means '' ''
}

@test "what Slurm said of an earlier start is passed over" {
  local cause='' note=''
  printf 'slurmstepd: error: *** JOB 2 ON n1 CANCELLED AT x DUE TO PREEMPTION ***\n' >slurm/out/7_0
  refused slurm_words::find slurm/out/7_0 "$(stat -c %s slurm/out/7_0)"
}

@test "an attempt lives while Slurm has its task, and while its heart beats" {
  claimed feed
  answer '7_0|RUNNING|n1|9|N/A|grid-20260101T000000Z-abcd.1|None'
  try attempt::glance "$at"
  same "$life" running
  answer '7_0|PENDING||9|N/A|grid-20260101T000000Z-abcd.1|Priority'
  try attempt::glance "$at"
  same "$life" lost
  answer
  try attempt::glance "$at"
  same "$life" lost
  : >"$at/beat"
  try attempt::glance "$at"
  same "$life" running
  touch -d '1 hour ago' "$at/beat"
  try attempt::glance "$at"
  same "$life" lost
}

@test "a heart counts where no clock file can be made, and one of which nothing can be told is not silent" {
  claimed feed
  answer
  mv slurm kept && ln -s kept/nowhere slurm # as on a file system that is full
  refused slurm::silent "$run/sessions/nothing"
  : >"$at/beat"
  refused slurm::silent "$at"
  touch -d '1 hour ago' "$at/beat"
  same "$(slurm::silent "$at" && printf silent)" silent
}

@test "drafts of two nodes have different names, whatever their pids" {
  mv() { printf '%s\n' "${@: -2:1}" >>"$BATS_TEST_TMPDIR/drafts"; }
  HOSTNAME=n1 record::write "$run/slurm/states" 'at=1'
  HOSTNAME=n2.cluster record::write "$run/slurm/states" 'at=2'
  same "$(sort -u "$BATS_TEST_TMPDIR/drafts" | wc -l)" 2
}

@test "a Slurm that is silent changes nothing, and neither does an answer that is older than the claim" {
  claimed feed
  answer
  printf '%s\n' since=1 why=silence >slurm/silent
  try slurm_state::read
  try attempt::glance "$at"
  same "$life" running
  rm slurm/silent
  try slurm_state::read
  touch -d '1 hour ago' slurm/states
  touch "$at/claim"
  try attempt::glance "$at"
  same "$life" running
}

@test "an end counts with the nonce of its claim, and the first one counts" {
  claimed feed
  answer '7_0|RUNNING|n1|9|N/A|grid-20260101T000000Z-abcd.1|None'
  printf '%s\n' cause=exited code=0 nonce=beef >"$at/end"
  try attempt::glance "$at"
  same "$life" running
  try slurm_close::attempt env_one 1 lost 'first'
  try attempt::glance "$at"
  same "$life/${record[note]}" ended/first
  refused slurm_close::attempt env_one 1 lost 'second'
  printf '%s\n' cause=exited nonce=feed >"$at/.end"
  refused slurm_close::publish "$at/.end" "$at/end"
  record::read "$at/end"
  same "${record[note]}" first
}

@test "what a closed attempt shows does not grow with what its process writes" {
  claimed feed
  printf 'results=*.jsonl\n' >>"$at/claim"
  mkdir "$at/out-feed" && ln -s out-feed "$at/out"
  printf '{"episode": 0}\n' >"$at/out-feed/records.jsonl"
  exec {old}>>"$at/out-feed/records.jsonl"
  try slurm_close::attempt env_one 1 lost 'given up'
  printf '{"episode": 1}\n' >&"$old"
  printf '{"episode": 2}\n' >>"$at/out-feed/records.jsonl"
  same "$(cat "$at/out/records.jsonl")" '{"episode": 0}'
  same "$(wc -l <"$at/out-feed/records.jsonl")" 3
  record::read "$at/end"
  same "${record[records]}" 1
}

@test "what is on its way is not due, and neither is what Slurm starts again" {
  try due::rows
  try due::look
  try due::list 0
  same "${due[*]}/$left" env_one/1
  printf '0\tenv_one\t1\n' >slurm/batch-1.tsv
  answer '7_0|PENDING||9|N/A|grid-20260101T000000Z-abcd.1|Priority'
  try due::look
  try due::list 0
  same "${due[*]}/$left" /1
  claimed feed
  try slurm_close::attempt env_one 1 preempted ''
  try due::look
  try due::list 0
  same "${due[*]}/$left" /1
  answer
  try due::look
  try due::list 0
  same "${due[*]}/$left" env_one/1
}

@test "a task that is over does not keep its session from another one" {
  printf '0\tenv_one\t1\n' >slurm/batch-1.tsv
  answer '7_0|COMPLETING|n1|9|N/A|grid-20260101T000000Z-abcd.1|None'
  claimed feed
  try slurm_close::attempt env_one 1 lost ''
  try due::rows
  try due::look
  try due::list 0
  same "${due[*]}/$left" env_one/1
}

@test "the lock is never taken from a holder that lives here, and of another machine only when it was not renewed" {
  source_library slurm_batch
  try slurm_lock::take 0
  touch -d '1 hour ago' dispatch/slurm.lock
  local mine=$slurm_lock_draft
  refused slurm_lock::take 0
  slurm_lock_draft=$mine
  sed -i 's/^boot=.*/boot=elsewhere/' "$mine" && ln -f "$mine" dispatch/slurm.lock
  touch -d '1 hour ago' dispatch/slurm.lock
  timeout() { return 1; } # an sbatch that hangs until it is ended
  refused batch::sbatch job
  refused slurm_lock::take 0
  touch -d '1 hour ago' dispatch/slurm.lock
  slurm_lock::take 0
}

@test "the lock is had once, and taken from a holder that is gone" {
  try slurm_lock::take 0
  local mine=$slurm_lock_draft
  refused slurm_lock::take 0
  slurm_lock_draft=$mine
  try slurm_lock::give
  [[ ! -e dispatch/slurm.lock ]]
  read -r boot </proc/sys/kernel/random/boot_id
  printf '%s\n' host=x "boot=$boot" pid=4194304 start=1 >dispatch/slurm.lock
  try slurm_lock::take 0
  same "$(find dispatch -name '.slurm.*.gone' | wc -l)" 0
}

@test "what has ended meanwhile is no refusal, and a Slurm that is silent is asked once" {
  timeout() { printf x >>asked && printf '%s\n' "$words" >&2 && return "$code"; }
  local refusal code=1 words=$'27_0: Job has already finished\n27_1-9: No error'
  try slurm_state::order scontrol hold 27
  same "$refusal" ''
  words='scontrol: error: Access/permission denied'
  refused slurm_state::order scontrol hold 27
  same "$refusal" "$words"
  rm asked
  words='' code=124
  refused slurm_state::ask
  refused slurm_state::order scontrol hold 27
  slurm_unheard=''
  refused slurm_state::refresh 2
  refused slurm_state::order scontrol hold 27
  same "$(<asked)" x
  refused slurm_state::refresh 0
  same "$(<asked)" xx
}

@test "a settle job that Slurm could not start is let go with the tasks, and held with none" {
  source_library slurm_hold
  local refusal='' told=''
  slurm_state::order() { told+="${*:2} "; }
  printf '0\tenv_one\t1\n' >slurm/batch-1.tsv
  answer '7_0|PENDING||9|N/A|grid-20260101T000000Z-abcd.1|Priority' \
    '8|PENDING||8|N/A|grid-20260101T000000Z-abcd.settle|launch failed requeued held'
  slurm_hold::requeued
  slurm_hold::release
  slurm_hold::take
  same "$told" 'release 7,8 hold 7 '
  answer '8|PENDING||8|N/A|grid-20260101T000000Z-abcd.settle|Dependency'
  refused slurm_hold::requeued
}
