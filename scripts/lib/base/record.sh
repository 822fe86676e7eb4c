# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# record.sh: records (`key=value` lines, complete or absent), the identity of processes, and time. To be sourced.
# A pid alone comes again, so a process is known by boot id, pid and start time; a zombie does not live.

declare -gA record=()

record::now() {                        # -> now: seconds since 1970 with a fraction
  now=${EPOCHREALTIME-$(date +%s.%6N)} # bash 5 has it
  now=${now/,/.}                       # in the user's locale, which may write a comma
}

record::now_ms() { # -> now_ms
  local now
  record::now
  now_ms=${now%.*}${now#*.}
  now_ms=${now_ms::13}
}

record::write() { # <file> <line>... : the file is complete or absent
  local file=$1
  shift
  local draft
  record::draft "$file"
  printf '%s\n' "$@" 2>/dev/null >"$draft" && mv -fT -- "$draft" "$file" 2>/dev/null && return
  rm -f -- "$draft" 2>/dev/null
  return 1
}

record::draft() { # <file> -> draft: a name beside it that is ours; two nodes may write it, and have equal pids
  draft=${1%/*}/.${1##*/}.${HOSTNAME//[^A-Za-z0-9]/-}.$BASHPID
}

record::read() { # <file> -> record; 1 when there is no such record. Whatever is no `key=value` is passed over
  local line key lines
  record=()
  [[ -r $1 ]] && mapfile -t lines 2>/dev/null <"$1" || return
  for line in "${lines[@]}"; do
    key=${line%%=*}
    [[ $line == *=* && $key && $key != *[!abcdefghijklmnopqrstuvwxyz_]* ]] && record[$key]=${line#*=}
  done
  ((${#record[@]}))
}

record::clean() { # <text> -> cleaned: one line of at most 300 characters, nothing that moves a cursor
  cleaned=${1//[[:cntrl:]]/ }
  cleaned=${cleaned::300}
}

process::fields() { # <pid> -> fields of its line in /proc from its state on; 1 when there is no such process
  local lines line
  [[ $1 =~ ^[0-9]+$ && -e /proc/$1 ]] || return 1
  mapfile lines 2>/dev/null <"/proc/$1/stat"
  line=${lines[*]}
  [[ $line ]] || return 1
  # shellcheck disable=SC2206 # a letter and numbers; the command's name before them may hold anything, a `)` too
  fields=(${line##*) })
}

process::look() { # <pid> -> state start; 1 when there is no such process
  local fields
  state='' start=''
  process::fields "$1" || return
  state=${fields[0]} start=${fields[19]}
}

process::alive() { # <pid> <start> <boot id>
  local state start boot
  process::boot
  [[ $3 == "$boot" ]] && process::look "$1" && [[ $start == "$2" && $state != [ZXx] ]]
}

process::uptime() { # -> uptime: hundredths of a second since this boot, which no clock that is set can move
  local whole
  read -r whole _ 2>/dev/null </proc/uptime || return
  [[ $whole =~ ^([0-9]+)\.([0-9][0-9])$ ]] || return
  uptime=$((10#${BASH_REMATCH[1]}${BASH_REMATCH[2]}))
}

process::boot() { # -> boot: this boot's id
  read -r boot 2>/dev/null </proc/sys/kernel/random/boot_id || boot=unknown
  boot+=${slurm_node:+@$slurm_node}
}

process::let_go() { # of every inherited descriptor but the first three; to be called in a subshell
  local descriptor
  for descriptor in "/proc/$BASHPID/fd"/*; do
    descriptor=${descriptor##*/}
    ((descriptor > 2 && descriptor != 255)) && exec {descriptor}>&-
  done
}

lock::held() { # <file> : whether a process holds the lock
  local fd rc=0
  { exec {fd}<"$1"; } 2>/dev/null || return 1
  flock -n -s "$fd" || rc=1
  exec {fd}<&-
  ((rc))
}
