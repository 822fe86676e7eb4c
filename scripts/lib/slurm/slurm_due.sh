# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_due.sh: which sessions call for a task, by the rules of the dispatcher (retry.sh), from the files and from what
# Slurm has already. To be sourced; needs slurm_life.sh and what slurm_state::read has filled.

order=()                  # names in plan order
declare -gA flag_of=()    # name -> nothing, smoke, or dropped
declare -gA kind_of=()    # name -> which request of dispatch/slurm.tsv
declare -gA attempt_of=() # name -> its latest attempt, 0 for none
declare -gA life_of=()    # name -> queued sent running ended lost: as far as can be told
declare -gA outcome_of=() # name that has ended -> how
declare -gA wait_of=()    # name that is due -> seconds that it has to wait

due::rows() { # queue.tsv and slurm.sessions
  local name number flag
  while IFS=$'\t' read -r name number flag _ || [[ $name ]]; do
    [[ $name =~ ^[A-Za-z0-9_-]+$ && $number =~ ^[0-9]{1,4}$ ]] || continue
    [[ $flag == @(smoke|dropped) ]] || flag=''
    [[ ${attempt_of[$name]+known} ]] || order+=("$name")
    flag_of[$name]=$flag attempt_of[$name]=0 kind_of[$name]=1
  done <"$run/dispatch/queue.tsv"
  while IFS=$'\t' read -r name number _ || [[ $name ]]; do
    [[ ${attempt_of[$name]+known} && $number =~ ^[1-9][0-9]{0,5}$ ]] && kind_of[$name]=$number
  done 2>/dev/null <"$run/dispatch/slurm.sessions"
  return 0
}

due::look() { # -> life_of attempt_of outcome_of of all that count; -> lost: those that nobody will end; stray: those
  # that live, and Slurm knows nothing of it; gone: those whose task is over, and began nothing
  local name attempt life outcome slurm_stray
  lost=() stray=() gone=()
  due::submitted
  for name in "${order[@]}"; do
    attempt::latest "$name"
    attempt_of[$name]=$attempt life=queued slurm_stray=0
    ((attempt == 0)) || attempt::look "$name" "$attempt"
    case $life in
      queued)
        due::handed_over "$name" $((attempt + 1))
        ;;
      starting) life=running ;;
      running) ((slurm_stray)) && { due::restarts && life=sent || stray+=("$name"); } ;;
      ended)
        attempt::outcome
        outcome_of[$name]=$outcome
        due::handed_over "$name" $((attempt + 1))
        [[ ${record[cause]-} == preempted ]] && due::restarts && life=sent
        ;;
      lost) due::restarts && life=sent || lost+=("$name") ;;
    esac
    life_of[$name]=$life
  done
}

due::handed_over() { # <session> <attempt that comes next> -> life: sent, or gone, when it was handed to Slurm; gone
  if due::sent "$1" "$2"; then
    life=sent
  elif [[ ${sent_as["$1 $2"]-} ]]; then
    life=gone
    gone+=("$1")
  fi
}

due::submitted() { # -> sent_as: of every session and attempt that was ever handed over, the last task for it
  local job batch index name attempt
  declare -gA sent_as=()
  while IFS=$'\t' read -r job batch _; do
    [[ $job =~ ^[0-9]+$ && $batch =~ ^[1-9][0-9]{0,8}$ ]] || continue
    while IFS=$'\t' read -r index name attempt; do
      [[ $index =~ ^[0-9]+$ && $name && $attempt =~ ^[1-9][0-9]{0,8}$ ]] && sent_as["$name $attempt"]=${job}_$index
    done 2>/dev/null <"$run/slurm/batch-$batch.tsv"
  done 2>/dev/null <"$run/slurm/jobs"
  return 0
}

due::sent() { # <session> <attempt> : whether a task for that attempt, or a later one, waits or is about to begin
  local id
  for id in ${tasks_of[$1]-}; do
    ((task_attempt[$id] >= $2)) && return
  done
  return 1
}

due::restarts() { # reads record: whether Slurm has the task of that attempt, so that it will start it anew
  [[ ${record[job]-} && ${task_state[${record[job]}]-} ]]
}

due::again() { # <session> <1: a person asks> -> wait_ms: whether its latest attempt, which has ended, is followed by another
  local name=$1 number=${attempt_of[$1]} after class
  wait_ms=0
  retry::asked "$name"
  ((after >= number)) && return
  if (($2)) && [[ ${outcome_of[$name]} == @(cancelled|lost) ]]; then
    retry::ask "$name" "$number"
    return
  fi
  retry::due "$name" "$number"
}

due::list() { # <1: a person asks> -> due: in plan order; wait_of; left: how many have not ended for good
  local name wait_ms
  due=() left=0 wait_of=()
  for name in "${order[@]}"; do
    [[ ${flag_of[$name]} != dropped ]] || continue
    wait_ms=0
    case ${life_of[$name]} in
      ended)
        due::again "$name" "$1" || continue
        due+=("$name")
        ;;
      queued) due+=("$name") ;;
      gone) (($1)) && due+=("$name") ;;
    esac
    left=$((left + 1)) wait_of[$name]=$(((wait_ms + 999) / 1000))
  done
}
