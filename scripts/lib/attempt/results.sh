# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# results.sh: the folder with a link to every accepted result file, for programs that read one folder. To be sourced;
# needs `run`. A name that two share gets its session's name in front, and its attempt's when they are of one session. What
# is no link is left alone: `after` may write its report there.

source "${BASH_SOURCE[0]%/*}/chain.sh"

results::accepted() { # <session> -> accepted: the attempts of the lowest complete one's chain, else of that with most
  # records; oldest first, and none when there are no records
  local directory number numbers=() chain chain_records best=0 whole=0
  accepted=()
  for directory in "$run/sessions/$1"/attempt-*; do
    number=${directory##*-}
    [[ $number =~ ^[1-9][0-9]{0,8}$ && -e $directory/end ]] && numbers[number]=$number
  done
  for number in "${numbers[@]}"; do # an indexed array is in order
    chain::of "$1" "$number"
    record::read "$run/sessions/$1/attempt-$number/end"
    [[ ${record[completeness]-} == complete ]] && whole=1
    ((whole || chain_records > best)) && accepted=("${chain[@]}") best=$chain_records
    ((whole)) && return
  done
}

results::link() { # <session>... : relative links, so that a run directory that was moved still works
  local name accepted number
  local -A owner=() shared=()
  local targets=()
  for name in "$@"; do
    results::accepted "$name"
    for number in "${accepted[@]}"; do results::gather "$name" "$number"; done
  done
  results::place
}

results::gather() { # <session> <attempt> : adds to targets, owner, shared
  local at=$run/sessions/$1/attempt-$2 files file base
  local success planned globs first_planned ranged episode_field evidence_records evidence_line evidence_files
  attempt::rules "$at"
  evidence::files "$at/out" "${globs[@]}"
  for file in "${files[@]}"; do
    base=${file##*/}
    [[ ${owner[$base]-} ]] && shared[$base]=1
    owner[$base]=$1
    targets+=("$file")
  done
}

results::place() { # reads targets, shared
  local file base i plain=()
  mkdir -p -- "$run/results" || return
  results::clear
  for file in "${targets[@]}"; do
    base=${file##*/}
    if [[ ! ${shared[$base]-} ]]; then
      plain+=("../${file#"$run/"}")
      continue
    fi
    results::place_shared "$file"
  done
  for ((i = 0; i < ${#plain[@]}; i += 500)); do
    ln -sfn -t "$run/results" -- "${plain[@]:i:500}"
  done
}

results::place_shared() { # <file>
  local name=${1#"$run/sessions/"} inner number
  inner=${name#*/out/} number=${name#*/attempt-}
  inner=${inner//\//_} number=${number%%/*} name=${name%%/*}
  [[ -L $run/results/${name}_$inner ]] && name+=_a$number
  ln -sfn -- "../${1#"$run/"}" "$run/results/${name}_$inner"
}

results::clear() { # links of an earlier time
  local file old=()
  for file in "$run/results"/*; do
    [[ -L $file ]] && old+=("$file")
  done
  ((${#old[@]} == 0)) || rm -f -- "${old[@]}"
}
