#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# dispatch.sh RUN: keep the slots of a run full until all its sessions have ended. The only process that starts
# sessions. State is what the files say: killed at any instant and started again, it goes on.
#
#   0: the run is done, or was stopped    66: no run directory    75: another dispatcher lives    143: told to end
set -uo pipefail

library=${BASH_SOURCE[0]%/*}
source "$library/record.sh"
source "$library/evidence.sh"
source "$library/end.sh"
source "$library/marker.sh"
source "$library/attempt.sh"
source "$library/multiplexer.sh"
source "$library/gpus.sh"
source "$library/results.sh"
source "$library/queue.sh"
source "$library/launch.sh"
source "$library/secrets.sh"
source "$library/ahead.sh"

dispatch::main() { # <run>
  run=$(cd -- "$1" && pwd) && read -r run_id <"$run/id" || exit 66
  cd -- "$run" || exit 66
  unset COMBORUN_SESSION TMUX TMUX_PANE STY
  exec 8>>"$run/dispatch/lock"
  flock -n 8 || {
    printf 'dispatch: another dispatcher lives\n' >&2
    exit 75
  }
  trap '' HUP INT QUIT
  trap 'exit 143' TERM
  dispatch::open
  queue::read
  mux::prepare "$multiplexer"
  queue::adopt
  if ((left == 0)) && [[ -e $run/dispatch/done ]] && ! dispatch::wants_after; then
    dispatch::journal nothing-left
    secrets::forget
    exit 0
  fi
  rm -f -- "$run/dispatch/done"
  dispatch::sign
  ahead::open
  dispatch::work
  results::link "${order[@]}"
  dispatch::after
  dispatch::done
}

dispatch::open() { # FIFO 3, journal 4; both and the lock (8) are closed on every child
  local fifo=$run/dispatch/fifo
  [[ -p $fifo ]] || mkfifo -- "$fifo"
  exec 3<>"$fifo" 4>>"$run/dispatch/journal"
  read -r multiplexer 2>/dev/null <"$run/dispatch/multiplexer" || mux::choose "" || exit 69
  dispatch::journal "dispatcher $$ $multiplexer"
}

dispatch::sign() { # start.sh waits for this
  local now start state boot
  record::now
  process::boot
  process::look $$
  record::write "$run/dispatch/dispatcher" "pid=$$" "start=$start" "boot=$boot" "at=$now"
}

dispatch::journal() { # <words>
  local now
  record::now
  printf '%s %s\n' "$now" "$*" >&4
}

dispatch::work() { # until nothing is left, or the run was stopped
  local line text='' now_ms timeout
  record::now_ms
  local next_sweep=$((now_ms + 2000))
  while ((left > 0)); do
    [[ -e $run/dispatch/stopped ]] && dispatch::journal stopped && exit 0
    launch::fill
    launch::check
    ahead::fill
    record::now_ms
    if ((now_ms >= next_sweep)); then
      queue::sweep
      next_sweep=$((now_ms + 2000))
      continue
    fi
    pause_ms=$((next_sweep - now_ms < pause_ms ? next_sweep - now_ms : pause_ms))
    printf -v timeout '%d.%03d' $((pause_ms / 1000)) $((pause_ms % 1000))
    IFS= read -r -t "$timeout" -u 3 line || {
      text+=$line # the time may be up in the middle of a line
      continue
    }
    queue::hear "$text$line"
    text=''
  done
}

dispatch::wants_after() { # run it once; again when it was lost or cancelled, or when sessions have ended since
  local attempt outcome name
  [[ -e $run/sessions/after/session.sh ]] || return 1
  attempt::latest after
  ((attempt)) && attempt::glance "$run/sessions/after/attempt-$attempt"
  ((attempt)) && [[ $life == ended ]] || return 0
  attempt::outcome
  [[ $outcome == @(lost|cancelled) ]] && return 0
  local begun=$run/sessions/after/attempt-$attempt/begin
  for name in "${order[@]}"; do
    [[ $run/sessions/$name/attempt-${attempt_of[$name]}/end -nt $begun ]] && return 0
  done
  return 1
}

dispatch::after() {
  dispatch::wants_after || return 0
  local sessions=("${order[@]}")
  order=() next=0
  queue::reset after 0
  order=(after)
  queue::adopt_one after again
  dispatch::work
  order=("${sessions[@]}")
}

dispatch::done() { # the run has ended; told only when it is on disk
  local name now
  local -A count=([succeeded]=0 [partial]=0 [failed]=0 [cancelled]=0 [lost]=0)
  for name in "${order[@]}"; do
    count[${outcome_of[$name]}]=$((count[${outcome_of[$name]}] + 1))
  done
  secrets::forget
  record::now
  until record::write "$run/dispatch/done" "at=$now" "succeeded=${count[succeeded]}" "partial=${count[partial]}" \
    "failed=${count[failed]}" "cancelled=${count[cancelled]}" "lost=${count[lost]}" "after=${outcome_of[after]-}"; do
    printf "dispatch: can't write %s; is the disk full?\n" "$run/dispatch/done" >&2
    sleep 5
  done
  secrets::forget # those that a start has put there meanwhile, to find us done
  dispatch::journal 'done'
  mux::finish
}

dispatch::main "$@"
