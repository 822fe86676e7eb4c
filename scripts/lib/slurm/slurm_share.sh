# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_share.sh: how many tasks may run at once, shared among the arrays that are for the same kind of request: those of a
# retry stand beside the first one, and Slurm knows a limit of one array only. To be sourced; needs slurm_state.sh.
#
#   slurm/shares    append-only, what Slurm was told: job <SPACE> tasks at once; the last line of a job counts

share::slots() { # -> slots: how many tasks of a kind may run at once, 0 for as many as Slurm likes
  slots=''
  [[ ! -e $run/dispatch/slots ]] || read -r slots <"$run/dispatch/slots"
  [[ $slots =~ ^[1-9][0-9]{0,5}$ ]] || slots=${policy[slurm_parallel]:-0}
}

share::arrays() { # <kind> -> arrays: those of that kind that Slurm has, oldest first; live_of: job -> tasks that wait or run
  local job kind id
  arrays=() live_of=()
  for id in "${!task_session[@]}"; do live_of[${id%_*}]=$((${live_of[${id%_*}]:-0} + 1)); done
  while IFS=$'\t' read -r job _ kind _; do
    [[ $job =~ ^[0-9]{1,15}$ && $kind == "$1" && ${live_of[$job]-} ]] && arrays+=("$job")
  done 2>/dev/null <"$run/slurm/jobs"
  return 0
}

share::divide() { # reads slots arrays live_of -> share_of: each has one at least; the older ones first what they can use,
  # and the youngest what is left
  local i left=$slots last=$((${#arrays[@]} - 1)) most
  share_of=()
  for ((i = 0; i <= last; i++)); do
    most=$((left - (last - i)))
    ((i == last || most <= live_of[${arrays[i]}])) || most=${live_of[${arrays[i]}]}
    ((most > 0)) || most=1
    share_of[${arrays[i]}]=$most
    left=$((left - most))
  done
}

share::make_room() { # <kind> <tasks> -> throttle: `%4`, for a new array; turn: what it has to wait for, none for nothing
  local slots arrays=()
  local -A live_of=() share_of=()
  throttle='' turn=''
  share::slots
  ((slots)) || return 0
  share::arrays "$1"
  arrays+=(new) live_of[new]=$2
  share::divide
  share::tell
  throttle=%${share_of[new]}
  share::turn
}

share::turn() { # reads slots arrays share_of -> turn: any of those that run, while they leave no room. Nothing is ended for it
  local id running=() room=$slots
  for id in "${!task_session[@]}"; do
    [[ ${task_state[$id]} != @(PENDING|COMPLETING) && ${share_of[${id%_*}]-} ]] && running+=("afterany:$id") room=$((room - 1))
  done
  ((room < share_of[new] && ${#running[@]})) || return 0
  printf -v turn '%s?' "${running[@]::50}"
  turn=${turn%\?}
}

share::again() { # of all kinds, as it is now: what has ended leaves room. 1 and `refusal` when Slurm does not do it
  local slots arrays=() number rc=0
  local -A live_of=() share_of=()
  share::slots
  ((slots)) || return 0
  while IFS=$'\t' read -r number _; do
    share::arrays "$number"
    share::divide
    share::tell || rc=1
  done 2>/dev/null <"$run/dispatch/slurm.tsv"
  return "$rc"
}

share::tell() { # reads arrays share_of: what is new; 1 and `refusal` when Slurm does not do it
  local job share rc=0
  local -A told=()
  while read -r job share; do [[ ! $job ]] || told[$job]=$share; done 2>/dev/null <"$run/slurm/shares"
  for job in "${arrays[@]}"; do
    [[ $job != new && ${told[$job]-} != "${share_of[$job]}" ]] || continue
    slurm_state::order scontrol update "jobid=$job" "ArrayTaskThrottle=${share_of[$job]}" || { rc=1 && continue; }
    share::note "$job" "%${share_of[$job]}"
  done
  return "$rc"
}

share::note() { # <job> <throttle of it> : so that it is told anew only when it changes
  [[ ! $2 ]] || printf '%s %s\n' "$1" "${2#%}" >>"$run/slurm/shares"
}
