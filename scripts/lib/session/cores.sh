# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# cores.sh: a session's share of the processor: the cores that it was granted, and as many threads. To be sourced by
# session.sh. Libraries start a thread for each core of the machine; sessions side by side then slow each other down.

thread_variables=(
  OMP_NUM_THREADS MKL_NUM_THREADS OPENBLAS_NUM_THREADS NUMEXPR_NUM_THREADS VECLIB_MAXIMUM_THREADS
  PXR_WORK_THREAD_LIMIT # of USD, in Isaac Sim
  LP_NUM_THREADS        # of Mesa, where the processor renders
)

cores::grant() { # <4,5,6 or nothing> : as the grant has it
  session_cores=''
  [[ $1 =~ ^[0-9]{1,5}(,[0-9]{1,5})*$ ]] && session_cores=$1
  [[ ${threads-} =~ ^[1-9][0-9]{0,5}$ ]] || threads=''
  [[ ! $threads ]] || export COMBORUN_THREADS=$threads
  [[ ! $session_cores ]] || export COMBORUN_CORES=$session_cores
}

cores::bind() { # this process and all that it will start; where that is not allowed they run anywhere
  [[ $session_cores ]] || return 0
  taskset -p -c "$session_cores" "$BASHPID" >/dev/null 2>&1 ||
    printf 'comborun: can not be bound to the cores %s; goes on unbound\n' "$session_cores" >&2
}

cores::export() { # in the command's process; before the grid's own variables, which win
  local name
  [[ $threads ]] || return 0
  for name in "${thread_variables[@]}"; do export "$name=$threads"; done
}
