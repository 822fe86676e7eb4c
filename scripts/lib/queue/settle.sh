# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# settle.sh: what follows from the end of an attempt: another one, or the session's last word. To be sourced by
# dispatch.sh.

declare -gA undertaker_of=() # name -> the process that writes the end of a lost one
declare -gA retry_at_ms=()   # name that waits for a retry -> when it is due, by the clock that nobody sets
declare -gA retry_until=()   # the same as a time of day, for people
declare -gA retry_why=()     # what it is for

settle::ended() { # <session> : its end is on disk
  local name=$1 outcome ended class='' wait_ms after
  [[ ${life_of[$name]} != ended && ! ${retry_why[$name]-} ]] || return 0 # it has been told already
  record::read "$run/sessions/$name/attempt-${attempt_of[$name]}/end" || return 0
  queue::release "$name" ended
  unset "undertaker_of[$name]"
  attempt::outcome
  outcome_of[$name]=$outcome ended=${record[ended]-}
  [[ $outcome == @(succeeded|cancelled) ]] || class=${record[class]-error}
  dispatch::journal "ended $name ${attempt_of[$name]} $outcome ${record[cause]-} ${record[code]-} $class"
  settle::machine "$name" "$class"
  retry::asked "$name"
  if [[ ! $class || ${flag_of[$name]} == dropped ]]; then
    settle::for_good "$name" "$ended"
  elif ((after >= attempt_of[$name])); then
    settle::again "$name" "asked for after attempt ${attempt_of[$name]}"
  elif retry::due "$name" "${attempt_of[$name]}"; then
    settle::retry "$name"
  else
    settle::for_good "$name" "$ended"
  fi
}

settle::machine() { # <session> <class> : what its end tells of the machine, if it was started at all
  [[ ${gpus_had[$1]+started} ]] || return 0
  starts::ended "$1" "${attempt_of[$1]}" "${gpus_had[$1]}" "$2"
  retry::gave_way "$1" "${attempt_of[$1]}" || breaker::heed "$1" "${gpus_had[$1]}" "${outcome_of[$1]}" "$2"
  unset "gpus_had[$1]"
  [[ $2 == disk_full ]] && notify::tell host "$1" 'its disk is full'
  return 0
}

settle::retry() { # <session> : reads class wait_ms, as retry::due left them
  local now_ms number=${attempt_of[$1]}
  # it waits for a server that is gone anyway; one that is there and does not answer gets the time to be found out
  [[ $class == server_lost && ${kinds_of[$1]-} ]] && ! servers::outlive "$1" && wait_ms=0
  dispatch::journal "retry $1 $number $class $wait_ms ms"
  clock::now_ms
  retry_at_ms[$1]=$((now_ms + wait_ms))
  record::now_ms
  retry_until[$1]=$(((now_ms + wait_ms) / 1000))
  settle::again "$1" "$class, after attempt $number"
  retry::gave_way "$1" "$number" || short::ran_out "$1" "$number" "$class"
}

settle::again() { # <session> <why> : it has ended, and waits to start again
  retry_why[$1]=$2 waiting_stale=1
  queue::wait_for_slot "$1"
}

settle::for_good() { # <session> <time of its end>
  left=$((left - 1))
  [[ ${flag_of[$1]} != dropped ]] || return 0
  if [[ ${outcome_of[$1]} == @(failed|partial|lost) ]]; then
    notify::tell failed "$1" "$1 ended: ${outcome_of[$1]}"
    fail_fast::heed "$1" "$2"
    fail_fast::check
  fi
  [[ ${flag_of[$1]} != smoke ]] || smoke::judge
}

settle::bury() { # <session> : in the background, since what is left of it gets a moment to end
  local name=$1 number=${attempt_of[$1]}
  [[ ${life_of[$name]} == closing ]] || life_of[$name]=lost # a closing one has given back its slot already
  supervisor_of[$name]=''
  dispatch::journal "lost $name $number"
  {
    attempt::bury "$name" "$number"
    printf 'ended %s %s\n' "$name" "$number" 1<>"$run/dispatch/fifo"
  } </dev/null 3>&- 4>&- 8>&- &
  undertaker_of[$name]=$!
}
