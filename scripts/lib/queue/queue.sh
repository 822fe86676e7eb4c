# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# queue.sh: what the dispatcher knows of each session, and how it takes up what is there. To be sourced by dispatch.sh.

order=()                             # names in plan order
phase=sessions                       # or `after`
declare -gA place=()                 # name -> its index in `order`
declare -gA wants=()                 # name -> how many GPUs it asks for
declare -gA flag_of=()               # name -> nothing, smoke, or dropped: amended away, so it never starts again
declare -gA attempt_of=()            # name -> its latest attempt, 0 for none
declare -gA life_of=() outcome_of=() # queued starting running orphaned closing lost ended dropped
declare -gA gpus_of=() gpus_had=()   # name -> the GPUs that it holds; that its latest attempt was given
left=0 busy=0 next=0                 # not ended; slots taken; where the queue starts
declare -gA queued_of=()             # kind of request -> how many wait; none is none
declare -gA queued_program=()        # program -> the same

queue::read() { # policy.tsv and queue.tsv: nothing in them is evaluated
  policy::read "$run/dispatch/policy.tsv"
  slots=${policy[parallel]} stagger_ms=${policy[stagger_ms]}
  [[ -e $run/dispatch/slots ]] || record::write "$run/dispatch/slots" "$slots"
  gpus::allow "${policy[gpus]}" "${policy[per_gpu]}"
  hold::resumed
  breaker::open
  queue::rows
  admit::open
}

queue::rows() {
  local name number flag asked
  while IFS=$'\t' read -r name number flag asked || [[ $name ]]; do
    [[ $name =~ ^[A-Za-z0-9_-]+$ && $number =~ ^[0-9]{1,4}$ ]] || continue
    [[ $flag == @(smoke|dropped) ]] || flag=''
    if [[ ! ${life_of[$name]-} ]]; then
      queue::reset "$name" "$number"
      order+=("$name")
    fi
    flag_of[$name]=$flag
    queue::ask "$name" "$number" "$asked"
  done <"$run/dispatch/queue.tsv"
}

queue::ask() { # <session> <GPUs> <further columns> : what it asks for now; an amended grid may say otherwise than before
  local columns
  IFS=$'\t' read -ra columns <<<"$3"
  [[ ${life_of[$1]} != queued ]] || queue::uncount "$1"
  request::read "$1" "$2" "${columns[@]::9}"
  [[ ! ${columns[9]-} =~ ^[a-z0-9]{1,16}$ ]] || program_of[$1]=${columns[9]}
  [[ ${life_of[$1]} != queued ]] || queue::count "$1"
}

queue::count() { # <session> : it waits, with others of its kind
  local kind=${kind_of[$1]:-0} program=${program_of[$1]:-all}
  queued_of[$kind]=$((${queued_of[$kind]:-0} + 1)) queued_program[$program]=$((${queued_program[$program]:-0} + 1))
}

queue::uncount() { # <session>
  local kind=${kind_of[$1]:-0} program=${program_of[$1]:-all}
  queued_of[$kind]=$((${queued_of[$kind]:-1} - 1)) queued_program[$program]=$((${queued_program[$program]:-1} - 1))
  ((queued_of[$kind] > 0)) || unset "queued_of[$kind]"
  ((queued_program[$program] > 0)) || unset "queued_program[$program]"
}

queue::reset() { # <session> <GPUs>
  place[$1]=${#order[@]} wants[$1]=$((10#$2)) flag_of[$1]='' attempt_of[$1]=0 life_of[$1]=new gpus_of[$1]=''
}

queue::size() { # -> all: sessions that count
  local name
  all=0
  for name in "${order[@]}"; do [[ ${flag_of[$name]} == dropped ]] || all=$((all + 1)); done
}

queue::wait_for_slot() { # <session>
  if [[ ${flag_of[$1]} == dropped ]]; then
    life_of[$1]=dropped left=$((left - 1))
    return
  fi
  life_of[$1]=queued
  ((place[$1] < next)) && next=${place[$1]}
  queue::count "$1"
}

queue::leave() { # <session> : it waits no more
  queue::uncount "$1"
  [[ ! ${retry_why[$1]-} ]] || waiting_stale=1
  unset "retry_at_ms[$1]" "retry_until[$1]" "retry_why[$1]"
  short::forget "$1"
}

queue::hold() { # <session> <life> : it takes a slot, and the GPUs of its grant
  life_of[$1]=$2 busy=$((busy + 1))
  record::read "$run/sessions/$1/attempt-${attempt_of[$1]}/grant"
  [[ ${record[gpus]-} =~ ^[0-9,]*$ ]] && gpus_of[$1]=${record[gpus]-}
  gpus_had[$1]=${gpus_of[$1]}
  if [[ ! ${promised[$1]+taken} ]]; then # of a former dispatcher
    promise::take "$1" "${gpus_of[$1]}" "$run/sessions/$1/attempt-${attempt_of[$1]}"
    [[ ! ${record[cores]-} =~ ^[0-9]{1,5}(,[0-9]{1,5})*$ ]] || cores_of[$1]=${record[cores]}
  fi
  [[ ${record[alone]-} ]] && short::reserve "$1" "${record[alone]}"
  launch::expect "$1"
}

queue::release() { # <session> <life> : its slot and its GPUs are free
  if [[ ${life_of[$1]} == @(starting|running|orphaned|lost) ]]; then
    busy=$((busy - 1))
    [[ ! ${gpus_of[$1]} ]] || fewer::left "$1"
    admit::give_back "$1"
    gpus_of[$1]=''
    ((${#reserved_for[@]} == 0)) || short::release "$1"
    ahead::heeded "$1"
  fi
  life_of[$1]=$2
}
