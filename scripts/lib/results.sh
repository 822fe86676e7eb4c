# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# results.sh: the folder with a link to every accepted result file, for programs that read one folder. To be sourced;
# needs `run`. A name that two share gets its session's name in front. What is no link is left alone: `after` may write
# its report there.

results::accepted() { # <session> -> accepted: the lowest complete attempt, else the one with most records, else 0
  local directory number best=-1 low=0
  accepted=0
  for directory in "$run/sessions/$1"/attempt-*; do
    number=${directory##*-}
    [[ $number =~ ^[1-9][0-9]*$ ]] || continue
    record::read "$directory/end" || continue
    if [[ ${record[completeness]-} == complete ]]; then
      ((low == 0 || number < low)) && low=$number
    elif [[ ${record[records]-} =~ ^[0-9]+$ ]] && ((10#${record[records]} > best)); then
      best=$((10#${record[records]})) accepted=$number
    fi
  done
  ((low == 0)) || accepted=$low
}

results::link() { # <session>... : relative links, so that a run directory that was moved still works
  local name accepted at file base success planned globs files
  local -A owner=() shared=()
  local targets=()
  for name in "$@"; do
    results::accepted "$name"
    ((accepted)) || continue
    at=$run/sessions/$name/attempt-$accepted
    attempt::rules "$at"
    evidence::files "$at/out" "${globs[@]}"
    for file in "${files[@]}"; do
      base=${file##*/}
      [[ ${owner[$base]-} ]] && shared[$base]=1
      owner[$base]=$name
      targets+=("$file")
    done
  done
  results::place
}

results::place() { # reads targets, shared
  local file base name inner i plain=()
  mkdir -p -- "$run/results" || return
  results::clear
  for file in "${targets[@]}"; do
    base=${file##*/}
    if [[ ! ${shared[$base]-} ]]; then
      plain+=("../${file#"$run/"}")
      continue
    fi
    name=${file#"$run/sessions/"}
    inner=${name#*/out/}
    ln -sfn -- "../${file#"$run/"}" "$run/results/${name%%/*}_${inner//\//_}"
  done
  for ((i = 0; i < ${#plain[@]}; i += 500)); do
    ln -sfn -t "$run/results" -- "${plain[@]:i:500}"
  done
}

results::clear() { # links of an earlier time
  local file old=()
  for file in "$run/results"/*; do
    [[ -L $file ]] && old+=("$file")
  done
  ((${#old[@]} == 0)) || rm -f -- "${old[@]}"
}
