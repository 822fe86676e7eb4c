# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# pressure.sh: what the kernel counts when memory runs out. To be sourced. Read when an attempt is claimed and again
# when it has failed: the difference is what happened meanwhile. What can't be read is empty, which is no evidence.

# Whole files at once: line by line they would cost a system call for each byte.
pressure::kills() { # -> group_kills host_kills: processes killed for memory so far, in our control group and on the host
  local entries entry file='' count
  mapfile -t entries 2>/dev/null </proc/self/cgroup
  for entry in "${entries[@]}"; do
    case $entry in
      0::/*) [[ $file ]] || file=/sys/fs/cgroup${entry#0::}/memory.events ;;
      *:memory:* | *:memory,*:* | *,memory:* | *,memory,*:*) file=/sys/fs/cgroup/memory${entry#*:*:}/memory.oom_control ;;
    esac
  done
  pressure::read "$file"
  group_kills=$count
  pressure::read /proc/vmstat
  host_kills=$count
}

pressure::read() { # <file> -> count: the number after oom_kill
  local lines line
  count=''
  [[ -r $1 ]] && mapfile -t lines 2>/dev/null <"$1" || return 0
  for line in "${lines[@]}"; do
    [[ $line =~ ^oom_kill\ ([0-9]{1,18})$ ]] && count=${BASH_REMATCH[1]} && return
  done
}

pressure::since() { # <group's and host's count when it began> -> killed where: how many since, and of whom
  local group_kills host_kills
  killed=0 where=''
  pressure::kills
  if [[ $1 && $group_kills ]] && ((group_kills > $1)); then
    killed=$((group_kills - $1)) where='in its control group'
  elif [[ $2 && $host_kills ]] && ((host_kills > $2)); then
    killed=$((host_kills - $2)) where='on this machine'
  fi
  ((killed))
}
