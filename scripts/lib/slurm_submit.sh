#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_submit.sh RUN [--parallel N] [--secrets -]: hand what is due of a run to Slurm; safe to repeat, from any machine
# that has sbatch. What it does is told on standard output. With `--secrets -` those of the laptop are on standard input.
#
#   0: submitted, or nothing is due    64: usage    66: no run directory    69: no sbatch here    73: can't write there
#   75: Slurm does not answer, or somebody else submits just now    78: a secret is missing, or Slurm refuses
set -uo pipefail
unset COMBORUN_SESSION

library=${BASH_SOURCE[0]%/*}
source "$library/slurm/slurm_library.sh"

submit::die() { # <code> <message>
  printf 'slurm_submit: %s\n' "$2" >&2
  exit "$1"
}

submit::main() { # <run> [option]...
  local parallel='' given=''
  run=$(cd -- "${1-}" 2>/dev/null && pwd)
  read -r run_id 2>/dev/null <"$run/id" || submit::die 66 "${1:-RUN} is no run directory"
  shift
  while (($#)); do
    case $1 in
      --parallel) parallel=${2-none} ;;
      --secrets) given=${2-none} ;;
      --multiplexer) ;;
      *) submit::die 64 "what is $1? usage: [--parallel N]" ;;
    esac
    shift $(($# > 1 ? 2 : 1))
    [[ -z $parallel || $parallel =~ ^[1-9][0-9]{0,5}$ ]] || submit::die 64 '--parallel wants a number from 1'
    [[ $given == @(|-) ]] || submit::die 64 '--secrets wants -'
  done
  type -P sbatch >/dev/null || submit::die 69 'there is no sbatch on this machine'
  secrets::gather "$given" || submit::die 78 'nothing was submitted'
  mkdir -p -- "$run/slurm/out" || submit::die 73 "can't write in $run/slurm"
  [[ -z $parallel ]] || record::write "$run/dispatch/slots" "$parallel" || submit::die 73 "can't write in $run/dispatch"
  slurm_lock::take "${COMBORUN_LOCK_S:-60}" || submit::die 75 'somebody else submits or settles this run just now'
  trap slurm_lock::give EXIT
  rm -f -- "$run/dispatch/stopped"
  submit::due
}

submit::due() { # under the lock
  local due left lost stray gone name life rc=0
  slurm_run::look || submit::die 75 "Slurm does not answer: $slurm_why"
  slurm_run::clear
  hold::look
  [[ ! $hold ]] || { submit::held && return; }
  submit::release
  slurm_run::wait_out "${lost[@]}" || submit::die 75 "Slurm does not answer: $slurm_why"
  slurm_run::bury "${lost[@]}" # only a person submits, and asks by that for what was lost
  due::list 1
  smoke::hold_back
  if ((${#due[@]})); then
    rm -f -- "$run/dispatch/done"
    batch::submit "${due[@]}" || rc=78
    slurm_run::journal "submitted $batch_sessions sessions jobs ${batch_jobs[*]}"
    printf 'submitted %s of %s sessions: job %s\n' "$batch_sessions" "${#due[@]}" "${batch_jobs[*]:-none}"
    ((rc == 0)) || submit::die "$rc" "Slurm refuses: $batch_complaint"
  elif ((left)); then
    printf '%s sessions are on their way; nothing else is due\n' "$left"
  elif [[ -e $run/dispatch/done ]] && ! finish::wants_after; then
    secrets::forget
    printf 'nothing is left to do\n'
  else
    rm -f -- "$run/dispatch/done" # written anew, with what comes of another `after`
    batch::settle_after || submit::die 78 "Slurm refuses: $batch_complaint"
    printf 'all sessions have ended; job %s ends the run\n' "$id"
  fi
}

submit::release() { # what was held and may go on, and what Slurm could not start: a person asks for that, too
  local refusal=''
  slurm_hold::ours || slurm_hold::requeued || return 0
  slurm_hold::release || submit::die 75 "Slurm still holds tasks of the run: $refusal"
  printf 'Slurm holds no task any more\n'
}

submit::held() {
  printf 'the run is %s (%s). What lets it go on: bash %s %s resume\n' "$hold" "$hold_why" "${run@Q}/lib/control.sh" "${run@Q}"
}

submit::main "$@"
