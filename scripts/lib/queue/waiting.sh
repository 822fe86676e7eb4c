# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# waiting.sh: dispatch/waiting: what queued sessions wait for, beyond their turn; and each one that has ended and starts
# again, since its files alone look as if it were over. To be sourced by dispatch.sh. Written when it changes; never read
# by the dispatcher.

waiting_text=unknown # what the file says
waiting_stale=0      # worth a look before the next sweep
waiting_most=32      # lines about sessions that don't fit; those behind them wait for the same
waiting_stagger=''   # the session that waits since another has just started

waiting::tell() {
  local name text=''
  waiting_stale=0
  for name in "${!retry_why[@]}"; do
    if [[ ${short_of[$name]-} && ! ${retry_at_ms[$name]-} ]]; then
      waiting::for_memory "$name"
    else
      waiting::add "$name" retry "${retry_until[$name]-}" "${retry_why[$name]}"
    fi
  done
  if ((smoke_on)); then
    for name in "${order[@]}"; do
      smoke::holds_back "$name" && waiting::add "$name" smoke '' 'the smoke test comes first'
    done
  fi
  ((${#refused[@]} == 0)) || waiting::for_room
  starts::tell
  ((${#server_names[@]} == 0)) || servers::tell_waits
  [[ $text != "$waiting_text" ]] || return 0
  waiting_text=$text
  if [[ $text ]]; then
    record::write "$run/dispatch/waiting" "${text%$'\n'}"
  else
    rm -f -- "$run/dispatch/waiting"
  fi
}

waiting::add() { # <session> <what for> <until> <detail>
  [[ ${life_of[$1]} == queued ]] && text+=$1$'\t'$2$'\t'$3$'\t'$4$'\n'
  return 0
}

waiting::for_memory() { # <session>
  if [[ ${short_ms[$1]-} ]]; then
    waiting::add "$1" memory '' "until more is free than there was when it ran out (${short_of[$1]}), for $((short_patience_ms / 60000)) min at most"
  else
    waiting::add "$1" alone '' "until nothing else of this run is where it starts (${short_of[$1]}); $busy run"
  fi
}

waiting::for_room() { # in the order of the queue
  local i kind lines=0
  for ((i = next; i < ${#order[@]} && lines < waiting_most; i++)); do
    kind=${kind_of[${order[i]}]:-0}
    [[ ${life_of[${order[i]}]} == queued && ${refused[$kind]-} && ! ${short_of[${order[i]}]-} ]] || continue
    [[ ! ${retry_at_ms[${order[i]}]-} ]] || continue
    waiting::add "${order[i]}" "${refused_for[$kind]}" '' "${refused_why[$kind]}"
    lines=$((lines + 1))
  done
}
