#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# sample.sh: what the sessions of a run hold at this moment, for `combo calibrate`. Changes nothing.
#
#   bash sample.sh RUN      hertz N, then for every session that has processes
#                           use NAME/ATTEMPT KIB TICKS: main memory that nobody else has, CPU time so far (1/N s)
#                           gpu NAME/ATTEMPT INDEX MIB: as the driver names its processes
set -uo pipefail

sample_library=${BASH_SOURCE[0]%/*}
source "$sample_library/watch/activity.sh"
source "$sample_library/base/driver.sh"
source "$sample_library/base/host.sh"
source "$sample_library/base/record.sh"
source "$sample_library/admission/measure.sh"

sample::main() { # <run directory>
  local run=$1 run_id page_kib
  read -r run_id 2>/dev/null <"$run/id" && [[ $run_id =~ ^[A-Za-z0-9_-]+$ ]] || exit 66
  activity::page_size
  printf 'hertz %s\n' "$(getconf CLK_TCK)"
  sample::processes
  sample::gpus
}

sample::processes() {
  local pid marker text fields
  local -A kib=() ticks=()
  while IFS=/ read -r _ _ pid _; do
    measure::whose "$pid"
    [[ $marker == "$run_id"/* ]] || continue
    read -ra fields 2>/dev/null <"/proc/$pid/statm" || continue
    [[ ${fields[1]-} =~ ^[0-9]+$ && ${fields[2]-} =~ ^[0-9]+$ ]] || continue
    kib[$marker]=$((${kib[$marker]:-0} + (fields[1] - fields[2]) * page_kib))
    read -r text 2>/dev/null <"/proc/$pid/stat" || continue
    read -ra fields <<<"${text##*) }"
    [[ ${fields[11]-}${fields[12]-}${fields[13]-}${fields[14]-} =~ ^[0-9]{4,}$ ]] || continue
    ticks[$marker]=$((${ticks[$marker]:-0} + fields[11] + fields[12] + fields[13] + fields[14]))
  done < <(grep -lzsF -- "COMBORUN_SESSION=$run_id/" /proc/[0-9]*/environ 2>/dev/null)
  for marker in "${!kib[@]}"; do printf 'use %s %s %s\n' "${marker#*/}" "${kib[$marker]}" "${ticks[$marker]:-0}"; done
}

sample::gpus() {
  local lines=() line what marker index mib
  command -v nvidia-smi >/dev/null || return 0
  measure::gpus
  for line in "${lines[@]}"; do
    read -r what marker index mib <<<"$line"
    [[ $what == held && $marker == "$run_id"/* ]] && printf 'gpu %s %s %s\n' "${marker#*/}" "$index" "$mib"
  done
  return 0
}

sample::main "$@"
