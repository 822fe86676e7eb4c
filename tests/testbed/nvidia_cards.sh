# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# nvidia_cards.sh: the GPUs of the stand-in for nvidia-smi (not the real one), and what processes hold of them. To be
# sourced. Its folder is where it lies: `cards` (index total taken load), held/PID-INDEX (start type, then a line a step).
folder=${BASH_SOURCE[0]%/*}
declare -A total=() other=() load=() held=()
rows=() indexes=()

cards() { # 1 when there is no driver
  local index all taken busy
  while read -r index all taken busy; do
    indexes+=("$index") total[$index]=$all other[$index]=$taken load[$index]=$busy held[$index]=0
  done 2>/dev/null <"$folder/cards"
  ((${#indexes[@]}))
}

count() { # -> held, and rows `index pid type mib` of what lives
  local file pid index start kind now step mib line
  for file in "$folder/held/"*; do
    pid=${file##*/} index=${pid#*-} pid=${pid%-*} mib=0
    start='' line='' # the state of another process is no state of one that is gone
    { read -r start kind && while read -r step; do mib=$((mib + step)); done; } 2>/dev/null <"$file"
    [[ $start ]] || continue
    { IFS= read -r -d '' line <"/proc/$pid/stat"; } 2>/dev/null
    read -ra now <<<"${line##*) }"
    [[ ${now[19]-} == "$start" && ${now[0]} != [ZX] && ${total[$index]-} ]] || continue
    held[$index]=$((held[$index] + mib))
    ((mib)) && rows+=("$index $pid $kind $mib")
  done
}

used() { # <index> -> used
  used=$((other[$1] + held[$1]))
}

name() { # <index> -> uuid bus
  printf -v uuid 'GPU-%08x-5eed-4a11-b0a7-%012x' "$(($1 + 1))" "$(($1 + 1))"
  printf -v bus '00000000:%02X:00.0' "$(($1 + 1))"
}
