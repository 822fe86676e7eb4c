#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# doctor.sh ROOT [PROGRAM,PROGRAM... [FILE...]]: facts about this host as `key=value` lines, for judging elsewhere.
# Changes nothing: what is tried out is tried in a temporary folder, which goes again. What could hang runs beside the
# rest and is waited for until a deadline, whatever state it is in: a process in the kernel can't be killed.
set -uo pipefail

if ! declare -F process::alive >/dev/null; then
  here=${BASH_SOURCE[0]%/*}
  source "$here/../lib/base/record.sh"
  source "$here/../lib/session/egl.sh"
  source "$here/probes.sh"
  source "$here/leases.sh"
fi

doctor_s=${COMBORUN_DOCTOR_S:-9}         # what the driver may take, which wakes up slowly
brief_s=$((doctor_s < 5 ? doctor_s : 5)) # what other programs may take
system=${COMBORUN_SYSTEM_ROOT-}          # where /etc, /proc/driver and the like are looked for
mux_socket=${COMBORUN_TMUX_SOCKET:-comborun}
temporary=${TMPDIR:-/tmp}

doctor::main() { # <root> [programs] [file]...
  local now root=$1 programs=${2-} probe fd fds=() pids=() line left whole names=(files runs gpus leases egl tmux screen logout shell)
  local deadline=$((SECONDS + doctor_s + 3))
  shift $(($# > 1 ? 2 : 1))
  record::now
  fact now_start "$now"
  [[ $root == [~] || $root == [~]/* ]] && root=$HOME${root:1}
  for probe in "${names[@]}"; do
    exec {fd}< <(probe::"$probe" "$@" 2>/dev/null && printf 'whole\n')
    fds+=("$fd") pids+=("$!")
  done
  doctor::machine
  doctor::programs "${programs//,/ }"
  doctor::limits
  doctor::processes
  for probe in "${!names[@]}"; do
    whole=''
    while left=$((deadline - SECONDS)) && IFS= read -r -t "$((left > 0 ? left : 0)).1" -u "${fds[probe]}" line; do
      [[ $line == whole ]] && whole=1 && break
      printf '%s\n' "$line"
    done
    [[ $whole ]] && continue
    fact late "${names[probe]}"
    kill -KILL "${pids[probe]}" 2>/dev/null
  done
  record::now
  fact now_end "$now"
  fact end 1
}

fact() { # <key> <value>
  printf '%s=%s\n' "$1" "${2//[[:cntrl:]]/ }"
}

doctor::machine() {
  local key value line
  fact bash "$BASH_VERSION"
  fact hostname "${HOSTNAME:-unknown}"
  fact uid "$UID"
  fact user "${USER:-$UID}"
  fact home "$HOME"
  fact root "$root"
  fact tmpdir "$temporary"
  fact runtime_dir "${XDG_RUNTIME_DIR-}"
  [[ -d ${XDG_RUNTIME_DIR-} && -w $XDG_RUNTIME_DIR ]] && fact runtime_usable 1
  while IFS='=' read -r key value; do
    [[ $key == PRETTY_NAME ]] && fact os "${value//\"/}"
  done 2>/dev/null <"$system/etc/os-release"
  fact cpus "$(nproc 2>/dev/null)"
  read -r value _ </proc/loadavg && fact load "$value"
  while read -r key value _; do
    case $key in
      MemTotal: | MemAvailable: | SwapTotal: | SwapFree:) fact "${key%:}" "$value" ;;
    esac
  done </proc/meminfo
}

doctor::programs() { # <program>...
  local program
  for program in $1; do
    type -P -- "$program" >/dev/null || fact missing "$program"
  done
  [[ $(LC_ALL=C stat -c %.6Y / 2>/dev/null) =~ ^[0-9]+\.[0-9]{6}$ ]] || fact poor stat
  tail -n 1 --pid=$$ /dev/null >/dev/null 2>&1 || fact poor tail
}

doctor::limits() { # of this shell, and of the control groups around it
  local path='' value line at uid links threads=0
  fact files_soft "$(ulimit -Sn)"
  fact files_hard "$(ulimit -Hn)"
  fact processes_soft "$(ulimit -Su)"
  while read -r uid links; do
    [[ $uid == "$UID" ]] && threads=$((threads + links - 2))
  done < <(stat -c '%u %h' /proc/[0-9]*/task 2>/dev/null)
  fact threads "$threads"
  while IFS= read -r line; do
    [[ $line == 0::* || $line == *:memory:* ]] && path=${line#*:*:}
    [[ $line == 0::* ]] && fact cgroup "$path"
  done </proc/self/cgroup
  for at in "/sys/fs/cgroup$path" /sys/fs/cgroup "/sys/fs/cgroup/memory$path" /sys/fs/cgroup/memory; do
    for line in memory.max memory.limit_in_bytes pids.max; do
      { read -r value <"$at/$line"; } 2>/dev/null && [[ $value =~ ^[0-9]{1,17}$ ]] && fact "cgroup_${line%%.*}" "$value"
    done
  done
}

doctor::processes() { # can what runs be found again? The sweep needs the environment of our own processes
  local target options token=$$-$RANDOM child line=''
  while read -r _ target _ options _; do
    [[ $target == /proc && $options =~ hidepid=([a-z0-9]+) ]] && fact hidepid "${BASH_REMATCH[1]}"
  done </proc/mounts
  { read -r line </proc/1/comm; } 2>/dev/null
  fact pid1 "$line"
  COMBORUN_DOCTOR=$token sleep 5 &
  child=$!
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    if grep -lzsxF "COMBORUN_DOCTOR=$token" "/proc/$child/environ" >/dev/null; then
      fact environ readable
      break
    fi
    sleep 0.02
  done
  kill "$child"
  wait "$child" 2>/dev/null
}

doctor::main "$@"
