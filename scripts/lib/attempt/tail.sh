# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# tail.sh: the episodes that are still missing at the end of a session's range. To be sourced; needs `run`, record.sh,
# evidence.sh and attempt.sh.

source "${BASH_SOURCE[0]%/*}/chain.sh"

tail::range() { # <session> -> first count: what its next attempt has to make; both empty when that is all of it
  local attempt at number low='' high=0
  local success planned globs first_planned ranged episode_field evidence_records evidence_line evidence_files
  first='' count=''
  attempt::latest "$1"
  for ((number = attempt; number > 0; number--)); do # the whole is what the claims span: tails are parts of it
    at=$run/sessions/$1/attempt-$number
    [[ -s $at/claim ]] || continue
    attempt::rules "$at"
    [[ $ranged == 1 && $episode_field ]] && ((planned)) || return 0
    [[ $low ]] && ((low <= first_planned)) || low=$first_planned
    ((high >= first_planned + planned)) || high=$((first_planned + planned))
  done
  [[ ! $low ]] || tail::missing "$1" "$attempt" "$low" "$high"
}

# Only a gap that reaches to the end is a tail. Where a later episode has a record already, the program did not go through
# them in order, or counts in another way; then all of it is made again, which is right in any case, because each attempt
# has a folder of its own and an episode counts once. The records of the chain are the prefix, so that its files and those
# of the tail make a whole without a duplicate.
tail::missing() { # <session> <latest attempt> <first of all> <end of all> -> first count
  local chain chain_records episodes number every=() next=$3
  local -A chained=()
  chain::of "$1" "$2"
  ((chain_records)) || return 0
  tail::episodes "$1" "${chain[@]}" || return 0
  for number in "${episodes[@]}"; do chained[$number]=1; done
  while [[ ${chained[$next]-} ]]; do next=$((next + 1)); done
  ((next > $3 && next < $4)) || return 0
  for ((number = 1; number <= $2; number++)); do every+=("$number"); done
  tail::episodes "$1" "${every[@]}" || return 0
  for number in "${episodes[@]}"; do
    ((number >= $3 && number < next)) || return 0
  done
  first=$next count=$(($4 - next))
}

tail::episodes() { # <session> <attempt>... -> episodes; 1 when they can't be told apart for certain
  local name=$1 number files all=()
  shift
  for number in "$@"; do
    [[ -s $run/sessions/$name/attempt-$number/claim ]] || continue
    attempt::rules "$run/sessions/$name/attempt-$number"
    evidence::files "$run/sessions/$name/attempt-$number/out" "${globs[@]}"
    all+=("${files[@]}")
  done
  evidence::episodes "$episode_field" "${all[@]}"
}
