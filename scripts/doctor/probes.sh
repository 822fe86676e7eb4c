# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# doctor_probes.sh: what could hang: file systems, drivers, services, the user's start-up files. Each runs beside the
# others. To be sourced by doctor.sh, before it begins.

probe::ask() { # <seconds> <command>... -> said code: at most its last 4000 bytes; 124 and 137 mean that it hung
  local seconds=$1
  shift
  said=$({
    timeout -k 1 "$seconds" "$@" </dev/null 2>&1
    printf '\n%s' "$?"
  } | tail -c 4000)
  code=${said##*$'\n'}
  said=${said%"$code"}
  said=${said%"${said##*[![:space:]]}"}
}

probe::files() { # [file]... : disks, whether the root's file system does what a run needs, and the files of a grid
  local at=$root file said code
  while [[ ! -d $at && $at == */* ]]; do at=${at%/*}; done
  [[ $at ]] || at=/
  [[ $at == "$root" ]] && fact root_exists 1
  probe::disk root "$at"
  probe::disk tmp "$temporary"
  probe::try "$at"
  file=$(mktemp 2>/dev/null) && fact tmp_writable 1 && rm -f -- "$file"
  for file in "$@"; do
    [[ $file == [~]/* ]] && file=$HOME${file:1}
    [[ -e $file ]] || fact absent "$file"
    [[ -f $file ]] && probe::crlf "$file"
  done
  return 0
}

probe::crlf() { # <file>...
  local file
  while IFS= read -r -d '' file; do fact crlf "$file"; done < <(grep -lZsI $'\r$' -- "$@")
}

probe::disk() { # <label> <folder>
  local said code
  probe::ask "$brief_s" df -k --output=size,avail,itotal,iavail,fstype,target -- "$2"
  ((code == 0)) && fact "disk_$1" "${said##*$'\n'}"
}

probe::try() { # <folder> : with real files, in a folder that goes again. A program that is missing tells nothing of it
  local at
  at=$(mktemp -d -- "$1/.comborun-doctor-XXXXXXXX" 2>/dev/null) || return 0
  trap 'rm -rf -- "$at"' EXIT
  fact root_writable 1
  ! type -P flock >/dev/null || probe::lock "$at/lock"
  { mkdir -- "$at/a" && mv -T -- "$at/a" "$at/b"; } || fact cannot 'rename a folder'
  ! type -P mkfifo >/dev/null || mkfifo -- "$at/fifo" || fact cannot 'make a FIFO'
  ln -s lock "$at/link" || fact cannot 'make a symbolic link'
  { : >>"$at/lock" && chmod 755 -- "$at/lock" && [[ -x $at/lock ]]; } || fact cannot 'keep the mode of a file'
  rm -rf -- "$at"
  trap - EXIT
}

probe::lock() { # <file>
  if ! exec 8>"$1" || ! flock -n 8; then
    fact flock refused
  elif flock -n "$1" true; then
    fact flock ignored
  else
    fact flock works
  fi
  exec 8>&-
}

probe::runs() { # what earlier launches left below the root
  local directory now made scripts=() seen=0
  record::now
  for directory in "$root/.incoming"/*/; do
    made=$(stat -c %Y -- "$directory" 2>/dev/null) # a launch may be over just now
    [[ $made =~ ^[0-9]{1,12}$ ]] && fact incoming "$((${now%.*} - made)) ${directory%/}"
  done
  for directory in "$root"/*-????????T??????Z-????; do
    [[ -f $directory/run.json ]] || continue
    ((seen < 500)) || break
    seen=$((seen + 1))
    [[ -e $directory/dispatch/done || -e $directory/dispatch/stopped ]] && continue
    scripts+=("$directory"/sessions/*/session.sh "$directory"/lib/*.sh)
    record::read "$directory/dispatch/dispatcher"
    if process::alive "${record[pid]-}" "${record[start]-}" "${record[boot]-}"; then
      fact run_live "$directory"
    else
      fact run_dead "$directory"
    fi
  done
  ((${#scripts[@]} == 0)) || probe::crlf "${scripts[@]:0:4000}"
  return 0
}

probe::gpus() {
  local line said code pids=() device
  { read -r line <"$system/proc/driver/nvidia/version"; } 2>/dev/null && [[ $line =~ [[:space:]]([0-9]+\.[0-9.]+) ]] &&
    fact driver_loaded "${BASH_REMATCH[1]}"
  for device in "$system"/proc/driver/nvidia/gpus/*/; do [[ -d $device ]] && fact gpu_device "${device%/}"; done
  type -P nvidia-smi >/dev/null || return 0
  probe::ask "$doctor_s" nvidia-smi --format=csv,noheader,nounits \
    --query-gpu=index,uuid,memory.total,memory.used,utilization.gpu,driver_version,name
  fact nvidia_code "$code"
  if ((code != 0)); then
    fact nvidia_said "$said"
    return 0
  fi
  while IFS= read -r line; do fact gpu "$line"; done <<<"$said"
  probe::ask "$brief_s" modinfo -F version nvidia
  ((code == 0)) && fact driver_installed "${said##*$'\n'}"
  probe::ask "$doctor_s" nvidia-smi --format=csv,noheader,nounits --query-compute-apps=gpu_uuid,pid,used_memory,process_name
  ((code == 0)) && while IFS= read -r line; do
    [[ $line =~ ^GPU-[^,]*,\ *([0-9]+), ]] || continue
    fact gpu_process "$(stat -c %U "/proc/${BASH_REMATCH[1]}" 2>/dev/null || printf '?') $line"
  done <<<"$said"
  probe::ask "$brief_s" dmesg
  ((code == 0)) || probe::ask "$brief_s" journalctl -k -q -n 5000 --no-pager
  while IFS= read -r line; do fact xid "$line"; done < <(grep -a 'NVRM: Xid' <<<"$said" | tail -n 3)
  return 0
}

probe::egl() { # a line for each device: its index, CUDA's number for the GPU, the GPU's UUID
  local said code line
  type -P nvidia-smi >/dev/null || return 0
  # shellcheck disable=SC2154 # of egl.sh
  probe::ask "$doctor_s" python3 -I -c "$egl_program"
  ((code == 0)) || return 0
  while IFS= read -r line; do [[ $line =~ ^[0-9]+\  ]] && fact egl "$line"; done <<<"$said"
  return 0
}

probe::tmux() { # our own server: does it answer, and if not, why
  local said code folder=${TMUX_TMPDIR:-/tmp}/tmux-$UID pid args state start line
  type -P tmux >/dev/null || return 0
  probe::ask "$brief_s" tmux -V
  fact tmux "$said"
  fact tmux_socket "$folder/$mux_socket"
  if [[ -e $folder ]]; then
    fact tmux_folder "$(stat -c '%u %a' -- "$folder")"
  fi
  [[ -S $folder/$mux_socket ]] && fact tmux_socket_there 1
  # a client hands its standard output to the server, and a frozen server would keep our pipe open
  # shellcheck disable=SC2016 # the other bash expands it
  probe::ask "$brief_s" bash -c 'exec tmux -L "$1" list-sessions >/dev/null' tmux "$mux_socket"
  fact tmux_code "$code"
  fact tmux_said "${said##*$'\n'}"
  while IFS=/ read -r _ _ pid _; do
    [[ -O /proc/$pid ]] || continue
    mapfile -d '' -t args <"/proc/$pid/cmdline"
    [[ " ${args[*]} " == *" -L $mux_socket "* ]] || continue
    process::look "$pid" || continue
    fact tmux_server "$pid $state"
    while IFS= read -r line; do [[ $line == 0::* ]] && fact tmux_cgroup "${line#0::}"; done <"/proc/$pid/cgroup"
  done < <(grep -lsxF 'tmux: server' /proc/[0-9]*/comm)
  return 0
}

probe::screen() { # -v ends with 1 in some versions, -ls with 1 for none
  local said code
  type -P screen >/dev/null || return 0
  probe::ask "$brief_s" screen -v
  fact screen "$said"
  probe::ask "$brief_s" screen -ls
  fact screen_said "$said"
}

probe::logout() { # would logging out end sessions? The running logind's word, and the files that it read
  local said code line folder file name section=''
  local -A dropin=()
  [[ -d $system/run/systemd/system ]] || return 0
  fact systemd 1
  probe::ask "$brief_s" systemctl --version
  [[ $said =~ systemd[[:space:]]([0-9]+)([^[:space:]]*)([[:space:]]\(([^\)]*)\))? ]] && fact systemd_version "${BASH_REMATCH[4]:-${BASH_REMATCH[1]}}"
  probe::ask "$brief_s" systemctl is-active systemd-oomd
  [[ $said == active ]] && fact oomd 1
  probe::ask "$brief_s" loginctl show-session -p KillUserProcesses
  [[ $said =~ ^KillUserProcesses=(yes|no)$ ]] && fact kill_now "${BASH_REMATCH[1]}"
  probe::ask "$brief_s" loginctl show-user "$UID" -p Linger
  [[ $said =~ Linger=(yes|no) ]] && fact linger "${BASH_REMATCH[1]}"
  [[ -e $system/var/lib/systemd/linger/${USER:-$UID} ]] && fact linger yes
  for folder in etc run usr/local/lib usr/lib; do
    file=$system/$folder/systemd/logind.conf
    [[ ! $section && -f $file ]] && section=$file
    for file in "$system/$folder"/systemd/logind.conf.d/*.conf; do
      name=${file##*/}
      [[ -f $file && ! ${dropin[$name]-} ]] && dropin[$name]=$file
    done
  done
  [[ $section ]] && probe::logind "$section"
  while IFS= read -r name; do
    [[ $name ]] && probe::logind "${dropin[$name]}"
  done < <(printf '%s\n' "${!dropin[@]}" | LC_ALL=C sort)
  return 0
}

probe::logind() { # <file> : what it assigns, in order; the last one counts
  local line setting='^[[:space:]]*(KillUserProcesses|KillOnlyUsers|KillExcludeUsers)[[:space:]]*=[[:space:]]*(.*)$'
  while IFS= read -r line || [[ $line ]]; do
    [[ $line =~ $setting ]] && fact logind "$1 ${BASH_REMATCH[1]}=${BASH_REMATCH[2]}"
  done <"$1"
  return 0
}

probe::shell() { # what the user's start-up files say, and how long they take, for each way in
  probe::start login bash -lc true
  probe::start interactive bash -c 'exec bash -ic true 2>/dev/null'
  probe::start ssh env -u SHLVL SSH_CLIENT='127.0.0.1 1 22' SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22' bash -c true
}

probe::start() { # <kind> <command>...
  local said code now_ms begin kind=$1
  shift
  record::now_ms
  begin=$now_ms
  probe::ask "$brief_s" "$@"
  record::now_ms
  said=${said#"${said%%[![:space:]]*}"}
  fact "shell_$kind" "$code $((now_ms - begin)) ${said%%$'\n'*}"
}
