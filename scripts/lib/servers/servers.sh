# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR/..
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# servers.sh: the model servers of a run: which sessions ask which, and where each of them is in its life. To be sourced by
# dispatch.sh. A server is supervised like a session, below servers/; whether it is ready it says itself (serve.sh). A
# `kind` is what the grid names; it has one server, or one for each GPU. A run without servers pays one test.

server_names=()                # of servers, in the order in which they start
declare -gA server_kind=()     # server -> its kind
declare -gA server_gpu=()      # server -> the GPU whose sessions it serves; nothing: it is the only one of its kind
declare -gA server_life=()     # server -> idle starting loading ready ending
declare -gA server_at=()       # server -> its latest attempt
declare -gA kinds_of=()        # session -> the kinds that it asks, blank separated
declare -gA servers_given=()   # session -> NAME/ATTEMPT of those that its attempt was given
declare -gA kind_wanted=()     # kind -> how many sessions that are left ask it
declare -gA unserved=()        # GPUs on which the candidate's server is not ready
declare -gA servers_refused=() # server -> what it waits for, as a line of dispatch/waiting has it
servers_waiting=''             # the server that waits for room which this run takes
servers_behind=''              # sessions have all of that room, so clients of other servers wait behind it, too
servers_stuck=''               # why no more sessions of a kind can start

servers::open() { # as the files tell; again after an amendment
  [[ -e $run/dispatch/servers.tsv ]] || return 0
  if ((${#server_names[@]} == 0)); then
    source "$library/servers/servers_start.sh"
    source "$library/servers/servers_tend.sh"
    source "$library/servers/servers_end.sh"
  fi
  local name kind gpu gpus memory cpus host_memory tokens only restarts used
  while IFS=$'\t' read -r name kind gpu gpus memory cpus host_memory tokens only restarts _; do
    [[ $name =~ ^[a-z0-9-]+$ && $kind =~ ^[a-z0-9-]+$ && $gpus =~ ^[0-9]{1,4}$ ]] || continue
    servers::know
  done <"$run/dispatch/servers.tsv"
  while IFS=$'\t' read -r name _ _ _ _ _ _ _ _ _ _ used _; do
    [[ $name =~ ^[A-Za-z0-9_-]+$ && $used =~ ^[a-z][a-z0-9-]*(,[a-z][a-z0-9-]*)*$ ]] && kinds_of[$name]=${used//,/ }
  done <"$run/dispatch/queue.tsv"
  admit::open
  servers::sweep
}

servers::grant() { # <session> <GPUs> -> grant, more of it: where its servers are
  local kind server given=''
  [[ ${kinds_of[$1]-} ]] || return 0
  for kind in ${kinds_of[$1]}; do
    servers::of "$kind" "${2%%,*}" || return
    record::read "$run/servers/$server/attempt-${server_at[$server]}/ready"
    grant+=("server_$kind=${record[url]-}")
    given+="${given:+ }$server/${server_at[$server]}"
  done
  grant+=("served_by=$given")
  servers_given[$1]=$given
}

servers::outlive() { # <session> : the servers that its attempt was given are all there still, be they dead inside or not
  local one life
  local -A record=()
  for one in ${servers_given[$1]-}; do
    attempt::glance "$run/servers/${one%/*}/attempt-${one#*/}"
    [[ $life == @(running|orphaned) ]] || return
  done
  [[ ${servers_given[$1]-} ]]
}

servers::of() { # <kind> <GPU or nothing> -> server: that is ready, the one of its GPU, else the one that serves the fewest
  local candidate fewest='' name clients
  for candidate in "${server_names[@]}"; do
    [[ ${server_kind[$candidate]} == "$1" && ${server_life[$candidate]} == ready ]] || continue
    if [[ ${server_gpu[$candidate]} && $2 ]]; then
      [[ ${server_gpu[$candidate]} == "$2" ]] || continue
      server=$candidate
      return
    fi
    clients=0
    for name in "${!servers_given[@]}"; do
      [[ " ${servers_given[$name]} " == *" $candidate/"* && ${life_of[$name]} == @(starting|running|orphaned) ]] &&
        clients=$((clients + 1))
    done
    [[ $fewest ]] && ((clients >= fewest)) || fewest=$clients server=$candidate
  done
  [[ $fewest ]]
}

servers::hold_back() { # <session> -> unserved: 1 when all that it asks are ready, at least on some GPU
  local kind name some
  unserved=()
  for kind in ${kinds_of[$1]-}; do
    some=''
    for name in "${server_names[@]}"; do
      [[ ${server_kind[$name]} == "$kind" ]] || continue
      if [[ ${server_life[$name]} == ready ]]; then
        some=1
      elif [[ ${server_gpu[$name]} ]]; then
        unserved[${server_gpu[$name]}]=1
      fi
    done
    [[ $some ]] || return 0
  done
  [[ $servers_waiting && (! ${kinds_of[$1]-} || $servers_behind) ]] && servers::in_the_way "$1"
}

servers::in_the_way() { # <session> : a server waits for room, and this one would take some of it
  local kind=${kind_of[$1]:-0} wanted=${kind_of[$servers_waiting]:-0} gpu candidates
  (((asked_cpus[kind] && asked_cpus[wanted]) || (asked_memory[kind] && asked_memory[wanted]))) && return
  ((asked_gpus[kind] && asked_gpus[wanted])) || return
  gpus::of "$wanted"
  for gpu in "${candidates[@]}"; do
    [[ ! ${unserved[$gpu]-} && (! ${asked_only[kind]} || ,${asked_only[kind]}, == *,"$gpu",*) ]] && return
  done
  return 1
}

servers::tell_waits() { # -> text, more lines of dispatch/waiting: of servers and of the sessions that wait for them
  local name kind server lines=0 i
  for name in "${!servers_refused[@]}"; do text+=$name$'\t'${servers_refused[$name]}$'\n'; done
  for ((i = next; i < ${#order[@]} && lines < waiting_most; i++)); do
    name=${order[i]}
    [[ ${life_of[$name]} == queued && ${kinds_of[$name]-} && ! ${retry_why[$name]-} ]] || continue
    for kind in ${kinds_of[$name]}; do
      servers::of "$kind" '' && continue
      waiting::add "$name" server '' "$kind"
      lines=$((lines + 1))
      break
    done
  done
}

servers::heard() { # <what> <server> <attempt> : as its session.sh says it
  (($3 != server_at[$2])) || servers::sweep
  return 0
}
