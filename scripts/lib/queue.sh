# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# queue.sh: what the dispatcher knows of each session, and how it learns it. To be sourced by dispatch.sh.

order=()                             # names in plan order
declare -gA place=()                 # name -> its index in `order`
declare -gA wants=()                 # name -> how many GPUs it asks for
declare -gA attempt_of=()            # name -> its latest attempt, 0 for none
declare -gA before_of=()             # name -> attempts that earlier dispatchers made
declare -gA life_of=() outcome_of=() # queued starting running orphaned closing ended
declare -gA gpus_of=()               # name -> the GPUs that it holds
declare -gA undertaker_of=()         # name -> the process that writes the end of a lost one
declare -gA supervisor_of=()         # name -> pid and start time of its session.sh
left=0 busy=0 next=0 modest=0        # not ended; slots taken; where the queue starts; queued without a GPU request

queue::read() { # queue.tsv and policy.tsv: nothing in them is evaluated
  local name number key value
  local -A policy=([parallel]=1 [per_gpu]=0 [stagger_ms]=0 [attempts]=1 [gpus]=-)
  while IFS=$'\t' read -r key value || [[ $key ]]; do
    case $key in
      parallel | per_gpu | stagger_ms | attempts) [[ $value =~ ^[0-9]{1,9}$ ]] && policy[$key]=$((10#$value)) ;;
      gpus) policy[gpus]=$value ;;
    esac
  done <"$run/dispatch/policy.tsv"
  slots=${policy[parallel]} stagger_ms=${policy[stagger_ms]} attempts=${policy[attempts]}
  [[ -e $run/dispatch/slots ]] || record::write "$run/dispatch/slots" "$slots"
  gpus::allow "${policy[gpus]}" "${policy[per_gpu]}"
  while IFS=$'\t' read -r name number _ || [[ $name ]]; do
    [[ $name =~ ^[A-Za-z0-9_-]+$ && $number =~ ^[0-9]{1,4}$ ]] || continue
    queue::reset "$name" "$number"
    order+=("$name")
  done <"$run/dispatch/queue.tsv"
}

queue::reset() { # <session> <GPUs>
  place[$1]=${#order[@]} wants[$1]=$((10#$2)) attempt_of[$1]=0 before_of[$1]=0 life_of[$1]=new gpus_of[$1]=''
}

queue::adopt() { # every session as its files tell
  local name
  for name in "${order[@]}"; do
    queue::adopt_one "$name"
  done
  dispatch::journal "adopted left=$left busy=$busy"
}

queue::adopt_one() { # <session> [again] : `again` makes a new attempt of one that has ended, whatever its outcome
  local name=$1 attempt life
  attempt::latest "$name"
  attempt_of[$name]=$attempt before_of[$name]=$attempt
  left=$((left + 1))
  ((attempt)) || {
    queue::wait_for_slot "$name"
    return
  }
  attempt::look "$name" "$attempt"
  case $life in
    ended)
      attempt::outcome
      outcome_of[$name]=$outcome
      if [[ ${2-} || $outcome == @(lost|cancelled) ]]; then
        queue::wait_for_slot "$name"
      else
        life_of[$name]=ended left=$((left - 1))
      fi
      ;;
    queued) queue::wait_for_slot "$name" ;;
    *)
      queue::hold "$name" "$life"
      dispatch::journal "adopted $name $attempt $life"
      [[ $life == lost ]] && queue::bury "$name"
      [[ $life == starting && ! -e $run/sessions/$name/attempt-$attempt/claim ]] && launch::start "$name"
      ;;
  esac
}

queue::wait_for_slot() { # <session>
  life_of[$1]=queued
  ((place[$1] < next)) && next=${place[$1]}
  ((wants[$1])) || modest=$((modest + 1))
}

queue::hold() { # <session> <life> : it takes a slot, and the GPUs of its grant
  life_of[$1]=$2 busy=$((busy + 1))
  record::read "$run/sessions/$1/attempt-${attempt_of[$1]}/grant"
  [[ ${record[gpus]-} =~ ^[0-9,]*$ ]] && gpus_of[$1]=${record[gpus]-}
  gpus::take "${gpus_of[$1]}"
  launch::expect "$1"
}

queue::release() { # <session> <life> : its slot and its GPUs are free
  if [[ ${life_of[$1]} == @(starting|running|orphaned|lost) ]]; then
    busy=$((busy - 1))
    gpus::give_back "${gpus_of[$1]}"
    gpus_of[$1]=''
    ahead::heeded "$1"
  fi
  life_of[$1]=$2
}

queue::hear() { # <message> : WHAT SESSION ATTEMPT [WORD], as session::tell says it
  [[ $1 =~ ^([a-z]+)\ ([A-Za-z0-9_-]+)\ ([0-9]{1,9})(\ ([0-9]*))?$ ]] || return 0
  local what=${BASH_REMATCH[1]} name=${BASH_REMATCH[2]} number=${BASH_REMATCH[3]} word=${BASH_REMATCH[5]}
  [[ ${attempt_of[$name]+known} ]] || return 0
  [[ $what == @(ahead|gone|refused) ]] && ahead::heard "$what" "$name" "$number" "$word"
  if [[ ${life_of[$name]} == queued && -e $run/sessions/$name/attempt-$number/end ]] &&
    ((number == attempt_of[$name] + 1)); then
    attempt_of[$name]=$number # stopped before it started
    ahead::forget "$name"
    ((wants[$name])) || modest=$((modest - 1))
  fi
  ((number == attempt_of[$name])) || return 0 # an echo of the past
  case $what in
    free) [[ ${life_of[$name]} == @(starting|running|orphaned) ]] && queue::release "$name" closing ;;
    ended) queue::settle "$name" ;;
    refused) [[ ${life_of[$name]} == starting ]] && launch::refused "$name" "session.sh left with code ${word:-0}" ;;
  esac
}

queue::settle() { # <session> : its end is on disk
  local name=$1 outcome
  [[ ${life_of[$name]} != ended ]] || return 0
  record::read "$run/sessions/$name/attempt-${attempt_of[$name]}/end" || return 0
  queue::release "$name" ended
  unset "undertaker_of[$name]"
  attempt::outcome
  outcome_of[$name]=$outcome
  dispatch::journal "ended $name ${attempt_of[$name]} $outcome ${record[cause]-} ${record[code]-}"
  if [[ $outcome == lost ]] && ((attempt_of[$name] - before_of[$name] < attempts)); then
    queue::wait_for_slot "$name"
  else
    left=$((left - 1))
  fi
}

queue::bury() { # <session> : in the background, since what is left of it gets a moment to end
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

queue::sweep() { # what no message told
  local name life pid start state born
  for name in "${!life_of[@]}"; do
    [[ ${life_of[$name]} == @(starting|running|orphaned|closing|lost) ]] || continue
    [[ ${undertaker_of[$name]-} ]] && kill -0 "${undertaker_of[$name]}" 2>/dev/null && continue
    pid=${supervisor_of[$name]-}
    born=${pid#* } pid=${pid% *}
    if [[ $pid ]] && process::look "$pid" && [[ $start == "$born" && $state != [ZX] ]]; then
      continue
    fi
    attempt::look "$name" "${attempt_of[$name]}"
    queue::see "$name" "$life"
  done
}

queue::see() { # <session> <life as its files tell>
  case $2 in
    ended) queue::settle "$1" ;;
    lost) queue::bury "$1" ;;
    starting | queued) launch::overdue "$1" ;;
    running | orphaned)
      [[ ${life_of[$1]} == closing ]] && return
      [[ ${life_of[$1]} == "$2" ]] || dispatch::journal "$2 $1 ${attempt_of[$1]}"
      life_of[$1]=$2
      [[ $2 == running ]] && supervisor_of[$1]="${record[supervisor]} ${record[supervisor_start]}"
      ;;
  esac
}
