# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_batch.sh: hand sessions to Slurm, as arrays in which a task runs one session, and the small job that settles what
# they leave. To be sourced; needs slurm_due.sh and the lock. An intent is in slurm/jobs before each sbatch; the job's
# name holds the batch, so that the job of a submission that was killed is found by squeue.
#
#   slurm/jobs    JOB BATCH KIND TASKS TIME, between TABs; JOB is - for an intent, KIND is settle for a settle job

batch_jobs=()      # ids of what was submitted now
batch_sessions=0   # how many sessions they hold
batch_complaint='' # what sbatch said when it refused

batch::submit() { # <session>... : 1 when Slurm does not take one of the arrays
  local name key size id rc=0
  local -A group=()
  local keys=()
  batch::size
  for name in "$@"; do # those that ask for the same and may start at the same time
    key="${kind_of[$name]} ${wait_of[$name]:-0}"
    [[ ${group[$key]-} ]] || keys+=("$key")
    group[$key]+=" $name"
  done
  for key in "${keys[@]}"; do
    # shellcheck disable=SC2086 # a kind and seconds; clean names
    batch::arrays $key ${group[$key]} || rc=1
  done
  for id in "${batch_jobs[@]}"; do batch::settle_after "$id"; done # each leaves room for others, which settling hands on
  return "$rc"
}

batch::size() { # -> size: tasks of one array at most
  size=${policy[slurm_array]:-0}
  ((size)) && return
  local key value
  while IFS=$'= \t' read -r key value _; do
    [[ $key == MaxArraySize && $value =~ ^[0-9]{1,9}$ ]] && size=$((10#$value - 1))
  done < <(slurm_state::command scontrol show config 2>/dev/null)
  ((size > 0 && size < 5000)) || size=1000
}

batch::arrays() { # <kind> <seconds to wait> <session>...
  local kind=$1 wait_s=$2 rc=0
  shift 2
  while (($#)); do
    batch::array "$kind" "$wait_s" "${@:1:size}" || rc=1
    shift $(($# < size ? $# : size))
  done
  return "$rc"
}

batch::array() { # <kind> <seconds to wait> <session>... : one sbatch
  local kind=$1 wait_s=$2 name number id throttle turn rows=() options tasks=()
  shift 2
  batch::next
  for name in "$@"; do rows+=("${#rows[@]}"$'\t'"$name"$'\t'$((attempt_of[$name] + 1))); done
  record::write "$run/slurm/batch-$number.tsv" "${rows[@]}" || return
  batch::note - "$number" "$kind" $# || return
  share::make_room "$kind" $#
  batch::warning "$kind"
  options=(--array="0-$(($# - 1))$throttle" --job-name="$run_id.$number" --output="$run/slurm/out/%A_%a"
    --signal="B:USR1@$warning")
  [[ ! $turn ]] || options+=(--dependency="$turn")
  ((wait_s == 0)) || options+=(--begin="now+$wait_s")
  batch::sbatch "${options[@]}" "$run/slurm/array-$kind.sh" "$run" "$number" || return
  batch::note "$id" "$number" "$kind" $# || return
  batch_jobs+=("$id") batch_sessions=$((batch_sessions + $#))
  share::note "$id" "$throttle"
  for name in "$@"; do
    life_of[$name]=sent
    task_session[${id}_${#tasks[@]}]=$name task_state[${id}_${#tasks[@]}]=PENDING tasks+=("$name")
  done
}

batch::next() { # -> number: of the next batch; one that was begun is not used again
  local file
  number=0
  for file in "$run/slurm"/batch-*.tsv; do
    file=${file##*/batch-}
    [[ ${file%.tsv} =~ ^[1-9][0-9]{0,8}$ ]] && ((${file%.tsv} > number)) && number=${file%.tsv}
  done
  number=$((number + 1))
}

batch::warning() { # <kind> -> warning: seconds before its limit at which Slurm warns
  local kind minutes=0 rest
  while IFS=$'\t' read -r kind _ _ _ minutes rest; do
    [[ $kind == "$1" ]] && break
    minutes=0
  done 2>/dev/null <"$run/dispatch/slurm.tsv"
  [[ $minutes =~ ^[0-9]{1,9}$ ]] || minutes=0
  warning=60
  ((minutes == 0 || minutes > 2)) || warning=$((minutes * 20))
}

batch::sbatch() { # <option or word>... -> id; 1 when Slurm refuses
  local complaint=$run/slurm/.refusal.$BASHPID answer
  slurm_lock::renew
  answer=$(
    batch::forget_own
    exec timeout -k 5 120 sbatch --parsable --chdir="$run" --open-mode=append --requeue "$@" 2>"$complaint" </dev/null
  )
  id=${answer%%;*} # the name of the cluster may follow
  if [[ ! $id =~ ^[1-9][0-9]*$ ]]; then
    record::clean "$(tail -n 3 -- "$complaint" | tr '\n' ' ')"
    batch_complaint=${cleaned:-sbatch gave no answer}
    rm -f -- "$complaint"
    return 1
  fi
  rm -f -- "$complaint"
}

batch::forget_own() { # what the job that we are in was given must not look as if it were the new one's
  local name
  [[ ! ${SLURM_JOB_ID-} ]] || unset CUDA_VISIBLE_DEVICES GPU_DEVICE_ORDINAL ROCR_VISIBLE_DEVICES ZE_AFFINITY_MASK
  for name in "${!SLURM_@}" SLURMD_NODENAME; do
    [[ $name == @(SLURM_CONF|SLURM_CLUSTERS) ]] || unset "$name"
  done
}

batch::settle_after() { # <job>... : without any, at once. -> id
  local jobs=''
  (($# == 0)) || printf -v jobs ':%s' "$@"
  batch::settle ${jobs:+"--dependency=afterany$jobs"}
}

batch::settle_later() { # <seconds>
  local id
  batch::settle "--begin=now+$1"
}

batch::settle() { # [option] -> id
  batch::sbatch "$@" --job-name="$run_id.settle" --output="$run/slurm/out/%j" \
    "$run/slurm/settle.sh" "$run" && batch::note "$id" 0 settle 1
}

batch::note() { # <job or -> <batch> <kind> <tasks>
  local now
  record::now
  printf '%s\t%s\t%s\t%s\t%s\n' "$@" "$now" >>"$run/slurm/jobs"
}
