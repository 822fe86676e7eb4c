#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_settle.sh RUN: what the ends of tasks leave to do: ends for those that nobody ended, retries, what was held back
# for a smoke test, notices; and when all have ended, `after` and the record that the run is done. It runs as a small job
# when an array is over, in a task whose session failed or was the last, and by whoever watches. Safe to repeat, anywhere,
# at any time.
#
#   0: nothing is left to do for now    66: no run directory    75: Slurm does not answer, or somebody else does it
set -uo pipefail
unset COMBORUN_SESSION

library=${BASH_SOURCE[0]%/*}
source "$library/slurm/slurm_library.sh"

settle::main() { # <run>
  local due left lost stray gone
  run=$(cd -- "${1-}" 2>/dev/null && pwd)
  read -r run_id 2>/dev/null <"$run/id" || settle::die 66 "${1:-RUN} is no run directory"
  cd -- "$run" || exit 66
  slurm_lock::take "${COMBORUN_LOCK_S:-60}" || settle::die 75 'somebody else submits or settles this run just now'
  trap slurm_lock::give EXIT
  [[ ! -e $run/dispatch/stopped ]] || exit 0
  slurm_run::look || settle::all_ended || settle::die 75 "Slurm does not answer: $slurm_why"
  slurm_run::clear
  [[ ${SLURM_ARRAY_JOB_ID-} ]] || settle::missing || settle::die 75 "Slurm does not answer: $slurm_why"
  settle::tell
  hold::look
  ! slurm_hold::ours || slurm_hold::release
  due::list 0
  smoke::hold_back
  if [[ ! $hold ]] && ((${#due[@]})); then
    batch::submit "${due[@]}" || printf 'slurm_settle: Slurm refuses: %s\n' "$batch_complaint" >&2
    slurm_run::journal "submitted $batch_sessions sessions jobs ${batch_jobs[*]}"
  fi
  share::again
  ((left)) || settle::end
  settle::come_back
  slurm_lock::give
  wait # for notices, which would end with this job
}

settle::die() { # <code> <message>
  printf 'slurm_settle: %s\n' "$2" >&2
  exit "$1"
}

settle::all_ended() { # whatever Slurm has to say
  local due left
  due::list 0
  ((left == 0))
}

settle::missing() { # what has no task and no end; not in a task, which would hold its GPUs meanwhile
  local name
  slurm_run::wait_out "${lost[@]}" "${stray[@]}" "${gone[@]}" || return
  slurm_run::bury "${lost[@]}"
  hold::look
  for name in "${gone[@]}"; do
    [[ $hold ]] || settle::gone "$name"
  done
  return 0
}

settle::gone() { # <session> : its task is over, and claimed nothing
  local name=$1 number=$((attempt_of[$1] + 1)) said='' outcome
  local file=$run/slurm/out/${sent_as["$name $number"]}
  if [[ ! -e $file ]]; then
    attempt::forestall "$name" "$number" stopped 'its task was cancelled in Slurm before it began' || return 0
  elif grep -aq '^slurm_task: .*: the run is ' "$file"; then # it left since the run was held, which is over
    life_of[$name]=queued
    return
  else
    said=$(tail -n 1 -- "$file" | tr -d '\000')
    attempt::forestall "$name" "$number" launch_failed "its task ended before it began${said:+: $said}" || return 0
  fi
  record::read "$run/sessions/$name/attempt-$number/end" && attempt::outcome
  attempt_of[$name]=$number life_of[$name]=ended outcome_of[$name]=$outcome
}

settle::come_back() { # some live that Slurm has forgotten: nobody else would look after them
  local mine=0
  [[ ! ${SLURM_JOB_ID-} || ${SLURM_ARRAY_JOB_ID-} ]] || mine=1
  ((${#stray[@]} == 0 || slurm_settling > mine)) || batch::settle_later 300
}

settle::tell() { # what no settling before has told of: the journal, the breaker, fail-fast, notices. In order of their ends
  local name number line lines=()
  local -A told=()
  while IFS= read -r line; do [[ ! $line ]] || told[$line]=1; done 2>/dev/null <"$run/slurm/settled"
  hold::resumed
  breaker::open
  notify::open
  for name in "${order[@]}"; do
    for ((number = 1; number <= attempt_of[$name]; number++)); do
      [[ ! ${told["$name $number"]-} ]] || continue
      record::read "$run/sessions/$name/attempt-$number/end" && lines+=("${record[ended]-} $name $number")
    done
  done
  ((${#lines[@]})) || return 0
  while read -r _ name number; do settle::heed "$name" "$number"; done < <(printf '%s\n' "${lines[@]}" | sort -n)
  fail_fast::recount retry::pending
  fail_fast::check
  notify::flush
}

settle::heed() { # <session> <attempt> : it has ended
  local name=$1 class='' outcome after wait_ms
  record::read "$run/sessions/$name/attempt-$2/end" || return 0
  printf '%s %s\n' "$name" "$2" >>"$run/slurm/settled"
  attempt::outcome
  [[ $outcome == @(succeeded|cancelled|not_needed) ]] || class=${record[class]-error}
  slurm_run::journal "ended $name $2 $outcome ${record[cause]-} ${record[code]-} $class"
  [[ ${record[cause]-} == preempted ]] || breaker::heed "$name" '' "$outcome" "$class"
  [[ $class == disk_full ]] && notify::tell host "$name" 'its disk is full'
  [[ $class && ${life_of[$name]} == ended && ${flag_of[$name]} != dropped ]] && (($2 == attempt_of[$name])) || return 0
  retry::pending "$name" "$2" && return
  notify::tell failed "$name" "$name ended: $outcome"
}

settle::end() { # all have ended for good
  local name kept=() outcome attempt life
  local -A count=([succeeded]=0 [partial]=0 [failed]=0 [cancelled]=0 [lost]=0 [not_needed]=0)
  for name in "${order[@]}"; do [[ ${flag_of[$name]} == dropped ]] || kept+=("$name"); done
  results::link "${kept[@]}"
  if finish::wants_after; then
    settle::after || return 0
  fi
  [[ ! -e $run/dispatch/done ]] || return 0
  for name in "${kept[@]}"; do count[${outcome_of[$name]}]=$((count[${outcome_of[$name]}] + 1)); done
  attempt::latest after
  ((attempt)) && record::read "$run/sessions/after/attempt-$attempt/end" && attempt::outcome && outcome_of[after]=$outcome
  secrets::forget
  record::now
  record::write "$run/dispatch/done" "at=$now" "succeeded=${count[succeeded]}" "partial=${count[partial]}" \
    "failed=${count[failed]}" "cancelled=${count[cancelled]}" "lost=${count[lost]}" "not_needed=${count[not_needed]}" \
    "after=${outcome_of[after]-}" || settle::die 73 "can't write $run/dispatch/done"
  slurm_run::journal 'done'
  notify::finished "${count[succeeded]}" "${#kept[@]}"
}

settle::after() { # in a job of its own; 1 when it is not over yet
  local attempt life outcome
  attempt::latest after
  if ((attempt)); then
    attempt::look after "$attempt"
    [[ $life == running ]] && return 1 # another settle job is at it
    [[ $life != lost ]] || attempt::bury after "$attempt"
  fi
  if [[ ! ${SLURM_JOB_ID-} || ${SLURM_ARRAY_JOB_ID-} ]]; then
    ((slurm_settling)) || batch::settle_after
    return 1
  fi
  slurm_lock::give
  bash "$run/sessions/after/session.sh" $((attempt + 1)) slurm </dev/null
  slurm_lock::take 120
}

settle::main "$@"
