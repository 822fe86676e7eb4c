# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# ladder.sh: INT, then TERM, then KILL, to all sessions at once. To be sourced by stop.sh.

stop::ladder() { # to all at once; each look is cheap, so it is quick when they go
  local signal seconds kind=session
  [[ ${family:-sessions} == sessions ]] || kind=server
  for signal in INT TERM KILL; do
    ((${#active[@]})) || return 0
    case $signal in
      INT) seconds=${COMBORUN_STOP_INT_S:-15} ;;
      TERM) seconds=${COMBORUN_STOP_TERM_S:-10} ;;
      KILL) seconds=${COMBORUN_STOP_KILL_S:-20} ;; # for the supervisor's own sweep and its evidence
    esac
    printf 'stop: %s to %s, up to %d s\n' "$signal" "$(stop::several "${#active[@]}" "$kind")" "$seconds" >&2
    stop::signal "$signal"
    stop::until $((seconds * 10)) stop::look
  done
  stop::bury
}

stop::several() { # <number> <word>
  printf '%s %s' "$1" "$2"
  [[ $1 == 1 ]] || printf s
}

stop::signal() { # <signal> : the command's group, if it still is that command
  local name
  for name in "${active[@]}"; do
    record::read "$run/${family:-sessions}/$name/attempt-${attempt_of[$name]}/begin" || continue
    process::alive "${record[pid]-}" "${record[pid_start]-}" "${record[boot]-}" || continue
    kill "-$1" -- "-${record[pid]}" 2>/dev/null || kill "-$1" "${record[pid]}" 2>/dev/null
  done
}

stop::look() { # 0 when all have ended; buries what nobody supervises
  local name life still=()
  [[ ! ${slurm_run-} ]] || slurm_stop::look
  for name in "${active[@]}"; do
    attempt::glance "$run/${family:-sessions}/$name/attempt-${attempt_of[$name]}"
    [[ $life != lost || -s $run/${family:-sessions}/$name/attempt-${attempt_of[$name]}/claim ]] || attempt::look "$name" "${attempt_of[$name]}"
    if [[ $life == lost ]]; then
      attempt::bury "$name" "${attempt_of[$name]}"
      stop::tell "$name" "${attempt_of[$name]}"
      attempt::glance "$run/${family:-sessions}/$name/attempt-${attempt_of[$name]}"
    fi
    if [[ $life == ended ]]; then
      attempt::outcome
      stop::ended
    else
      still+=("$name")
    fi
  done
  active=("${still[@]}")
  ((${#active[@]} == 0))
}

stop::ended() { # reads name outcome : a server has no records, and how it ended when it was told to is no matter
  if [[ ${family:-sessions} == servers ]]; then
    stop::say "the server $name" stopped
  else
    stop::say "$name" "$outcome, $(stop::several "${record[records]-0}" record)"
  fi
}

stop::bury() { # supervisors that did not come back even after KILL: stopped, or stuck
  local name
  for name in "${active[@]}"; do
    record::read "$run/${family:-sessions}/$name/attempt-${attempt_of[$name]}/claim" || continue
    process::alive "${record[supervisor]-}" "${record[supervisor_start]-}" "${record[boot]-}" || continue
    kill -KILL "${record[supervisor]}" 2>/dev/null
  done
  ((${#active[@]} == 0)) || stop::until 20 stop::look
}
