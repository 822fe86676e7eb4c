# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# counter.sh: the lines of a log in which a program counts what it has done. To be sourced. The grid's pattern is Python's,
# which grep -P reads alike; one that it can't read is never there.

counter::pattern() { # -> pattern: the grid's, else a bar or a bracket up to the planned number, and not a small one
  # (monitor/answer/progress.py)
  pattern=${progress_line-}
  [[ ! $pattern ]] || return 0
  ((count >= 10)) || return
  pattern="^\\s*\\[\\s*\\d+/$count\\]|\\|\\s*\\d+/$count\\s*\\[\\d+:\\d"
}

counter::tail() { # <log> : the lines of its end, and what was drawn over
  tail -c "${COMBORUN_LOG_TAIL:-131072}" -- "$1" 2>/dev/null | tr '\r\0' '\n'
}

counter::there() { # <log>
  local pattern
  counter::pattern && counter::tail "$1" | LC_ALL=C grep -aqP -- "$pattern" 2>/dev/null
}

counter::advanced() { # <log> -> line_number: in its end, where it counted on for the last time; 0 when it did not
  local pattern counts entry told before=''
  line_number=0
  counter::pattern || return 0
  mapfile -t counts < <(counter::tail "$1" | LC_ALL=C grep -anoP -- "$pattern" 2>/dev/null)
  for entry in "${counts[@]}"; do
    counter::bare "${entry#*:}"
    [[ $told == "$before" ]] || line_number=${entry%%:*} # a bar that is drawn once more at the end counts nothing
    before=$told
  done
}

counter::bare() { # <what matched> -> told: without clocks and rates, which go on by themselves
  local by_itself='^(.*[^0-9.:]|)[0-9]+[.:][0-9.:]*(.*)$'
  told=$1
  while [[ $told =~ $by_itself ]]; do told=${BASH_REMATCH[1]}${BASH_REMATCH[2]}; done
}
