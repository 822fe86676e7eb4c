# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# seat.sh: whether a session's memory sits on the GPUs that it was granted. To be sourced by watch.sh. Looked at a minute
# after the start, then after 2, 4, 8, 16 and 32, because programs load late: what lies elsewhere, beyond what
# every context leaves on a GPU that it merely sees, is told in attempt-N/wrong_gpu and in the end's note. It ends nothing.

seat_most_mib=${COMBORUN_FOREIGN_MIB:-512} # on a GPU that is not its own; Isaac Sim leaves some 200 there
seat_first_s=${COMBORUN_SEAT_S:-60} seat_never=1000000000000
seat_ms=$seat_never # when to look next, in its life
[[ $seat_first_s =~ ^[1-9][0-9]{0,6}$ ]] || seat_first_s=60

source "${BASH_SOURCE[0]%/*}/../admission/measure.sh"

seat::open() { # only where there is something to go wrong, and somebody to ask
  [[ $session_gpus && ${pin-} != none ]] || return 0
  type -P nvidia-smi >/dev/null && seat_ms=$((seat_first_s * 1000))
}

seat::look() {
  local lines=() line gpu mib found='' wrong='' now own=0
  seat_ms=$((seat_ms >= seat_first_s * 32000 ? seat_never : seat_ms * 2))
  [[ ! -e $session_at/wrong_gpu ]] || return 0
  measure::gpus # no answer is none: it says nothing
  for line in "${lines[@]}"; do
    [[ $line == "held $session_marker "* ]] || continue
    read -r _ _ gpu mib <<<"$line"
    found+=${found:+,}$gpu:$mib
    if [[ ,$session_gpus, == *,"$gpu",* ]]; then
      own=$((own + mib))
    elif ((mib > seat_most_mib)); then
      wrong+="${wrong:+, }$mib MiB on GPU $gpu"
    fi
  done
  [[ $wrong ]] || return 0
  record::now
  record::write "$session_at/wrong_gpu" "since=${now%.*}" "planned=$session_gpus" "found=$found" \
    "why=WRONG_GPU: $wrong, and $own MiB on GPU $session_gpus, which it was granted"
}

seat::open
