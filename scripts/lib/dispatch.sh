#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# dispatch.sh RUN: keep the slots of a run full until all its sessions have ended. The only process that starts
# sessions. State is what the files say: killed at any instant and started again, it goes on.
#
#   0: the run is done, stopped or held    66: no run directory    73: can't write there    75: another dispatcher lives
#   143: told to end
set -uo pipefail

library=${BASH_SOURCE[0]%/*}
halted_why='' # a hold that has yet to be written
source "$library/base/record.sh"
source "$library/base/clock.sh"
source "$library/attempt/evidence.sh"
source "$library/attempt/end.sh"
source "$library/base/marker.sh"
source "$library/attempt/attempt.sh"
source "$library/attempt/tail.sh"
source "$library/base/multiplexer.sh"
source "$library/base/driver.sh"
source "$library/base/host.sh"
source "$library/base/policy.sh"
source "$library/watch/activity.sh"
source "$library/admission/request.sh"
source "$library/admission/gpus.sh"
source "$library/admission/measure.sh"
source "$library/admission/measured.sh"
source "$library/admission/promise.sh"
source "$library/admission/lease.sh"
source "$library/admission/leased.sh"
source "$library/admission/room.sh"
source "$library/admission/handout.sh"
source "$library/admission/passing.sh"
source "$library/admission/admit.sh"
source "$library/admission/short.sh"
source "$library/queue/usage.sh"
source "$library/base/hold.sh"
source "$library/attempt/retry.sh"
source "$library/queue/breaker.sh"
source "$library/queue/fail_fast.sh"
source "$library/queue/smoke.sh"
source "$library/attempt/results.sh"
source "$library/queue/queue.sh"
source "$library/queue/adopt.sh"
source "$library/queue/settle.sh"
source "$library/queue/news.sh"
source "$library/queue/pick.sh"
source "$library/servers/servers.sh"
source "$library/admission/spacing.sh"
source "$library/admission/warm.sh"
source "$library/admission/fewer.sh"
source "$library/admission/give_way.sh"
source "$library/admission/starts.sh"
source "$library/queue/launch.sh"
source "$library/queue/waiting.sh"
source "$library/notice/notice.sh"
source "$library/notice/notify.sh"
source "$library/base/secrets.sh"
source "$library/queue/ahead.sh"
source "$library/queue/finish.sh"

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
  measure::open
  queue::read
  notify::open
  mux::prepare "$multiplexer"
  queue::adopt
  if ((left == 0)) && [[ -e $run/dispatch/done ]] && ! finish::wants_after; then
    dispatch::journal nothing-left
    secrets::forget
    exit 0
  fi
  rm -f -- "$run/dispatch/done" "$run/dispatch/leaving"
  hold::look
  [[ $hold == @(draining|halted) ]] && ((left)) && finish::held
  dispatch::sign
  servers::open
  launch::open
  ahead::open
  usage::open
  finish::rounds
}

dispatch::open() { # FIFO 3, journal 4; both and the lock (8) are closed on every child
  news::listen || exit 73
  exec 4>>"$run/dispatch/journal"
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

dispatch::halt() { # <why> : nothing new starts until a person says `resume`; the first reason stays
  local ordered
  [[ ! $halted_why ]] || return 0
  hold::halt "$1"
  case $?/$hold in
    2/*) return 0 ;;
    1/) halted_why=$1 ;; # on a full disk the hold is in memory only, until there is room
  esac
  ordered=$hold hold=${hold:-halted}
  dispatch::journal "halted $1"
  notify::tell host '' "the run is ${ordered:+$ordered, and }halted: $1"
}

dispatch::work() { # until nothing is left, or the run was stopped, or is held and nothing runs
  local line text='' now_ms timeout
  clock::now_ms
  local next_sweep=$((now_ms + 2000))
  while ((left > 0)); do
    [[ -e $run/dispatch/stopped ]] && dispatch::journal stopped && exit 0
    ((${#servers_refused[@]} == 0)) || servers::again
    launch::fill
    give_way::look
    [[ $hold == @(draining|halted) ]] && finish::held
    launch::check
    ahead::fill
    ((waiting_stale == 0)) || waiting::tell
    clock::now_ms
    ((now_ms < usage_next_ms)) || usage::tell
    if ((now_ms >= next_sweep)); then
      news::sweep
      next_sweep=$((now_ms + 2000))
      continue
    fi
    pause_ms=$((next_sweep - now_ms < pause_ms ? next_sweep - now_ms : pause_ms))
    ((pause_ms > 0)) || pause_ms=1
    printf -v timeout '%d.%03d' $((pause_ms / 1000)) $((pause_ms % 1000))
    IFS= read -r -t "$timeout" -u 3 line || {
      text+=$line # the time may be up in the middle of a line
      continue
    }
    news::hear "$text$line"
    text=''
    news::drain
  done
}

dispatch::main "$@"
