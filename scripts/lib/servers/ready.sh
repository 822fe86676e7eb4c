# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# ready.sh: whether a model server is there for its clients. A check is one line of its script's `ready`:
#
#   http STATUS PATH [TEXT]   it answers so, and the text stands in the answer
#   line ERE                  such a line is in its log
#   tcp                       it takes connections
#
# To be sourced. What listens on a port may be another program: a check speaks only together with the server's process.

ready::own() { # reads port session_marker : whether it is a process of ours that listens there, or nobody's whom we can see
  local file line lines fields inode='' holders holder
  [[ $port =~ ^[1-9][0-9]{0,4}$ ]] || return 0
  for file in /proc/net/tcp /proc/net/tcp6; do
    mapfile -t lines 2>/dev/null <"$file" || continue
    for line in "${lines[@]:1}"; do
      read -ra fields <<<"$line"
      [[ ${fields[3]-} == 0A && ${fields[1]##*:} =~ ^[0-9A-F]{4}$ ]] || continue
      ((16#${fields[1]##*:} == port)) || continue
      inode+=" -o -lname socket:[[]${fields[9]}[]]"
    done
  done
  [[ $inode ]] || return 0
  # shellcheck disable=SC2086 # words for find
  mapfile -t holders < <(find /proc/[0-9]*/fd -maxdepth 1 \( -name none $inode \) -print 2>/dev/null)
  ((${#holders[@]})) || return 0
  for holder in "${holders[@]}"; do
    grep -qzxsF -- "COMBORUN_SESSION=$session_marker" "${holder%/fd/*}/environ" && return
  done
  return 1
}

ready::all() { # <seconds> : reads port log ready; -> lacks: the first check that does not hold
  for lacks in "${ready[@]}"; do
    ready::holds "$1" "$lacks" || return
  done
  lacks=''
}

ready::holds() { # <seconds> <check> : reads port log
  local kind=${2%% *} rest=${2#* } status path answer
  case $kind in
    http)
      status=${rest%% *} rest=${rest#* } path=${rest%% *}
      ready::ask "$1" GET "$path" && [[ $answer == "HTTP/"[0-9.]*" $status "* ]] || return
      [[ $rest == "$path" || ${answer#*$'\r\n\r\n'} == *"${rest#* }"* ]]
      ;;
    line) LC_ALL=C grep -aqE -e "$rest" -- "$log" 2>/dev/null ;;
    *) ready::ask "$1" ;;
  esac
}

ready::ask() { # <seconds> [method] [path] [type] [body] -> answer; 1 when nobody answers in time
  local rc
  { answer=$(timeout -k 1 "$1" bash "$session_library/servers/ask.sh" "$port" "${@:2}"); } 2>/dev/null </dev/null
  rc=$?
  (($# > 1)) || return "$rc"
  [[ $answer ]] # the server may have left the connection open behind it
}
