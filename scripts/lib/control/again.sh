# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# again.sh: a person asks for another attempt. To be sourced by control.sh. What runs or has succeeded is left
# alone, and said.

control::retry() { # <name>... or --failed or --stalled
  local name names=() done=0
  case ${1-} in
    --failed | --stalled)
      control::ended "${1#--}"
      ((${#names[@]})) || printf '%s: %s\n' "$run_id" "no session has ${1#--}"
      ;;
    -* | '') control::die 64 'retry wants names of sessions, --failed or --stalled' ;;
    *) names=("$@") ;;
  esac
  for name in "${names[@]}"; do
    [[ $name =~ ^[A-Za-z0-9_-]+$ && -d $run/sessions/$name ]] || control::die 64 "there is no session $name"
  done
  for name in "${names[@]}"; do control::retry_one "$name"; done
  ((done))
}

control::ended() { # <failed or stalled> -> names: those of the queue that ended so
  local name flag attempt life outcome
  while IFS=$'\t' read -r name _ flag _ || [[ $name ]]; do
    [[ $name =~ ^[A-Za-z0-9_-]+$ && $flag != dropped ]] || continue
    attempt::latest "$name"
    ((attempt)) || continue
    attempt::glance "$run/sessions/$name/attempt-$attempt"
    [[ $life == @(ended|lost) ]] || continue
    attempt::outcome
    [[ $life == lost ]] && outcome=lost
    [[ $outcome == @(failed|partial|lost) ]] || continue
    [[ $1 == failed || ${record[class]-} == stalled ]] && names+=("$name")
  done <"$run/dispatch/queue.tsv"
}

control::retry_one() { # <session> -> done
  local attempt life=queued outcome what hold hold_why
  attempt::latest "$1"
  ((attempt)) && attempt::look "$1" "$attempt"
  [[ $life == ended ]] && attempt::outcome
  case $life/${outcome-} in
    queued/*)
      what='waits for its turn already'
      hold::look
      [[ ! $hold && ! -e $run/dispatch/stopped ]] || what+="; nothing starts until \`combo resume $run_id\`"
      ;;
    ended/succeeded) what='has succeeded' ;;
    ended/* | lost/*)
      retry::ask "$1" "$attempt" || control::die 73 "can't write in $run/sessions/$1"
      control::tell "again $1 $attempt"
      what="attempt $((attempt + 1)) comes next" done=$((done + 1))
      ;;
    *) what='still runs: stop it first' ;;
  esac
  printf '%s: %s\n' "$1" "$what"
}
