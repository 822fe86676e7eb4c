# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# process_table.sh: who is whose child, group and session, of all processes at once and without starting one. To be
# sourced.

declare -gA parent_of=() start_of=() group_of=() session_of=() children_of=()
descendants=()

table::read() { # -> the maps; what is a zombie does not live
  local file line fields pid
  parent_of=() start_of=() group_of=() session_of=() children_of=()
  for file in /proc/[0-9]*/stat; do
    line=''
    IFS= read -r -d '' line 2>/dev/null <"$file"
    read -ra fields <<<"${line##*) }" # the name of the program may hold anything, a `)` too
    [[ ${fields[19]-} && ${fields[0]} != [ZX] ]] || continue
    pid=${line%% *}
    parent_of[$pid]=${fields[1]} group_of[$pid]=${fields[2]} session_of[$pid]=${fields[3]} start_of[$pid]=${fields[19]}
    children_of[${fields[1]}]+=" $pid"
  done 2>/dev/null
}

table::descend() { # <pid> -> descendants: with it and all below it, none twice
  local pid queue=("$1")
  local -A there=()
  for pid in "${descendants[@]}"; do there[$pid]=1; done
  while ((${#queue[@]})); do
    pid=${queue[0]}
    queue=("${queue[@]:1}")
    [[ ${there[$pid]-} || ! ${start_of[$pid]-} ]] && continue
    there[$pid]=1
    descendants+=("$pid")
    # shellcheck disable=SC2206 # numbers
    queue+=(${children_of[$pid]-})
  done
}
