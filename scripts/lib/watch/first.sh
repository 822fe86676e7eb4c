# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# first.sh: the first sign that a session's program is past its start: a result, or a line of its log that tells
# progress. To be sourced by watch.sh, for sessions whose dispatcher waits for it. Written to attempt-N/progressed.

first::look() {
  local files now
  [[ ! -e $session_at/progressed ]] || session_await=''
  [[ $session_await ]] || return 0
  evidence::files "$session_at/out" "${results[@]}"
  ((${#files[@]})) || first::line || return 0
  record::now
  record::write "$session_at/progressed" "at=$now" && session_await=''
  session::tell progressed
}

first::line() { # the grid's pattern is Python's, which grep -P reads alike; one that it can't read is never there
  local pattern=${progress_line-}
  [[ $pattern ]] || first::guess || return
  tail -c 131072 -- "$session_at/log" 2>/dev/null | tr '\r\0' '\n' | LC_ALL=C grep -aqP -- "$pattern" 2>/dev/null
}

first::guess() { # -> pattern: a bar or a bracket up to the planned number, and not a small one (monitor/answer/progress.py)
  ((count >= 10)) || return
  pattern="^\\s*\\[\\s*\\d+/$count\\]|\\|\\s*\\d+/$count\\s*\\[\\d+:\\d"
}
