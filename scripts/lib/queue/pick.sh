# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# pick.sh: which session starts next. To be sourced by dispatch.sh.

launch_nobody=0 # all that are queued are held back, in this round

launch::pick() { # -> candidate chosen; those that don't fit are passed by those that do (passing.sh)
  local i kind why
  launch_nobody=1
  ! starts::hold_all || return 1
  while ((next < ${#order[@]})) && [[ ${life_of[${order[next]}]} != queued ]]; do next=$((next + 1)); done
  for ((i = next; i < ${#order[@]}; i++)); do
    candidate=${order[i]} kind=${kind_of[${order[i]}]:-0}
    [[ ${refused[$kind]-} ]] && [[ ! ${short_of[$candidate]-} || ${refused[$kind]} == "$candidate" ]] &&
      launch_nobody=0 && continue
    if launch::held_back "$candidate"; then
      ! starts::hold_all || return 1
      continue
    fi
    launch_nobody=0
    if ((kind)) && admit::never "$kind"; then
      launch::give_up "$candidate" $((attempt_of[$candidate] + 1)) "$why"
      continue
    elif [[ ${short_of[$candidate]-} ]]; then
      short::choose "$candidate" && return
      continue
    fi
    admit::choose "$candidate" && return
    passing::refuse "$candidate"
    ((${#refused[@]} < ${#queued_of[@]} || ${#short_of[@]})) || return 1
  done
  return 1
}

launch::held_back() { # <session> : it does not wait for its turn only
  [[ ${life_of[$1]} == queued ]] || return 0
  smoke::holds_back "$1" && return
  if ((warm_up_ms + stagger_ms)); then starts::holds_back "$1" && return; fi
  ((${#server_names[@]} == 0)) || { servers::hold_back "$1" && return; }
  [[ ${retry_at_ms[$1]-} ]] || return
  if ((round_ms < retry_at_ms[$1])); then
    pause_ms=$((retry_at_ms[$1] - round_ms < pause_ms ? retry_at_ms[$1] - round_ms : pause_ms))
    return 0
  fi
  unset "retry_at_ms[$1]"
  waiting_stale=1
  return 1
}

launch::stuck() { # nothing runs, and quarantine leaves somebody too few GPUs
  local kind name usable s
  ((${#refused[@]} && ${#quarantine_of[@]} && ${#retry_at_ms[@]} + ${#short_of[@]} == 0)) || return 0
  gpus::usable
  for kind in "${!refused[@]}"; do
    name=${refused[$kind]}
    ((asked_gpus[kind] > usable)) || continue
    s=s
    ((asked_gpus[kind] != 1)) || s=''
    dispatch::halt "$name asks for ${asked_gpus[kind]} GPU$s, and $usable of ${#gpus_allowed[@]} are in no quarantine"
    return
  done
}
