# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# port.sh: a TCP port that nothing listens on, and that no other session of this user gets while it is held. To be
# sourced. It lies below those that the kernel gives away by itself, so that no connection takes it meanwhile. What
# holds it is a lock: it goes with the last process that has it open, however that ends.

port_most=1024 # ports to choose from

port::take() { # -> port: held until this process and those that it starts from now on are gone; 1 when there is none
  local folder=${COMBORUN_PORTS:-/tmp/comborun-ports-$UID} last=32767 low tries number
  local -A taken=()
  port=''
  read -r low _ 2>/dev/null </proc/sys/net/ipv4/ip_local_port_range && ((low > 8192)) && last=$((low - 1))
  port::folder "$folder" || return
  port::taken
  number=$((RANDOM % port_most))
  for ((tries = 0; tries < port_most; tries++)); do
    port=$((last - (number + tries) % port_most))
    [[ ${taken[$port]-} ]] && continue
    port::lock "$folder/$port" && return
  done
  port=''
  return 1
}

port::folder() { # <folder> : of this user alone; everybody may write where it is
  mkdir -m 700 -- "$1" 2>/dev/null
  [[ -d $1 && -O $1 && ! -L $1 ]]
}

port::taken() { # -> taken: local ports of every connection that the kernel knows
  local file line lines address
  for file in /proc/net/tcp /proc/net/tcp6; do
    mapfile -t lines 2>/dev/null <"$file" || continue
    for line in "${lines[@]:1}"; do
      read -r _ address _ <<<"$line"
      [[ ${address##*:} =~ ^[0-9A-F]{4}$ ]] && taken[$((16#${address##*:}))]=1
    done
  done
}

port::lock() { # <file>
  local fd
  { exec {fd}>>"$1"; } 2>/dev/null || return
  flock -n "$fd" && return
  exec {fd}>&-
  return 1
}
