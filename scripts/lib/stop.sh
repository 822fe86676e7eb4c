#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# stop.sh RUN [NAME...]: end sessions and everything that they started; without names the whole run. INT, then TERM,
# then KILL, to all at once; then a sweep for what left its group. What is done is told on standard output.
#
#   0: nothing of them is left    1: something survives and is named    64: no such session    66: no run directory
set -uo pipefail

library=${BASH_SOURCE[0]%/*}
source "$library/record.sh"
source "$library/evidence.sh"
source "$library/end.sh"
source "$library/marker.sh"
source "$library/attempt.sh"
source "$library/secrets.sh"
source "$library/ahead.sh"
source "$library/multiplexer.sh"

active=()                # names of the sessions that are still to end
declare -A attempt_of=() # name -> the attempt that is stopped

stop::main() { # <run> [name]...
  local name names
  run=$(cd -- "${1-}" 2>/dev/null && pwd)
  read -r run_id 2>/dev/null <"$run/id" || stop::die 66 "${1:-RUN} is no run directory"
  shift
  names=("$@")
  for name in "$@"; do
    [[ $name =~ ^[A-Za-z0-9_-]+$ && -d $run/sessions/$name ]] || stop::die 64 "there is no session $name"
  done
  if (($# == 0)); then
    : >"$run/dispatch/stopped"
    stop::dispatcher
    ahead::dismiss
    for name in "$run/sessions"/*/; do names+=("$(basename -- "$name")"); done
  fi
  for name in "${names[@]}"; do stop::mark "$name" $#; done
  stop::ladder
  (($#)) || secrets::forget
  (($#)) || stop::windows
  stop::sweep $#
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
  local name=$1 attempt life
  attempt::latest "$name"
  life=queued
  ((attempt)) && attempt::look "$name" "$attempt"
  [[ $life == ended || $life == queued ]] && (($2 == 0)) && return
  [[ $life == ended ]] && stop::say "$name" 'has ended already' && return
  [[ $life == queued ]] && attempt=$((attempt + 1))
  if [[ $life == @(queued|starting) ]] && attempt::forestall "$name" "$attempt" stopped 'before it began'; then
    stop::tell "$name" "$attempt"
    stop::say "$name" 'cancelled before it began'
    return
  fi
  stop::until 50 stop::begun "$name" "$attempt"
  : >"$run/sessions/$name/attempt-$attempt/stop"
  attempt_of[$name]=$attempt
  active+=("$name")
}

stop::begun() { # <session> <attempt>
  attempt::look "$1" "$2"
  [[ $life != starting ]]
}

stop::ladder() { # to all at once; each look is cheap, so it is quick when they go
  local signal seconds
  for signal in INT TERM KILL; do
    ((${#active[@]})) || return 0
    case $signal in
      INT) seconds=${COMBORUN_STOP_INT_S:-15} ;;
      TERM) seconds=${COMBORUN_STOP_TERM_S:-10} ;;
      KILL) seconds=${COMBORUN_STOP_KILL_S:-20} ;; # for the supervisor's own sweep and its evidence
    esac
    printf 'stop: %s to %d sessions, up to %d s\n' "$signal" "${#active[@]}" "$seconds" >&2
    stop::signal "$signal"
    stop::until $((seconds * 10)) stop::look
  done
  stop::bury
}

stop::signal() { # <signal> : the command's group, if it still is that command
  local name
  for name in "${active[@]}"; do
    record::read "$run/sessions/$name/attempt-${attempt_of[$name]}/begin" || continue
    process::alive "${record[pid]-}" "${record[pid_start]-}" "${record[boot]-}" || continue
    kill "-$1" -- "-${record[pid]}" 2>/dev/null || kill "-$1" "${record[pid]}" 2>/dev/null
  done
}

stop::look() { # 0 when all have ended; buries what nobody supervises
  local name life still=()
  for name in "${active[@]}"; do
    attempt::glance "$run/sessions/$name/attempt-${attempt_of[$name]}"
    if [[ $life == lost ]]; then
      attempt::bury "$name" "${attempt_of[$name]}"
      stop::tell "$name" "${attempt_of[$name]}"
      attempt::glance "$run/sessions/$name/attempt-${attempt_of[$name]}"
    fi
    if [[ $life == ended ]]; then
      attempt::outcome
      stop::say "$name" "$outcome, ${record[records]-0} records"
    else
      still+=("$name")
    fi
  done
  active=("${still[@]}")
  ((${#active[@]} == 0))
}

stop::bury() { # supervisors that did not come back even after KILL: stopped, or stuck
  local name
  for name in "${active[@]}"; do
    record::read "$run/sessions/$name/attempt-${attempt_of[$name]}/claim" || continue
    process::alive "${record[supervisor]-}" "${record[supervisor_start]-}" "${record[boot]-}" || continue
    kill -KILL "${record[supervisor]}" 2>/dev/null
  done
  ((${#active[@]} == 0)) || stop::until 20 stop::look
}

stop::sweep() { # <names on the command line> : 1 when something carries a marker even now
  local name pids pid comm marker rc=0 markers=()
  (($1)) || markers=("$run_id/")
  (($1)) && for name in "${!attempt_of[@]}"; do markers+=("$run_id/$name/${attempt_of[$name]}"); done
  for name in "${active[@]}"; do
    stop::say "$name" 'has not ended'
    rc=1
  done
  for marker in "${markers[@]}"; do
    marker::sweep "$marker" 0 5 && continue
    rc=1
    for pid in "${pids[@]}"; do
      read -r comm 2>/dev/null <"/proc/$pid/comm"
      printf 'survives: %s %s\n' "$pid" "${comm-}"
    done
  done
  return "$rc"
}

stop::tell() { # <session> <attempt> : the dispatcher, if there is one
  [[ -p $run/dispatch/fifo ]] && printf 'ended %s %s\n' "$1" "$2" 1<>"$run/dispatch/fifo"
}

stop::say() { # <session> <what>
  printf '%s: %s\n' "$1" "$2"
}

stop::main "$@"
