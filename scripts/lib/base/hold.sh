# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# hold.sh: a run in which nothing new starts. To be sourced; needs `run`. `paused` keeps the dispatcher; with `draining`
# (a person's) and `halted` (the dispatcher's own) it leaves when nothing runs any more. Nothing is ended by it.

hold::look() { # -> hold hold_why: the kind, empty when the run is free to go on
  hold='' hold_why=''
  [[ -e $run/dispatch/hold ]] || return 0
  record::read "$run/dispatch/hold"
  [[ ${record[kind]-} == @(paused|draining|halted) ]] || return 0
  hold=${record[kind]} hold_why=${record[why]-}
}

hold::set() { # <kind> <why>
  local now cleaned
  record::now
  record::clean "$2"
  record::write "$run/dispatch/hold" "kind=$1" "at=$now" "why=$cleaned"
}

hold::resumed() { # -> resumed_ms: when a person last said that the run may go on; 0 for never
  local ms
  resumed_ms=0
  [[ -e $run/dispatch/resumed ]] || return 0
  record::read "$run/dispatch/resumed"
  clock::to_ms "${record[at]-}"
  resumed_ms=$ms
}

hold::forgiven() { # <time at which something ended> : whether that was before a person said that the run may go on
  local ms
  clock::to_ms "$1"
  ((ms && ms <= resumed_ms))
}
