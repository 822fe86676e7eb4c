# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# end.sh: judge an attempt by its evidence, and write its end record. To be sourced; needs record.sh, evidence.sh and
# attempt.sh. Room for the record is set aside at the start: it can be written when the disk is full, and then it is
# needed most.

end::reserve() { # <attempt directory> : one byte takes a whole block
  printf '\n' 2>/dev/null >"$1/.end"
}

end::judge() { # <attempt directory> <exit code, empty when unknown or when it proves nothing> -> records successes
  # completeness flaws: by the rules of its claim
  local success planned globs first_planned ranged episode_field evidence_records evidence_line evidence_files
  local files glob held=0 video_globs unlisted evidence_results found due
  flaws=''
  attempt::rules "$1"
  for glob in "${evidence_files[@]}"; do
    evidence::files "$1/out" "$glob"
    ((${#files[@]})) && held=$((held + 1))
  done
  if [[ $evidence_line ]]; then
    evidence::line_there "$evidence_line" "$1/log"
    case $? in
      0) held=$((held + 1)) ;;
      2) flaws+=' the line that is evidence is no regular expression' ;;
    esac
  fi
  evidence::files "$1/out" "${globs[@]}"
  evidence::count "$success" "${files[@]}" || flaws+=' the success pattern is no regular expression'
  due=$records found=$((${#files[@]} > 0 || evidence_results != 1))
  end::due
  evidence::judge "$planned" "$2" "$evidence_records" $((${#evidence_files[@]} + (${#evidence_line} > 0))) "$held" "$found"
  ((${#video_globs[@]})) || return 0
  source "${BASH_SOURCE[0]%/*}/videos.sh"
  videos::index "$1" "${video_globs[@]}"
  ((unlisted == 0)) || flaws+=" $unlisted of its videos are not listed: a line break or TAB is in their names"
}

end::due() { # -> due flaws: of a command that takes a range, how many of its very episodes its records are of
  [[ $ranged == 1 && $episode_field && $evidence_records == 1 ]] && ((planned && records >= planned)) || return 0
  evidence::due "$episode_field" "$first_planned" "$planned" "${files[@]}" || return 0
  ((due >= planned)) || flaws+=" its $records records are of $due of the $planned episodes that it had to make"
}

end::class() { # <completeness> <cause> <exit code> <signal> -> class: what a retry goes by; none of what is complete
  class=''
  [[ $1 == complete || $2 == @(stopped|not_needed) ]] && return
  case $2/$3/$4 in
    exited/0/*) class=no_result ;;
    exited/*) class=error ;;
    signal/*/4 | signal/*/5 | signal/*/6 | signal/*/7 | signal/*/8 | signal/*/11 | signal/*/31) class=crashed ;; # ILL TRAP ABRT BUS FPE SEGV SYS
    signal/*) class=killed ;;
    hung/*) class=stalled ;; # its evidence was there, and is gone
    *) class=$2 ;;
  esac
}

end::write() { # <attempt directory> <started> <ended> <code> <cause> <note>; reads records successes completeness, and
  # where there are any: signature (the class that the log told), peak_memory_kib, end_draft (else what was set aside), end_facts (further lines)
  local signal='' cleaned class draft=$1/${end_draft:-.end} facts=("${end_facts[@]}")
  [[ ! -e $1/give_way ]] || facts+=('gave_way=1')
  [[ $4 ]] && (($4 > 128 && $4 <= 192)) && signal=$(($4 - 128))
  record::clean "${6# }"
  end::class "$completeness" "$5" "$4" "$signal"
  [[ $class && ${signature-} ]] && class=$signature
  printf '%s\n' "attempt=${1##*-}" "started=$2" "ended=$3" "code=$4" "signal=$signal" "cause=$5" "class=$class" \
    "completeness=$completeness" "records=$records" "successes=$successes" "peak_memory_kib=${peak_memory_kib-}" \
    "note=$cleaned" "${facts[@]}" 2>/dev/null 1<>"$draft" && end::publish "$draft" "$1/end"
}

end::publish() { # <draft> <end>
  mv -fT -- "$1" "$2" 2>/dev/null
}
