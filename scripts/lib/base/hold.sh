# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# hold.sh: a run in which nothing new starts. To be sourced; needs `run`. `paused` keeps the dispatcher; with `draining`
# (a person's) and `halted` (the dispatcher's own) it leaves when nothing runs any more. Nothing is ended by it.

hold::look() { # -> hold hold_why: the kind, empty when the run is free to go on; hold_halted: why it is halted, whoever
  # else holds it
  hold='' hold_why='' hold_halted=''
  [[ -e $run/dispatch/hold ]] || return 0
  record::read "$run/dispatch/hold"
  [[ ${record[kind]-} == @(paused|draining|halted) ]] || return 0
  hold=${record[kind]} hold_why=${record[why]-} hold_halted=${record[halted]-}
  [[ $hold != halted ]] || hold_halted=$hold_why
}

hold::order() { # <paused or draining> <why> : a person's; that the run is halted stays known
  local hold hold_why hold_halted now
  hold::look
  record::now
  hold::write "$1" "$now" "$2" "$hold_halted"
}

hold::halt() { # <why> : the dispatcher's own; 2 when the run is halted already, since the first reason stays. What a person has
  # ordered stays as well: a launch of the same grid lifts the one and not the other
  local now
  hold::look
  [[ ! $hold_halted ]] || return 2
  record::now
  case $hold in
    '') hold::write halted "$now" "$1" ;;
    *) hold::write "$hold" "${record[at]-}" "$hold_why" "$1" ;;
  esac
}

hold::write() { # <kind> <time> <why> [why it is halted besides]
  local cleaned why halted=''
  record::clean "$3"
  why=$cleaned
  record::clean "${4-}"
  [[ $1 == halted || ! $cleaned ]] || halted=$cleaned why="${why:-by hand}; halted besides: $cleaned"
  record::write "$run/dispatch/hold" "kind=$1" "at=$2" "why=$why" ${halted:+"halted=$halted"}
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
