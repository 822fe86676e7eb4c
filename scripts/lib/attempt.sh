# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# attempt.sh: where an attempt is in its life, read off its files, and the end that nobody wrote. To be sourced; needs
# `run` and `run_id`.

attempt::latest() { # <session> -> attempt: the highest one that was granted, claimed or ended; 0 when there is none
  local directory number
  attempt=0
  for directory in "$run/sessions/$1"/attempt-*; do
    number=${directory##*-}
    [[ $number =~ ^[1-9][0-9]*$ && -d $directory ]] || continue
    ((number > attempt)) && [[ -e $directory/claim || -e $directory/grant || -e $directory/end ]] && attempt=$number
  done
}

attempt::look() { # <session> <attempt> -> life; record holds the newest of end, begin and claim
  local at=$run/sessions/$1/attempt-$2
  attempt::glance "$at"
  [[ $life == lost ]] || return 0
  if lock::held "$run/sessions/$1/lock"; then
    life=orphaned # a child that the command left holds it; or nobody saw the begin
  elif record::read "$at/end"; then
    life=ended # written while we looked
  fi
}

attempt::glance() { # <attempt directory> -> life as far as it can be known without starting a process
  life=ended
  record::read "$1/end" && return
  life=starting
  if record::read "$1/begin"; then
    if process::alive "${record[supervisor]-}" "${record[supervisor_start]-}" "${record[boot]-}"; then
      life=running
    elif process::alive "${record[pid]-}" "${record[pid_start]-}" "${record[boot]-}"; then
      life=orphaned
    else
      life=lost
    fi
  elif [[ -e $1/claim ]]; then
    record::read "$1/claim" # empty when the disk was full
    process::alive "${record[supervisor]-}" "${record[supervisor_start]-}" "${record[boot]-}" || life=lost
  elif [[ ! -e $1/grant ]]; then
    life=queued
  fi
}

attempt::rules() { # <attempt directory> -> success planned globs: what its evidence is, as its claim says
  local line
  success='' planned=0 globs=()
  while IFS= read -r line; do
    case $line in
      success=*) success=${line#*=} ;;
      count=*) planned=${line#*=} ;;
      results=*) globs+=("${line#*=}") ;;
    esac
  done 2>/dev/null <"$1/claim"
  [[ $planned =~ ^[0-9]+$ ]] || planned=0
}

attempt::bury() { # <session> <attempt> : end what is left of a lost one and write its end, from the evidence
  local at=$run/sessions/$1/attempt-$2 cause=lost note='nobody saw its end' boot files success planned globs
  local records successes completeness grace=${COMBORUN_GRACE_S:-5} pids=() fd now
  [[ -e $at/stop ]] && cause=stopped note='' grace=0
  process::boot
  record::read "$at/begin" || record::read "$at/claim"
  local started=${record[started]-}
  if [[ ${record[boot]-} == "$boot" ]]; then
    marker::sweep "$run_id/$1/$2" "$grace" 5 || note+=" processes survive: ${pids[*]}"
  else
    note='the machine was started again'
  fi
  exec {fd}>>"$run/sessions/$1/lock" && flock -w 5 "$fd" # two may come to bury it
  if ! record::read "$at/end"; then
    attempt::rules "$at"
    evidence::files "$at/out" "${globs[@]}"
    evidence::count "$success" "${files[@]}"
    evidence::judge "$planned" '' "${#globs[@]}"
    record::now
    end::write "$at" "$started" "$now" '' "$cause" "$note"
  fi
  exec {fd}>&-
}

attempt::forestall() { # <session> <attempt> <cause> <note> : end it before it begins; 1 when it has been claimed, or nothing can be written
  local at=$run/sessions/$1/attempt-$2 records=0 successes=0 completeness=none now rc=0
  mkdir -p -- "$at" || return
  set -o noclobber # a session.sh that comes late finds the claim and leaves
  { : >"$at/claim"; } 2>/dev/null || rc=1
  set +o noclobber
  ((rc == 0)) || return
  record::now
  end::write "$at" '' "$now" '' "$3" "$4" && return
  rm -f -- "$at/claim" # nothing can be recorded here now, so nothing has been decided
  return 1
}

attempt::outcome() { # -> outcome, of the end in `record`
  outcome=failed
  case ${record[completeness]-none}/${record[cause]-} in
    complete/*) outcome=succeeded ;;
    */stopped) outcome=cancelled ;;
    */lost) outcome=lost ;;
    partial/*) outcome=partial ;;
  esac
}
