#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# a process that takes memory of a GPU of the stand-in: tests/integration/nvidia.py says how
source "${BASH_SOURCE[0]%/*}/nvidia_cards.sh"

mib=$1 steps=1 every=0.05 seconds='' until='' list=${CUDA_VISIBLE_DEVICES-${COMBORUN_GPUS-}}
shift
while (($#)); do
  case $1 in
    --steps) steps=$2 ;;
    --every) every=$2 ;;
    --for) seconds=$2 ;;
    --until) until=$2 ;;
    --gpu) list=$2 ;;
    *) exit 64 ;;
  esac
  shift 2
done
cards || exit 1
exec {never}<> <(:) {lock}>>"$folder/lock"
rest() { read -r -t "$1" -u "$never" _; }
IFS= read -r -d '' line <"/proc/$$/stat"
read -ra fields <<<"${line##*) }"
mine=()
for word in ${list//,/ }; do
  for index in "${indexes[@]}"; do
    name "$index"
    [[ $word == "$index" || $word == "$uuid" ]] || continue
    mine+=("$index")
    printf '%s C\n' "${fields[19]}" >"$folder/held/$$-$index"
  done
done
((${#mine[@]})) || {
  printf 'RuntimeError: No CUDA GPUs are available (%s)\n' "$list"
  exit 1
}
for ((step = 1; step <= steps; step++)); do
  size=$((mib * step / steps - mib * (step - 1) / steps))
  flock "$lock"
  for index in "${indexes[@]}"; do held[$index]=0; done
  rows=()
  count
  for index in "${mine[@]}"; do
    used "$index"
    if ((used + size > total[$index])); then
      printf 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s MiB. ' "$size"
      printf 'GPU %s has a total capacity of %s MiB of which %s MiB is free.\n' \
        "$index" "${total[$index]}" "$((total[$index] - used))"
      exit 1
    fi
    printf '%s\n' "$size" >>"$folder/held/$$-$index"
    most=0
    read -r most 2>/dev/null <"$folder/peak-$index"
    ((used + size <= most)) || printf '%s\n' "$((used + size))" >"$folder/peak-$index"
  done
  flock -u "$lock"
  ((step == steps)) || rest "$every"
done
printf 'holds %s MiB on GPU %s\n' "$mib" "${mine[*]}"
[[ $seconds ]] && {
  rest "$seconds"
  exit 0
}
until [[ $until && -e $until ]]; do rest 0.05; done
exit 0
