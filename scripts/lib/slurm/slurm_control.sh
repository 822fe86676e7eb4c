# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR/..
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_control.sh: what a person's word means for the tasks that Slurm has. To be sourced by control.sh, which has written
# it down already: a task that comes to its turn reads that, so this only keeps Slurm from starting what would leave again.

source "$library/slurm/slurm_life.sh"
source "$library/slurm/slurm_hold.sh"
source "$library/slurm/slurm_share.sh"

slurm_control::open() {
  [[ ! -s $run/slurm/jobs ]] || slurm_state::refresh 2
  slurm_state::read
}

slurm_control::heed() { # <verb> [name]...
  local verb=$1 refusal=''
  shift
  case $verb in
    pause | drain) slurm_hold::take ;;
    resume) slurm_hold::release ;;
    slots) share::again ;;
    decided) slurm_control::cancel "$@" ;;
  esac || slurm_control::refused
}

slurm_control::refused() { # reads refusal
  if [[ $slurm_unheard ]]; then
    printf '%s: %s\n' "$run_id" 'Slurm does not answer; tasks that come to their turn find this by themselves'
  else
    printf '%s: %s\n' "$run_id" "Slurm refuses: $refusal"
  fi
}

slurm_control::cancel() { # <session>... : tasks that wait for what has an end already
  local name id ids=()
  for name in "$@"; do
    for id in ${tasks_of[$name]-}; do [[ ${task_state[$id]} == PENDING ]] && ids+=("$id"); done
  done
  ((${#ids[@]} == 0)) || slurm_state::order scancel "${ids[@]}"
}
