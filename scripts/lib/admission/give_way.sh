# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# give_way.sh: a GPU that is full though it should not be: less is free than the headroom that nobody was promised. Then
# nothing new starts there, and when that has lasted for `give_way`, the youngest session of this run makes room. To be
# sourced by dispatch.sh. The session is told by a file, attempt-N/give_way; its watch ends it, with the cause gpu_memory.
# It starts again when there is room, and it costs nothing of its budget.

give_way_ms=0
give_way_ask_ms=${COMBORUN_PRESSURE_MS:-10000} # between two looks at GPUs that are shared
declare -gA full_ms=()                         # GPU -> since when it is full

give_way::open() {
  give_way_ms=${policy[give_way_ms]:-0}
}

give_way::look() { # in every round: GPUs that several use are measured now and then, also when nobody waits
  local gpu ask_ms=0
  ((give_way_ms)) || return 0
  for gpu in "${gpus_allowed[@]}"; do
    ((${gpus_load[$gpu]:-0})) || continue
    if give_way::shared "$gpu" || [[ ! ${room_others[$gpu]-} ]]; then # not known is not alone
      ask_ms=$give_way_ask_ms
      break
    fi
    ask_ms=$((6 * give_way_ask_ms)) # others may have come since
  done
  ((${#full_ms[@]} == 0 || ask_ms <= give_way_ms)) || ask_ms=$give_way_ms # what is full makes room in time
  ((ask_ms == 0)) || measure::again "$ask_ms"
}

give_way::shared() { # <GPU> : whether a session of this run is there, and not alone
  ((${gpus_load[$1]:-0} > 1 || (${gpus_load[$1]:-0} && ${room_others[$1]:-0} > ${policy[headroom_gpu_mib]:-128})))
}

give_way::measured() { # after an answer
  local gpu now_ms
  ((give_way_ms)) || return 0
  clock::now_ms
  for gpu in "${gpus_allowed[@]}"; do
    if ! give_way::shared "$gpu" || ! give_way::full "$gpu"; then
      unset "full_ms[$gpu]"
    elif [[ ! ${full_ms[$gpu]-} ]]; then
      full_ms[$gpu]=$now_ms
      dispatch::journal "full $gpu"
    elif ((now_ms - full_ms[$gpu] >= give_way_ms)); then
      give_way::youngest "$gpu" && full_ms[$gpu]=$now_ms
    fi
  done
}

give_way::full() { # <GPU> : unknown is not full; it starts nothing, and ends nothing
  [[ ${gpu_total[$1]-} && ${gpu_used[$1]-} ]] || return
  ((gpu_total[$1] - gpu_used[$1] < ${policy[headroom_gpu_mib]:-128}))
}

give_way::youngest() { # <GPU> : 1 when none can be told to
  local name ms latest=0 youngest='' cleaned
  for name in "${!gpus_of[@]}"; do
    [[ ,${gpus_of[$name]}, == *,"$1",* && ${life_of[$name]} == @(running|starting|orphaned) ]] || continue
    [[ -e $run/sessions/$name/attempt-${attempt_of[$name]}/give_way ]] && return # one is on its way out
    record::read "$run/sessions/$name/attempt-${attempt_of[$name]}/begin" || continue
    clock::to_ms "${record[started]-}"
    ((ms > latest)) && latest=$ms youngest=$name
  done
  [[ $youngest ]] || return
  record::clean "GPU $1 had $((gpu_total[$1] - gpu_used[$1])) of ${gpu_total[$1]} MiB free for $((give_way_ms / 1000)) s: the youngest session there makes room"
  record::write "$run/sessions/$youngest/attempt-${attempt_of[$youngest]}/give_way" "gpu=$1" "why=$cleaned" || return
  dispatch::journal "gives-way $youngest ${attempt_of[$youngest]} $1"
}
