# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# servers_end.sh: the end of model servers: of one that nobody asks any more, of one that was lost, of all with their run;
# and of a run whose servers can't be had. To be sourced by servers.sh.

declare -gA server_ladder=() # server -> the process that ends it

servers::bury() { # <server> : in the background, as with a session
  [[ ${undertaker_of[$1]-} ]] && kill -0 "${undertaker_of[$1]}" 2>/dev/null && return
  dispatch::journal "server-lost $1 ${server_at[$1]}"
  {
    servers::at attempt::bury "$1" "${server_at[$1]}"
    printf 'ended %s %s\n' "$1" "${server_at[$1]}" 1<>"$run/dispatch/fifo"
  } </dev/null 3>&- 4>&- 8>&- &
  undertaker_of[$1]=$!
  server_life[$1]=loading # not ready, whatever its files have said
}

servers::end() { # <server> <why> : INT, TERM, KILL in the background
  [[ ! ${server_ladder[$1]-} ]] || ! kill -0 "${server_ladder[$1]}" 2>/dev/null || return 0
  dispatch::journal "server-end $1 ${server_at[$1]} $2"
  server_life[$1]=ending
  bash "$library/stop.sh" "$run" --server "$1" </dev/null >>"$run/dispatch/out" 2>&1 3>&- 4>&- 8>&- &
  server_ladder[$1]=$!
}

servers::finish() { # end all that live, and wait for it: the run is over, or nothing of it runs
  local name tries
  for name in "${server_names[@]}"; do
    servers::look "$name"
    [[ ${server_life[$name]} == @(idle|ending) ]] || servers::end "$name" 'no session is left'
  done
  for name in "${server_names[@]}"; do
    for ((tries = 0; tries < 100; tries++)); do
      [[ ! ${server_ladder[$name]-} ]] || wait "${server_ladder[$name]}"
      unset "server_ladder[$name]"
      servers::look "$name"
      [[ ${server_life[$name]} != idle ]] || break
      sleep 0.1
    done
    [[ ${server_life[$name]} == idle ]] || dispatch::journal "server-survives $name ${server_at[$name]}"
  done
}

servers::stuck() { # nothing runs, and all that waits asks a server that can't be had
  local session kind name
  local -A lives=()
  ((busy == 0)) || return 0
  for name in "${server_names[@]}"; do
    [[ ${server_life[$name]} == idle ]] || lives[${server_kind[$name]}]=1
  done
  for session in "${!life_of[@]}"; do
    [[ ${life_of[$session]} == queued ]] || continue
    for kind in ${kinds_of[$session]-}; do [[ ${lives[$kind]-} ]] || continue 2; done
    return 0
  done
  dispatch::halt "$servers_stuck"
}

servers::watch() { # <server> : its supervisor is gone, and nobody else asks after its health
  [[ ${watch_of[$1]-} ]] && kill -0 "${watch_of[$1]}" 2>/dev/null && return
  bash "$run/servers/$1/session.sh" "${server_at[$1]}" none orphan </dev/null 3>&- 4>&- 8>&- &
  watch_of[$1]=$!
}
