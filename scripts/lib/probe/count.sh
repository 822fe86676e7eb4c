# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# count.sh: the records and the logs of a whole run, with a process for some hundred files and none for each session. To be
# sourced by probe.sh and notice.sh; needs evidence.sh.
#
# Records are counted line by line here: the same line twice counts twice until the session's end has counted it once.

count_files=()              # result files of all that runs, those of an attempt side by side
declare -gA count_parts=()  # success pattern -> `FIRST HOW_MANY` in count_files of each attempt that has it
declare -gA records_of=()   # attempt directory, below the run's -> lines that are records
declare -gA successes_of=() # attempt directory -> lines that match its success pattern

count::add() { # <success pattern or nothing> <result file of an attempt>...
  (($# < 2)) || [[ ! $1 ]] || count_parts[$1]+=" ${#count_files[@]} $(($# - 1))"
  count_files+=("${@:2}")
}

count::records() { # -> records_of successes_of: by what was added
  local pattern files parts i
  records_of=() successes_of=()
  count::lines records_of "$evidence_record" "${count_files[@]}"
  for pattern in "${!count_parts[@]}"; do
    files=()
    read -ra parts <<<"${count_parts[$pattern]}"
    for ((i = 0; i < ${#parts[@]}; i += 2)); do files+=("${count_files[@]:parts[i]:parts[i + 1]}"); done
    count::lines successes_of "$pattern" "${files[@]}"
  done
}

count::lines() { # <array> <pattern> <file>... : array[attempt directory] += matching lines. Only so many files fit into one
  # command line; a name may hold anything, so what grep says of it is cut at the NUL behind it
  local -n sums=$1
  local pattern=$2 file matches at i
  for ((i = 3; i <= $#; i += 500)); do
    while IFS= read -r -d '' file && IFS= read -r matches; do
      at=${file#"${run-}/"}
      at=${at%%/out/*}
      # shellcheck disable=SC2004 # an associative array
      [[ ! $matches =~ ^[0-9]{1,18}$ ]] || sums[$at]=$((${sums[$at]:-0} + matches))
    done < <(grep -HZacE -- "$pattern" "${@:i:500}" 2>/dev/null)
  done
}

count::logs() { # <log>... -> log_of: attempt directory -> size and time of change, as the probe tells them
  local size changed file i
  for ((i = 1; i <= $#; i += 500)); do
    while read -r size changed file; do
      log_of[${file%/log}]="size=$size changed=$changed"
    done < <(stat -c '%s %.6Y %n' -- "${@:i:500}" 2>/dev/null)
  done
}
