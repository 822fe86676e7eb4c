# shellcheck shell=bash
# shellcheck disable=SC2034 # values are handed on through variables that the callers name
# driver.sh: questions to the driver of the GPUs, one after the other. To be sourced.
#
# A driver in trouble leaves nvidia-smi hanging where no signal reaches it. So nobody waits for its end, it holds none of
# our descriptors, and while one hangs the run's lock keeps the next question from starting another.

driver_answer='' # the descriptor from which it is read

driver::ask() { # <lock: a file that exists, or none> <argument of nvidia-smi>... : the answer comes while other things
  # are looked at
  local question=(timeout -k 1 "${COMBORUN_GPU_S:-5}" nvidia-smi "${@:2}") code=0
  [[ ! $1 ]] || question=(flock -w 2 -- "$1" "${question[@]}")
  exec {driver_answer}< <(
    process::let_go
    exec </dev/null 2>/dev/null
    "${question[@]}" || code=$?
    printf '. %s\n' "$code"
  )
}

driver::hear() { # -> answer: its lines, as far as they came in time; not 0 when nvidia-smi did not end well
  local row code=1 deadline=$((SECONDS + 3 + ${COMBORUN_GPU_S:-5}))
  answer=()
  while ((SECONDS < deadline)) && IFS= read -r -t "$((deadline - SECONDS))" -u "$driver_answer" row; do
    [[ $row =~ ^\.\ ([0-9]+)$ ]] && code=${BASH_REMATCH[1]} && break
    answer+=("$row")
  done
  exec {driver_answer}<&-
  return "$code"
}
