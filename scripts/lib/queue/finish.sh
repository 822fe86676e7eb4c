# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# finish.sh: how a dispatcher comes to its end: `after`, the record that the run is done, or a hold. To be sourced by
# dispatch.sh. Who asks for more at that very moment is heard: it either goes on, or start.sh waits until it has left.

finish::rounds() { # until nothing is left, and nobody has asked for more meanwhile
  local name kept
  while :; do
    dispatch::work
    ((${#server_names[@]} == 0)) || servers::finish
    kept=()
    for name in "${order[@]}"; do [[ ${flag_of[$name]} == dropped ]] || kept+=("$name"); done
    results::link "${kept[@]}"
    finish::after
    finish::news
    ((left == 0)) && finish::done && return
  done
}

finish::wants_after() { # run it once; again when it was lost or cancelled, or when sessions have ended since
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

finish::after() {
  finish::wants_after || return 0
  local sessions=("${order[@]}")
  order=() next=0 phase=after
  queue::reset after 0
  order=(after)
  queue::adopt_one after again
  dispatch::work
  order=("${sessions[@]}") next=0 phase=sessions
}

finish::news() { # what was asked for while `after` ran, and what no loop has read yet
  local line
  while IFS= read -r -t 0.01 -u 3 line; do news::hear "$line"; done
  ((amended)) && amended=0 && queue::reread
  return 0
}

finish::done() { # the run has ended; told only when it is on disk. 1 when somebody asked for more just then
  local name now all
  local -A count=([succeeded]=0 [partial]=0 [failed]=0 [cancelled]=0 [lost]=0 [not_needed]=0)
  for name in "${order[@]}"; do
    [[ ${flag_of[$name]} == dropped ]] || count[${outcome_of[$name]}]=$((count[${outcome_of[$name]}] + 1))
  done
  secrets::forget
  record::now
  until record::write "$run/dispatch/done" "at=$now" "succeeded=${count[succeeded]}" "partial=${count[partial]}" \
    "failed=${count[failed]}" "cancelled=${count[cancelled]}" "lost=${count[lost]}" "not_needed=${count[not_needed]}" \
    "after=${outcome_of[after]-}"; do
    printf "dispatch: can't write %s; is the disk full?\n" "$run/dispatch/done" >&2
    sleep 5
  done
  : >"$run/dispatch/leaving"
  finish::news
  if ((left)); then
    rm -f -- "$run/dispatch/done" "$run/dispatch/leaving"
    return 1
  fi
  secrets::forget # those that a start has put there meanwhile, to find us done
  waiting::tell
  lease::flush
  dispatch::journal 'done'
  queue::size
  notify::finished "${count[succeeded]}" "$all"
  mux::finish
}

finish::held() { # leaves when nothing runs any more, unless the run may go on just then
  local name
  [[ ! $halted_why ]] || return # nobody would know
  for name in "${!life_of[@]}"; do
    [[ ${life_of[$name]} == @(starting|running|orphaned|closing|lost) ]] && return
  done
  ((${#server_names[@]} == 0)) || servers::finish
  : >"$run/dispatch/leaving"
  finish::news
  hold::look
  if [[ $hold != @(draining|halted) ]]; then
    rm -f -- "$run/dispatch/leaving"
    return
  fi
  waiting::tell
  lease::flush
  dispatch::journal "left $hold"
  mux::finish
  exit 0
}
