# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# shellcheck disable=SC2207 # split on purpose: mapfile and read take a pipe byte by byte
# files.sh: which files of a run a reporter needs, in the order in which they have to arrive. To be sourced by
# fetch.sh, with the run as the working directory.

found=()                         # paths below the run, in that order
declare -A seen=() live=()       # paths that were found; paths that may be growing
declare -A size_of=() time_of=() # bytes; seconds with six digits

fetch::names() { # -> names: the sessions in queue order
  local name
  names=()
  while IFS=$'\t' read -r name _ || [[ $name ]]; do
    [[ $name =~ ^[A-Za-z0-9_-]+$ ]] && names+=("$name")
  done 2>/dev/null <dispatch/queue.tsv
  [[ -d sessions/after ]] && names+=(after)
}

fetch::each() { # <closed|open> : the files of all attempts that the asker holds to be final, or of all others
  local i number last at
  for i in "${!names[@]}"; do
    last=${known[i]-0} number=1
    [[ $last =~ ^[0-9]{1,9}$ ]] || last=0
    [[ $1 == closed ]] || number=$((last + 1))
    while [[ $1 == open ]] || ((number <= last)); do
      at=sessions/${names[i]}/attempt-$number
      [[ -e $at/claim || -e $at/grant || -e $at/end ]] || break
      fetch::attempt "$at"
      number=$((number + 1))
    done
  done
}

fetch::attempt() { # <attempt directory> : its results, then its records, the end last
  local at=$1 file end='' success planned globs files broken log_tells
  [[ -f $at/end ]] && end=$at/end
  attempt::rules "$at"
  evidence::files "$at/out" "${globs[@]}"
  for file in "${files[@]}"; do
    fetch::own && fetch::add "$file"
    [[ $end ]] || live[$file]=1
  done
  for file in "${broken[@]}"; do
    fetch::own && printf 'skipped broken %s\0' "$file"
  done
  file=$at/log
  if [[ $log_tells == 1 && -f $file ]]; then
    fetch::add "$file"
    [[ $end ]] || live[$file]=1
  fi
  fetch::files "$at/claim" "$at/grant" "$at/begin" "$at/stop" "$at/videos.tsv" ${end:+"$end"}
}

fetch::own() { # -> file without doubled slashes; 1 for hidden files and `..`, which are nobody's results, and known ones
  while [[ $file == *//* ]]; do file=${file//\/\//\/}; done
  [[ ! ${seen[$file]-} && /${file#"$at/"} != */.* ]] && seen[$file]=1
}

fetch::add() { # <path>
  if [[ -r $1 ]]; then
    found+=("$1")
  else
    printf 'skipped unreadable %s\0' "$1"
  fi
}

fetch::files() { # <path>... : those of our own that are there; a link is none of them
  local file
  for file in "$@"; do
    [[ -f $file && ! -L $file ]] || continue
    fetch::add "$file"
    [[ $file == dispatch/@(journal|usage.tsv) ]] && live[$file]=1
  done
}

fetch::compare() { # one digest tells whether all that the asker holds to be final is as it was
  local digest i
  [[ $closed ]] || return 0
  fetch::each closed
  digest=$(for ((i = 0; i < ${#found[@]}; i += 2000)); do
    LC_ALL=C stat -L --printf '%s %.6Y %n\0' -- "${found[@]:i:2000}" 2>/dev/null
  done | LC_ALL=C sort -z | sha256sum)
  if [[ ${digest%% *} != "$closed" ]]; then
    printf 'differs\0over 0\0'
    exit 0
  fi
  found=()
}

fetch::stat() { # <path>... -> stated: `size time` of each; 1 when one is gone
  local i IFS=$'\n'
  stated=()
  for ((i = 1; i <= $#; i += 2000)); do
    stated+=($(LC_ALL=C stat -L --printf '%s,%.6Y\n' -- "${@:i:2000}" 2>/dev/null))
  done
  ((${#stated[@]} == $#))
}

fetch::look() { # -> size_of time_of
  local i file kept stated tries
  for tries in 1 2 3; do
    fetch::stat "${found[@]}" && break
    ((tries < 3)) || fetch::die 75 'files vanish while they are looked at'
    kept=()
    for file in "${found[@]}"; do [[ -f $file ]] && kept+=("$file"); done
    found=("${kept[@]}")
  done
  for i in "${!found[@]}"; do
    size_of[${found[i]}]=${stated[i]%,*} time_of[${found[i]}]=${stated[i]#*,}
  done
}
