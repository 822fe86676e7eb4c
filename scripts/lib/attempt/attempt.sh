# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# attempt.sh: where an attempt is in its life, read off its files, and the end that nobody wrote. To be sourced; needs
# `run` and `run_id`. Attempts of a model server are looked at with `family=servers`.

attempt::latest() { # <session> -> attempt: the highest one that was granted, claimed or ended; 0 when there is none
  local directory number
  attempt=0
  for directory in "$run/${family:-sessions}/$1"/attempt-*; do
    number=${directory##*-}
    [[ $number =~ ^[1-9][0-9]{0,8}$ && -d $directory ]] || continue
    ((number > attempt)) && [[ -e $directory/claim || -s $directory/grant || -e $directory/end ]] && attempt=$number
  done
}

attempt::look() { # <session> <attempt> -> life; record holds the newest of end, begin and claim
  local at=$run/${family:-sessions}/$1/attempt-$2
  attempt::glance "$at"
  [[ $life == lost ]] || return 0
  if lock::held "$run/${family:-sessions}/$1/lock"; then
    life=orphaned                                       # a child that the command left holds it; or nobody saw the begin
    [[ -s $at/claim || -e $at/begin ]] || life=starting # it is just being claimed
  elif record::read "$at/end"; then
    life=ended # written while we looked
  fi
}

attempt::glance() { # <attempt directory> -> life as far as it can be known without starting a process
  life=ended
  record::read "$1/end" && { [[ ! ${slurm_run-} ]] || slurm::own_end "$1"; } && return
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
  elif [[ ! -s $1/grant ]]; then
    life=queued
  fi
  [[ $life != lost || ! ${slurm_run-} ]] || slurm::glance "$1"
}

attempt::rules() { # <attempt directory> -> success planned globs first_planned ranged episode_field evidence_records
  # evidence_line evidence_files evidence_results log_tells: which episodes it has to make and what its evidence is, as its claim says
  local line
  success='' planned=0 globs=() video_globs=() first_planned=0 ranged=0 episode_field=''
  evidence_records='' evidence_line='' evidence_files=() evidence_results=0 log_tells=0
  while IFS= read -r line; do
    case $line in
      success=*) success=${line#*=} ;;
      count=*) planned=${line#*=} ;;
      results=*) globs+=("${line#*=}") ;;
      video=*) video_globs+=("${line#*=}") ;;
      first=*) first_planned=${line#*=} ;;
      ranged=*) ranged=${line#*=} ;;
      episode=*) episode_field=${line#*=} ;;
      records=*) evidence_records=${line#*=} ;;
      line=*) evidence_line=${line#*=} ;;
      log=*) log_tells=${line#*=} ;;
      some=*) evidence_results=${line#*=} ;;
      file=*) evidence_files+=("${line#*=}") ;;
    esac
  done 2>/dev/null <"$1/claim"
  [[ $planned =~ ^[0-9]{1,18}$ ]] && planned=$((10#$planned)) || planned=0
  [[ $first_planned =~ ^[0-9]{1,18}$ ]] && first_planned=$((10#$first_planned)) || first_planned=0
  [[ $evidence_records == [01] ]] || evidence_records=$((${#globs[@]} > 0))
  ((${#globs[@]})) || evidence_records=0
}

attempt::killed_for_memory() { # <attempt directory> -> note: with how many were, on this machine, since it began
  local killed where
  source "${BASH_SOURCE[0]%/*}/../session/pressure.sh"
  record::read "$1/claim" && [[ ${record[kills]-} =~ ^[0-9]*,[0-9]+$ ]] || return 0
  pressure::since '' "${record[kills]##*,}" || return 0
  note+="; processes killed for memory $where since it began: $killed"
}

attempt::bury() { # <session> <attempt> : end what is left of a lost one and write its end, from the evidence
  local at=$run/${family:-sessions}/$1/attempt-$2 cause=lost note='nobody saw its end' boot
  local records successes completeness flaws signature='' peak_memory_kib='' grace=${COMBORUN_GRACE_S:-5} pids=() fd now
  process::boot
  record::read "$at/begin" || record::read "$at/claim"
  local started=${record[started]-} same_boot=0
  [[ ${record[boot]-} == "$boot" ]] && same_boot=1
  ((same_boot)) || note='the machine was started again'
  record::read "$at/.verdict" && cause=${record[cause]-lost} note="${record[note]-}; nobody saw its end" grace=0
  [[ -e $at/stop ]] && cause=stopped note='' grace=0
  [[ $cause == lost ]] && ((same_boot)) && attempt::killed_for_memory "$at"
  if ((same_boot)); then
    if [[ -e $at/container ]]; then
      source "${BASH_SOURCE[0]%/*}/../session/container.sh"
      container::end "$at"
    fi
    marker::sweep "$run_id/$1/$2" "$grace" 5 || note+=" processes survive: ${pids[*]}"
  fi
  exec {fd}>>"$run/${family:-sessions}/$1/lock" && flock -w 5 "$fd" # two may come to bury it
  if ! record::read "$at/end"; then
    end::judge "$at" ''
    read -r peak_memory_kib 2>/dev/null <"$at/.watch"
    record::now
    end::write "$at" "$started" "$now" '' "$cause" "$note$flaws" &&
      rm -f -- "$at/.watch" "$at/.verdict" "$at/stalled"
  fi
  exec {fd}>&-
}

attempt::forestall() { # <session> <attempt> <cause> <note> : end it before it begins; 1 when it has been claimed, or nothing can be written
  local at=$run/${family:-sessions}/$1/attempt-$2 records=0 successes=0 completeness=none now rc=0
  local draft end_draft
  record::draft "$at/end"
  end_draft=${draft##*/} # a window that was opened ahead may be setting `.end` aside just now
  mkdir -p -- "$at" || return
  set -o noclobber # a session.sh that comes late finds the claim and leaves
  { : >"$at/claim"; } 2>/dev/null || rc=1
  set +o noclobber
  ((rc == 0)) || return
  record::now
  end::write "$at" '' "$now" '' "$3" "$4" && return
  rm -f -- "$at/claim" "$at/$end_draft" # nothing can be recorded here now, so nothing has been decided
  return 1
}

attempt::outcome() { # -> outcome, of the end in `record`
  outcome=failed
  case ${record[completeness]-none}/${record[cause]-} in
    complete/*) outcome=succeeded ;;
    */stopped) outcome=cancelled ;;
    */not_needed) outcome=not_needed ;;
    */lost) outcome=lost ;;
    partial/*) outcome=partial ;;
  esac
}
