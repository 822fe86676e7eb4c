# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_close.sh: close an attempt that nobody ends any more, though its process may live on a node that nobody reaches.
# To be sourced after attempt.sh, end.sh and evidence.sh. The end that comes first counts: a link is made or not, on every
# file system. The process that may still write has a folder of its own (`out-<nonce>`); what readers see is from now on a
# copy of what was there, so nothing that it writes afterwards counts.

slurm_close::publish() { # <draft> <file> : give it its name unless there is one; 1 when there is. The draft goes
  local rc=0
  ln -T -- "$1" "$2" 2>/dev/null || [[ $1 -ef $2 ]] || rc=1 # a repeated call finds what the first one made
  rm -f -- "$1"
  return "$rc"
}

slurm_close::foreign() { # <attempt directory> : put an end aside that is not that of the attempt's own start
  [[ -e $1/end ]] && record::read "$1/end" && ! slurm::own_end "$1" && mv -T -- "$1/end" "$1/end-of-another.$RANDOM"
  return 0
}

slurm_close::end() { # <attempt directory> <line>... : its end, unless there is one
  local at=$1 draft
  shift
  draft=$at/.end.$BASHPID.${HOSTNAME//[^A-Za-z0-9]/-}.$RANDOM$RANDOM
  printf '%s\n' "$@" 2>/dev/null >"$draft" || { rm -f -- "$draft" && return 1; }
  slurm_close::publish "$draft" "$at/end"
}

slurm_close::folder() { # <attempt directory> : what it has made so far, as it is now
  local at=$1 file files all=() draft=$1/.closed.$BASHPID.$RANDOM
  local success planned globs first_planned ranged episode_field evidence_records evidence_line evidence_files log_tells
  [[ -L $at/out && $(readlink -- "$at/out") != out-closed ]] || return 0
  attempt::rules "$at"
  cp -al -- "$at/out/." "$draft" 2>/dev/null || { rm -rf -- "$draft" && cp -a -- "$at/out/." "$draft"; } || return
  evidence::files "$at/out" "${globs[@]}" "${evidence_files[@]}"
  for file in "${files[@]}"; do # those are written line by line, so a link would grow
    [[ $(cd -- "${file%/*}" && pwd -P) == "$(cd -- "$at/out" && pwd -P)"* ]] || continue
    cp -pL --remove-destination -- "$file" "$draft/${file#"$at/out/"}"
  done
  mv -T -- "$draft" "$at/out-closed" 2>/dev/null || rm -rf -- "$draft" # somebody else has just done it
  ln -s -- out-closed "$draft.link" && mv -fT -- "$draft.link" "$at/out" || return
  [[ ! -e $at/log ]] || { cp -p -- "$at/log" "$draft.log" && mv -fT -- "$draft.log" "$at/log"; }
}

slurm_close::attempt() { # <session> <attempt> <cause> <note> : 1 when it has an end already
  local at=$run/sessions/$1/attempt-$2 cause=$3 note=$4 now started own id
  local records successes completeness flaws signature='' peak_memory_kib='' class cleaned
  slurm_close::foreign "$at"
  [[ ! -e $at/end ]] || return 1
  slurm_close::folder "$at"
  record::read "$at/claim"
  own=${record[nonce]-} id=${record[job]-}
  record::read "$at/begin"
  started=${record[started]-}
  end::judge "$at" ''
  read -r peak_memory_kib 2>/dev/null <"$at/.watch"
  record::now
  record::clean "$note$flaws"
  end::class "$completeness" "$cause" '' ''
  slurm_close::end "$at" "attempt=$2" "started=$started" "ended=$now" 'code=' 'signal=' "cause=$cause" "class=$class" \
    "completeness=$completeness" "records=$records" "successes=$successes" "peak_memory_kib=$peak_memory_kib" \
    "note=$cleaned" ${own:+"nonce=$own" "job=$id"} || return
  rm -f -- "$at/stalled"
}

attempt::bury() { # <session> <attempt> : instead of the one for this machine: nothing is signalled, all is told from files
  local at=$run/sessions/$1/attempt-$2 cause=lost note='its task is gone, and nobody saw its end' id
  record::read "$at/claim"
  id=${record[job]-}
  slurm_words::find "$run/slurm/out/$id" "${record[said]:-0}" ||
    { [[ ${account_of[$id]-} ]] && slurm_words::account "${account_of[$id]}"; }
  record::read "$at/.verdict" && cause=${record[cause]-lost} note="${record[note]-}; nobody saw its end"
  [[ -e $at/stop ]] && cause=stopped note=''
  slurm_close::attempt "$1" "$2" "$cause" "$note"
}
