# shellcheck shell=bash
# shellcheck disable=SC2034 # values are handed on through variables that the callers name
# slurm_words.sh: why Slurm ended a task, in its own words. To be sourced. slurmstepd writes them into the task's output
# (slurm/out/<job>_<index>) before it signals, so that no question to the controller is needed: a thousand tasks that end
# together must not ask a thousand times.

slurm_words::find() { # <file> <bytes of it that are of earlier starts> -> cause note; 1 when it says nothing of the kind
  local lines line i from=$2
  [[ $from =~ ^[0-9]{1,18}$ ]] || from=0
  mapfile -t lines < <(tail -c "+$((10#$from + 1))" -- "$1" 2>/dev/null | tail -n 50 | tr -d '\000')
  for ((i = ${#lines[@]} - 1; i >= 0; i--)); do
    line=${lines[i]}
    [[ $line == *slurmstepd* ]] && slurm_words::mean "$line" && return
  done
  return 1
}

slurm_words::mean() { # <line> -> cause note
  case ${1,,} in
    *'oom-kill'* | *'oom_kill'* | *'memory limit'*) cause=host_memory ;;
    *'due to time limit'*) cause=timed_out ;;
    *'due to preemption'* | *'due to job requeue'*) cause=preempted ;;
    *'due to node failure'*) cause=lost ;;
    *'cancelled at'*) slurm_words::memory && return || cause=stopped ;;
    *) return 1 ;;
  esac
  note=${1#*error: }
  note="Slurm: ${note::160}"
}

slurm_words::memory() { # reads lines, i: that a task is cancelled for its memory is in the line before
  ((i > 0)) && [[ ${lines[i - 1],,} == *'memory limit'* ]] && slurm_words::mean "${lines[i - 1]}"
}

slurm_words::account() { # <state as sacct tells> -> cause note; 1 when that says nothing
  case $1 in
    TIMEOUT | DEADLINE) cause=timed_out ;;
    OUT_OF_MEMORY) cause=host_memory ;;
    PREEMPTED | REQUEUED) cause=preempted ;;
    NODE_FAIL | BOOT_FAIL) cause=lost ;;
    CANCELLED*) cause=stopped ;;
    *) return 1 ;;
  esac
  note="Slurm: $1"
}
