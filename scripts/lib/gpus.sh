# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# gpus.sh: which session may use which GPU. Integers only; how full a GPU is, is not asked here. To be sourced.

gpus_allowed=() # indexes, in the order in which they are filled
gpus_limit=0    # sessions on one GPU at most; 0: any number
declare -gA gpus_load=()

gpus::allow() { # <0,1,2 or -> <limit>
  gpus_allowed=() gpus_load=() gpus_limit=$2
  local gpu
  for gpu in ${1//,/ }; do
    [[ $gpu =~ ^[0-9]+$ ]] || continue
    gpus_allowed+=("$gpu")
    gpus_load[$gpu]=0
  done
}

gpus::choose() { # <how many> -> chosen, `0,3`: the least loaded ones; 1 when they are not to be had now
  local wanted=$1 gpu least
  local -A taken=()
  chosen=''
  while ((wanted > 0)); do
    least=''
    for gpu in "${gpus_allowed[@]}"; do
      [[ ${taken[$gpu]-} ]] && continue
      ((gpus_limit && gpus_load[$gpu] >= gpus_limit)) && continue
      [[ $least ]] && ((gpus_load[$gpu] >= gpus_load[$least])) || least=$gpu
    done
    [[ $least ]] || return 1
    taken[$least]=1
    chosen+=${chosen:+,}$least
    wanted=$((wanted - 1))
  done
}

gpus::take() { # <0,3>
  local gpu
  for gpu in ${1//,/ }; do gpus_load[$gpu]=$((${gpus_load[$gpu]:-0} + 1)); done
}

gpus::give_back() { # <0,3>
  local gpu
  for gpu in ${1//,/ }; do gpus_load[$gpu]=$((${gpus_load[$gpu]:-1} - 1)); done
}
