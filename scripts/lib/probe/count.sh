# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# count.sh: the records and the logs of a whole run, with a process for each kind of question and none for each
# session. To be sourced by probe.sh.
#
# Records are counted line by line here: the same line twice counts twice until the session's end has counted it once.

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
  ((${#logs[@]} + ${#ended_logs[@]})) || return 0
  while read -r size changed file; do
    log_of[${file%/log}]="size=$size changed=$changed"
  done < <(stat -c '%s %.6Y %n' -- "${logs[@]}" "${ended_logs[@]}" 2>/dev/null)
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
