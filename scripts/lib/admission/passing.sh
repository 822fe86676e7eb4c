# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# passing.sh: whom those that don't fit now let pass, and for how long. To be sourced by dispatch.sh.
#
# Whoever doesn't fit may be passed by those behind it, as often as sessions ran when it first had to wait. Then what it
# needs is kept for it until it fits, on the GPUs where that will be first. Nothing is kept of what others than this run
# take away: that could last for ever, and those that fit go on.

declare -gA refused=()     # kind -> the session that was found not to fit, in this round
declare -gA refused_for=() # kind -> what it waits for
declare -gA refused_why=() # kind -> the numbers
declare -gA pass_left=()   # kind -> how many may still pass it

passing::round() { # a new look at the queue
  refused=() refused_for=() refused_why=() kept_gpu=() kept_token=() kept_cpus=0 kept_memory=0
}

passing::refuse() { # <session> : it has to wait, and those of its kind with it
  local kind=${kind_of[$1]}
  refused[$kind]=$1 refused_for[$kind]=$wait_for refused_why[$kind]=$wait_why
  case $wait_for in
    token) passing::keep_tokens "$kind" "$1" ;;
    cpus | host_memory | gpu | gpu_memory)
      passing::possible "$kind" || return 0
      [[ ${pass_left[$kind]-} ]] || pass_left[$kind]=${#promised[@]}
      ((pass_left[$kind] > 0)) || passing::keep "$kind" "$1"
      ;;
  esac
}

passing::possible() { # <kind> : whether it could start if nothing of this run ran
  local gpu candidates open=0
  ((asked_cpus[$1] == 0 || policy[cpus] == 0 || policy[cpus] - lease_cpus >= asked_cpus[$1])) || return
  if ((asked_memory[$1])); then
    [[ $room_memory_others ]] || return
    ((host_mib - lease_memory - asked_memory[$1] >= room_memory_others)) || return
    ((host_mib - lease_memory - asked_memory[$1] >= policy[reserve_memory_mib])) || return
  fi
  gpus::of "$1"
  for gpu in "${candidates[@]}"; do passing::could_have "$1" "$gpu" && open=$((open + 1)); done
  ((open >= asked_gpus[$1]))
}

passing::could_have() { # <kind> <GPU>
  gpus::is_open "$2" && ((${lease_alone[$2]:-0} == 0)) && [[ ! ${unserved[$2]-} ]] || return
  if ((asked_mib[$1])); then
    room::alone_on "$2" "${asked_mib[$1]}"
  else
    ((gpus_limit || ${lease_load[$2]:-0} == 0))
  fi
}

passing::keep() { # <kind> <session>
  local gpu candidates chosen='' open=()
  kept_cpus=$((kept_cpus + asked_cpus[$1])) kept_memory=$((kept_memory + asked_memory[$1]))
  passing::keep_tokens "$1" "$2"
  ((asked_gpus[$1])) || return 0
  gpus::of "$1"
  for gpu in "${candidates[@]}"; do
    [[ ! ${kept_gpu[$gpu]-} ]] && passing::could_have "$1" "$gpu" && open+=("$gpu")
  done
  ((${#open[@]} >= asked_gpus[$1])) || return 0 # the others are kept for one before it
  gpus::least "${asked_gpus[$1]}" "${open[@]}"
  for gpu in ${chosen//,/ }; do kept_gpu[$gpu]=$2; done
}

passing::keep_tokens() { # <kind> <session>
  local token
  for token in ${asked_tokens[$1]//,/ }; do kept_token[$token]=${kept_token[$token]:-$2}; done
}

passing::started() { # <kind> : those before it that wait for some of the same have been passed
  local kind
  unset "pass_left[$1]"
  for kind in "${!refused[@]}"; do
    [[ ${pass_left[$kind]-} ]] || continue
    if (((asked_gpus[kind] && asked_gpus[$1]) || (asked_cpus[kind] && asked_cpus[$1]) || (\
      asked_memory[kind] && asked_memory[$1]))); then
      pass_left[$kind]=$((pass_left[$kind] - 1))
    fi
  done
  return 0
}
