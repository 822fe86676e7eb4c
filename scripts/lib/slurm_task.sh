#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_task.sh RUN BATCH: a task of an array: run the session that slurm/batch-<BATCH>.tsv has in the line of its index.
# Slurm may start a task again, while what it started before still lives on a node that it does not reach: every start
# makes an attempt of its own, and what an earlier one left open is closed first.
#
#   0: the end is on record, or it was not to run any more    64: no task of Slurm    66: no run directory, or no such line
#   73: can't write there
set -uo pipefail
unset COMBORUN_SESSION TMUX TMUX_PANE STY

library=${BASH_SOURCE[0]%/*}
source "$library/base/record.sh"
source "$library/base/clock.sh"
source "$library/attempt/evidence.sh"
source "$library/attempt/end.sh"
source "$library/attempt/attempt.sh"
source "$library/base/policy.sh"
source "$library/attempt/retry.sh"
source "$library/base/hold.sh"
source "$library/slurm/slurm_life.sh"

task::die() { # <code> <message>
  printf 'slurm_task: %s\n' "$2" >&2
  exit "$1"
}

task::main() { # <run> <batch>
  local name attempt planned hold hold_why
  run=$(cd -- "${1-}" 2>/dev/null && pwd)
  read -r run_id 2>/dev/null <"$run/id" || task::die 66 "${1:-RUN} is no run directory"
  cd -- "$run" || exit 66
  [[ ${2-} =~ ^[1-9][0-9]{0,8}$ ]] || task::die 64 'usage: RUN BATCH'
  [[ ${SLURM_ARRAY_JOB_ID-} =~ ^[0-9]+$ && ${SLURM_ARRAY_TASK_ID-} =~ ^[0-9]+$ ]] || task::die 64 'it is no task of an array'
  task_id=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
  task_restart=${SLURM_RESTART_COUNT:-0}
  [[ $task_restart =~ ^[0-9]{1,9}$ ]] || task_restart=0
  task::line "$2" || task::die 66 "slurm/batch-$2.tsv has no line $SLURM_ARRAY_TASK_ID"
  policy::read "$run/dispatch/policy.tsv"
  [[ ! -e $run/dispatch/stopped ]] || task::leave 'the run is stopped'
  hold::look
  [[ ! $hold ]] || task::leave "the run is $hold ($hold_why)"
  ! task::dropped || task::leave 'the grid was changed since, and the session is not part of the run any more'
  task::attempt
  task::run
}

task::line() { # <batch> -> name planned: waits for a file that this node may not see yet
  local index i listed
  for ((i = 0; i <= ${COMBORUN_SETTLE_S:-65}; i++)); do
    ((i == 0)) || sleep 1
    listed=("$run/slurm"/batch-*) # whatever this node remembers of the folder
    while IFS=$'\t' read -r index name planned; do
      [[ $index == "$SLURM_ARRAY_TASK_ID" ]] || continue
      [[ $name =~ ^[A-Za-z0-9_-]+$ && $planned =~ ^[1-9][0-9]{0,8}$ && -f $run/sessions/$name/session.sh ]] && return
    done 2>/dev/null <"$run/slurm/batch-$1.tsv"
  done
  return 1
}

task::dropped() { # whether its session was amended away while the task waited
  local session flag=''
  while IFS=$'\t' read -r session _ flag _; do
    [[ $session == "$name" ]] && break
    flag=''
  done 2>/dev/null <"$run/dispatch/queue.tsv"
  [[ $flag == dropped ]]
}

task::leave() { # <why> : nothing was begun
  printf 'slurm_task: %s: %s\n' "${name:-$task_id}" "$1"
  exit 0
}

task::attempt() { # -> attempt: the one to make
  local life
  attempt::latest "$name"
  if ((attempt < planned)); then
    attempt=$planned
    return
  fi
  record::read "$run/sessions/$name/attempt-$attempt/claim"
  [[ ${record[job]-} == "$task_id" ]] || task::leave "attempt $attempt was made by ${record[job]:-another}"
  [[ ${record[restart]-} =~ ^[0-9]{1,9}$ ]] || record[restart]=0
  ((10#${record[restart]} < task_restart)) || task::leave "attempt $attempt was made by this start, or a later one"
  attempt::glance "$run/sessions/$name/attempt-$attempt"
  [[ $life == ended ]] || task::close "$attempt"
  task::goes_on "$attempt" || task::leave "attempt $attempt has ended for good"
  attempt=$((attempt + 1))
}

task::close() { # <attempt> : of an earlier start of this task, whose end nobody wrote
  slurm_close::attempt "$name" "$1" lost "Slurm started its task again${SLURMD_NODENAME:+, on $SLURMD_NODENAME}; nobody saw its end"
}

task::goes_on() { # <attempt> : whether this start is to make another one
  local after class wait_ms outcome
  record::read "$run/sessions/$name/attempt-$1/end" || return
  [[ ! -e $run/sessions/$name/attempt-$1/stop ]] || return
  attempt::outcome
  [[ $outcome != @(succeeded|cancelled|not_needed) ]] || return
  [[ ${record[cause]-} == @(preempted|lost) ]] && return # that Slurm starts it again is no retry of ours
  retry::asked "$name"
  ((after >= $1)) || retry::due "$name" "$1"
}

task::run() { # becomes the session; another task that is here for the same attempt finds the claim and leaves
  exec bash "$run/sessions/$name/session.sh" "$attempt" slurm
}

task::main "$@"
