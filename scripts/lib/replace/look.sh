# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# look.sh: what lives in a session that is to be replaced. To be sourced by replace.sh.

declare -A known=() # index,pid -> start: what has been seen in a session; a parent that ends takes nobody out of it

replace::members() { # <index> -> pids: everything that lives in it; reads the table
  local i=$1 pid root key
  local -A seen=()
  pids=()
  for root in ${roots[i]}; do
    [[ ${start_of[${root%:*}]-${root#*:}} == "${root#*:}" ]] && seen[${root%:*}]=1
  done
  for pid in "${!session_of[@]}"; do
    [[ ${seen[${session_of[$pid]}]-} ]] && known["$i,$pid"]=${start_of[$pid]}
  done
  for key in "${!known[@]}"; do
    pid=${key#*,}
    [[ ${key%,*} == "$i" && ${start_of[$pid]-} == "${known[$key]}" ]] && table::descend "$pid"
  done
  for pid in "${descendants[@]}"; do known["$i,$pid"]=${start_of[$pid]}; done
  pids=("${descendants[@]}")
  descendants=()
  ((${#pids[@]}))
}

replace::busy() { # <index> -> pids: those that are no shell waiting at its prompt
  local pid all
  replace::members "$1"
  all=("${pids[@]}")
  pids=()
  for pid in "${all[@]}"; do
    [[ " ${roots[$1]}" == *" $pid:"* ]] && replace::idle "$pid" || pids+=("$pid")
  done
  ((${#pids[@]}))
}

replace::idle() { # <pid> : a shell without a program to run; whether it waits for one shows in its children
  local words word
  mapfile -d '' -t words 2>/dev/null <"/proc/$1/cmdline"
  [[ ${words[0]-} =~ ^(-|.*/)?(bash|zsh|fish|sh|dash|ksh|tcsh|csh)$ ]] || return 1
  for word in "${words[@]:1}"; do
    [[ $word == --* || $word == -* && $word != *c* ]] || return 1
  done
}
