# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# notify.sh: when the grid's `notify` command is run: at most once for each kind of news in a while, and always when the
# run is done. To be sourced by dispatch.sh. What was held back is named with the next notice of its kind.

declare -gA notified_ms=() # kind -> when it was last told, by the clock that nobody sets
declare -gA held_back=()   # kind -> the sessions of the notices that were held back, `-` for the run itself
declare -gA notified_at=() # kind -> the same as a time of day, for the next dispatcher

notify::open() { # as dispatch/notified tells
  local kind at names left_ms now_ms
  while IFS=$'\t' read -r kind at names; do
    [[ $kind == @(failed|stalled|host) && $names =~ ^[A-Za-z0-9_\ -]*$ ]] || continue
    clock::left_ms "$at" "${policy[notify_every_ms]}"
    clock::now_ms
    notified_ms[$kind]=$((now_ms - policy[notify_every_ms] + left_ms)) notified_at[$kind]=$at
    [[ ! $names ]] || held_back[$kind]=$names
  done 2>/dev/null <"$run/dispatch/notified"
  return 0
}

notify::tell() { # <kind> <session or nothing> <note>
  local now_ms
  [[ -e $run/dispatch/notify.sh && ,${policy[notify_kinds]}, == *,$1,* ]] || return 0
  dispatch::journal "notice $1 $2 $3"
  clock::now_ms
  if [[ $1 != finished && ${notified_ms[$1]-} ]] && ((now_ms - notified_ms[$1] < policy[notify_every_ms])); then
    held_back[$1]+="${held_back[$1]:+ }${2:--}"
    notify::write
  else
    notify::send "$1" "$2" "$3"
  fi
}

notify::finished() { # <succeeded> <all>
  local s=s
  (($2 != 1)) || s=''
  notify::tell finished '' "$1 of $2 session$s succeeded"
}

notify::flush() { # what was held back, when its time has come
  local kind names now_ms
  ((${#held_back[@]})) || return 0
  clock::now_ms
  for kind in "${!held_back[@]}"; do
    ((now_ms - ${notified_ms[$kind]:-0} >= policy[notify_every_ms])) || continue
    names=${held_back[$kind]##* }
    notify::send "$kind" "${names#-}" 'held back before'
  done
}

notify::send() { # <kind> <session> <note> : in the background; it has gone out when it has been written down
  local now now_ms names=${held_back[$1]-}
  clock::now_ms
  record::now
  notified_ms[$1]=$now_ms notified_at[$1]=$now
  unset "held_back[$1]"
  notify::write
  {
    notice::hand_over "$1" "$2" "$3" "$names" >>"$run/dispatch/notify.out" 2>&1
  } </dev/null 3>&- 4>&- 8>&- &
}

notify::write() {
  local kind lines=()
  for kind in "${!notified_at[@]}"; do
    lines+=("$kind"$'\t'"${notified_at[$kind]}"$'\t'"${held_back[$kind]-}")
  done
  record::write "$run/dispatch/notified" "${lines[@]}"
}
