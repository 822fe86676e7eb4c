#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# replace.sh RUN: end the sessions of the user's own that dispatch/replaces names, a line each, whole names only.
# INT, then TERM, then the window is closed; nothing is killed. What was found and done is said, and kept in
# dispatch/replaced: a run does it once, before its first start.
set -uo pipefail
unset TMUX

library=${BASH_SOURCE[0]%/*}
source "$library/base/record.sh"
source "$library/base/process_table.sh"
source "$library/replace/find.sh"
source "$library/replace/look.sh"

kinds=() names=() addresses=() roots=() # of each session: tmux or screen, its name, what names it exactly, its shells
ended=()                                # ... by which signal
said=()

replace::main() { # <run>
  local wanted name i
  run=$1
  [[ -e $run/dispatch/replaces && ! -e $run/dispatch/replaced && ! -e $run/dispatch/dispatcher ]] || return 0
  mapfile -t wanted <"$run/dispatch/replaces"
  for name in "${wanted[@]}"; do
    i=${#kinds[@]}
    replace::find_tmux "$name"
    replace::find_screen "$name"
    ((${#kinds[@]} > i)) || replace::say "$name" 'there is no session of that name'
  done
  replace::spare
  replace::end INT "${COMBORUN_REPLACE_INT_S:-20}"
  replace::end TERM "${COMBORUN_REPLACE_TERM_S:-10}"
  for i in "${!kinds[@]}"; do replace::close "$i"; done
  record::write "$run/dispatch/replaced" "${said[@]}"
}

replace::say() { # <name> <what>
  local cleaned
  record::clean "replaces $1: $2"
  said+=("$cleaned")
  printf '%s\n' "$cleaned"
}

replace::end() { # <INT|TERM> <seconds> : to all at once
  local i pid pids left=0 deadline=$((SECONDS + $2))
  table::read
  for i in "${!kinds[@]}"; do
    [[ ${kinds[i]} == left ]] && continue
    replace::busy "$i" || continue
    ended[i]=$1 left=1
    if [[ $1 == INT ]]; then # to whole groups, as a terminal does, and to each process once
      local -A groups=()
      for pid in "${pids[@]}"; do groups[${group_of[$pid]}]=1; done
      for pid in "${!groups[@]}"; do kill -INT -- "-$pid" 2>/dev/null; done
    else
      replace::oldest_first # or a loop goes on with its next program before its own turn comes
      kill -TERM -- "${pids[@]}" 2>/dev/null
    fi
  done
  while ((left && SECONDS < deadline)); do
    sleep 0.2
    replace::any || left=0
  done
}

replace::oldest_first() { # pids -> pids: parents before their children
  local pid lines=()
  for pid in "${pids[@]}"; do lines+=("${start_of[$pid]} $pid"); done
  mapfile -t lines < <(printf '%s\n' "${lines[@]}" | sort -n -k 1,1 -k 2,2)
  pids=("${lines[@]#* }")
}

replace::any() { # whether something still runs in any of them
  local i pids
  table::read
  for i in "${!kinds[@]}"; do
    [[ ${kinds[i]} != left ]] && replace::busy "$i" && return
  done
  return 1
}

replace::close() { # <index> : its window, when it is still there
  local i=$1 pids tries rest=() what=${ended[$1]:+after ${ended[$1]}}
  [[ ${kinds[i]} == left ]] && return
  table::read
  replace::busy "$i" && what='when its window was closed'
  case ${kinds[i]} in
    tmux) timeout 5 tmux -L default kill-session -t "${addresses[i]}" 2>/dev/null ;;
    screen) [[ -e /proc/${addresses[i]%%.*} ]] && timeout 5 screen -S "${addresses[i]}" -X quit >/dev/null ;;
  esac
  for ((tries = 0; tries < 15; tries++)); do
    table::read
    replace::members "$i" || break
    sleep 0.2
  done
  if ((${#pids[@]})); then
    rest=("${pids[@]}")
    replace::say "${names[i]}" "${kinds[i]} ${addresses[i]} is closed, and these processes survive: ${rest[*]}"
  else
    replace::say "${names[i]}" "${kinds[i]} ${addresses[i]} has ended${what:+ $what}"
  fi
}

replace::main "$@"
