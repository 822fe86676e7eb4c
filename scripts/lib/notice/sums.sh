# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# sums.sh: how far a whole run has come, as the monitor's table counts it: lines that are records, an episode of a combo once
# however many sessions are for it, and no more than were planned. To be sourced by notice.sh, whose variables it fills.

source "${BASH_SOURCE[0]%/*}/../probe/count.sh"

sums::add_up() { # -> tally records planned successes (null where it is open) surplus
  local name flag combo
  local count_files=() spans=()
  local -A count_parts=() records_of=() successes_of=() latest_of=() unneeded=() lines_of=() wins_of=() due_of=()
  while IFS=$'\t' read -r name _ flag _ || [[ $name ]]; do
    [[ $name =~ ^[A-Za-z0-9_-]+$ && $flag != @(dropped|smoke) ]] && sums::look "$name"
  done <"$run/dispatch/queue.tsv"
  count::records
  for name in "${!latest_of[@]}"; do sums::of_session "$name" "${latest_of[$name]}"; done
  sums::due
  for combo in "${!lines_of[@]}"; do sums::of_combo "$combo"; done
}

sums::look() { # <session> -> tally latest_of unneeded, and what of it runs
  local attempt life=queued outcome
  attempt::latest "$1"
  ((attempt)) && attempt::glance "$run/sessions/$1/attempt-$attempt"
  if [[ $life == ended ]]; then
    attempt::outcome
    life=$outcome
    retry::pending "$1" "$attempt" && life=queued
  elif [[ $life != queued ]]; then
    life=running
    sums::live "$run/sessions/$1/attempt-$attempt"
  fi
  tally[$life]=$((tally[$life] + 1))
  latest_of[$1]=$attempt
  [[ $life != not_needed ]] || unneeded[$1]=1
}

sums::live() { # <attempt directory> : its records are counted with all the others'
  local success planned globs files
  attempt::rules "$1"
  evidence::files "$1/out" "${globs[@]}"
  count::add "$success" "${files[@]}"
}

sums::of_session() { # <session> <latest attempt> -> lines_of wins_of spans, of its combo
  local line first=0 count=0 lines=0 wins=0 combo
  while IFS= read -r line; do
    [[ $line =~ ^(first|count)=([0-9]{1,9})$ ]] && printf -v "${BASH_REMATCH[1]}" %d $((10#${BASH_REMATCH[2]}))
    [[ $line != count=* ]] || break
  done 2>/dev/null <"$run/sessions/$1/session.sh"
  combo=${1%"_e$first-$((first + count - 1))"}
  sums::of_attempts "$1" "$2"
  lines_of[$combo]=$((${lines_of[$combo]-0} + lines)) wins_of[$combo]=$((${wins_of[$combo]-0} + wins))
  [[ ${unneeded[$1]-} ]] || ((count == 0)) || spans+=("$combo $first $((first + count))")
}

sums::of_attempts() { # <session> <latest> -> lines wins: a tail adds to what was there; a whole attempt takes its place
  local number at tail had won
  for ((number = 1; number <= $2; number++)); do
    at=sessions/$1/attempt-$number
    record::read "$run/$at/grant"
    tail=${record[first]-}
    if record::read "$run/$at/end"; then
      had=${record[records]-} won=${record[successes]-}
    else
      had=${records_of[$at]-0} won=${successes_of[$at]-0}
    fi
    [[ $had =~ ^[0-9]{1,9}$ && $won =~ ^[0-9]{1,9}$ ]] || continue
    had=$((10#$had)) won=$((10#$won))
    if [[ $tail ]]; then
      lines=$((lines + had)) wins=$((wins + won))
    elif ((had > lines)); then
      lines=$had wins=$won
    fi
  done
}

sums::due() { # reads spans -> due_of: the planned episodes of each combo, each once; none where their number is not known
  local combo first end before='' reach
  ((${#spans[@]})) || return 0
  while read -r combo first end; do
    [[ $combo == "$before" ]] || reach=0
    before=$combo
    ((first >= reach)) || first=$reach
    ((end > first)) || continue
    due_of[$combo]=$((${due_of[$combo]-0} + end - first)) reach=$end
  done < <(printf '%s\n' "${spans[@]}" | LC_ALL=C sort -k1,1 -k2,2n)
}

sums::of_combo() { # <combo> -> records planned successes surplus. Lines beyond the plan are no episodes, and how many of the
  # successes are hangs then on which of the lines these are
  local lines=${lines_of[$1]} wins=${wins_of[$1]} due=${due_of[$1]-0} beyond=0 least most
  ((due == 0 || lines <= due)) || beyond=$((lines - due))
  least=$((wins > beyond ? wins - beyond : 0)) most=$((wins < lines - beyond ? wins : lines - beyond))
  ((least == most)) || successes=null
  [[ $successes == null ]] || successes=$((successes + least))
  planned=$((planned + due)) records=$((records + lines - beyond)) surplus=$((surplus + beyond))
}
