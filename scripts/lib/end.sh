# shellcheck shell=bash
# shellcheck disable=SC2154 # values are handed on through variables that the callers name
# end.sh: the end record of an attempt. To be sourced. Room for it is set aside at the start: it can be written when
# the disk is full, and then it is needed most.

end::reserve() { # <attempt directory> : one byte takes a whole block
  printf '\n' 2>/dev/null >"$1/.end"
}

end::write() { # <attempt directory> <started> <ended> <code> <cause> <note> ; reads records successes completeness
  local signal='' cleaned
  [[ $4 ]] && (($4 > 128 && $4 <= 192)) && signal=$(($4 - 128))
  record::clean "$6"
  printf '%s\n' "attempt=${1##*-}" "started=$2" "ended=$3" "code=$4" "signal=$signal" "cause=$5" \
    "completeness=$completeness" "records=$records" "successes=$successes" "note=$cleaned" 2>/dev/null 1<>"$1/.end" &&
    mv -fT -- "$1/.end" "$1/end" 2>/dev/null
}
