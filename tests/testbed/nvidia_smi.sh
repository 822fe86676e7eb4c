#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# stand-in, not the real nvidia-smi: tests/integration/nvidia.py says what it does
source "${BASH_SOURCE[0]%/*}/nvidia_cards.sh"

fault=''
read -r fault 2>/dev/null <"$folder/fault"
[[ $* == *memory.used* ]] && printf '.' >>"$folder/asked"
case $fault in
  fail)
    printf "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    exit 9
    ;;
  mismatch)
    printf 'Failed to initialize NVML: Driver/library version mismatch\n'
    exit 18
    ;;
  hang)
    trap '' TERM
    exec {never}<> <(:)
    while :; do read -r -t 60 -u "$never" _; done
    ;;
  garbage)
    printf '\x1b[31m0, 12 MiB?, ,,\nsegfault at 0\n'
    exit 0
    ;;
esac
if [[ -e $folder/apps && $* == *compute-apps* ]]; then
  while IFS= read -r row; do printf '%s\n' "$row"; done <"$folder/apps"
  exit 0
fi
cards || exit 9
if [[ $fault == lost ]]; then
  printf 'Unable to determine the device handle for GPU%s: GPU is lost.  Reboot the system to recover this GPU\n' 0000:01:00.0
  exit 15
fi
[[ $fault == missing ]] && unset 'indexes[-1]'
count

field() { # <index> <field> -> value
  local uuid bus used
  name "$1"
  used "$1"
  case $2 in
    index) value=$1 ;;
    uuid | gpu_uuid) value=$uuid ;;
    name | gpu_name) value='NVIDIA stand-in' ;;
    pci.bus_id | gpu_bus_id) value=$bus ;;
    driver_version) value=550.54.15 ;;
    memory.total) value=${total[$1]} ;;
    memory.used) value=$used ;;
    utilization.gpu) value=${load[$1]} ;;
    *)
      printf 'Field "%s" is not a valid field to query.\n\n' "$2"
      exit 2
      ;;
  esac
  [[ $fault == na && $2 == memory.* ]] && value='[N/A]'
  return 0
}

query() { # <fields>
  local index one line value
  for index in "${indexes[@]}"; do
    line=''
    for one in ${1//,/ }; do
      field "$index" "$one"
      line+=${line:+, }$value
    done
    printf '%s\n' "$line"
  done
}

apps() { # <fields>
  local row index pid kind mib one line value
  for row in "${rows[@]}"; do
    read -r index pid kind mib <<<"$row"
    line=''
    for one in ${1//,/ }; do
      case $one in
        pid) value=$pid ;;
        used_memory | used_gpu_memory) value=$mib ;;
        process_name | name) read -r value <"/proc/$pid/comm" ;;
        *) field "$index" "$one" ;;
      esac
      line+=${line:+, }$value
    done
    printf '%s\n' "$line"
  done
}

pids() {
  local index uuid bus row at pid kind mib
  printf '\n==============NVSMI LOG==============\n\n%-42s: %s\n\n%-42s: %s\n' \
    'Driver Version' 550.54.15 'Attached GPUs' "${#indexes[@]}"
  for index in "${indexes[@]}"; do
    name "$index"
    printf 'GPU %s\n' "$bus"
    [[ " ${rows[*]/#/@}" == *" @$index "* ]] || {
      printf '    %-38s: None\n' Processes
      continue
    }
    printf '    Processes\n'
    for row in "${rows[@]}"; do
      read -r at pid kind mib <<<"$row"
      [[ $at == "$index" ]] || continue
      printf '        %-34s: %s\n' 'GPU instance ID' N/A 'Compute instance ID' N/A 'Process ID' "$pid"
      printf '            %-30s: %s\n' Type "$kind" Name program 'Used GPU Memory' "$mib MiB"
    done
  done
}

case "$*" in
  *--query-gpu=*)
    fields=$*
    fields=${fields#*--query-gpu=}
    query "${fields%% *}"
    ;;
  *--query-compute-apps=*)
    fields=$*
    fields=${fields#*--query-compute-apps=}
    apps "${fields%% *}"
    ;;
  *PIDS*) pids ;;
  *)
    printf 'Invalid combination of input arguments. Please run nvidia-smi -h for help.\n\n'
    exit 2
    ;;
esac
