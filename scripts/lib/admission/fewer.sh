# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# fewer.sh: where a session has run out of a GPU's memory beside others, fewer run at once from then on. To be sourced by
# dispatch.sh. Kept in dispatch/fewer, a line per GPU: GPU <TAB> sessions <TAB> at; `resume` removes it.
#
# Several that ran when the first of them failed, and fail within a short time, are one event: together they take away
# what failed, and half at most. Who ran beside others says nothing of the GPU itself: the breaker counts only those
# that were alone there.

fewer_event_ms=${COMBORUN_FEWER_MS:-30000}
declare -gA fewer_of=()     # GPU -> how many at once
declare -gA fewer_before=() # GPU -> how many ran when the event began
declare -gA fewer_failed=() # GPU -> how many of them have failed
declare -gA fewer_ms=()     # GPU -> when the last one did
declare -gA fewer_event=()  # GPU -> when the first one did, by the time of day in ms
fewer_alone=''              # the GPUs on which the session that was heeded last was alone
declare -gA fewer_since=()  # session -> when it was started, if this dispatcher did
declare -gA fewer_left=()   # session -> when its place was free, if this dispatcher heard of that before its end

fewer::open() { # as the file tells; what is not in it has been lifted
  local gpu number
  for gpu in "${!fewer_of[@]}"; do gpus::cap "$gpu" 0; done
  fewer_of=()
  while IFS=$'\t' read -r gpu number _; do
    [[ $gpu =~ ^[0-9]{1,4}$ && $number =~ ^[1-9][0-9]{0,5}$ ]] || continue
    fewer_of[$gpu]=$number
    gpus::cap "$gpu" "$number"
  done 2>/dev/null <"$run/dispatch/fewer"
  return 0
}

fewer::began() { # <session>
  local now_ms
  record::now_ms
  fewer_since[$1]=$now_ms
  unset "fewer_left[$1]"
}

fewer::left() { # <session> : its command has ended, and its place is free
  local now_ms
  record::now_ms
  fewer_left[$1]=${fewer_left[$1]:-$now_ms}
}

fewer::beside() { # <session> <GPU> <time of day, ms> -> beside: others that were there then; its place may be another's by
  # now, and of those that ended with it the places are free, though their ends were not heard yet
  local name
  beside=0
  for name in "${!gpus_had[@]}"; do
    [[ $name != "$1" && ,${gpus_had[$name]}, == *,"$2",* ]] &&
      ((${fewer_since[$name]:-0} <= $3 && ${fewer_left[$name]:-$3} >= ${fewer_since[$1]:-0})) && beside=$((beside + 1))
  done
  return 0
}

fewer::heed() { # <session> <attempt> <GPUs it had> : it ran out of memory there, or gave way; its own place is free again
  local gpu now_ms ms number half beside
  record::read "$run/sessions/$1/attempt-$2/end"
  clock::to_ms "${record[ended]-}"
  [[ ! ${fewer_left[$1]-} ]] || ((ms < fewer_left[$1])) || ms=${fewer_left[$1]}
  clock::now_ms
  fewer_alone=''
  for gpu in ${3//,/ }; do
    if ! fewer::same_event "$1" "$gpu"; then
      fewer::beside "$1" "$gpu" "$ms"
      fewer_before[$gpu]=$((beside + 1)) fewer_failed[$gpu]=0 fewer_event[$gpu]=$ms
    fi
    fewer_ms[$gpu]=$now_ms fewer_failed[$gpu]=$((fewer_failed[$gpu] + 1))
    if ((fewer_before[$gpu] == 1)); then # fewer than one can't be
      fewer_alone+=${fewer_alone:+,}$gpu
      continue
    fi
    half=$(((fewer_before[$gpu] + 1) / 2)) number=$((fewer_before[$gpu] - fewer_failed[$gpu]))
    ((number >= half)) || number=$half
    [[ ! ${fewer_of[$gpu]-} ]] || ((number < fewer_of[$gpu])) || continue
    fewer_of[$gpu]=$number
    gpus::cap "$gpu" "$number"
    fewer::write
    dispatch::journal "fewer $gpu $number $1"
    notify::tell host "$1" "GPU $gpu gets $number sessions at once from now on: one of ${fewer_before[$gpu]} ran out of its memory"
  done
  [[ $fewer_alone ]] || record::write "$run/sessions/$1/attempt-$2/beside" "gpus=$3"
}

fewer::same_event() { # <session> <GPU> : reads now_ms; whether it ran when the others there began to fail
  [[ ${fewer_ms[$2]-} ]] && ((now_ms - fewer_ms[$2] < fewer_event_ms && ${fewer_since[$1]:-0} <= fewer_event[$2]))
}

fewer::write() {
  local gpu now lines=()
  record::now
  for gpu in "${!fewer_of[@]}"; do lines+=("$gpu"$'\t'"${fewer_of[$gpu]}"$'\t'"$now"); done
  record::write "$run/dispatch/fewer" "${lines[@]}"
}
