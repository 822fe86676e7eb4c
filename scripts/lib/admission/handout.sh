# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# handout.sh: which cores a session is given, where it asks for cores and processes can be bound to some. The lowest ones
# that are free, neighbours where it goes; those that the grid reserves are the highest. To be sourced by dispatch.sh.

handout_cores=() # that may be given away; none where nothing can be bound

handout::open() {
  local kind line range asked=0
  handout_cores=()
  for ((kind = 1; kind < kinds; kind++)); do asked=$((asked + asked_cpus[kind])); done
  ((asked && policy[cpus])) || return 0
  while read -r line range; do
    [[ $line == Cpus_allowed_list: ]] && handout::spread "$range"
  done 2>/dev/null </proc/self/status
  ((${#handout_cores[@]} <= policy[cpus])) || handout_cores=("${handout_cores[@]::policy[cpus]}")
  taskset -c "${handout_cores[0]:-0}" true 3>&- 4>&- 8>&- 2>/dev/null || handout_cores=()
}

handout::spread() { # <0-3,8> -> handout_cores
  local range first last
  for range in ${1//,/ }; do
    [[ $range =~ ^([0-9]{1,5})(-([0-9]{1,5}))?$ ]] || continue
    first=$((10#${BASH_REMATCH[1]})) last=$((10#${BASH_REMATCH[3]:-${BASH_REMATCH[1]}}))
    for (( ; first <= last; first++)); do handout_cores+=("$first"); done
  done
}

handout::take() { # <who> <how many> -> cores_of; nothing where fewer than that are free
  local core given wanted=$2 last=-2 IFS=,
  local -A taken=()
  local free=() row=()
  ((wanted && ${#handout_cores[@]})) || return 0
  given=${cores_of[*]},$lease_cores
  for core in $given; do [[ ! $core ]] || taken[$core]=1; done
  for core in "${handout_cores[@]}"; do
    [[ ! ${taken[$core]-} ]] || continue
    free+=("$core")
    ((core == last + 1)) || row=()
    row+=("$core") last=$core
    ((${#row[@]} < wanted)) || break
  done
  ((${#row[@]} == wanted)) || row=("${free[@]::wanted}")
  ((${#row[@]} < wanted)) || cores_of[$1]=${row[*]}
}
