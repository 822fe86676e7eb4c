# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_hold.sh: tasks that Slurm is kept from starting, and is let start again. To be sourced; needs slurm_state.sh. A
# Slurm that is silent when a run may go on hears of it from whoever comes next: the mark stays until it was done.
#
#   slurm/held    is there from before tasks are held until they are let go

slurm_hold::take() { # -> refusal: 1 when Slurm did not do it
  local waiting
  slurm_hold::waiting
  [[ $waiting ]] || return 0
  : >"$run/slurm/held"
  slurm_state::order scontrol hold "$waiting"
}

slurm_hold::release() { # -> refusal: 1 when Slurm did not do it
  local waiting id
  slurm_hold::waiting
  for id in "${!task_state[@]}"; do # a settle job is never held by us, and the run may wait for it
    [[ ${task_session[$id]-} ]] || ! slurm_hold::is_requeued "$id" || waiting+=${waiting:+,}$id
  done
  if [[ $waiting ]]; then
    : >"$run/slurm/held"
    slurm_state::order scontrol release "$waiting" || return
  fi
  rm -f -- "$run/slurm/held"
}

slurm_hold::ours() { # whether tasks may be held that nobody wants to be
  [[ -e $run/slurm/held && ! -e $run/dispatch/hold ]]
}

slurm_hold::requeued() { # whether Slurm holds some that it could not start; a person is to say that it may try again
  local id
  for id in "${!task_state[@]}"; do
    slurm_hold::is_requeued "$id" && return
  done
  return 1
}

slurm_hold::is_requeued() { # <task or settle job>
  local said=${task_reason[$1]//_/ }
  [[ ${task_state[$1]} == PENDING && $said == *@('requeued held'|'requeued in held state')* ]]
}

slurm_hold::waiting() { # -> waiting: all arrays that have tasks in the queue, as scontrol wants them
  local id
  local -A seen=()
  waiting=''
  for id in "${!task_session[@]}"; do
    [[ ${task_state[$id]} == PENDING && ! ${seen[${id%_*}]-} ]] || continue
    seen[${id%_*}]=1 waiting+=${waiting:+,}${id%_*}
  done
}
