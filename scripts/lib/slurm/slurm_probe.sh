# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_probe.sh: what a look at a run says besides when Slurm starts its sessions. To be sourced by probe.sh. One squeue
# for the whole run, and none while the last answer is young.
#
#   slurm at=<time of the last answer> answered=<0|1: this time> why=<its complaint>
#   task session=<name> attempt=<n> job=<id_index> id=<job id> state=<STATE> node=<name> start=<time> reason=<text>

source "${BASH_SOURCE[0]%/*}/slurm_life.sh"

slurm_probe::open() { # an answer of before the last submission knows nothing of that
  local most=${COMBORUN_ASK_S:-2}
  [[ $run/slurm/jobs -nt $run/slurm/states && ! -e $run/slurm/silent ]] && most=0
  slurm_answered=1
  slurm_state::refresh "$most" || slurm_answered=0
  slurm_state::read
}

slurm_probe::dispatcher() { # -> record[pid]: 0 while Slurm has something that goes on with the run
  record[pid]=''
  ((${#task_state[@]})) && record[pid]=0
  return 0
}

slurm_probe::tell() { # lines of the header
  local id name attempt
  local -A start_of=()
  printf 'slurm at=%s answered=%s why=%s\n' "$slurm_at" "$slurm_answered" "$slurm_why"
  slurm_probe::starts
  for id in "${!task_session[@]}"; do
    name=${task_session[$id]}
    slurm_probe::attempt "$id" || continue
    printf 'task session=%s attempt=%s job=%s id=%s state=%s node=%s start=%s reason=%s\n' "$name" "$attempt" "$id" \
      "${task_job[$id]}" "${task_state[$id]}" "${task_node[$id]}" "${start_of[${task_start[$id]}]-}" "${task_reason[$id]}"
  done
}

slurm_probe::attempt() { # <id_index> -> attempt: the one that it makes, or will; 1 when it has nothing to do any more
  attempt::latest "$name"
  ((attempt < task_attempt[$1])) && attempt=${task_attempt[$1]} && return
  local at=sessions/$name/attempt-$attempt
  record::read "$at/claim"
  [[ ${record[job]-} == "$1" ]] || return
  if [[ ${task_state[$1]} == @(PENDING|REQUEUED|REQUEUE_HOLD) && ! $at/claim -nt slurm/states ]]; then
    attempt=$((attempt + 1)) # Slurm starts it anew
  elif [[ -e $at/end ]]; then
    return 1
  fi
}

slurm_probe::starts() { # -> start_of: as squeue writes it -> seconds since 1970. One process for all
  local id i texts=() seconds=()
  local -A wanted=()
  for id in "${!task_start[@]}"; do
    [[ ${task_start[$id]} =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}$ ]] && wanted[${task_start[$id]}]=1
  done
  ((${#wanted[@]})) || return 0
  texts=("${!wanted[@]}")
  mapfile -t seconds < <(printf '%s\n' "${texts[@]}" | date -f - +%s 2>/dev/null)
  ((${#seconds[@]} == ${#texts[@]})) || return 0
  for i in "${!texts[@]}"; do start_of[${texts[i]}]=${seconds[i]}; done
}
