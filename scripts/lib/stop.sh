#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# stop.sh RUN [NAME...]: end sessions and everything that they started; without names the whole run. INT, then TERM,
# then KILL, to all at once; then a sweep for what left its group. What is done is told on standard output. Model servers
# end after their clients; `--server NAME` in the place of names ends one of them.
#
#   0: nothing of them is left    1: something survives and is named    64: no such session    66: no run directory
set -uo pipefail

library=${BASH_SOURCE[0]%/*}
source "$library/base/record.sh"
source "$library/base/clock.sh"
source "$library/base/driver.sh"
source "$library/attempt/evidence.sh"
source "$library/attempt/end.sh"
source "$library/base/marker.sh"
source "$library/attempt/attempt.sh"
source "$library/base/secrets.sh"
source "$library/queue/ahead.sh"
source "$library/base/multiplexer.sh"
source "$library/base/policy.sh"
source "$library/attempt/retry.sh"
source "$library/stop/ladder.sh"
source "$library/stop/check.sh"

active=()                # names of the sessions that are still to end
family=sessions          # or servers: which of the two these are
declare -A attempt_of=() # name -> the attempt that is stopped

stop::main() { # <run> [name]...
  local name names rc=0
  run=$(cd -- "${1-}" 2>/dev/null && pwd)
  read -r run_id 2>/dev/null <"$run/id" || stop::die 66 "${1:-RUN} is no run directory"
  shift
  [[ ${1-} != --server ]] || { family=servers && shift; }
  names=("$@")
  for name in "$@"; do
    [[ $name =~ ^[A-Za-z0-9_-]+$ && -d $run/$family/$name ]] || stop::die 64 "there is no session $name"
  done
  if (($# == 0)); then
    : >"$run/dispatch/stopped"
    stop::dispatcher
    ahead::dismiss
    for name in "$run/sessions"/*/; do names+=("$(basename -- "$name")"); done
  fi
  policy::read "$run/dispatch/policy.tsv"
  [[ ! -e $run/dispatch/engine ]] || { source "$library/slurm/slurm_stop.sh" && slurm_stop::open $# "$@"; }
  for name in "${names[@]}"; do stop::mark "$name" $#; done
  stop::ladder
  stop::survivors || rc=1
  (($#)) || stop::servers || rc=1
  (($#)) || secrets::forget
  (($#)) || stop::windows
  stop::sweep $# && return "$rc"
}

stop::servers() { # when their clients have gone: none of these shall fail for want of its server
  local directory
  family=servers active=()
  for directory in "$run/servers"/*/; do
    [[ -d $directory ]] || continue
    directory=${directory%/}
    stop::mark "${directory##*/}" 0
  done
  stop::ladder
  stop::survivors
}

stop::windows() { # the tmux server may end with its last window
  read -r mux_kind 2>/dev/null <"$run/dispatch/multiplexer" && mux::finish
}

stop::die() { # <code> <message>
  printf 'stop: %s\n' "$2" >&2
  exit "$1"
}

stop::dispatcher() { # first, so that nothing new starts
  local tries
  for tries in TERM TERM KILL; do
    record::read "$run/dispatch/dispatcher" || return 0
    process::alive "${record[pid]-}" "${record[start]-}" "${record[boot]-}" || return 0
    kill "-$tries" "${record[pid]}" 2>/dev/null
    stop::until 20 stop::no_dispatcher && return
  done
}

stop::no_dispatcher() { ! process::alive "${record[pid]-}" "${record[start]-}" "${record[boot]-}"; }

stop::until() { # <tenths of a second> <condition>...
  local i limit=$1
  shift
  for ((i = 0; i < limit; i++)); do
    "$@" && return
    sleep 0.1
  done
  return 1
}

stop::mark() { # <session> <names on the command line> : what has not begun is cancelled, what has is stopped
  local name=$1 attempt life note='before it began'
  attempt::latest "$name"
  life=queued
  ((attempt)) && attempt::look "$name" "$attempt"
  [[ $life == ended || $life == queued ]] && (($2 == 0)) && return
  if [[ $life == ended ]]; then
    stop::comes_again || { stop::say "$name" 'has ended already' && return; }
    life=queued note='while it waited for another attempt'
  fi
  [[ $life == queued ]] && attempt=$((attempt + 1))
  if [[ $life == @(queued|starting) ]] && attempt::forestall "$name" "$attempt" stopped "$note"; then
    stop::tell "$name" "$attempt"
    stop::say "$name" "cancelled $note"
    return
  fi
  stop::until 50 stop::begun "$name" "$attempt"
  : >"$run/$family/$name/attempt-$attempt/stop"
  stop::remember "$name" "$attempt"
  attempt_of[$name]=$attempt
  active+=("$name")
}

stop::comes_again() { # reads name attempt
  [[ $family == sessions ]] && retry::pending "$name" "$attempt"
}

stop::begun() { # <session> <attempt>
  attempt::look "$1" "$2"
  [[ $life != starting ]]
}

stop::tell() { # <session> <attempt> : the dispatcher, if there is one
  [[ -p $run/dispatch/fifo ]] && printf 'ended %s %s\n' "$1" "$2" 1<>"$run/dispatch/fifo"
}

stop::say() { # <session> <what>
  printf '%s: %s\n' "$1" "$2"
}

stop::main "$@"
