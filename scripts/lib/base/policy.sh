# shellcheck shell=bash
# shellcheck disable=SC2034 # values are handed on through variables that the callers name
# policy.sh: what the grid asks of the dispatcher: dispatch/policy.tsv, a line per key. To be sourced. Nothing in it is
# evaluated; a key that is unknown here is passed over, one that is missing has its old meaning.

declare -gA policy=()

policy::read() { # <policy.tsv> -> policy
  local key value
  policy=()
  while IFS=$'\t' read -r key value || [[ $key ]]; do
    [[ $key =~ ^[a-z_]+$ ]] || continue
    if [[ $value =~ ^[0-9]{1,9}$ ]]; then
      policy[$key]=$((10#$value))
    elif [[ $key == @(gpus|notify_kinds) && $value =~ ^[a-z0-9,-]+$ ]]; then
      policy[$key]=$value
    fi
  done 2>/dev/null <"$1"
  policy::default parallel 1 per_gpu 0 stagger_ms 0 attempts 1 gpus - cpus 0 reserve_gpu_mib 0 headroom_gpu_mib 128 \
    reserve_memory_mib 0 breaker 3 fail_fast 0 fail_fast_percent 0 \
    notify_every_ms 600000 notify_kinds finished,failed,stalled,host
  policy::default retry_lost $((policy[attempts] > 0 ? policy[attempts] - 1 : 0))
  policy::default retry_preempted 10
}

policy::default() { # [<key> <value>]...
  while (($#)); do
    [[ ${policy[$1]-} ]] || policy[$1]=$2
    shift 2
  done
}
