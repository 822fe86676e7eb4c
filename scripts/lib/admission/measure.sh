# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# measure.sh: how full the host is, asked in the background: what each GPU has and uses, and what of it the sessions of
# this user hold, of this run and of others, told by the marker in the environment of each process that the driver names.
# Processes that only draw are among them. To be sourced. What the dispatcher does with the answer is in measured.sh.
#
# dispatch/measured: a line each, then `.`; what could not be found out has no line, which means unknown and never 0:
#   number NUMBER MILLISECONDS (since the machine started)
#   gpu INDEX UUID USED TOTAL      told INDEX (its processes are known)      held MARKER INDEX MIB      MiB
#   memory TOTAL AVAILABLE         resident MARKER MIB (when host memory was asked for)

measure::work() { # <number>
  local lines=() memory total available now_ms
  [[ ! $lease_fd ]] || exec {lease_fd}>&- # else the lock would be held for as long
  ((${#gpus_allowed[@]} == 0)) || measure::gpus
  clock::now_ms # an nvidia-smi that takes its time has counted what is used at the end of it
  host::memory
  total=${memory%% *} available=${memory##*=}
  total=${total#*=}
  [[ $total && $available ]] && lines+=("memory $((total / 1024)) $((available / 1024))")
  ((memory_asked)) && measure::resident
  record::write "$run/dispatch/measured" "number $1 $now_ms" "${lines[@]}" .
  printf 'measured run %s\n' "$1" 1<>"$run/dispatch/fifo"
}

measure::gpus() { # the processes first: what grows between the two questions then counts as somebody else's, and nothing
  # is promised twice
  local row bus='' pid='' mib one processes=() answer
  local -A index_of=() sum_of=() lists=() bad=()
  driver::ask "$run/dispatch/policy.tsv" -q -d PIDS
  driver::hear
  for row in "${answer[@]}"; do measure::process; done
  driver::ask "$run/dispatch/policy.tsv" --format=csv,noheader,nounits \
    --query-gpu=index,uuid,pci.bus_id,memory.used,memory.total
  driver::hear
  for row in "${answer[@]}"; do measure::row; done
  for one in "${processes[@]}"; do
    read -r bus pid mib <<<"$one"
    measure::whose "$pid" || bad[$bus]=1
    [[ $marker && ${index_of[$bus]-} ]] || continue
    sum_of["$marker ${index_of[$bus]}"]=$((${sum_of["$marker ${index_of[$bus]}"]:-0} + mib))
  done
  for bus in "${!index_of[@]}"; do [[ ${lists[$bus]-} && ! ${bad[$bus]-} ]] && lines+=("told ${index_of[$bus]}"); done
  for one in "${!sum_of[@]}"; do lines+=("held $one ${sum_of[$one]}"); done
}

measure::process() { # a line about a GPU, or about a process there
  if [[ $row =~ ^GPU\ ([0-9A-Fa-f:.]+)[[:space:]]*$ ]]; then
    bus=${BASH_REMATCH[1]} lists[$bus]=1
  elif [[ $row =~ ^[[:space:]]+'Process ID'[[:space:]]*:\ ([0-9]+) ]]; then
    pid=${BASH_REMATCH[1]}
  elif [[ $row =~ ^[[:space:]]+'Used GPU Memory'[[:space:]]*:\ ([0-9]{1,9})\ MiB ]]; then
    processes+=("$bus $pid ${BASH_REMATCH[1]}")
  elif [[ $row == *'Used GPU Memory'* ]]; then
    bad[$bus]=1
  fi
}

measure::row() { # of a GPU that tells everything
  local index='([0-9]{1,4})' uuid='([A-Za-z0-9-]+)' bus='([0-9A-Fa-f:.]+)' mib='([0-9]{1,9})'
  [[ ${row//[[:space:]]/} =~ ^$index,$uuid,$bus,$mib,$mib$ ]] || return 0
  index_of[${BASH_REMATCH[3]}]=${BASH_REMATCH[1]}
  lines+=("gpu ${BASH_REMATCH[1]} ${BASH_REMATCH[2]} ${BASH_REMATCH[4]} ${BASH_REMATCH[5]}")
}

measure::whose() { # <pid> -> marker: run/session/attempt, or nothing; 1 when there is no such process
  local environment one
  marker=''
  [[ -e /proc/$1 ]] || return
  [[ -O /proc/$1 ]] && mapfile -d '' -t environment 2>/dev/null <"/proc/$1/environ" || return 0
  for one in "${environment[@]}"; do
    [[ $one =~ ^COMBORUN_SESSION=([A-Za-z0-9_./@-]+)$ ]] && marker=${BASH_REMATCH[1]} && return
  done
  return 0
}

measure::resident() { # what of main memory each session has for itself; what files and other processes share is not in it
  local file pid marker fields page_kib
  local -A sum_of=()
  activity::page_size
  while IFS=/ read -r _ _ pid _; do
    measure::whose "$pid"
    [[ $marker ]] || continue
    read -ra fields 2>/dev/null <"/proc/$pid/statm" || continue
    [[ ${fields[1]-} =~ ^[0-9]+$ && ${fields[2]-} =~ ^[0-9]+$ ]] || continue
    sum_of[$marker]=$((${sum_of[$marker]:-0} + fields[1] - fields[2]))
  done < <(grep -lzs '^COMBORUN_SESSION=' /proc/[0-9]*/environ 2>/dev/null)
  for marker in "${!sum_of[@]}"; do lines+=("resident $marker $((sum_of[$marker] * page_kib / 1024))"); done
}
