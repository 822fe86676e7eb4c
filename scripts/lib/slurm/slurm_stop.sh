# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR/..
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_stop.sh: end sessions on other machines. To be sourced by stop.sh, in the place of signals: INT and TERM go through
# Slurm to the supervisor, which ends its command and sweeps its own node; KILL is Slurm's own. Where Slurm does not answer,
# each supervisor finds the record `stop` by itself within seconds, as long as it reaches the files.

source "$library/slurm/slurm_life.sh"

slurm_stop::open() { # <names on the command line> [name]... : what waits in the queue goes first
  local id ids=() number=$1
  shift
  slurm_stop::ask
  for id in "${!task_state[@]}"; do
    ((number)) && [[ " $* " != *" ${task_session[$id]:--} "* ]] && continue # a settle job is of no session
    [[ ${task_state[$id]} == PENDING || ! ${task_session[$id]-} ]] && ids+=("$id")
  done
  slurm_stop::cancel "${ids[@]}"
}

slurm_stop::ask() {
  [[ -s $run/slurm/jobs ]] && { slurm_state::ask || printf 'stop: Slurm does not answer\n' >&2; }
  slurm_state::read
  slurm_stop_asked=$SECONDS
}

slurm_stop::cancel() { # [option] <id_index>... : 1 when Slurm does not do it
  local option=''
  [[ ${1-} != --* ]] || { option=$1 && shift; }
  (($#)) || return 0
  # shellcheck disable=SC2086 # options without blanks, or none
  slurm_state::order scancel $option "$@"
}

stop::signal() { # <signal> : to the supervisors of those that are to end
  local name id ids=()
  for name in "${active[@]}"; do
    record::read "$run/sessions/$name/attempt-${attempt_of[$name]}/claim" || continue
    [[ ${record[job]-} =~ ^[0-9]+(_[0-9]+)?$ ]] && ids+=("${record[job]}")
  done
  case $1 in
    KILL) slurm_stop::cancel "${ids[@]}" ;;
    *)
      # shellcheck disable=SC2086 # one word each
      slurm_stop::cancel_batch "$1" "${ids[@]}"
      ;;
  esac || printf 'stop: Slurm does not pass it on (%s); the sessions look for themselves\n' "$refusal" >&2
}

slurm_stop::cancel_batch() { # <signal> <id_index>...
  local signal=$1
  shift
  (($#)) || return 0
  slurm_state::order scancel --batch --signal="$signal" "$@"
}

slurm_stop::look() { # every two seconds, or when it was silent every twenty: which of them Slurm still has
  ((SECONDS - slurm_stop_asked < (${#slurm_unheard} ? 20 : 2))) || slurm_stop::ask
}

stop::name_supervisor() { # <session> : where it is, since no pid of another machine says anything here
  record::read "$run/sessions/$1/attempt-${attempt_of[$1]}/claim" || return 0
  [[ ! ${record[job]-} ]] ||
    printf 'survives: task %s on %s: scancel %s\n' "${record[job]}" "${record[node]:-a node}" "${record[job]}"
}
