# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# adopt.sh: take up each session where its files say that it is: at the start, when the grid was amended, and when a
# person asks for another attempt. To be sourced by dispatch.sh.

queue::adopt() { # every session as its files tell
  local name vanished=()
  for name in "${order[@]}"; do
    queue::adopt_one "$name"
  done
  fail_fast::look
  ((${#vanished[@]} < 2)) || notify::tell host '' "${#vanished[@]} sessions vanished together: ${vanished[*]}"
  smoke::open
  starts::open
  dispatch::journal "adopted left=$left busy=$busy"
}

queue::adopt_one() { # <session> [again] : `again` makes a new attempt of one that has ended, whatever its outcome
  local name=$1 attempt life
  attempt::latest "$name"
  attempt_of[$name]=$attempt life=queued
  ((attempt)) && attempt::look "$name" "$attempt"
  left=$((left + 1))
  if [[ $life == starting ]] && admit::lapsed "$name" "$run/sessions/$name/attempt-$attempt" &&
    attempt::forestall "$name" "$attempt" lost 'it was promised room, and nobody started it in time'; then
    life=ended
    record::read "$run/sessions/$name/attempt-$attempt/end"
  fi
  case $life in
    queued) queue::wait_for_slot "$name" ;;
    ended) queue::adopt_ended "$name" "${2-}" ;;
    *)
      queue::hold "$name" "$life"
      dispatch::journal "adopted $name $attempt $life"
      [[ $life == lost ]] && queue::adopt_lost "$name"
      [[ $life == starting && ! -e $run/sessions/$name/attempt-$attempt/claim ]] && launch::start "$name"
      ;;
  esac
}

queue::adopt_lost() { # <session> : only a person starts a dispatcher, and asks by that for what was lost without one
  vanished+=("$1")
  breaker_mute[$1]=1
  retry::ask "$1" "${attempt_of[$1]}"
  settle::bury "$1"
}

queue::adopt_ended() { # <session> [again] : its end is in `record`
  local name=$1 number=${attempt_of[$1]} outcome after class wait_ms ended=${record[ended]-}
  attempt::outcome
  outcome_of[$name]=$outcome life_of[$name]=ended
  if [[ ${flag_of[$name]} != dropped ]]; then
    [[ $outcome == lost ]] && retry::ask "$name" "$number"
    retry::asked "$name"
    if [[ ${2-} || $outcome == cancelled ]] || ((after >= number)); then
      settle::again "$name" "asked for after attempt $number"
      return
    fi
    retry::due "$name" "$number" && settle::retry "$name" && return
    fail_fast::heed "$name" "$ended"
  fi
  left=$((left - 1))
}

queue::again() { # <session> : a person asked for another attempt
  local after
  retry::asked "$1"
  ((after >= attempt_of[$1])) || return 0
  case ${life_of[$1]} in
    queued) unset "retry_at_ms[$1]" "retry_until[$1]" && short::forget "$1" ;; # without any more waiting
    ended)
      dispatch::journal "again $1 ${attempt_of[$1]}"
      fail_fast::forgive "$1"
      left=$((left + 1))
      settle::again "$1" "asked for after attempt ${attempt_of[$1]}"
      ;;
  esac
}

queue::reread() { # the grid was amended, or a person let the run go on
  local before=${policy[parallel]} name
  halted_why=''
  queue::read
  ((policy[parallel] == before)) || record::write "$run/dispatch/slots" "${policy[parallel]}"
  for name in "${order[@]}"; do
    case ${life_of[$name]}/${flag_of[$name]} in
      queued/dropped) queue::drop "$name" ;;
      new/* | dropped/ | dropped/smoke) queue::adopt_one "$name" ;;
      queued/* | ended/*) queue::again "$name" ;;
    esac
  done
  fail_fast::recount # some may be forgiven by now, or be no part of the run any more; the limit may be another
  fail_fast::look
  servers::open
  smoke::open
  starts::open
  dispatch::journal "reread left=$left busy=$busy"
}

queue::drop() { # <session> : it waits, and will not start
  queue::leave "$1"
  ahead::forget "$1"
  life_of[$1]=dropped left=$((left - 1))
}
