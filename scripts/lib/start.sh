#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# start.sh RUN [--parallel N] [--multiplexer tmux|screen] [--secrets -]: start the dispatcher of a run, or resume it; safe
# to repeat. With `--secrets -` those of the laptop are on standard input, each NAME=VALUE and a NUL.
#
#   0: a dispatcher lives, or nothing is left to do    64: usage    66: no run directory    69: no tmux and no screen
#   73: can't write there    75: something holds the run's locks    78: a secret is missing
set -uo pipefail
unset COMBORUN_SESSION

library=${BASH_SOURCE[0]%/*}
source "$library/base/record.sh"
source "$library/base/clock.sh"
source "$library/base/hold.sh"
source "$library/base/multiplexer.sh"
source "$library/base/secrets.sh"

start::die() { # <code> <message>
  printf 'start: %s\n' "$2" >&2
  exit "$1"
}

start::main() {
  local parallel='' wanted='' given='' multiplexer
  run=$(cd -- "${1-}" 2>/dev/null && pwd)
  [[ $run && -f $run/id ]] || start::die 66 "${1:-RUN} is no run directory"
  [[ ! -e $run/dispatch/engine ]] || exec bash "$library/slurm_submit.sh" "$run" "${@:2}"
  shift
  while (($#)); do
    case $1 in
      --parallel) parallel=${2-none} ;;
      --multiplexer) wanted=${2-none} ;;
      --secrets) given=${2-none} ;;
      *) start::die 64 "what is $1? usage: [--parallel N] [--multiplexer tmux|screen]" ;;
    esac
    shift $(($# > 1 ? 2 : 1))
    [[ -z $parallel || $parallel =~ ^[1-9][0-9]{0,5}$ ]] || start::die 64 "--parallel wants a number from 1"
    [[ $wanted == @(|tmux|screen) ]] || start::die 64 '--multiplexer wants tmux or screen'
    [[ $given == @(|-) ]] || start::die 64 '--secrets wants -'
  done
  start::choose "$wanted"
  [[ -z $parallel ]] || record::write "$run/dispatch/slots" "$parallel" || start::die 73 "can't write in $run/dispatch"
  start::prepare "$given"
  rm -f -- "$run/dispatch/stopped"
  start::dispatcher
}

start::prepare() { # [-] : what has to be there, and what has to go, before sessions start. One start at a time
  { exec 7>>"$run/dispatch/.start"; } 2>/dev/null || start::die 73 "can't write in $run/dispatch"
  flock -w 120 7 || start::die 75 "another start holds $run/dispatch/.start"
  trap start::leave EXIT
  secrets::gather "$1" || start::die 78 'nothing was started'
  bash "$library/replace.sh" "$run" 7>&-
}

start::leave() { # secrets stay while a dispatcher lives that is not done: it removes them when it is
  [[ -e $run/dispatch/secrets ]] || return
  start::signed && [[ ! -e $run/dispatch/done ]] && return
  exec 8>>"$run/dispatch/lock"
  flock -w 5 8 && secrets::forget
}

start::choose() { # [wanted] -> dispatch/multiplexer; without a wish what this run used before, then tmux, then screen
  local before=''
  [[ -e $run/dispatch/multiplexer ]] && read -r before <"$run/dispatch/multiplexer"
  if [[ $1 ]]; then
    mux::choose "$1" || start::die 69 "there is no $1 on this machine"
  elif [[ $before != @(tmux|screen) ]] || ! mux::choose "$before"; then
    mux::choose || start::die 69 "there is neither tmux nor screen on this machine: install one of them"
  fi
  record::write "$run/dispatch/multiplexer" "$multiplexer" || start::die 73 "can't write in $run/dispatch"
}

start::dispatcher() { # until one lives; a lock without a dispatcher is one that just died, or has yet to sign
  local tries pid code
  for ((tries = 0; tries < 100; tries++)); do
    start::detach
    while kill -0 "$pid" 2>/dev/null; do
      start::signed && [[ ${record[pid]} == "$pid" ]] && break
      sleep 0.02
    done
    start::signed && start::report && return
    wait "$pid"
    code=$?
    case $code in
      0) start::nothing && return ;;
      75) sleep 0.1 ;;
      *) start::die "$code" "the dispatcher ended with code $code: $(tail -n 3 -- "$run/dispatch/out")" ;;
    esac
  done
  start::die 75 "$run/dispatch/lock is held, but by no dispatcher"
}

start::nothing() { # the dispatcher found nothing that it may start
  local hold hold_why
  hold::look
  case $hold in
    '') printf 'nothing is left to do\n' ;;
    *)
      printf 'the run is %s (%s). What lets it go on: bash %s %s resume; bash %s\n' \
        "$hold" "$hold_why" "${run@Q}/lib/control.sh" "${run@Q}" "${run@Q}/run_parallel.sh"
      ;;
  esac
}

start::detach() { # -> pid: a dispatcher in its own process session, with no inherited descriptor
  (
    process::let_go
    trap - INT QUIT
    exec setsid bash "$run/lib/dispatch.sh" "$run"
  ) </dev/null >>"$run/dispatch/out" 2>&1 &
  pid=$!
}

start::signed() { # whether a dispatcher lives that has taken over and is not about to leave
  record::read "$run/dispatch/dispatcher" &&
    process::alive "${record[pid]-}" "${record[start]-}" "${record[boot]-}" && [[ ! -e $run/dispatch/leaving ]]
}

start::report() {
  if [[ ${record[pid]} == "$pid" ]]; then
    printf 'dispatcher %s started with %s\n' "$pid" "$multiplexer"
  else
    printf 'dispatcher %s is running\n' "${record[pid]}"
  fi
}

start::main "$@"
