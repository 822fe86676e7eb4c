# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# servers_tend.sh: start model servers before their clients, start those again that ended, and end them when nobody is left
# who asks them. To be sourced by servers.sh, for a run that has any. What a server's files say counts: a dispatcher that
# was killed is followed by one that finds them as they are, and the lock of each sees to it that there are never two.

servers::at() { # <command>... : of attempts of servers
  local family=servers
  "$@"
}

declare -gA server_restarts=() # server -> how often in a row it is started again
declare -gA server_told=()     # server -> the attempt whose trouble has been told
server_proven_s=1800           # a server that was ready for so long begins its row of failures anew

servers::know() { # reads the columns of servers.tsv
  server_kind[$name]=$kind server_gpu[$name]='' server_restarts[$name]=3
  [[ $gpu =~ ^[0-9]{1,4}$ ]] && server_gpu[$name]=$((10#$gpu))
  [[ $restarts =~ ^[0-9]{1,6}$ ]] && server_restarts[$name]=$((10#$restarts))
  request::read "$name" "$gpus" "$memory" "$cpus" "$host_memory" "$tokens" - 0 0 "$only"
  [[ ${server_life[$name]-} ]] && return
  server_names+=("$name")
  local attempt life
  servers::at attempt::latest "$name"
  server_at[$name]=$attempt server_life[$name]=idle
  ((attempt)) || return 0
  servers::at attempt::look "$name" "$attempt"
  [[ $life != @(ended|queued) ]] || return 0
  dispatch::journal "adopted server $name $attempt $life"
  server_life[$name]=starting
  servers::take "$name"
  if [[ $life == starting && ! -e $run/servers/$name/attempt-$attempt/claim ]]; then
    servers::open_window "$name" # if another one is on its way, one of them finds the claim
  else
    servers::expect "$name"
  fi
}

servers::sweep() { # what no message told; reads nothing but files
  local name kind session
  ((${#server_names[@]})) || return 0
  kind_wanted=()
  for session in "${!kinds_of[@]}"; do
    [[ ${life_of[$session]-} == @(queued|starting|running|orphaned|closing|lost) ]] || continue
    for kind in ${kinds_of[$session]}; do kind_wanted[$kind]=$((${kind_wanted[$kind]:-0} + 1)); done
  done
  servers_waiting='' servers_stuck='' servers_refused=()
  for name in "${server_names[@]}"; do servers::tend "$name"; done
  [[ ! $servers_stuck ]] || servers::stuck
  return 0
}

servers::again() { # those that waited for room, before any session takes it
  local name waited=("${!servers_refused[@]}")
  servers_waiting='' servers_refused=()
  for name in "${waited[@]}"; do servers::tend "$name"; done
}

servers::tend() { # <server>
  servers::look "$1"
  if ((${kind_wanted[${server_kind[$1]}]:-0} == 0)); then
    [[ ${server_life[$1]} == @(idle|ending) ]] || servers::end "$1" 'nobody is left who asks it'
  elif [[ ${server_life[$1]} == idle ]]; then
    servers::start "$1"
  fi
}

servers::look() { # <server> -> server_life, as its files tell
  local at=$run/servers/$1/attempt-${server_at[$1]} life before=${server_life[$1]}
  [[ $before != idle ]] || return 0
  servers::at attempt::look "$1" "${server_at[$1]}"
  case $life in
    ended) servers::ended "$1" ;;
    lost) servers::bury "$1" ;;
    starting | queued) servers::overdue "$1" ;;
    *)
      [[ $before != ending ]] || return 0
      if [[ -e $at/stop ]]; then
        servers::end "$1" 'it was to end'
        return
      fi
      server_life[$1]=loading
      if [[ -e $at/unhealthy ]]; then
        servers::complain "$1" "the server $1 does not answer"
      elif [[ -e $at/ready ]]; then
        server_life[$1]=ready
      fi
      [[ $life != orphaned ]] || servers::watch "$1"
      [[ ${server_life[$1]} == "$before" ]] || dispatch::journal "server $1 ${server_at[$1]} ${server_life[$1]}"
      ;;
  esac
}

servers::ended() { # <server> : its end is in `record`
  local cause=${record[cause]-} code=${record[code]-} note=${record[note]-}
  [[ ${server_life[$1]} != idle ]] || return 0
  server_life[$1]=idle
  admit::give_back "$1"
  dispatch::journal "server-ended $1 ${server_at[$1]} $cause $code"
  [[ $cause == @(stopped|not_needed) ]] && return
  note="the server $1 ended ($cause${code:+, code $code})${note:+: $note}"
  servers::complain "$1" "$note"
}

servers::complain() { # <server> <what> : once for each attempt
  [[ ${server_told[$1]-} != "${server_at[$1]}" ]] || return 0
  server_told[$1]=${server_at[$1]}
  notify::tell host '' "$2"
}

servers::failures() { # <server> -> failures: in a row, since a person said that the run may go on; left_ms until the next
  # start. From files alone, like retries
  local number ended ready_at ms last=''
  failures=0 left_ms=0
  for ((number = server_at[$1]; number > 0; number--)); do
    record::read "$run/servers/$1/attempt-$number/end" || break
    ended=${record[ended]-}
    [[ ${record[cause]-} != @(stopped|not_needed) && $ended =~ ^[1-9][0-9]{0,11}(\.[0-9]+)?$ ]] || break
    ! hold::forgiven "$ended" || break
    record::read "$run/servers/$1/attempt-$number/ready"
    ready_at=${record[at]-} ready_at=${ready_at%.*}
    ((failures)) && [[ $ready_at =~ ^[1-9][0-9]{0,11}$ ]] && ((${ended%.*} - ready_at >= server_proven_s)) && break
    failures=$((failures + 1)) last=${last:-$ended}
  done
  ((failures)) || return 0
  ms=$((${COMBORUN_SERVER_WAIT_MS:-2000} << (failures < 8 ? failures - 1 : 7)))
  clock::left_ms "$last" "$ms"
}
