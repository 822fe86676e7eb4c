# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# first.sh: the first sign that a session's program is past its start: a result, or a line of its log that tells
# progress. To be sourced by watch.sh, for sessions whose dispatcher waits for it. Written to attempt-N/progressed.

source "${BASH_SOURCE[0]%/*}/../session/counter.sh"

first::look() {
  local files now
  [[ ! -e $session_at/progressed ]] || session_await=''
  [[ $session_await ]] || return 0
  evidence::files "$session_at/out" "${results[@]}"
  ((${#files[@]})) || counter::there "$session_at/log" || return 0
  record::now
  record::write "$session_at/progressed" "at=$now" && session_await=''
  session::tell progressed
}
