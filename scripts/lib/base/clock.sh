# shellcheck shell=bash
# shellcheck disable=SC2034 # values are handed on through variables that the callers name
# clock.sh: a clock that nobody sets, for waits inside one process. To be sourced after record.sh. Waits that must
# outlive a process are kept as times of day in records, and clipped when they are read.

clock::now_ms() { # -> now_ms: since the machine started, in hundredths of a second
  local up
  if read -r up _ 2>/dev/null </proc/uptime && [[ $up =~ ^([0-9]+)\.([0-9][0-9])$ ]]; then
    now_ms=$((10#${BASH_REMATCH[1]}${BASH_REMATCH[2]} * 10))
  else
    record::now_ms
  fi
}

clock::to_ms() { # <time of day, as in records> -> ms: 0 when it is none
  local digits=${1/./}000
  ms=0
  [[ $1 =~ ^[1-9][0-9]{9,11}(\.[0-9]+)?$ ]] && ms=${digits::13}
  return 0
}

clock::left_ms() { # <time of day> <milliseconds after it> -> left_ms: never more than that, however the clock was set
  local now_ms ms
  record::now_ms
  clock::to_ms "$1"
  left_ms=$((ms ? ms + $2 - now_ms : $2))
  ((left_ms > 0)) || left_ms=0
  ((left_ms < $2)) || left_ms=$2
}
