# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# find.sh: the sessions that are to be replaced, by their whole names. To be sourced by replace.sh.

replace::add() { # <kind> <name> <address> <pid>...
  local pid start state
  kinds+=("$1") names+=("$2") addresses+=("$3") ended+=('')
  roots+=('')
  for pid in "${@:4}"; do
    process::look "$pid" && roots[-1]+=" $pid:$start"
  done
}

replace::find_tmux() { # <name> : on the user's own server; an id names a session exactly, whatever is in its name
  local listed line pids shared
  type -P tmux >/dev/null || return 0
  listed=$(timeout 5 tmux -L default list-sessions -F '#{session_id} #{session_name}' 2>/dev/null) || return 0
  while IFS= read -r line; do
    [[ ${line#* } == "$1" ]] || continue
    line=${line%% *}
    replace::windows "$line"
    if [[ $shared ]]; then
      replace::say "$1" 'its tmux windows belong to another session too: left alone'
      replace::add left "$1" "$line"
    else
      replace::add tmux "$1" "$line" "${pids[@]}"
    fi
  done <<<"$listed"
}

replace::windows() { # <session id> -> pids of its panes; shared: whether a window of it is another session's as well. Told
  # from the whole list, because tmux 3.8 counts the sessions of one group as one
  local session window pid panes mine=' '
  pids=() shared=''
  mapfile -t panes < <(timeout 5 tmux -L default list-panes -a -F '#{session_id} #{window_id} #{pane_pid}')
  while read -r session window pid; do
    [[ $session != "$1" ]] || { mine+="$window " && pids+=("$pid"); }
  done < <(printf '%s\n' "${panes[@]}")
  while read -r session window pid; do
    [[ $session == "$1" || $mine != *" $window "* ]] || shared=1
  done < <(printf '%s\n' "${panes[@]}")
}

replace::find_screen() { # <name> : all of that name; PID.NAME names one exactly
  local line address pid children
  type -P screen >/dev/null || return 0
  while IFS= read -r line; do
    address=${line#$'\t'}
    address=${address%%$'\t'*}
    [[ $line == $'\t'[0-9]*.* && ${address#*.} == "$1" ]] || continue
    if [[ $line == *'(Dead'* ]]; then
      replace::say "$1" "screen $address is dead: left alone"
      replace::add left "$1" "$address"
      continue
    fi
    table::read
    read -ra children <<<"${children_of[${address%%.*}]-}"
    replace::add screen "$1" "$address" "${children[@]}"
  done < <(timeout 5 screen -ls 2>/dev/null)
}

replace::spare() { # our own sessions, and the one that we are started from
  local i pid pids why ancestors=' '
  table::read
  for ((pid = $$; pid > 1; pid = ${parent_of[$pid]:-0})); do ancestors+="$pid "; done
  for i in "${!kinds[@]}"; do
    [[ ${kinds[i]} == left ]] && continue
    replace::members "$i" || continue
    why=''
    for pid in "${pids[@]}"; do
      [[ $ancestors == *" $pid "* ]] && why='this launch was typed in it'
      replace::ours "$pid" && why='it is a session of comborun'
    done
    [[ $why ]] || continue
    replace::say "${names[i]}" "${kinds[i]} ${addresses[i]} is left alone: $why"
    kinds[i]=left
  done
}

replace::ours() { # <pid> : whether it is, or is of, a session that a dispatcher started
  local argument
  grep -qsz '^COMBORUN_SESSION=' "/proc/$1/environ" && return
  while IFS= read -r -d '' argument; do
    [[ $argument == */sessions/*/session.sh ]] && return
  done 2>/dev/null <"/proc/$1/cmdline"
  return 1
}
