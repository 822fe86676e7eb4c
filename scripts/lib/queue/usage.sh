# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# usage.sh: dispatch/usage.tsv: how busy the machine was while the run lasted. To be sourced by dispatch.sh. A line is
# TIME LOAD CPUS MEMORY_KIB AVAILABLE_KIB, then INDEX:USED_MIB:TOTAL_MIB:UTILIZATION of each GPU that the run may use,
# separated by tabs. What is not known is empty. Without GPUs it costs no process; nobody waits for nvidia-smi.
#
# The time between two lines doubles with every 500 lines: 27 hours are 2,100 lines, two weeks 4,000.

usage_ms=${COMBORUN_USAGE_MS:-10000} # between the first lines
usage_next_ms=0                      # no line before that
usage_lines=0
usage_cpus=''
usage_asking='' # the pid of what waits for the GPUs' answer

usage::open() { # goes on where an earlier dispatcher has stopped, if need be in the middle of a line
  local lines
  [[ $usage_ms =~ ^[1-9][0-9]{0,8}$ ]] || usage_ms=10000
  usage::cpus
  mapfile lines 2>/dev/null <"$run/dispatch/usage.tsv" || return 0
  usage_lines=${#lines[@]}
  ((usage_lines == 0)) || [[ ${lines[-1]} == *$'\n' ]] || printf '\n' 2>/dev/null >>"$run/dispatch/usage.tsv"
}

usage::cpus() { # -> usage_cpus: those that this process may run on, as nproc counts them
  local line range
  while read -r line range; do
    [[ $line == Cpus_allowed_list: && $range =~ ^[0-9,-]+$ ]] || continue
    for range in ${range//,/ }; do
      [[ $range =~ ^([0-9]{1,6})(-([0-9]{1,6}))?$ ]] || continue
      usage_cpus=$((usage_cpus + 10#${BASH_REMATCH[3]:-${BASH_REMATCH[1]}} - 10#${BASH_REMATCH[1]} + 1))
    done
  done 2>/dev/null </proc/self/status
}

usage::tell() { # now_ms is the time
  local doublings=$((usage_lines / 500)) load='' memory total available
  usage_next_ms=$((now_ms + (usage_ms << (doublings < 16 ? doublings : 16))))
  usage_lines=$((usage_lines + 1))
  read -r load _ 2>/dev/null </proc/loadavg
  host::memory
  total=${memory#*=} available=${memory##*=}
  local values=$load$'\t'$usage_cpus$'\t'${total%% *}$'\t'$available
  if ((${#gpus_allowed[@]} == 0)); then
    usage::write "$values"
  elif [[ $usage_asking ]] && kill -0 "$usage_asking" 2>/dev/null; then
    usage::write "$values" # the last answer has yet to come
  else
    usage::with_gpus "$values" </dev/null 3>&- 4>&- 8>&- &
    usage_asking=$!
  fi
}

usage::with_gpus() { # <values> : in the background
  local gpus row allowed values=$1
  printf -v allowed ',%s' "${gpus_allowed[@]}"
  host::ask_gpus "$run/dispatch/policy.tsv"
  host::hear_gpus "${allowed#,}"
  for row in "${gpus[@]}"; do
    [[ $row =~ index=([0-9]+)\ used_mib=([0-9]*)\ total_mib=([0-9]*)\ utilization=([0-9]*)$ ]] || continue
    [[ $allowed, == *,"${BASH_REMATCH[1]}",* ]] || continue
    values+=$'\t'${BASH_REMATCH[1]}:${BASH_REMATCH[2]}:${BASH_REMATCH[3]}:${BASH_REMATCH[4]}
  done
  usage::write "$values"
}

usage::write() { # <values> : the time is that of the writing, so that lines stand in the order of their times
  local now
  record::now
  printf '%s\t%s\n' "$now" "$1" 2>/dev/null >>"$run/dispatch/usage.tsv"
  return 0
}
