# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# room.sh: whether there is room for one more, by what was measured and by what was promised. To be sourced.
#
#   free on a GPU = total - max(used by others now, reserve) - sum over ours of max(request, measured) - headroom
#
# `Others` is what is used less what our processes hold. Where the driver can't tell whose a process is (in a container,
# say), it is what they last used for certain, and at least what is used less what we asked for.

declare -gA room_others=() # GPU -> MiB; nothing is unknown
declare -gA room_base=()   # GPU -> the same, when it was last told for certain
declare -gA kept_gpu=()    # GPU -> the session that waits for it, so that nobody else gets it
declare -gA kept_token=()
kept_cpus=0 kept_memory=0 # for sessions that have been passed often enough
room_memory_others=''     # MiB of main memory; nothing is unknown
wait_for='' wait_why='' wait_rank=0 wait_free=0

room::because() { # <rank> <what for> <why> : of several reasons the one that says most
  (($1 > wait_rank)) || return 0
  wait_rank=$1 wait_for=$2 wait_why=$3
}

room::measure() { # after an answer: what others use
  local who gpu marker used others
  local -A ours=() asked=()
  for who in "${!promise_since[@]}"; do
    promise::marker "$who"
    for gpu in ${promised[$who]//,/ }; do
      ours[$gpu]=$((${ours[$gpu]:-0} + ${held_mib["$marker $gpu"]:-0}))
      asked[$gpu]=$((${asked[$gpu]:-0} + ${charge_of["$who $gpu"]:-0}))
    done
  done
  for gpu in "${gpus_allowed[@]}"; do
    room_others[$gpu]='' used=${gpu_used[$gpu]-}
    [[ $used ]] || continue
    ours[$gpu]=$((${ours[$gpu]:-0} + ${lease_held[$gpu]:-0}))
    asked[$gpu]=$((${asked[$gpu]:-0} + ${lease_mib[$gpu]:-0}))
    if ((asked[$gpu] + gpus_load[$gpu] + ${lease_load[$gpu]:-0} == 0)) || room::told "$gpu" "${ours[$gpu]}"; then
      others=$((used > ours[$gpu] ? used - ours[$gpu] : 0))
      room_base[$gpu]=$others
    else
      others=${room_base[$gpu]:-0}
      ((others <= used)) || others=$used
      ((others >= used - asked[$gpu])) || others=$((used - asked[$gpu]))
    fi
    room_others[$gpu]=$others
  done
  room::measure_memory
}

room::told() { # <GPU> <MiB that ours hold> : whether the list of its processes can be trusted. In a container it is empty
  [[ ${gpu_told[$1]-} ]] && [[ ! $measure_inner || $2 != 0 ]]
}

room::measure_memory() {
  local who marker held=$lease_resident
  room_memory_others=''
  [[ $host_mib && $available_mib ]] || return 0
  for who in "${!promise_since[@]}"; do
    promise::marker "$who"
    held=$((held + ${resident_mib[$marker]:-0}))
  done
  room_memory_others=$((host_mib - available_mib > held ? host_mib - available_mib - held : 0))
}

room::free() { # <GPU> -> free: MiB there for one more, perhaps less than none; nothing is unknown
  free=''
  [[ ${gpu_total[$1]-} && ${room_others[$1]-} ]] || return 0
  free=$((room_others[$1] > policy[reserve_gpu_mib] ? room_others[$1] : policy[reserve_gpu_mib]))
  free=$((gpu_total[$1] - free - ${gpus_mib[$1]:-0} - ${gpus_back[$1]:-0} - ${lease_mib[$1]:-0}))
  free=$((free - policy[headroom_gpu_mib]))
}

room::on() { # <kind> <GPU> <session> [filter] : 1 when it can't have that GPU now
  local kind=$1 gpu=$2 load=$((gpus_load[$2] + ${lease_load[$2]:-0})) group=${asked_group[$1]}
  if ! gpus::is_open "$gpu"; then
    room::because 1 gpu "GPU $gpu is ${quarantine_of[$gpu]:+in quarantine}${reserved_for[$gpu]:+for ${reserved_for[$gpu]} alone}"
  elif [[ ${kept_gpu[$gpu]-} && ${kept_gpu[$gpu]} != "$3" ]]; then
    room::because 1 gpu "GPU $gpu is kept for ${kept_gpu[$gpu]}, which has waited for longer"
  elif ((${gpus_alone[$gpu]:-0} + ${lease_alone[$gpu]:-0})); then
    room::because 2 gpu "on GPU $gpu is a session that says nothing of its gpu_memory, and so has it alone"
  elif ((load)) && promise::alone "$kind"; then
    room::because 2 gpu "says nothing of its gpu_memory, so it starts alone; on GPU $gpu are $load"
  elif ((gpus_limit && load >= gpus_limit)); then
    room::because 3 gpu "sessions on GPU $gpu: $load, and limits.per_gpu is $gpus_limit"
  elif ((${gpus_cap[$gpu]:-0} && gpus_load[$gpu] >= gpus_cap[$gpu])); then
    room::because 3 cap "on GPU $gpu are ${gpus_load[$gpu]}, and no more than ${gpus_cap[$gpu]} for now"
  elif ((cap_gpu[kind] && ${group_gpu["$group $gpu"]:-0} + ${lease_group_gpu["$group $gpu"]:-0} >= cap_gpu[kind])); then
    room::because 3 cap "on GPU $gpu are ${cap_gpu[kind]} of $group, as many as its per_gpu allows"
  elif [[ ${unserved[$gpu]-} ]]; then
    room::because 3 gpu "its server on GPU $gpu is not ready"
  elif [[ ${4-} ]] && ! "$4" "$gpu"; then
    return 1
  elif declare -F starts::on >/dev/null && ! starts::on "$3" "$gpu"; then
    return 1
  elif ((measure_answer == 0)); then # so that it can be told the name of its GPU
    measure::again 0
    room::because 6 unknown "GPU $gpu is being measured"
  else
    ((asked_mib[kind] == 0)) || room::memory_on "$gpu" "${asked_mib[kind]}"
    return
  fi
  return 1
}

room::memory_on() { # <GPU> <MiB>
  local free sum ask_ms=${COMBORUN_MEMORY_ASK_MS:-5000}
  room::free "$1"
  if [[ ! $free ]]; then
    measure::again "$ask_ms"
    room::because 6 unknown "nvidia-smi does not tell how full GPU $1 is"
  elif ((free < $2 && free + ${gpus_back[$1]:-0} >= $2)); then
    measure::again 0
    room::because 5 unknown "GPU $1 is measured again, since something ended there"
  elif ((free < $2)); then
    room::alone_on "$1" "$2" && ask_ms=$((6 * ask_ms)) # what runs here is in the way: an end tells us
    measure::again "$ask_ms"
    [[ $wait_for == gpu_memory ]] && ((free > wait_free)) && wait_rank=0
    ((wait_rank >= 4)) || wait_free=$free
    room::sum "$1"
    room::because 4 gpu_memory "asks for $2 MiB; $sum"
  elif ! measure::fresh; then
    measure::again 0
    room::because 5 unknown "GPU $1 is measured again"
  else
    return 0
  fi
  return 1
}

room::alone_on() { # <GPU> <MiB> : whether that would fit there if nothing of this run were there; 1 when that is unknown
  local free
  room::free "$1"
  [[ $free ]] && ((free + ${gpus_mib[$1]:-0} + ${gpus_back[$1]:-0} >= $2))
}

room::sum() { # <GPU> -> sum: where its memory is
  local free
  room::free "$1"
  sum="of the ${gpu_total[$1]} MiB of GPU $1 $((free > 0 ? free : 0)) are free: others use ${room_others[$1]}"
  ((policy[reserve_gpu_mib] == 0)) || sum+=" (reserved: ${policy[reserve_gpu_mib]})"
  case ${gpus_load[$1]} in
    0) ;;
    1) sum+=", 1 of this run holds or is promised ${gpus_mib[$1]:-0}" ;;
    *) sum+=", ${gpus_load[$1]} of this run hold or are promised ${gpus_mib[$1]:-0}" ;;
  esac
  ((${lease_mib[$1]:-0} == 0)) || sum+=", other runs of yours ${lease_mib[$1]}"
  sum+=", headroom ${policy[headroom_gpu_mib]}"
}
