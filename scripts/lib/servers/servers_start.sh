# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# servers_start.sh: start a model server, once there is room for it. To be sourced by servers.sh. Like the start of a
# session: the grant first, then the journal, then the window; it is overdue when it has not begun in time.

declare -gA server_client=() # server -> the multiplexer's client that starts its window
declare -gA server_due_ms=() # server -> when its begin is overdue

servers::start() { # <server> : when it may, and there is room for it
  local failures left_ms chosen number=$((server_at[$1] + 1)) at=$run/servers/$1/attempt-$((server_at[$1] + 1))
  local wait_for='' wait_why='' wait_rank=0 wait_free=0
  [[ ! $hold ]] || return 0
  servers::failures "$1"
  if ((failures > server_restarts[$1])); then
    servers::tell_stuck "$1" "$failures"
    return
  fi
  ((left_ms == 0)) || return 0
  if ! servers::choose "$1" || ! admit::secure "$1" "$at"; then
    servers_refused[$1]=$wait_for$'\t\t'$wait_why
    [[ $wait_for == unknown ]] || passing::possible "${kind_of[$1]:-0}" || return 0 # others than this run are in the way
    [[ ! $servers_waiting ]] || return 0
    servers_waiting=$1 servers_behind=''
    if ((busy)) || [[ $wait_for == unknown ]]; then servers::beside "$1" && servers_behind=1; fi
    return 0
  fi
  if ! mkdir -p -- "$at/out" 3>&- 4>&- 8>&- || ! servers::write_grant "$1" "$at/grant"; then
    admit::give_back "$1"
    return
  fi
  server_at[$1]=$number server_life[$1]=starting
  dispatch::journal "serve $1 $number $chosen"
  servers::open_window "$1"
}

servers::tell_stuck() { # <server> <times> -> servers_stuck: with what its last attempt came to
  local how at=servers/$1/attempt-${server_at[$1]}
  record::read "$run/$at/end"
  case ${record[class]:-${record[cause]-}} in
    gpu_memory) how='out of GPU memory' ;;
    host_memory) how='out of memory' ;;
    gpu_fault) how='a GPU fault' ;;
    disk_full) how='the disk is full' ;;
    *) how="${record[note]:-${record[code]:+exit code ${record[code]}}}" ;;
  esac
  servers_stuck="the server $1 ended $2 times in a row (${how:-${record[cause]-lost}}); its log is $at/log"
}

# A server may wait for what another one has. That ends when its clients have, so these must not wait for the first.
servers::beside() { # <server> : whether there is room for it once no session of this run has any
  local kind=${kind_of[$1]:-0} name gpu token free candidates open=0 cpus=0 memory=0
  local -A mib=() load=() alone=()
  for name in "${server_names[@]}"; do
    [[ ${promised[$name]+taken} ]] || continue
    cpus=$((cpus + asked_cpus[${promise_kind[$name]}])) memory=$((memory + memory_of[$name]))
    for gpu in ${promised[$name]//,/ }; do
      mib[$gpu]=$((${mib[$gpu]:-0} + ${charge_of["$name $gpu"]:-0}))
      load[$gpu]=$((${load[$gpu]:-0} + 1)) alone[$gpu]=${alone[$gpu]-}${alone_of[$name]-}
    done
    for token in ${asked_tokens[kind]//,/ }; do [[ ${token_of[$token]-} != "$name" ]] || return; done
  done
  ((asked_cpus[kind] == 0 || policy[cpus] == 0 || policy[cpus] - lease_cpus - cpus >= asked_cpus[kind])) || return
  if ((asked_memory[kind])); then
    [[ $room_memory_others ]] || return
    free=$((room_memory_others > policy[reserve_memory_mib] ? room_memory_others : policy[reserve_memory_mib]))
    ((host_mib - free - lease_memory - memory >= asked_memory[kind])) || return
  fi
  gpus::of "$kind"
  for gpu in "${candidates[@]}"; do
    passing::could_have "$kind" "$gpu" || continue
    [[ ! ${alone[$gpu]-} ]] || continue
    ((${load[$gpu]:-0} == 0)) || ! promise::alone "$kind" || continue
    ((gpus_limit == 0 || ${load[$gpu]:-0} < gpus_limit)) || continue
    ((${gpus_cap[$gpu]:-0} == 0 || ${load[$gpu]:-0} < gpus_cap[$gpu])) || continue
    room::free "$gpu"
    ((asked_mib[kind] == 0 || free + ${gpus_mib[$gpu]:-0} + ${gpus_back[$gpu]:-0} - ${mib[$gpu]:-0} >= asked_mib[kind])) &&
      open=$((open + 1))
  done
  ((open >= asked_gpus[kind]))
}

servers::choose() { # <server> -> chosen: its GPUs; else wait_for and wait_why
  unserved=()       # of the session that was looked at last
  admit::choose "$1"
}

servers::write_grant() { # <server> <file>
  local grant=("gpus=$chosen" "server=$1")
  admit::grant "$1" "$chosen"
  launch::grant "$2" "${grant[@]}"
}

servers::take() { # <server> : what its grant says is its own, by a former dispatcher
  local gpus at=$run/servers/$1/attempt-${server_at[$1]}
  record::read "$at/grant"
  gpus=${record[gpus]-}
  [[ $gpus =~ ^[0-9,]*$ ]] || gpus=''
  promise::take "$1" "$gpus" "$at"
  [[ ! ${record[cores]-} =~ ^[0-9]{1,5}(,[0-9]{1,5})*$ ]] || cores_of[$1]=${record[cores]}
}

servers::open_window() { # <server>
  mux::start "$1" "$run/servers/$1/session.sh" "${server_at[$1]}"
  server_client[$1]=$mux_client
  servers::expect "$1"
}

servers::expect() { # <server> : to begin within the deadline
  local now_ms
  clock::now_ms
  server_due_ms[$1]=$((now_ms + ${COMBORUN_LAUNCH_S:-20} * 1000))
}

servers::overdue() { # <server> : it has not begun; if it comes late after all, it finds the claim and leaves
  local now_ms refused='' rc
  if [[ ${server_client[$1]-} ]] && ! kill -0 "${server_client[$1]}" 2>/dev/null; then
    wait "${server_client[$1]}"
    rc=$?
    unset "server_client[$1]"
    ((rc == 0)) || refused="$mux_kind refused (code $rc)"
  fi
  clock::now_ms
  [[ $refused ]] || ((now_ms >= ${server_due_ms[$1]:-0})) || return 0
  refused=${refused:-it did not begin within ${COMBORUN_LAUNCH_S:-20} s}
  if servers::at attempt::forestall "$1" "${server_at[$1]}" launch_failed "$refused"; then
    servers::look "$1"
  else
    servers::expect "$1"
  fi
}
