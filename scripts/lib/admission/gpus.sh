# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# gpus.sh: which GPUs a session gets: the least loaded ones of those that have room for it. Integers only. To be sourced.

gpus_allowed=()              # indexes, in the order in which they are filled
gpus_limit=0                 # sessions on one GPU at most; 0: not said
declare -gA gpus_load=()     # GPU -> sessions of this run
declare -gA gpus_cap=()      # GPU -> no more of them than that there, for a reason of its own
declare -gA quarantine_of=() # GPU -> why nothing new starts there (breaker.sh)
declare -gA reserved_for=()  # GPU, or `run` -> the session that is alone there (short.sh)

gpus::allow() { # <0,1,2 or -> <limit>
  gpus_allowed=() gpus_limit=$2
  local gpu
  for gpu in ${1//,/ }; do
    [[ $gpu =~ ^[0-9]+$ ]] || continue
    gpus_allowed+=("$gpu")
    gpus_load[$gpu]=${gpus_load[$gpu]:-0}
  done
}

gpus::cap() { # <GPU> <sessions, 0 for any number> : fewer at once there, until it is said otherwise
  unset "gpus_cap[$1]"
  (($2 == 0)) || gpus_cap[$1]=$2
}

gpus::is_open() { # <GPU> : whether anything of this run may start there
  [[ ! ${quarantine_of[$1]-} && ! ${reserved_for[$1]-} ]]
}

gpus::usable() { # -> usable: how many are in no quarantine
  local gpu
  usable=0
  for gpu in "${gpus_allowed[@]}"; do [[ ${quarantine_of[$gpu]-} ]] || usable=$((usable + 1)); done
}

gpus::of() { # <kind> -> candidates: the GPUs that it may be given at all
  local gpu
  candidates=()
  if [[ ! ${asked_only[$1]} ]]; then
    candidates=("${gpus_allowed[@]}")
    return
  fi
  for gpu in "${gpus_allowed[@]}"; do [[ ,${asked_only[$1]}, == *,"$gpu",* ]] && candidates+=("$gpu"); done
  return 0
}

gpus::pick() { # <kind> <session> [filter] -> chosen, `0,3`; 1 when they are not to be had now: wait_for and wait_why say
  # why not
  local gpu wanted=${asked_gpus[$1]} fitting=() candidates why='' free
  chosen=''
  ((wanted)) || return 0
  gpus::of "$1"
  for gpu in "${candidates[@]}"; do
    room::on "$1" "$gpu" "${@:2}" && fitting+=("$gpu")
  done
  ((${#fitting[@]} >= wanted)) || return
  gpus::least "$wanted" "${fitting[@]}"
}

gpus::least() { # <how many> <GPU>... -> chosen: those with the fewest sessions, then with the most memory free; in the
  # order of their numbers, so that rank 0 is on the lowest
  local wanted=$1 gpu least load fewest free most IFS=,
  local taken=()
  shift
  while ((wanted > 0)); do
    least='' fewest=0 most=0
    for gpu in "$@"; do
      [[ ${taken[gpu]-} ]] && continue
      load=$((gpus_load[$gpu] + ${lease_load[$gpu]:-0}))
      room::free "$gpu"
      free=${free:-0}
      [[ $least ]] && ((load > fewest || (load == fewest && free <= most))) && continue
      least=$gpu fewest=$load most=$free
    done
    taken[least]=1
    wanted=$((wanted - 1))
  done
  chosen="${!taken[*]}" # an indexed array is in order
}
