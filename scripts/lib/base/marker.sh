# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# marker.sh: find and end processes by the marker that every process of a session carries in its environment.
# To be sourced. It reaches what has left its process group, its parent and its terminal.

marker::pids() { # <run id/name/attempt, or run id/ for a whole run> -> pids
  local file flags=-lzsF
  [[ $1 == */ ]] || flags+=x
  pids=()
  while IFS=/ read -r _ _ file _; do
    ((file == $$ || file == BASHPID)) || pids+=("$file")
  done < <(grep "$flags" -- "COMBORUN_SESSION=$1" /proc/[0-9]*/environ 2>/dev/null)
  ((${#pids[@]}))
}

marker::none_since() { # <marker> <pid> <seconds> : whether surely nothing carries it that is younger than the process
  # <pid>, which began that many seconds ago. Starts no process; 1 also when it can't be told so cheaply
  local first=$2 last newest limit tries
  read -r limit 2>/dev/null </proc/sys/kernel/pid_max && read -r _ _ _ _ last </proc/loadavg || return
  ((limit > $3 * 10000)) || return # the numbers may have gone round
  for tries in 1 2 3; do
    marker::none_between "$1" "$first" "$last" "$limit" || return
    read -r _ _ _ _ newest </proc/loadavg
    ((newest == last)) && return
    first=$last last=$newest # what was looked at may have left a child meanwhile
  done
  return 1
}

marker::none_between() { # <marker> <pid> <pid> <highest pid> : none of those after the first up to the second
  local pid span fields environment IFS=$'\n'
  span=$(($3 >= $2 ? $3 - $2 : $3 + $4 - $2))
  ((span < 1000)) || return
  while ((span > 0)); do
    pid=$((($2 + span) % $4)) span=$((span - 1))
    [[ -O /proc/$pid ]] || continue
    mapfile -d '' -t environment 2>/dev/null <"/proc/$pid/environ" || continue
    [[ $IFS${environment[*]}$IFS == *"${IFS}COMBORUN_SESSION=$1$IFS"* ]] && return 1
    ((${#environment[@]})) && continue
    IFS=' ' process::fields "$pid" && [[ ${fields[0]} != [ZX] && ${fields[1]} != 2 ]] && return 1 # it is just becoming a program
  done
  return 0
}

marker::gone() { # <marker> <seconds> -> pids : wait until nothing carries it; 1 when something still does. Two looks in
  # a row must find nothing: one can miss a process that becomes another program, or leaves a child and ends, just then
  local deadline=$((SECONDS + $2)) clean=0
  while ((clean < 2)); do
    if marker::pids "$1"; then
      ((SECONDS < deadline)) || return 1
      clean=0
    else
      clean=$((clean + 1))
    fi
    ((clean == 2)) || sleep 0.1
  done
}

marker::signal() { # <signal> <marker> : each is looked at once more, since its number may be another's by now
  local pids pid environment IFS=$'\n' end=$'\n'
  [[ $2 == */ ]] && end=''
  marker::pids "$2" || return
  for pid in "${pids[@]}"; do
    mapfile -d '' -t environment 2>/dev/null <"/proc/$pid/environ" || continue
    [[ $IFS${environment[*]}$IFS == *"${IFS}COMBORUN_SESSION=$2$end"* ]] && kill "-$1" "$pid" 2>/dev/null
  done
  return 0
}

marker::sweep() { # <marker> <seconds of grace> <seconds after TERM> -> pids : 1 when those survive even KILL
  marker::gone "$1" "$2" && return
  marker::signal TERM "$1"
  marker::gone "$1" "$3" && return
  marker::signal KILL "$1"
  marker::gone "$1" 5
}
