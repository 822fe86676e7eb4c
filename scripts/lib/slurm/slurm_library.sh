# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR/..
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_library.sh: what slurm_submit.sh and slurm_settle.sh share: one look at the whole run, and what the dispatcher's
# own rules (smoke.sh, fail_fast.sh, breaker.sh, notify.sh) call. To be sourced; the callers hold the lock.

source "$library/base/record.sh"
source "$library/base/clock.sh"
source "$library/attempt/evidence.sh"
source "$library/attempt/end.sh"
source "$library/attempt/attempt.sh"
source "$library/base/policy.sh"
source "$library/attempt/retry.sh"
source "$library/base/hold.sh"
source "$library/admission/gpus.sh"
source "$library/queue/breaker.sh"
source "$library/queue/fail_fast.sh"
source "$library/queue/smoke.sh"
source "$library/notice/notice.sh"
source "$library/notice/notify.sh"
source "$library/attempt/results.sh"
source "$library/base/secrets.sh"
source "$library/queue/finish.sh"
source "$library/slurm/slurm_life.sh"
source "$library/slurm/slurm_lock.sh"
source "$library/slurm/slurm_hold.sh"
source "$library/slurm/slurm_due.sh"
source "$library/slurm/slurm_share.sh"
source "$library/slurm/slurm_batch.sh"

hold=''

slurm_run::look() { # -> all that is known of the run now; 1 when Slurm does not say what it has
  local rc=0
  policy::read "$run/dispatch/policy.tsv"
  slurm_run::asked && { slurm_state::ask || rc=1; }
  slurm_state::read
  due::rows
  due::look
  return "$rc"
}

slurm_run::clear() { # tasks that wait though their attempt has ended for good: a controller that was killed puts them back
  # into the queue, held even, and a settle job that waits for them waits for ever. Not one that starts just now
  local id name refusal spent=()
  for id in "${!task_session[@]}"; do
    name=${task_session[$id]}
    [[ ${task_state[$id]} == PENDING && ${life_of[$name]-} == ended ]] || continue
    ((task_attempt[$id] <= attempt_of[$name])) && spent+=("$id")
  done
  ((${#spent[@]} == 0)) || slurm_state::order scancel --state=PENDING "${spent[@]}"
  return 0
}

slurm_run::asked() { # whether Slurm was ever handed anything of this run
  [[ -s $run/slurm/jobs ]]
}

slurm_run::wait_out() { # <session without a task>... : what a node may remember of a shared file system is forgotten
  # after a minute or so. What is still lost then has no task, no end and no heart that beats
  (($#)) || return 0
  printf '%s: no task and no end: %s; looking again in %s s\n' "${0##*/}" "$*" "${COMBORUN_SETTLE_S:-65}"
  sleep "${COMBORUN_SETTLE_S:-65}"
  slurm_run::look
}

slurm_run::bury() { # <session>... : they have no task, and nobody will end them
  local name ids=()
  for name in "$@"; do
    record::read "$run/sessions/$name/attempt-${attempt_of[$name]}/claim" && [[ ${record[job]-} ]] && ids+=("${record[job]}")
  done
  slurm_state::accounts "${ids[@]}"
  for name in "$@"; do
    slurm_run::journal "lost $name ${attempt_of[$name]}"
    attempt::bury "$name" "${attempt_of[$name]}"
    record::read "$run/sessions/$name/attempt-${attempt_of[$name]}/end" || continue
    breaker_mute[$name]=1
    attempt::outcome
    life_of[$name]=ended outcome_of[$name]=$outcome
  done
}

slurm_run::journal() { # <words>
  local now
  record::now
  printf '%s %s\n' "$now" "$*" >>"$run/dispatch/journal"
}

dispatch::journal() { slurm_run::journal "$@"; }

dispatch::halt() { # <why> : nothing new starts until a person says `resume`; tasks that come to their turn leave
  local ordered
  hold::halt "$1" || return 0
  ordered=$hold hold=${hold:-halted}
  slurm_run::journal "halted $1"
  notify::tell host '' "the run is ${ordered:+$ordered, and }halted: $1"
}

queue::size() { # -> all: sessions that count
  local name
  # shellcheck disable=SC2178 # the caller's number
  all=0
  # shellcheck disable=SC2178
  for name in "${order[@]}"; do [[ ${flag_of[$name]} == dropped ]] || all=$((all + 1)); done
}

smoke::has_passed() { # others have begun
  local name
  for name in "${order[@]}"; do [[ ! ${flag_of[$name]} ]] && ((attempt_of[$name])) && return; done
  return 1
}

smoke::hold_back() { # -> due: without those that wait for the smoke test
  local name kept=()
  smoke_on=0
  smoke::has_passed || smoke::open
  for name in "${due[@]}"; do
    [[ $hold ]] || smoke::holds_back "$name" || kept+=("$name")
  done
  due=("${kept[@]}")
}
