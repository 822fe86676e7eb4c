# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_state.sh: what Slurm says of a run's tasks: one squeue for all of them, kept in slurm/states with its time. To be
# sourced; needs `run`, `run_id` and record.sh. A Slurm that doesn't answer changes nothing: the last answer stays.
#
#   bash slurm_state.sh RUN    ask now: 0: slurm/states is of now    66: no run directory    75: Slurm does not answer

declare -gA task_state=() task_node=() task_reason=() task_job=() task_start=() # array id_index -> as squeue tells
declare -gA task_session=() task_attempt=()                                     # id_index -> what its batch has for it
declare -gA tasks_of=()                                                         # session -> its id_indexes
declare -gA account_of=()                                                       # id_index -> how it ended, as sacct tells
slurm_settling=0                                                                # settle jobs that wait or run
slurm_at='' slurm_silent='' slurm_why=''                                        # last answer; since when there is none, and why
slurm_unheard=''                                                                # why the last question of this process had none

slurm_state::command() { # <command>... : one question to Slurm, which may hang for long
  timeout -k 1 "${COMBORUN_SLURM_S:-10}" "$@" </dev/null
}

slurm_state::order() { # <command>... : have tasks changed, unless Slurm was silent just now, which each order would wait
  # for anew -> refusal, and 1 when it was not done. What has ended meanwhile is none: scontrol and scancel do the rest
  local said rc line
  refusal=$slurm_unheard
  [[ ! $refusal ]] || return 1
  said=$(slurm_state::command "$@" 2>&1 >/dev/null)
  rc=$?
  ((rc)) || return 0
  ((rc != 124 && rc != 137)) || said="no answer within ${COMBORUN_SLURM_S:-10} s"
  while IFS= read -r line; do
    [[ ! $line || $line == *@('already finished'|'already completing'|'transitional state'|'No error'|'Invalid job id')* ]] ||
      refusal=${refusal:-$line}
  done <<<"$said"
  [[ $refusal != *@('no answer'|'Unable to contact'|'timed out')* ]] || slurm_unheard=$refusal
  [[ ! $refusal ]]
}

slurm_state::ask() { # -> slurm/states; 1 when Slurm does not answer
  local answer complaint=$run/slurm/.ask.$BASHPID now rc names='' file lines=()
  [[ -d $run/slurm ]] || return 1
  names=$run_id.settle
  for file in "$run/slurm"/batch-*.tsv; do
    file=${file##*/batch-}
    [[ ${file%.tsv} =~ ^[1-9][0-9]*$ ]] && names+=,$run_id.${file%.tsv}
  done
  record::now
  answer=$(slurm_state::command squeue -h -r --name="$names" -o '%i|%T|%N|%A|%S|%j|%r' 2>"$complaint")
  rc=$?
  if ((rc)); then
    slurm_state::complain "$rc" "$complaint"
    rm -f -- "$complaint"
    return 1
  fi
  rm -f -- "$complaint"
  slurm_unheard=''
  [[ $answer ]] && mapfile -t lines <<<"$answer"
  record::write "$run/slurm/states" "at=$now" "${lines[@]}" || return
  [[ ! -e $run/slurm/silent ]] || rm -f -- "$run/slurm/silent"
}

slurm_state::complain() { # <code> <file with what it said>
  local said='' cleaned
  IFS= read -r said <"$2"
  [[ $1 != 124 && $1 != 137 ]] || said="no answer within ${COMBORUN_SLURM_S:-10} s"
  record::clean "${said:-squeue ended with code $1}"
  slurm_unheard=$cleaned
  record::read "$run/slurm/silent"
  record::write "$run/slurm/silent" "since=${record[since]:-$now}" "asked=${EPOCHSECONDS:-${now%.*}}" "why=$cleaned"
}

slurm_state::refresh() { # <seconds> : ask, unless the last answer is younger, or Slurm was silent just now; 1 then
  local now
  slurm_state::age
  record::now
  [[ $slurm_at ]] && ((${now%.*} - ${slurm_at%.*} < $1 && ${now%.*} >= ${slurm_at%.*})) && return
  (($1)) && slurm_state::still_silent && return 1
  slurm_state::ask
}

slurm_state::still_silent() { # reads now -> slurm_unheard: one command is several scripts, which need not all wait for it
  record::read "$run/slurm/silent" && [[ ${record[asked]-} =~ ^[0-9]{9,12}$ ]] || return
  ((${now%.*} - record[asked] < ${COMBORUN_SLURM_S:-10} && ${now%.*} >= record[asked])) || return
  slurm_unheard=${record[why]:-no answer}
}

slurm_state::age() { # -> slurm_at
  slurm_at=''
  IFS= read -r slurm_at 2>/dev/null <"$run/slurm/states"
  slurm_at=${slurm_at#at=}
  [[ $slurm_at =~ ^[0-9]{9,12}(\.[0-9]*)?$ ]] || slurm_at=''
}

slurm_state::read() { # -> the maps, slurm_at, slurm_settling, slurm_silent, slurm_why: as the last answer tells
  local id state node job start batch reason
  local -A batches=()
  task_state=() task_node=() task_reason=() task_job=() task_start=() task_session=() task_attempt=() tasks_of=()
  declare -gA account_of=() # id_index -> how it ended, as sacct tells
  slurm_settling=0 slurm_silent='' slurm_why=''
  slurm_state::age
  record::read "$run/slurm/silent" && slurm_silent=${record[since]-} slurm_why=${record[why]-}
  while IFS='|' read -r id state node job start batch reason; do
    [[ $state =~ ^[A-Z_]+$ && $job =~ ^[0-9]+$ && $batch == "$run_id".* ]] || continue
    batch=${batch#"$run_id".}
    [[ $id =~ ^[0-9]+(_[0-9]+)?$ && $batch =~ ^(settle|[1-9][0-9]{0,8})$ ]] || continue
    task_state[$id]=$state task_node[$id]=$node task_reason[$id]=$reason task_job[$id]=$job task_start[$id]=$start
    [[ $batch == settle ]] && slurm_settling=$((slurm_settling + 1)) && continue
    batches[$batch]+=" $id"
  done 2>/dev/null <"$run/slurm/states"
  for batch in "${!batches[@]}"; do slurm_state::join "$batch" "${batches[$batch]}"; done
}

slurm_state::join() { # <batch> <id_indexes> : what each of them runs
  local index name attempt id
  local -A row=()
  while IFS=$'\t' read -r index name attempt; do
    [[ $index =~ ^[0-9]{1,9}$ && $name =~ ^[A-Za-z0-9_-]+$ && $attempt =~ ^[1-9][0-9]{0,8}$ ]] || continue
    row[$index]="$name $attempt"
  done 2>/dev/null <"$run/slurm/batch-$1.tsv"
  for id in $2; do
    [[ ${row[${id#*_}]-} ]] || continue
    task_session[$id]=${row[${id#*_}]% *} task_attempt[$id]=${row[${id#*_}]#* }
    tasks_of[${task_session[$id]}]+=" $id"
  done
}

slurm_state::accounts() { # <id_index>... -> account_of: id_index -> how it ended, where there is accounting. One question
  local id state ids=("$@")
  account_of=()
  ((${#ids[@]})) && type -P sacct >/dev/null || return 0
  printf -v ids '%s,' "${ids[@]}"
  while IFS='|' read -r id state; do
    [[ $id =~ ^[0-9]+_[0-9]+$ && $state =~ ^[A-Z_]+ ]] && account_of[$id]=${BASH_REMATCH[0]}
  done < <(slurm_state::command sacct -X -n -P -j "${ids%,}" -o JobID,State 2>/dev/null)
  return 0
}

slurm_state::main() { # <run>
  set -uo pipefail
  source "${BASH_SOURCE[0]%/*}/../base/record.sh"
  run=$(cd -- "${1-}" 2>/dev/null && pwd)
  read -r run_id 2>/dev/null <"$run/id" || exit 66
  slurm_state::ask || exit 75
}

[[ ${BASH_SOURCE[0]} != "$0" ]] || slurm_state::main "$@"
