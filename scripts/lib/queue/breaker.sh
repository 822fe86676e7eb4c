# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# breaker.sh: the same failure of the machine several times in a row, on a GPU or on the host, stops new starts there.
# To be sourced by dispatch.sh. Rows are kept in dispatch/breaker, quarantined GPUs in dispatch/quarantine; `resume`
# removes both.

declare -gA breaker_class=() breaker_count=() # GPU, or `host` -> what failed there last, and how often in a row
declare -gA breaker_mute=()                   # session -> its loss is part of an event that has been counted

breaker::open() { # as the files tell; what is in no file has been forgiven
  local where class number
  breaker_class=() breaker_count=() quarantine_of=()
  while IFS=$'\t' read -r where class number; do
    [[ $where =~ ^(host|[0-9]{1,4})$ && $class =~ ^[a-z_]+$ && $number =~ ^[0-9]{1,6}$ ]] || continue
    breaker_class[$where]=$class breaker_count[$where]=$((10#$number))
  done 2>/dev/null <"$run/dispatch/breaker"
  while IFS=$'\t' read -r where class _; do
    [[ $where =~ ^[0-9]{1,4}$ && $class =~ ^[a-z_]+$ ]] && quarantine_of[$where]=$class
  done 2>/dev/null <"$run/dispatch/quarantine"
  return 0
}

breaker::heed() { # <session> <GPUs it had> <outcome> <class, nothing when it succeeded or was stopped>
  local where=${2:-host}
  [[ $1 != after ]] && ((policy[breaker])) || return 0
  [[ $4 != gpu_memory || ! $2 ]] || where=$fewer_alone
  [[ $where ]] || return 0 # beside others they were too many (fewer.sh)
  [[ $3 != succeeded ]] || breaker::forgive "$2"
  [[ $4 == server_lost && ${kinds_of[$1]-} ]] && return 0 # its server has a budget of its own
  case $4 in
    host_memory | disk_full | launch_failed) breaker::count "$1" host "$4" ;; # whichever GPU it was to use
    gpu_memory | gpu_fault | stalled | killed | crashed | lost | server_lost) breaker::count "$1" "$where" "$4" ;;
  esac
  return 0
}

breaker::wary() { # whether the next end decides if anything starts at all: then a slot is free when it is on record
  ((${#breaker_count[@]} + ((policy[fail_fast] || policy[fail_fast_percent]) ? ${#fail_fast_counted[@]} : 0)))
}

breaker::forgive() { # <GPUs> : a success there
  local where changed=0
  ((${#breaker_count[@]})) || return 0
  for where in host ${1//,/ }; do
    [[ ${breaker_count[$where]-} ]] && changed=1
    unset "breaker_class[$where]" "breaker_count[$where]"
  done
  ((changed == 0)) || breaker::write
}

breaker::count() { # <session> <0,1 or host> <class>
  local where
  [[ ${breaker_mute[$1]-} ]] && unset "breaker_mute[$1]" && return
  for where in ${2//,/ }; do
    [[ ${breaker_class[$where]-} == "$3" ]] || breaker_count[$where]=0
    breaker_class[$where]=$3
    breaker_count[$where]=$((${breaker_count[$where]} + 1))
    ((breaker_count[$where] >= policy[breaker])) && breaker::trip "$where" "$3"
  done
  breaker::write
}

breaker::trip() { # <GPU or host> <class>
  local times=${breaker_count[$1]}
  if [[ $1 == host ]]; then
    dispatch::halt "$2 $times times in a row on this host${record[note]:+, at last: ${record[note]}}"
  elif [[ ! ${quarantine_of[$1]-} ]]; then
    quarantine_of[$1]=$2
    breaker::write_quarantine
    dispatch::journal "quarantine $1 $2 $times"
    notify::tell host '' "GPU $1 gets no new sessions: $2 $times times in a row there"
    ((${#quarantine_of[@]} < ${#gpus_allowed[@]})) || dispatch::halt 'no GPU is left: each is in quarantine'
  fi
}

breaker::write() {
  local where lines=()
  for where in "${!breaker_count[@]}"; do
    lines+=("$where"$'\t'"${breaker_class[$where]}"$'\t'"${breaker_count[$where]}")
  done
  record::write "$run/dispatch/breaker" "${lines[@]}"
}

breaker::write_quarantine() {
  local gpu now lines=()
  record::now
  for gpu in "${!quarantine_of[@]}"; do lines+=("$gpu"$'\t'"${quarantine_of[$gpu]}"$'\t'"$now"); done
  record::write "$run/dispatch/quarantine" "${lines[@]}"
}
