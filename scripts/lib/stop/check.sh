# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# check.sh: whether what was stopped is really gone: processes, and the memory that they held on GPUs. To be sourced
# by stop.sh. What could not be ended is named; what can't be found out is said to be unknown.

former=() # processes of the sessions with GPUs, before the first signal

stop::remember() { # <session> <attempt> : for the check of its GPUs' memory
  local pids
  record::read "$run/${family:-sessions}/$1/attempt-$2/grant"
  [[ ${record[gpus]-} ]] || return 0
  marker::pids "$run_id/$1/$2"
  former+=(0 "${pids[@]}")
}

stop::survivors() { # 1 when some of them have not ended, whatever was done
  local name
  for name in "${active[@]}"; do
    stop::say "$name" 'has not ended'
    stop::name_supervisor "$name"
  done
  ((${#active[@]} == 0))
}

stop::sweep() { # <names on the command line> : 1 when something carries a marker even now
  local name pids pid rc=0 markers=()
  (($1)) || markers=("$run_id/")
  (($1)) && for name in "${!attempt_of[@]}"; do markers+=("$run_id/$name/${attempt_of[$name]}"); done
  for marker in "${markers[@]}"; do
    marker::sweep "$marker" 0 5 && continue
    rc=1
    for pid in "${pids[@]}"; do stop::name "$pid"; done
  done
  stop::gpu_memory || rc=1
  return "$rc"
}

stop::name_supervisor() { # <session> : it carries no marker
  record::read "$run/${family:-sessions}/$1/attempt-${attempt_of[$1]}/claim" || return 0
  process::alive "${record[supervisor]-}" "${record[supervisor_start]-}" "${record[boot]-}" || return 0
  stop::name "${record[supervisor]}"
}

stop::name() { # <pid>
  local comm='' state='' start why=''
  read -r comm 2>/dev/null <"/proc/$1/comm"
  process::look "$1"
  [[ $state == D ]] && why=' (waits for a device or a disk in the kernel: no signal reaches it until that answers)'
  [[ $state == Z ]] && why=' (it is dead, and its parent has not taken notice)'
  printf 'survives: %s %s%s\n' "$1" "$comm" "$why"
}

stop::gpu_memory() { # 1 when a GPU still counts memory of a process that was stopped
  local answer row mib rc=0
  ((${#former[@]})) || return 0
  if ! stop::ask_gpus; then
    printf 'GPU memory: unknown whether all of it came back, nvidia-smi gives no answer\n'
    return 0
  fi
  for row in "${answer[@]}"; do
    stop::formerly "$row" || continue
    mib=${row#*, }
    printf 'GPU memory: process %s still holds %s MiB\n' "${row%%,*}" "${mib:-?}"
    rc=1
  done
  return "$rc"
}

stop::ask_gpus() { # -> answer: of a moment later, when the driver has given back what the dead had; 1 without one
  local i row
  for ((i = 0; i <= 4 * ${COMBORUN_GPU_BACK_S:-5}; i++)); do
    driver::ask "$run/dispatch/policy.tsv" --format=csv,noheader,nounits --query-compute-apps=pid,used_memory
    driver::hear || return
    for row in "${answer[@]}"; do
      stop::formerly "$row" && sleep 0.25 && continue 2
    done
    break
  done
}

stop::formerly() { # <pid, MiB> : whether that was a process of theirs
  [[ ${1%%,*} =~ ^[1-9][0-9]*$ && " ${former[*]} " == *" ${1%%,*} "* ]]
}
