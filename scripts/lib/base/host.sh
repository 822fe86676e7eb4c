# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# host.sh: how full the machine is: memory, the run's disk, GPUs. To be sourced. What can't be found out is empty,
# which means unknown, and never 0.

host::memory() { # -> memory: the line of the header; KiB
  local key value total='' available=''
  while read -r key value _; do
    case $key in
      MemTotal:) total=$value ;;
      MemAvailable:) available=$value ;;
    esac
  done 2>/dev/null </proc/meminfo
  memory="memory_kib=$total memory_available_kib=$available"
}

host::disk() { # <folder> -> disk: the line of the header; KiB of the file system, and those that this user may fill
  local unit='' total='' available=''
  read -r unit total available < <(stat -f -c '%S %b %a' -- "$1" 2>/dev/null)
  [[ $unit =~ ^[0-9]{1,9}$ && $total$available =~ ^[0-9]+$ ]] || unit='' total='' available=''
  disk="disk_kib=${total:+$((total * unit / 1024))} disk_available_kib=${available:+$((available * unit / 1024))}"
}

host::allowed() { # [attempt directory of a live session]... -> allowed: `0,2`, the GPUs that the run has or may be given
  local key value at
  allowed=''
  while IFS=$'\t' read -r key value || [[ $key ]]; do
    [[ $key == gpus && $value =~ ^[0-9]+(,[0-9]+)*$ ]] && allowed=$value
  done 2>/dev/null <dispatch/policy.tsv
  for at in "$@"; do
    [[ $allowed ]] && return
    record::read "$at/grant"
    [[ ${record[gpus]-} =~ ^[0-9]+(,[0-9]+)*$ ]] && allowed=${record[gpus]}
  done
}

host::ask_gpus() { # <file that exists> : the answer comes while other things are looked at (driver.sh)
  driver::ask "$1" --format=csv,noheader,nounits --query-gpu=index,memory.used,memory.total,utilization.gpu
}

host::hear_gpus() { # <0,1,2: indexes that are missed when no row names them> -> gpus: a line of the header each; MiB, %
  local row index rest=',([^,]*),([^,]*),([^,]*)$' answer
  local -A told=()
  gpus=()
  driver::hear # a GPU that fell off the bus is named by no row, and fails the question for all: what is told counts
  for row in "${answer[@]}"; do
    [[ ${row//[[:space:]]/} =~ ^([0-9]{1,4})$rest ]] || continue
    told[${BASH_REMATCH[1]}]=1
    host::gpu "${BASH_REMATCH[@]:1}"
  done
  for index in ${1//,/ }; do [[ ${told[$index]-} ]] || host::gpu "$index" '' '' ''; done
}

host::gpu() { # <index> <used> <total> <utilisation> : what is no number, [N/A] say, is unknown
  local i values=("$@")
  for i in 1 2 3; do [[ ${values[i]} =~ ^[0-9]{1,9}$ ]] || values[i]=''; done
  gpus+=("gpu index=$1 used_mib=${values[1]} total_mib=${values[2]} utilization=${values[3]}")
}
