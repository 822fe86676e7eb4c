# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# spacing.sh: starts on one GPU (and those without a GPU on the host) are `stagger` apart, so that no two initialise at
# once. When starts fail the gap doubles, with each that works it halves again. To be sourced by dispatch.sh.

spacing_longest_ms=600000
declare -gA spacing_last_ms=() # GPU, or `host` -> when something started there last
declare -gA spacing_doubled=() # the same -> how often the gap has been doubled

spacing::places() { # <GPUs> -> places: them, or the host for a session without any
  # shellcheck disable=SC2206 # digits and commas
  places=(${1//,/ })
  ((${#places[@]})) || places=(host)
}

spacing::gap() { # <where> -> gap_ms
  gap_ms=$((stagger_ms << ${spacing_doubled[$1]:-0}))
  ((gap_ms <= spacing_longest_ms || gap_ms == stagger_ms)) || gap_ms=$spacing_longest_ms
}

spacing::over() { # <where> : whether the next may start in this round; else pause_ms knows when
  local gap_ms left_ms
  [[ ${spacing_last_ms[$1]-} ]] || return 0
  spacing::gap "$1"
  left_ms=$((spacing_last_ms[$1] + gap_ms - round_ms))
  ((left_ms > 0)) || return 0
  pause_ms=$((left_ms < pause_ms ? left_ms : pause_ms))
  return 1
}

spacing::told() { # <where> -> told: in words
  local gap_ms
  spacing::gap "$1"
  told="$(((gap_ms + 999) / 1000)) s"
  ((${spacing_doubled[$1]:-0} == 0)) || told+=' (longer, since starts failed)'
}

spacing::started() { # <GPUs>
  local where places now_ms
  spacing::places "$1"
  clock::now_ms
  for where in "${places[@]}"; do spacing_last_ms[$where]=$((now_ms + 10)); done # the clock ticks in hundredths
}

spacing::failed() { # <GPUs> : a start there came to nothing
  local where places
  ((stagger_ms)) || return 0
  spacing::places "$1"
  for where in "${places[@]}"; do
    ((stagger_ms << ${spacing_doubled[$where]:-0} < spacing_longest_ms)) || continue
    spacing_doubled[$where]=$((${spacing_doubled[$where]:-0} + 1))
    dispatch::journal "spacing $where $((stagger_ms << spacing_doubled[$where])) ms"
  done
}

spacing::worked() { # <GPUs>
  local where places
  ((${#spacing_doubled[@]})) || return 0
  spacing::places "$1"
  for where in "${places[@]}"; do
    ((${spacing_doubled[$where]:-0})) || continue
    spacing_doubled[$where]=$((spacing_doubled[$where] - 1))
    dispatch::journal "spacing $where $((stagger_ms << spacing_doubled[$where])) ms"
  done
}
