# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# progress.sh: what a session has done since the last look: results, a log that says something new, CPU time. To be
# sourced by watch.sh, whose counters it keeps.

source "${BASH_SOURCE[0]%/*}/../base/driver.sh"
source "${BASH_SOURCE[0]%/*}/activity.sh"
source "${BASH_SOURCE[0]%/*}/repetition.sh"

progress::look() { # 1 when there is nothing more to look for
  local elapsed progress='' ticks resident_kib held now
  progress::elapse
  watch::supervised || return 0
  awake_ms=$((awake_ms + elapsed)) quiet_ms=$((quiet_ms + elapsed)) silent_ms=$((silent_ms + elapsed))
  unheard_ms=$((unheard_ms + elapsed))
  looks=$((looks + 1))
  progress::processes
  progress::files
  progress::work
  [[ $progress ]] && progress::forgive
  [[ ! ${session_await-} ]] || first::look
  ((awake_ms < ${seat_ms:-awake_ms + 1})) || seat::look
  verdict::gives_way || verdict::overtime || verdict::unserved || verdict::hung || verdict::stalled || return 0
  return 1
}

progress::elapse() { # -> elapsed: since the last look, at most twice what it should be
  local most=$((2 * poll_ms + 1000))
  process::uptime
  elapsed=$(((uptime - last_uptime) * 10)) last_uptime=$uptime
  ((elapsed <= most)) || elapsed=$most
}

progress::processes() { # at the first looks, then once in a while, and when it begins to matter
  if (((looks & (looks - 1)) == 0 || looks % 12 == 0 || silent_ms * 2 > (stall_ms ? stall_ms : tell_ms))); then
    activity::find "$session_marker"
  fi
  activity::look
  ((resident_kib > peak)) && peak=$resident_kib
}

progress::files() { # -> progress; what has changed since .watch was written: results, or a log that says something new
  local files file reference=$session_at/.watch
  evidence::files "$session_at/out" "${results[@]}" "${evidence_files[@]}"
  for file in "${files[@]}"; do
    [[ $file -nt $reference ]] && progress=1 && break
  done
  ((${#files[@]} == results_found)) || progress=1 # moved there, a file keeps the time at which it was written
  results_found=${#files[@]}
  [[ ! $progress ]] || repeated=0 repetition_loop='' quiet_ms=0 whole=''
  [[ ! $progress && $whole == 1 ]] && progress::output_changed && quiet_ms=0
  if [[ $session_at/log -nt $reference ]]; then
    unheard_ms=0
    repetition::look "$session_at/log" && progress=1 quiet_ms=0 whole=''
  fi
  printf '%s\n' "$peak" 2>/dev/null >"$reference"
}

progress::output_changed() { # whether anything at all in its folder has
  local file rc=1
  shopt -s globstar nullglob dotglob
  for file in "$session_at/out"/**; do
    [[ $file -nt $reference ]] && rc=0 && break
  done
  shopt -u globstar nullglob dotglob
  return "$rc"
}

progress::work() { # -> progress: more than 3 % of a core since the last progress; to complain again and again is none
  worked=$((worked + ticks))
  ! progress::loops || worked=0
  ((worked * 1000 <= silent_ms * 3 + 5000)) || progress=1
  [[ $progress ]] || progress::loops || ! progress::on_gpu || progress=1
}

progress::on_gpu() { # whether a GPU works for it: asked now and then once it has been silent for half of the limit, since a
  # single answer tells of a second only
  [[ $session_gpus ]] && ((silent_ms * 2 >= (stall_ms ? stall_ms : tell_ms) && looks % 6 == 0)) && activity::on_gpu
}

progress::loops() { # whether its log complains in a loop that still goes on: after one, a program may compute in silence
  [[ $repetition_loop ]] && ((unheard_ms * 2 < (stall_ms ? stall_ms : tell_ms)))
}

progress::forgive() {
  silent_ms=0 worked=0
  [[ $told ]] && rm -f -- "$session_at/stalled"
  told=''
}
