# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# activity.sh: what the processes of a session do: the CPU time that they take, the memory that they hold, the work that
# they give their GPUs. To be sourced by watch.sh.

declare -gA ticks_of=() # pid -> the CPU time that it and its dead children had taken when it was looked at
activity_pids=() page_kib=''

activity::find() { # <marker> : all its processes; costs a process, so the watch does it now and then
  local pids
  marker::pids "$1"
  activity_pids=("${pids[@]}")
}

activity::look() { # -> ticks: CPU time since the last look, in hundredths of a second; resident_kib; held: how many are
  # stopped by a signal
  local pid fields total pages=0
  local -A now_of=()
  ticks=0 held=0
  [[ $page_kib ]] || activity::page_size
  for pid in "${activity_pids[@]}"; do
    process::fields "$pid" || continue
    total=$((fields[11] + fields[12] + fields[13] + fields[14]))
    now_of[$pid]=$total
    [[ ${ticks_of[$pid]-} ]] && ((total > ticks_of[$pid])) && ticks=$((ticks + total - ticks_of[$pid]))
    pages=$((pages + fields[21]))
    [[ ${fields[0]} == T ]] && held=$((held + 1))
  done
  resident_kib=$((pages * page_kib))
  ticks_of=()
  for pid in "${!now_of[@]}"; do ticks_of[$pid]=${now_of[$pid]}; done
}

activity::page_size() { # -> page_kib
  local key value
  page_kib=4
  while read -r key value _; do
    [[ $key == KernelPageSize: && $value =~ ^[0-9]+$ ]] && page_kib=$value && return
  done 2>/dev/null </proc/self/smaps
}

activity::on_gpu() { # whether a GPU works for one of them, where nvidia-smi says so
  local row pid index kind busy mine=" ${activity_pids[*]} " answer
  [[ $session_gpus ]] || return
  driver::ask '' pmon -c 1 -s u # sessions that are silent together ask together: nobody waits for a lock
  driver::hear
  for row in "${answer[@]}"; do
    read -r index pid kind busy _ <<<"$row"
    [[ $index == [0-9]* && $mine == *" $pid "* && $busy =~ ^[0-9]+$ ]] && ((busy > 2)) && return
  done
  return 1
}
