# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# notice.sh: what a notice says (docs/architecture.md, "Notices"), read off the files of the run, and the handing over.
# To be sourced; needs `run`, `run_id`, `policy`, attempt.sh, retry.sh and evidence.sh.

source "${BASH_SOURCE[0]%/*}/../base/json.sh"
source "${BASH_SOURCE[0]%/*}/../probe/count.sh"

notice::hand_over() { # <kind> <session or nothing> <note> <sessions that were held back> : the command's code
  local json
  notice::build "$@"
  timeout -k 5 "${COMBORUN_NOTIFY_S:-60}" bash "$run/dispatch/notify.sh" <<<"$json"
}

notice::build() { # <kind> <session> <note> <sessions> -> json
  local now at fields=() held=() resume
  local -A tally=([succeeded]=0 [partial]=0 [failed]=0 [cancelled]=0 [lost]=0 [not_needed]=0 [running]=0 [queued]=0)
  local records=0 planned=0 successes=0
  read -ra held <<<"$4"
  notice::add_up
  TZ=UTC printf -v at '%(%Y-%m-%dT%H:%M:%SZ)T' -1
  resume="bash ${run@Q}/lib/control.sh ${run@Q} resume; bash ${run@Q}/run_parallel.sh"
  fields+=('"schema": 1')
  notice::texts kind "$1" run "$run_id" grid "${run_id%-*-*}" host "$HOSTNAME" at "$at" directory "$run"
  notice::session "$2" "$3"
  fields+=("$(notice::counts)" "\"records\": $records" "\"planned\": $planned" "\"successes\": $successes")
  notice::texts resume "$resume"
  json::list "${held[@]}"
  fields+=("\"suppressed\": ${#held[@]}" "\"sessions\": $json")
  notice::join
}

notice::texts() { # [<key> <value>]... -> fields
  while (($#)); do
    json::text "$2"
    fields+=("\"$1\": $json")
    shift 2
  done
}

notice::join() { # fields -> json: an object on one line
  local field
  json=''
  for field in "${fields[@]}"; do json+=${json:+, }$field; done
  json="{$json}"
}

notice::counts() {
  local outcome text=''
  for outcome in succeeded partial failed cancelled lost not_needed running queued; do
    text+="${text:+, }\"$outcome\": ${tally[$outcome]}"
  done
  printf '"counts": {%s}' "$text"
}

notice::session() { # <session or nothing> <note> -> fields: how it ended, and the last lines of its log
  local attempt=0 outcome='' lines=() note=$2 log=''
  record=()
  if [[ $1 ]]; then
    attempt::latest "$1"
    log=$run/sessions/$1/attempt-$attempt/log
    record::read "$run/sessions/$1/attempt-$attempt/end" && attempt::outcome
    [[ ! ${record[note]-} ]] || note+=": ${record[note]}"
  fi
  notice::texts session "$1" outcome "$outcome" cause "${record[cause]-}" class "${record[class]-}" note "$note" log "$log"
  [[ ! -e $log ]] || notice::last_lines "$log"
  json::list "${lines[@]}"
  fields+=("\"last_lines\": $json")
}

notice::last_lines() { # <log> -> lines: 20 at most; of a line that was written over and over, what is seen last
  local i
  mapfile -t lines < <(tail -c 16384 -- "$1" 2>/dev/null | tail -n 20 | tr -d '\000')
  for i in "${!lines[@]}"; do
    lines[i]=${lines[i]%$'\r'}
    lines[i]=${lines[i]##*$'\r'}
    lines[i]=${lines[i]::500}
  done
}

notice::add_up() { # -> tally records planned successes: of all sessions, as their files tell
  local name flag life at
  local count_files=()
  local -A count_parts=() records_of=() successes_of=()
  while IFS=$'\t' read -r name _ flag _ || [[ $name ]]; do
    [[ $name =~ ^[A-Za-z0-9_-]+$ && $flag != @(dropped|smoke) ]] && notice::add "$name"
  done <"$run/dispatch/queue.tsv"
  count::records
  for at in "${records_of[@]}"; do records=$((records + at)); done # by value: a path in (( )) would be evaluated
  for at in "${successes_of[@]}"; do successes=$((successes + at)); done
}

notice::add() { # <session>
  local attempt life=queued outcome line
  attempt::latest "$1"
  ((attempt)) && attempt::glance "$run/sessions/$1/attempt-$attempt"
  if [[ $life == ended ]]; then
    attempt::outcome
    life=$outcome
    retry::pending "$1" "$attempt" && life=queued
  elif [[ $life != queued ]]; then
    life=running
    notice::live "$run/sessions/$1/attempt-$attempt"
  fi
  tally[$life]=$((tally[$life] + 1))
  notice::ended_attempts "$1" "$attempt"
  while IFS= read -r line; do
    [[ $line =~ ^count=([0-9]{1,9})$ ]] && planned=$((planned + 10#${BASH_REMATCH[1]})) && break
  done 2>/dev/null <"$run/sessions/$1/session.sh"
}

notice::live() { # <attempt directory> : its records are counted with all the others'
  local success planned globs files
  attempt::rules "$1"
  evidence::files "$1/out" "${globs[@]}"
  count::add "$success" "${files[@]}"
}

notice::ended_attempts() { # <session> <latest> : a tail adds to what was there; a whole attempt takes its place
  local number tail best=0 wins=0
  for ((number = 1; number <= $2; number++)); do
    record::read "$run/sessions/$1/attempt-$number/grant"
    tail=${record[first]-}
    record::read "$run/sessions/$1/attempt-$number/end" || continue
    [[ ${record[records]-} =~ ^[0-9]{1,9}$ && ${record[successes]-} =~ ^[0-9]{1,9}$ ]] || continue
    if [[ $tail ]]; then
      best=$((best + 10#${record[records]})) wins=$((wins + 10#${record[successes]}))
    elif ((10#${record[records]} > best)); then
      best=$((10#${record[records]})) wins=$((10#${record[successes]}))
    fi
  done
  records=$((records + best)) successes=$((successes + wins))
}
