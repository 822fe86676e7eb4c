# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# leased.sh: what the other runs of this user have promised, and whether that still holds. To be sourced by dispatch.sh.

lease_news=0      # they say something else than they did
lease_torn=''     # a run whose file has no end, and whose dispatcher lives: it writes it anew
lease_seen=''     # what they said
lease_looked_ms=0 # when that was

declare -gA lease_load=() lease_mib=() lease_alone=() lease_held=() # GPU -> of other runs: sessions, MiB, such as are alone
declare -gA lease_group_gpu=() lease_group_host=() lease_token=()
declare -gA lease_swept=() # marker of one that seems gone -> when, in s, something of it was last seen or not: 1 or 0
lease_cpus=0 lease_memory=0 lease_cores='' lease_resident=0

lease::look() { # now and then, what other runs say, while one of ours waits; without the lock, since nothing is decided
  local now_ms
  [[ $lease_start ]] || return 0
  clock::now_ms
  ((now_ms - lease_looked_ms >= 1000)) || return 0
  lease_looked_ms=$now_ms
  lease::read
}

lease::read() { # -> lease_...; lease_news: whether they differ from what they were
  local file lines line name dispatcher seen='' before gpu
  local who gpus mib alone cpus cores memory tokens group since at
  local -A before_mib=() before_load=()
  for gpu in "${!lease_load[@]}"; do before_mib[$gpu]=${lease_mib[$gpu]} before_load[$gpu]=${lease_load[$gpu]}; done
  lease_load=() lease_mib=() lease_alone=() lease_held=() lease_group_gpu=() lease_group_host=() lease_token=()
  lease_cpus=0 lease_memory=0 lease_cores='' lease_resident=0 lease_torn=''
  for file in "$lease_directory"/*.lease; do
    name=${file##*/} name=${name%.lease}
    [[ $name != "$run_id" && -f $file && -O $file ]] || continue
    mapfile -t lines 2>/dev/null <"$file"
    [[ ${lines[1]-} =~ ^run=([A-Za-z0-9_.-]+)\ .*dispatcher=([0-9]+)\ start=([0-9]+)\ boot=([a-z0-9-]+)$ ]] ||
      continue
    [[ ${BASH_REMATCH[1]} == "$name" && ${BASH_REMATCH[4]} == "$lease_boot" ]] || continue
    dispatcher=0 before=$seen
    process::alive "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}" "${BASH_REMATCH[4]}" && dispatcher=1
    [[ ${lines[-1]} == . ]] || ((dispatcher == 0)) || lease_torn=$name
    for line in "${lines[@]:2}"; do
      IFS=$'\t' read -r who gpus mib alone cpus cores memory tokens group since at <<<"$line"
      if lease::sane && lease::lives; then
        lease::count
        seen+=$line$'\n'
      fi
    done
    [[ $seen != "$before" ]] || ((dispatcher)) || [[ ! $lease_fd ]] || rm -f -- "$file" 3>&- 4>&- 8>&-
  done
  lease_news=0
  [[ $seen == "$lease_seen" ]] || lease_news=1 lease_seen=$seen
  for gpu in "${!before_mib[@]}"; do
    ((${lease_load[$gpu]:-0} < before_load[$gpu] && ${lease_mib[$gpu]:-0} < before_mib[$gpu])) || continue
    promise::back "$gpu" $((before_mib[$gpu] - ${lease_mib[$gpu]:-0}))
  done
}

lease::sane() { # numbers are numbers, words are words
  [[ $who =~ ^[A-Za-z0-9_@.-]+$ && $gpus =~ ^(-|[0-9]{1,4}(,[0-9]{1,4})*)$ && $mib$cpus$memory$since =~ ^[0-9]{4,40}$ &&
    $mib =~ ^[0-9]{1,9}$ && $cpus =~ ^[0-9]{1,9}$ && $memory =~ ^[0-9]{1,9}$ && $alone == [01] && $at == /* &&
    $cores =~ ^(-|[0-9,]+)$ && $tokens$group =~ ^[A-Za-z0-9_,-]+$ && $since =~ ^[1-9][0-9]{0,11}$ ]]
}

lease::lives() { # reads name who since at dispatcher: whether that promise still holds
  local life now marker=$name/$who/${at##*-} pids
  local -A record=()
  [[ -e $at/end ]] && return 1
  attempt::glance "$at"
  case $life in
    running | orphaned) return 0 ;;
    ended) return 1 ;;
    starting)
      record::now
      ((dispatcher)) || [[ -e $at/claim ]] || ((${now%.*} - since < lease_start_s)) && return 0
      return 1
      ;;
  esac
  ((dispatcher)) && [[ $life == queued && -d ${at%/*} ]] && return 0 # its grant is being written
  [[ ${lease_swept[$marker]-} && ${lease_swept[$marker]% *} -gt $((SECONDS - 5)) ]] && return "${lease_swept[$marker]#* }"
  local rc=1
  marker::pids "$marker" && rc=0
  lease_swept[$marker]="$SECONDS $rc"
  return "$rc"
}

lease::count() { # reads the columns
  local gpu token held marker=$name/$who/${at##*-}
  [[ $gpus == - ]] && gpus=''
  for gpu in ${gpus//,/ }; do
    held=${held_mib["$marker $gpu"]:-0}
    lease_load[$gpu]=$((${lease_load[$gpu]:-0} + 1)) lease_alone[$gpu]=$((${lease_alone[$gpu]:-0} + alone))
    lease_held[$gpu]=$((${lease_held[$gpu]:-0} + held))
    lease_mib[$gpu]=$((${lease_mib[$gpu]:-0} + (10#$mib > held ? 10#$mib : held)))
    [[ $group == - ]] || lease_group_gpu["$group $gpu"]=$((${lease_group_gpu["$group $gpu"]:-0} + 1))
  done
  [[ $group == - ]] || lease_group_host[$group]=$((${lease_group_host[$group]:-0} + 1))
  [[ $tokens == - ]] || for token in ${tokens//,/ }; do lease_token[$token]="$who of the run $name"; done
  [[ $cores == - ]] || lease_cores+=${lease_cores:+,}$cores
  held=${resident_mib[$marker]:-0}
  lease_cpus=$((lease_cpus + 10#$cpus)) lease_resident=$((lease_resident + held))
  lease_memory=$((lease_memory + (10#$memory > held ? 10#$memory : held)))
}
