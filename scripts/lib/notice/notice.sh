# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# notice.sh: what a notice says (docs/architecture.md, "Notices"), read off the files of the run, and the handing over.
# To be sourced; needs `run`, `run_id`, `policy`, attempt.sh, retry.sh and evidence.sh.

source "${BASH_SOURCE[0]%/*}/../base/json.sh"
source "${BASH_SOURCE[0]%/*}/sums.sh"

notice_output=65536 # bytes of what the command prints that are kept

notice::hand_over() { # <kind> <session or nothing> <note> <sessions that were held back> : the command's code. What it prints
  # goes on, up to a bound: the folder of the run is no place for a gigabyte of it
  local json code pump i longest=${COMBORUN_NOTIFY_S:-60}
  notice::build "$@"
  timeout -k 5 "$longest" bash "$run/dispatch/notify.sh" <<<"$json" > >(notice::bound) 2>&1
  code=$? pump=$!
  for ((i = 0; i < 20; i++)); do # what the command has left behind may hold its output open for ever
    kill -0 "$pump" 2>/dev/null || break
    sleep 0.05
  done
  notice::taken "$code"
  case $code in
    0) ;;
    124 | 137) printf 'notify: the command was ended: it took longer than %s s\n' "$longest" >&2 ;;
    *) printf 'notify: the command ended with code %s\n' "$code" >&2 ;;
  esac
  return "$code"
}

notice::taken() { # <code> : that the latest notice was not taken stays on record until one is
  local now
  record::now
  if (($1)); then
    record::write "$run/dispatch/notify.failed" "code=$1" "at=$now"
  else
    rm -f -- "$run/dispatch/notify.failed"
  fi
}

notice::bound() {
  trap '' PIPE # who asked for a test may be gone
  head -c "$notice_output"
  cat >/dev/null
}

notice::build() { # <kind> <session> <note> <sessions> -> json
  local now at fields=() held=() resume
  local -A tally=([succeeded]=0 [partial]=0 [failed]=0 [cancelled]=0 [lost]=0 [not_needed]=0 [running]=0 [queued]=0)
  local records=0 planned=0 successes=0 surplus=0
  read -ra held <<<"$4"
  sums::add_up
  TZ=UTC printf -v at '%(%Y-%m-%dT%H:%M:%SZ)T' -1
  resume="bash ${run@Q}/lib/control.sh ${run@Q} resume; bash ${run@Q}/run_parallel.sh"
  fields+=('"schema": 1')
  notice::texts kind "$1" run "$run_id" grid "${run_id%-*-*}" host "$HOSTNAME" at "$at" directory "$run"
  notice::session "$2" "$3"
  fields+=("$(notice::counts)" "\"records\": $records" "\"planned\": $planned" "\"successes\": $successes")
  fields+=("\"lines_beyond_plan\": $surplus")
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
