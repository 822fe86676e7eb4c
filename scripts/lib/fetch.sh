#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# shellcheck disable=SC2206,SC2207 # split on purpose: mapfile and read take a pipe byte by byte
# fetch.sh RUN MARK LIMIT: send what the asker lacks of a run's records and results (docs/architecture.md). What it
# has comes on standard input. A handful of processes however many files there are, and one for each file that grows.
#
# Order is a promise: an attempt's end comes after its results, dispatch/done after everything, and neither is sent
# unless it was there before the rest was looked for.
set -uo pipefail

library=${BASH_SOURCE[0]%/*}
source "$library/base/record.sh"
source "$library/attempt/evidence.sh"
source "$library/attempt/attempt.sh"
source "$library/fetch/files.sh"

known=() closed=''   # highest attempt of each session whose files the asker holds to be final; the digest of those files
part='' part_from='' # a file that is too big for one answer: what was announced of it, and where to go on
declare -A have=()   # path -> size,time at the asker's
declare -A again=()  # path -> `whole`: send it from its beginning; `skip`: it does not hold still, leave it
declare -A sum_of=() from_of=() length_of=()

fetch::die() { # <code> <message>
  printf 'fetch: %s\n' "$2" >&2
  exit "$1"
}

fetch::main() { # <run> <mark> <limit>
  local mark=$2 limit=$3 chosen=() continued=0 more=0 over=''
  { cd -P -- "$1" && [[ -f id && -d sessions ]]; } 2>/dev/null || fetch::die 66 "$1 is no run directory"
  fetch::hear
  printf 'comborun-fetch 1\0'
  [[ -f dispatch/done ]] && over=dispatch/done
  fetch::names
  fetch::compare
  fetch::files id digest run.json plan-*.json grid.yaml canary.json dispatch/queue.tsv
  fetch::each open
  fetch::files dispatch/slots dispatch/multiplexer dispatch/stopped dispatch/journal dispatch/usage.tsv $over
  fetch::look
  fetch::gone
  fetch::choose
  fetch::sums
  fetch::send
  printf 'over %s\0' "$more"
  exit 0
}

fetch::hear() { # standard input: a line each; names have % and newline as %25 and %0A; the last line is a dot
  local line path lines IFS=$'\n'
  set -f
  lines=($(cat))
  [[ ${#lines[@]} != 0 && ${lines[-1]} == . ]] || fetch::die 65 'what the asker has did not arrive whole'
  for line in "${lines[@]}"; do
    path=${line#* * }
    path=${path//%0A/$'\n'}
    path=${path//%25/%}
    line=${line%% "${line#* * }"}
    case $line in
      'known '*) known=(${line//[!0-9]/$'\n'}) ;;
      'closed '*) closed=${line#* } ;;
      'have '*) [[ $line =~ ^have\ [0-9]{1,18},-?[0-9]+$ && $path ]] && have[$path]=${line#* } ;;
      'again '*) [[ ! $path ]] || again[$path]=${line#* } ;;
      'part '*) [[ $line =~ ^part\ [0-9]{1,18},[0-9]{1,18},-?[0-9]+$ ]] && part=$path part_from=${line#* } ;;
    esac
  done
  set +f
}

fetch::gone() {
  local path
  for path in "${!have[@]}"; do
    [[ ${size_of[$path]-} ]] || printf 'gone - %s\0' "$path"
  done
}

fetch::choose() { # -> chosen continued more: what goes into this answer, in order, until the limit is reached
  local path old size room=$limit
  if [[ $part && ${size_of[$part]-} ]]; then
    old=${part_from#*,} sum_of[$part]=- live[$part]=1 continued=1
    size_of[$part]=${old%,*} time_of[$part]=${old#*,}
    fetch::take "$part" "${part_from%%,*}"
    ((more)) && return
  fi
  for path in "${found[@]}"; do
    old=${have[$path]-0,0}
    [[ $path == "$part" || ${again[$path]-} == skip || $old == "${size_of[$path]},${time_of[$path]/./}" ]] && continue
    old=${old%,*} size=${size_of[$path]}
    [[ $path == @(*.jsonl|dispatch/journal|dispatch/usage.tsv) && ! ${again[$path]-} ]] && ((old < size)) || old=0
    fetch::take "$path" "$old"
    ((more)) && return
  done
}

fetch::take() {               # <path> <from where> : all of it, or what there is room for when it is the only one
  local length=${size_of[$1]} # not within (( )), where bash would run a name that looks like a command
  length=$((length - $2))
  if ((length > room)); then
    more=1
    ((${#chosen[@]} == 0)) || return 0
    length=$room
  fi
  chosen+=("$1")
  from_of[$1]=$2 length_of[$1]=$length
  room=$((room - length))
}

fetch::sums() { # -> sum_of: of each chosen file, up to the size that is announced
  local i path sums=() stated IFS=$'\n'
  local new=("${chosen[@]:continued}") # what is continued was announced, with its sum, when it was begun
  set -f
  for ((i = 0; i < ${#new[@]}; i += 2000)); do
    sums+=($(sha256sum -- "${new[@]:i:2000}" 2>/dev/null))
  done
  set +f
  if ! fetch::stat "${new[@]}" || ((${#sums[@]} != ${#new[@]})); then
    fetch::die 75 'files vanish while they are read'
  fi
  for i in "${!new[@]}"; do
    path=${new[i]}
    sum_of[$path]=${sums[i]#\\}
    if [[ ${stated[i]} != "${size_of[$path]},${time_of[$path]}" ]]; then # it has grown since
      sum_of[$path]=$(head -c "${size_of[$path]}" -- "$path" | sha256sum)
      live[$path]=1
    fi
  done
}

fetch::send() { # files that hold still come together, the others up to the size that is announced
  local path batch=()
  for path in "${chosen[@]}"; do
    if [[ ${live[$path]-}${again[$path]-} || ${length_of[$path]} != "${size_of[$path]}" ]]; then
      fetch::batch
      fetch::announce "$path"
      printf 'data\0'
      dd if="$path" bs=1M iflag=skip_bytes,count_bytes,fullblock skip="${from_of[$path]}" count="${length_of[$path]}" \
        status=none 2>/dev/null
      printf '%s' "$mark"
    else
      batch+=("$path")
      ((${#batch[@]} < 500)) || fetch::batch
    fi
  done
  fetch::batch
}

fetch::batch() {
  local path
  ((${#batch[@]})) || return 0
  for path in "${batch[@]}"; do fetch::announce "$path"; done
  printf 'data\0'
  cat -- "${batch[@]}" 2>/dev/null
  printf '%s' "$mark"
  batch=()
}

fetch::announce() { # <path>
  printf 'file %s,%s,%s,%s,%s %s\0' "${size_of[$1]}" "${time_of[$1]/./}" "${from_of[$1]}" "${length_of[$1]}" \
    "${sum_of[$1]::64}" "$1"
}

fetch::main "$@"
