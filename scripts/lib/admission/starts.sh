# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# starts.sh: whether a session may start just now, for reasons that have nothing to do with room: another of its kind
# warms up (warm.sh), something has just started there (spacing.sh). And what a failed start teaches (fewer.sh). To be
# sourced by dispatch.sh.

declare -gA starts_worked=() # session -> its latest attempt that counts as a start that worked

starts::open() { # by policy.tsv, and as the files tell; when the queue is read again, too
  warm::open
  fewer::open
  give_way::open
}

starts::round() { # a new look at the queue
  waiting_stagger=''
  ((warm_up_ms == 0)) || warm::round
}

starts::holds_back() { # <session> : reasons that hold wherever it would start
  local first
  ((warm_up_ms)) && warm::first "$1" && return
  ((stagger_ms && wants[$1] == 0)) && ! spacing::over host || return
  waiting_stagger=${waiting_stagger:-$1}
}

starts::hold_all() { # whether these reasons are known to hold for all that are queued, so that nobody need be looked at
  local kind
  if ((warm_up_ms)) && warm::all_wait; then return; fi
  [[ $waiting_stagger ]] || return
  for kind in "${!queued_of[@]}"; do ((asked_gpus[kind] == 0)) || return; done # a GPU has a stagger of its own
}

starts::on() { # <session> <GPU> : 1 when nothing may start there now
  local told
  ((stagger_ms)) || return 0
  spacing::over "$2" && return
  spacing::told "$2"
  room::because 2 stagger "starts on GPU $2 are $told apart"
  return 1
}

starts::grant() { # <session> <GPUs> -> grant: somebody waits for its first progress
  if ((warm_up_ms || stagger_ms)); then grant+=('await=1'); fi
}

starts::begun() { # <session> <GPUs> : it has just been started
  [[ ! $2 ]] || fewer::began "$1"
  ((stagger_ms == 0)) || spacing::started "$2"
  ((warm_up_ms == 0)) || warm::started "$1"
}

starts::progressed() { # <session> : the first result or progress line is there
  starts::worked "$1" "${attempt_of[$1]}" "${gpus_had[$1]-}"
  ((warm_up_ms == 0)) || warm::reached "$1" 'it makes progress'
}

starts::ended() { # <session> <attempt> <GPUs it had> <class, nothing when it succeeded or was stopped>
  local at=$run/sessions/$1/attempt-$2
  if [[ $4 == gpu_memory && $3 ]]; then fewer::heed "$1" "$2" "$3"; fi
  if [[ -e $at/progressed || (! $4 && ${outcome_of[$1]-} != cancelled) ]]; then
    starts::worked "$1" "$2" "$3"
    ((warm_up_ms == 0)) || warm::reached "$1" 'it has ended'
    return
  fi
  [[ ! $4 || $4 == @(error|no_result|timed_out) ]] || spacing::failed "$3" # who was stopped early tells nothing
  ((warm_up_ms == 0)) || warm::failed "$1"
}

starts::worked() { # <session> <attempt> <GPUs it had> : once for each attempt, at its first progress or else at its end
  [[ ${starts_worked[$1]-} != "$2" ]] || return 0
  starts_worked[$1]=$2
  spacing::worked "$3"
}

starts::tell() { # what sessions wait for, as lines of dispatch/waiting
  local name first told
  ((${#warm_by[@]} == 0)) || for name in "${order[@]:next}"; do
    [[ ${life_of[$name]} == queued && ! ${retry_at_ms[$name]-} ]] || continue
    if smoke::holds_back "$name" || ! warm::first "$name"; then continue; fi
    waiting::add "$name" warm_up '' "$first of the same program comes first, until it makes progress"
  done
  [[ $waiting_stagger ]] || return 0
  spacing::told host
  waiting::add "$waiting_stagger" stagger '' "starts are $told apart"
}
