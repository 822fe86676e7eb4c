#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# control.sh RUN VERB [ARG]...: steer a run. Nothing is ended by it; what it decides is in files, so the dispatcher need
# not live, and one that lives is told. A line on standard output for each thing done.
#
#   pause [WHY]     nothing new starts                          slots N           so many may run at once
#   drain [WHY]     the same, and the dispatcher leaves then    retry NAME...     another attempt, with fresh budgets
#   resume          no hold and no quarantine any more          retry --failed    failed, partial and lost ones
#   notify          a test notice through the grid's command    retry --stalled   those that were ended for a stall
#   decided NAME... standard input tells what was decided; these sessions need not begin any more
#
#   0: done    1: nothing of it could be done    64: usage, or no such session    66: no run directory
#   69: the grid has no `notify`    73: can't write    else, for notify: the code of its command
set -uo pipefail
unset COMBORUN_SESSION

library=${BASH_SOURCE[0]%/*}
source "$library/base/record.sh"
source "$library/base/clock.sh"
source "$library/attempt/evidence.sh"
source "$library/attempt/end.sh"
source "$library/attempt/attempt.sh"
source "$library/base/policy.sh"
source "$library/attempt/retry.sh"
source "$library/base/hold.sh"
source "$library/notice/notice.sh"
source "$library/control/again.sh"
source "$library/control/decided.sh"

control::main() { # <run> <verb> [arg]...
  run=$(cd -- "${1-}" 2>/dev/null && pwd)
  read -r run_id 2>/dev/null <"$run/id" || control::die 66 "${1:-RUN} is no run directory"
  shift
  policy::read "$run/dispatch/policy.tsv"
  [[ ! -e $run/dispatch/engine ]] || { source "$library/slurm/slurm_control.sh" && slurm_control::open; }
  local verb=${1-}
  (($#)) && shift
  case $verb in
    pause) control::hold paused "${*:-by hand}" ;;
    drain) control::hold draining "${*:-by hand}" ;;
    resume) control::resume ;;
    slots) control::slots "${1-}" ;;
    retry) control::retry "$@" ;;
    notify) control::notify ;;
    decided) control::decided "$@" ;;
    *) control::die 64 "what is ${verb:-the verb}? usage: RUN pause|drain|resume|slots N|retry NAME...|notify|decided" ;;
  esac
  local rc=$?
  [[ ! ${slurm_run-} ]] || slurm_control::heed "$verb" "$@"
  return "$rc"
}

control::die() { # <code> <message>
  printf 'control: %s\n' "$2" >&2
  exit "$1"
}

control::tell() { # <message> : the dispatcher, if there is one; <> never waits for a reader
  [[ -p $run/dispatch/fifo ]] && printf '%s\n' "$1" 1<>"$run/dispatch/fifo"
  return 0
}

control::hold() { # <kind> <why>
  local hold hold_why hold_halted goes_on='what runs goes on'
  hold::look
  [[ ! -e $run/dispatch/done ]] || goes_on='the run has ended, so what may be added to it later waits'
  hold::order "$1" "$2" || control::die 73 "can't write in $run/dispatch"
  control::tell 'reread run 0'
  printf '%s: %s\n' "$run_id" "$1: nothing new starts; $goes_on${hold:+; it was $hold ($hold_why)}"
}

control::resume() { # and what led to a hold is forgiven
  local file now hold hold_why gone=()
  hold::look
  for file in hold quarantine breaker fewer stopped; do
    [[ -e $run/dispatch/$file ]] && gone+=("$run/dispatch/$file")
  done
  record::now
  record::write "$run/dispatch/resumed" "at=$now" || control::die 73 "can't write in $run/dispatch"
  ((${#gone[@]} == 0)) || rm -f -- "${gone[@]}" || control::die 73 "can't write in $run/dispatch"
  control::tell 'reread run 0'
  if ((${#gone[@]})); then
    printf '%s: %s\n' "$run_id" "may go on${hold:+; it was $hold ($hold_why)}"
  else
    printf '%s: %s\n' "$run_id" 'was not held'
  fi
}

control::slots() { # <number>
  [[ $1 =~ ^[1-9][0-9]{0,5}$ ]] || control::die 64 'slots wants a number from 1; pause starts nothing new'
  record::write "$run/dispatch/slots" "$1" || control::die 73 "can't write in $run/dispatch"
  control::tell 'reread run 0'
  printf '%s: %s\n' "$run_id" "$1 may run at once"
}

control::notify() { # in the foreground: what the command prints is the answer
  [[ -e $run/dispatch/notify.sh ]] || control::die 69 'the grid of this run has no notify'
  notice::hand_over test '' 'a test: this is what a notice looks like' '' || return
  printf '%s: %s\n' "$run_id" 'the command took a test notice, and ended with 0'
}

control::main "$@"
