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
  local first=$2 last limit pid span environment IFS=$'\n'
  read -r limit 2>/dev/null </proc/sys/kernel/pid_max && IFS=' ' read -r _ _ _ _ last </proc/loadavg || return
  ((limit > $3 * 10000)) || return # the numbers may have gone round
  span=$((last >= first ? last - first : last + limit - first))
  ((span < 1000)) || return
  while ((span > 0)); do
    pid=$(((first + span) % limit)) span=$((span - 1))
    [[ -O /proc/$pid ]] || continue
    mapfile -d '' -t environment 2>/dev/null <"/proc/$pid/environ" || continue
    [[ $IFS${environment[*]}$IFS == *"${IFS}COMBORUN_SESSION=$1$IFS"* ]] && return 1
  done
  return 0
}

marker::gone() { # <marker> <seconds> -> pids : wait until nothing carries it; 1 when something still does
  local deadline=$((SECONDS + $2))
  while marker::pids "$1"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.1
  done
}

marker::signal() { # <signal> <marker>
  local pids
  marker::pids "$2" && kill "-$1" -- "${pids[@]}" 2>/dev/null
}

marker::sweep() { # <marker> <seconds of grace> <seconds after TERM> -> pids : 1 when those survive even KILL
  marker::gone "$1" "$2" && return
  marker::signal TERM "$1"
  marker::gone "$1" "$3" && return
  marker::signal KILL "$1"
  marker::gone "$1" 5
}
