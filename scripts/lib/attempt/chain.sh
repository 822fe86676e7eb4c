# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# chain.sh: the attempts that together made a session's episodes. To be sourced; needs `run`, record.sh and attempt.sh.

chain::of() { # <session> <attempt> -> chain: the attempts, oldest first, whose results lead up to this one's, and it;
  # chain_records. An attempt that made a tail stands on one that made what was before it
  local name=$1 number=$2 need=''
  local success planned globs first_planned ranged episode_field evidence_records evidence_line evidence_files
  chain=() chain_records=0
  for (( ; number > 0; number--)); do
    [[ -s $run/sessions/$name/attempt-$number/claim ]] || continue
    attempt::rules "$run/sessions/$name/attempt-$number"
    [[ $need ]] && ((first_planned >= need)) && continue
    record::read "$run/sessions/$name/attempt-$number/end"
    [[ ${record[records]-} =~ ^[0-9]{1,15}$ ]] || record[records]=0
    ((number == $2 || 10#${record[records]})) || continue
    chain=("$number" "${chain[@]}") chain_records=$((chain_records + 10#${record[records]}))
    need=$first_planned
  done
}
