#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# probe.sh RUN [KNOWN] [TAIL]: one look at a whole run (docs/architecture.md, "The probe"). A handful of processes
# however many sessions there are; everything else is bash.
#
# Records are counted line by line here: the same line twice counts twice until the session's end has counted it once.
set -uo pipefail

library=${BASH_SOURCE[0]%/*}
source "$library/record.sh"
source "$library/evidence.sh"
source "$library/attempt.sh"

shown=() logs=()                              # `name attempt` of every block; logs of those that have not ended
declare -A ended=() files_of=() pattern_of=() # attempt directory -> its result files (one a line), its success pattern
declare -A records_of=() successes_of=() log_of=() live_of=()

probe::main() { # <run> [known] [tail]
  local name names=() known i=0
  if ! cd -- "${1-}" 2>/dev/null || ! read -r run_id 2>/dev/null <id; then
    printf 'probe: %s is no run directory\n' "${1:-RUN}" >&2
    exit 66
  fi
  run=$PWD
  while IFS=$'\t' read -r name _ || [[ $name ]]; do
    [[ $name =~ ^[A-Za-z0-9_-]+$ ]] && names+=("$name")
  done <dispatch/queue.tsv
  [[ -e sessions/after/session.sh ]] && names+=(after)
  IFS=, read -ra known <<<"${2-}"
  for name in "${names[@]}"; do
    probe::find "$name" "${known[i]-0}"
    i=$((i + 1))
  done
  probe::count
  probe::header
  for name in "${shown[@]}"; do probe::block "$name"; done
  printf 'tails\n'
  ((${#logs[@]} == 0)) || tail -q -v -c "${3:-0}" -- "${logs[@]}" 2>/dev/null
  exit 0
}

probe::find() { # <session> <attempt whose end is known>
  local number=$2 at life success planned globs files
  [[ $number =~ ^[0-9]{1,9}$ ]] || number=0
  number=$((10#$number + 1))
  at=sessions/$1/attempt-$number
  while [[ -e $at/claim || -e $at/grant || -e $at/end ]]; do
    shown+=("$1 $number")
    attempt::glance "$at"
    if [[ $life == ended ]]; then
      ended[$at]=1
    else
      probe::alive "$1" "$at"
      attempt::rules "$at"
      evidence::files "$at/out" "${globs[@]}"
      printf -v "files_of[$at]" '%s\n' "${files[@]}"
      pattern_of[$at]=$success
      [[ -e $at/log ]] && logs+=("$at/log")
    fi
    number=$((number + 1)) at=sessions/$1/attempt-$number
  done
}

probe::alive() { # <session> <attempt directory> : reads life, record
  local supervisor=0 command=0
  process::alive "${record[supervisor]-}" "${record[supervisor_start]-}" "${record[boot]-}" && supervisor=1
  if process::alive "${record[pid]-}" "${record[pid_start]-}" "${record[boot]-}"; then
    command=1
  elif ((supervisor == 0)) && [[ -e $2/claim ]] && lock::held "sessions/$1/lock"; then
    command=1
  fi
  live_of[$2]="supervisor=$supervisor command=$command"
}

probe::count() { # one grep for the records, one for each success pattern that there is, one stat
  local at file pattern size changed all=()
  local -A of_pattern=()
  for at in "${!files_of[@]}"; do
    while IFS= read -r file; do
      [[ $file ]] || continue
      all+=("$file")
      of_pattern[${pattern_of[$at]:-.}]+=$file$'\n'
    done <<<"${files_of[$at]}"
  done
  ((${#all[@]})) && probe::add records_of "$evidence_record" "${all[@]}"
  for pattern in "${!of_pattern[@]}"; do
    mapfile -t all <<<"${of_pattern[$pattern]%$'\n'}"
    [[ $pattern == . ]] || probe::add successes_of "$pattern" "${all[@]}"
  done
  ((${#logs[@]})) || return 0
  while read -r size changed file; do
    log_of[${file%/log}]="size=$size changed=$changed"
  done < <(stat -c '%s %.6Y %n' -- "${logs[@]}" 2>/dev/null)
}

probe::add() { # <array> <pattern> <file>... : array[attempt directory] += matching lines
  local -n sums=$1
  local pattern=$2 file matches at
  shift 2
  while IFS= read -r -d '' file && IFS= read -r matches; do
    at=${file%%/out/*}
    # shellcheck disable=SC2004 # an associative array
    sums[$at]=$((${sums[$at]:-0} + matches))
  done < <(grep -HZacE -- "$pattern" "$@" 2>/dev/null)
}

probe::header() {
  local now boot slots='' load='' multiplexer='' stopped=0
  record::now
  process::boot
  record::read dispatch/dispatcher
  process::alive "${record[pid]-}" "${record[start]-}" "${record[boot]-}" || record[pid]=''
  [[ -e dispatch/slots ]] && read -r slots <dispatch/slots
  [[ -e dispatch/multiplexer ]] && read -r multiplexer <dispatch/multiplexer
  [[ -e dispatch/stopped ]] && stopped=1
  read -r load _ </proc/loadavg
  printf '%s\n' 'comborun-probe 1' "run=$run_id" "now=$now" "boot=$boot" "dispatcher=${record[pid]}" "slots=$slots" \
    "stopped=$stopped" "load=$load" "cpus=$(nproc)" "multiplexer=$multiplexer"
  [[ -e dispatch/done ]] && probe::record 'done' dispatch/done
  printf '.\n'
}

probe::record() { # <word> <file> : its lines; the dot that closes it comes from the caller
  local lines
  mapfile -t lines 2>/dev/null <"$2"
  printf '%s\n' "$1" "${lines[@]}"
}

probe::block() { # <name attempt>
  local at=sessions/${1% *}/attempt-${1##* }
  printf 'session %s\n' "$1"
  [[ -e $at/begin ]] && probe::record begin "$at/begin" && printf '.\n'
  if [[ ${ended[$at]-} ]]; then
    probe::record end "$at/end"
    printf '.\n'
    return
  fi
  printf 'live %s\n' "${live_of[$at]}"
  local records=${records_of[$at]:-0} successes=${successes_of[$at]:-0} # a torn last line may look like a success
  printf 'counts records=%s successes=%s\n' "$records" "$((successes < records ? successes : records))"
  printf 'log %s\n' "${log_of[$at]:-size=0 changed=}"
}

probe::main "$@"
