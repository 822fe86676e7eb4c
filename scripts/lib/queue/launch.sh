# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# launch.sh: start sessions as slots, GPUs and the stagger allow, and see to it that they begin. To be sourced by
# dispatch.sh. A start that comes to nothing costs some of a budget; without any left, the launch has failed.

declare -gA client_of=() # name -> the multiplexer's client that starts its window
declare -gA due_ms=()    # name -> when its begin is overdue
declare -gA again_ms=()  # name -> when to start it again, after a refusal
declare -gA budget_of=() # name -> what is left: a refusal costs 1, a start that never began 2
launch_budget=6 pause_ms=2000
round_ms=0       # when the queue was looked at: one reading of the clock for all that wait
launch_grants=() # functions that add lines to `grant`, called in this order with the session and its GPUs

launch::open() { # who has something to say about a start, as far as it is there: gpus.sh, starts.sh, servers.sh
  local owner
  launch_grants=()
  for owner in admit starts servers; do
    declare -F "$owner::grant" >/dev/null && launch_grants+=("$owner::grant")
  done
  return 0
}

launch::fill() { # start what may start now -> pause_ms: when to look again, if nothing happens
  local candidate chosen now_ms
  clock::now_ms
  pause_ms=2000 round_ms=$now_ms launch_nobody=0
  passing::round
  starts::round
  hold::look
  [[ $hold || ! $halted_why ]] || launch::hold_in_memory
  [[ ! $hold ]] || return 0
  launch::read_slots
  lease::look
  while ((busy < slots)) && [[ ! ${reserved_for[run]-} ]]; do
    launch::pick || break
    if ! admit::secure "$candidate" "$run/sessions/$candidate/attempt-$((attempt_of[$candidate] + 1))"; then
      passing::refuse "$candidate" # another run was faster
      continue
    fi
    launch::first "$candidate" "$chosen" || {
      admit::give_back "$candidate"
      break
    }
    passing::started "${kind_of[$candidate]:-0}"
  done
  ((busy)) || launch::stuck
}

launch::hold_in_memory() {
  hold::halt "$halted_why" && halted_why=''
  hold=halted
}

launch::read_slots() { # the file may be edited at any moment; what is no number changes nothing
  local text=''
  [[ -e $run/dispatch/slots ]] && read -r text 2>/dev/null <"$run/dispatch/slots"
  [[ $text =~ ^[0-9]{1,6}$ ]] && slots=$((10#$text))
}

launch::first() { # <session> <GPUs> : the intent is on disk before the act; 1 when it can't be written, and nothing starts
  local name=$1 number=$((attempt_of[$1] + 1)) owner grant=("gpus=$2")
  local at=$run/sessions/$name/attempt-$number
  [[ ${short_of[$name]-} == host_memory || (${short_of[$name]-} && ! $2) ]] && grant+=('alone=run')
  [[ ${short_of[$name]-} == gpu_memory && $2 ]] && grant+=("alone=$2")
  [[ -d $at/out ]] || mkdir -p -- "$at/out" 3>&- 4>&- 8>&-
  ((number == 1)) || launch::tail "$name"
  for owner in "${launch_grants[@]}"; do "$owner" "$name" "$2" || return; done
  launch::grant "$at/grant" "${grant[@]}" || return
  queue::leave "$name"
  attempt_of[$name]=$number
  dispatch::journal "launch $name $number $2"
  starts::begun "$name" "$2"
  budget_of[$name]=$launch_budget supervisor_of[$name]=''
  ahead::go "$name" || launch::start "$name"
  queue::hold "$name" starting
}

launch::grant() { # <file> <line>... : an empty one, as a full disk leaves it, would start a session without its GPUs
  printf '%s\n' "${@:2}" 2>/dev/null >"$1" && return
  printf "dispatch: can't write %s; is the disk full?\n" "$1" >&2
  rm -f -- "$1" 3>&- 4>&- 8>&-
  return 1
}

launch::tail() { # <session> -> grant: what is missing at its end, for a command that takes a range
  local first='' count=''
  tail::range "$1" 3>&- 4>&- 8>&-
  [[ $first =~ ^[0-9]{1,9}$ && $count =~ ^[1-9][0-9]{0,8}$ ]] && grant+=("first=$first" "count=$count")
}

launch::start() { # <session>
  mux::start "$1" "$run/sessions/$1/session.sh" "${attempt_of[$1]}"
  client_of[$1]=$mux_client
  launch::expect "$1"
}

launch::expect() { # <session> : to begin within the deadline
  local now_ms
  clock::now_ms
  due_ms[$1]=$((now_ms + ${COMBORUN_LAUNCH_S:-20} * 1000))
}

launch::check() { # a client that ended well is forgotten; who was refused starts again after a while
  local name rc now_ms
  for name in "${!client_of[@]}"; do
    pause_ms=$((pause_ms < 200 ? pause_ms : 200))
    kill -0 "${client_of[$name]}" 2>/dev/null && continue
    wait "${client_of[$name]}"
    rc=$?
    unset "client_of[$name]"
    ((rc == 0)) && continue
    ahead::forget "$name"
    launch::refused "$name" "$mux_kind refused (code $rc)"
  done
  for name in "${!again_ms[@]}"; do
    clock::now_ms
    if ((now_ms < again_ms[$name])); then
      pause_ms=$((again_ms[$name] - now_ms < pause_ms ? again_ms[$name] - now_ms : pause_ms))
      continue
    fi
    unset "again_ms[$name]"
    [[ ${life_of[$name]} == starting ]] && launch::start "$name"
  done
}

launch::refused() { # <session> <why> : soon again, later and later
  [[ ${life_of[$1]} == starting && -z ${again_ms[$1]-} ]] || return 0
  launch::spend "$1" 1 "$2" || return 0
  local now_ms
  clock::now_ms
  again_ms[$1]=$((now_ms + (100 << (launch_budget - ${budget_of[$1]} - 1))))
}

launch::overdue() { # <session> : it is still on its way, by its files
  local now_ms
  clock::now_ms
  ((now_ms < ${due_ms[$1]:-0})) && return
  [[ ${client_of[$1]-} ]] && kill "${client_of[$1]}" 2>/dev/null
  unset "client_of[$1]" "again_ms[$1]"
  ahead::forget "$1"
  launch::spend "$1" 2 "it did not begin within ${COMBORUN_LAUNCH_S:-20} s" || return 0
  launch::start "$1"
}

launch::spend() { # <session> <cost> <why> : 1 when nothing is left. The same attempt starts again; if both come
  # through, one of them finds the claim and leaves
  budget_of[$1]=$((${budget_of[$1]:-$launch_budget} - $2))
  dispatch::journal "never-began $1 ${attempt_of[$1]} $3"
  ((budget_of[$1] > 0)) && return
  launch::give_up "$1" "${attempt_of[$1]}" "$3"
  return 1
}

launch::give_up() { # <session> <attempt> <note> : unless it has begun after all; on a full disk all goes on later
  if attempt::forestall "$1" "$2" launch_failed "$3"; then
    attempt_of[$1]=$2
    settle::ended "$1"
  else
    budget_of[$1]=$launch_budget
    launch::expect "$1"
  fi
}
