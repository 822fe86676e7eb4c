# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# promise.sh: what has been promised to whom: to the sessions of this run, and (lease.sh) to those of this user's others.
# Of memory each counts with what it asked for or what it was measured to hold, whichever is more. To be sourced.

declare -gA promised=()      # who -> its GPUs, `0,1` or nothing
declare -gA promise_at=()    # who -> the folder of the attempt that it is for
declare -gA promise_since=() # who -> when, in seconds since 1970
declare -gA promise_kind=()  # who -> what it had asked for then; the grid may say otherwise since
declare -gA alone_of=()      # who -> 1: it has its GPUs to itself
declare -gA cores_of=()      # who -> the cores that it was given, `4,5`
declare -gA charge_of=()     # "who GPU" -> MiB
declare -gA gpus_mib=()      # GPU -> their sum
declare -gA gpus_alone=()    # GPU -> how many want it to themselves
declare -gA gpus_back=()     # GPU -> MiB that were given back, as far as no answer has shown that they are free again
declare -gA back_of=()       # "GPU NUMBER" -> the same, of which the answer of that number will tell
declare -gA group_gpu=()     # "group GPU" -> sessions
declare -gA group_host=()    # group -> sessions
declare -gA token_of=()      # token -> who has it
declare -gA memory_of=()     # who -> MiB of main memory
promised_cpus=0 promised_memory=0

promise::take() { # <who> <GPUs> [attempt folder] : it is of the kind that request::read said
  local who=$1 kind=${kind_of[$1]:-0} gpu token now charge group
  [[ ! ${promised[$who]+taken} ]] || return 0
  ((kind)) || [[ $2 ]] || return 0
  record::now
  promised[$who]=$2 promise_kind[$who]=$kind promise_since[$who]=${now%.*} promise_at[$who]=${3-} lease_stale=1
  promise::alone "$kind" && alone_of[$who]=1
  group=${asked_group[kind]}
  for gpu in ${2//,/ }; do
    gpus_load[$gpu]=$((${gpus_load[$gpu]:-0} + 1))
    promise::charge "$who" "$gpu"
    gpus_alone[$gpu]=$((${gpus_alone[$gpu]:-0} + ${alone_of[$who]:-0}))
    [[ ! $group ]] || group_gpu["$group $gpu"]=$((${group_gpu["$group $gpu"]:-0} + 1))
  done
  [[ ! $group ]] || group_host[$group]=$((${group_host[$group]:-0} + 1))
  for token in ${asked_tokens[kind]//,/ }; do token_of[$token]=$who; done
  promised_cpus=$((promised_cpus + asked_cpus[kind]))
  memory_of[$who]=0
  promise::remember "$who"
}

promise::alone() { # <kind> : whether it has its GPUs to itself
  ((asked_mib[$1] == 0 && gpus_limit == 0))
}

promise::give_back() { # <who> : all of it
  local who=$1 kind=${promise_kind[$1]:-0} gpu token group
  [[ ${promised[$who]+taken} ]] || return 0
  group=${asked_group[kind]}
  for gpu in ${promised[$who]//,/ }; do
    gpus_load[$gpu]=$((gpus_load[$gpu] - 1))
    gpus_mib[$gpu]=$((gpus_mib[$gpu] - ${charge_of["$who $gpu"]:-0}))
    promise::back "$gpu" "${charge_of["$who $gpu"]:-0}"
    unset "charge_of[$who $gpu]"
    gpus_alone[$gpu]=$((${gpus_alone[$gpu]:-0} - ${alone_of[$who]:-0}))
    [[ ! $group ]] || group_gpu["$group $gpu"]=$((${group_gpu["$group $gpu"]:-1} - 1))
  done
  [[ ! $group ]] || group_host[$group]=$((${group_host[$group]:-1} - 1))
  for token in ${asked_tokens[kind]//,/ }; do [[ ${token_of[$token]-} == "$who" ]] && unset "token_of[$token]"; done
  promised_cpus=$((promised_cpus - asked_cpus[kind])) promised_memory=$((promised_memory - ${memory_of[$who]:-0}))
  lease_stale=1
  unset "promised[$who]" "cores_of[$who]" "memory_of[$who]" "promise_at[$who]" "promise_since[$who]" \
    "promise_kind[$who]" "alone_of[$who]"
}

promise::marker() { # <who> -> marker: of its processes
  marker=${promise_at[$1]##*-}
  marker=$run_id/$1/${marker:-0}
}

promise::charge() { # <who> <GPU> : its share there, as it is known now
  local key="$1 $2" marker mib held
  promise::marker "$1"
  mib=${asked_mib[${promise_kind[$1]:-0}]} held=${held_mib["$marker $2"]:-0}
  [[ ${gpu_told[$2]-} ]] || held=$((${charge_of[$key]:-0} > held ? ${charge_of[$key]:-0} : held))
  ((mib >= held)) || mib=$held
  gpus_mib[$2]=$((${gpus_mib[$2]:-0} + mib - ${charge_of[$key]:-0}))
  charge_of[$key]=$mib
}

promise::remember() { # <who> : its share of main memory, as it is known now
  local marker mib
  promise::marker "$1"
  mib=${asked_memory[${promise_kind[$1]:-0}]}
  ((mib >= ${resident_mib[$marker]:-0})) || mib=${resident_mib[$marker]}
  ((memory_asked)) || mib=0
  promised_memory=$((promised_memory + mib - ${memory_of[$1]:-0}))
  memory_of[$1]=$mib
}

promise::back() { # <GPU> <MiB> : a driver takes its time, and a process may linger: an answer that was asked for later tells
  local key="$1 $((measure_number + 1))"
  (($2)) || return 0
  back_of[$key]=$((${back_of[$key]:-0} + $2)) gpus_back[$1]=$((${gpus_back[$1]:-0} + $2))
}

promise::measure() { # all shares anew, by what was just measured
  local who gpu key
  for key in "${!back_of[@]}"; do
    gpu=${key% *}
    [[ ${gpu_used[$gpu]-} ]] || continue
    ((${key#* } <= measure_answer)) || continue
    gpus_back[$gpu]=$((gpus_back[$gpu] - ${back_of[$key]}))
    unset "back_of[$key]"
  done
  for who in "${!promise_since[@]}"; do
    for gpu in ${promised[$who]//,/ }; do promise::charge "$who" "$gpu"; done
    promise::remember "$who"
  done
}
