# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# lease.sh: what the runs of this user on this host have promised, so that two of them don't promise the same twice. To be
# sourced by dispatch.sh. A folder of the user, which everybody may read; a file for each run, under a lock while anybody
# decides. A promise is over when its attempt has an end, or nothing of it lives, whoever has crashed.
#
#   comborun-leases 1
#   run=ID user=NAME dispatcher=PID start=TICKS boot=ID
#   WHO <TAB> GPUS <TAB> MIB <TAB> ALONE <TAB> CORES <TAB> LIST <TAB> MEMORY_MIB <TAB> TOKENS <TAB> GROUP <TAB> SINCE <TAB> FOLDER
#   .                                                                          - is nothing

lease_directory=${COMBORUN_LEASES:-/tmp/comborun-$UID}
lease_fd='' lease_trouble='' # the lock while it is held; why there is none
lease_stale=0                # the file says something else than is so
lease_held_s=-9              # when another run kept the lock, in seconds of this process
lease_written_s=0            # when our file was written
lease_start_s=60             # in which a session begins, or its promise is over where its dispatcher is dead
lease_start='' lease_boot='' lease_umask=022

lease::open() { # 1 when the folder is not ours alone to write
  local state start boot mode
  lease_umask=$(umask)
  process::look $$ && lease_start=$start
  process::boot
  lease_boot=$boot lease_trouble=''
  [[ -d $lease_directory ]] || (umask 022 && mkdir -p -- "$lease_directory") 2>/dev/null 3>&- 4>&- 8>&-
  mode=$(stat -c %a -- "$lease_directory" 2>/dev/null 3>&- 4>&- 8>&-)
  if [[ ! -d $lease_directory || -L $lease_directory ]]; then
    lease_trouble="there is no folder $lease_directory, and none can be made"
  elif [[ ! -O $lease_directory ]]; then
    lease_trouble="$lease_directory belongs to somebody else"
  elif [[ ! $mode =~ ^[0-7]?[0-7][0145][0145]$ ]]; then
    lease_trouble="others may write in $lease_directory (mode $mode)"
  fi
  [[ ! $lease_trouble ]]
}

lease::enter() { # decide alone; 1 when that can't be: wait_for and wait_why
  lease::lock || return
  [[ $lease_torn ]] || return 0
  wait_why="what the run $lease_torn has promised can't be read to its end"
  lease::leave
  return 1
}

lease::lock() { # 1 when that can't be: wait_for and wait_why
  wait_for=lease
  [[ $lease_start ]] && [[ ! $lease_trouble ]] || lease::open || {
    wait_why=$lease_trouble
    return 1
  }
  wait_why="another run holds $lease_directory/lock"
  ((SECONDS - lease_held_s > 1)) || return # a stopped process keeps it: those that need no lease go on
  wait_why="can't write in $lease_directory"
  umask 022
  { exec {lease_fd}>>"$lease_directory/lock"; } 2>/dev/null || lease_trouble=$wait_why
  umask "$lease_umask"
  [[ ! $lease_trouble ]] || return
  flock -w 0.5 "$lease_fd" 3>&- 4>&- 8>&- || {
    wait_why="another run holds $lease_directory/lock"
    lease_held_s=$SECONDS
    lease::leave
    return 1
  }
  [[ $lease_directory/lock -ef /proc/$$/fd/$lease_fd ]] || { # somebody has tidied up, and others lock another file
    lease::leave
    return 1
  }
  lease::read
}

lease::leave() {
  exec {lease_fd}>&-
  lease_fd=''
}

lease::write() { # our own file, while we hold the lock; it is complete, or what it was before
  local who kind line='' file=$lease_directory/$run_id.lease draft=$lease_directory/.$run_id.draft
  if ((${#promised[@]} == 0)); then
    [[ ! -e $file ]] || rm -f -- "$file" 3>&- 4>&- 8>&- || return
    lease_stale=0
    return
  fi
  for who in "${!promised[@]}"; do
    kind=${promise_kind[$who]}
    line+=$who$'\t'${promised[$who]:--}$'\t'${asked_mib[kind]}$'\t'${alone_of[$who]:-0}$'\t'${asked_cpus[kind]}$'\t'
    line+=${cores_of[$who]:--}$'\t'${asked_memory[kind]}$'\t'${asked_tokens[kind]:--}$'\t'${asked_group[kind]:--}$'\t'
    line+=${promise_since[$who]}$'\t'${promise_at[$who]:--}$'\n'
  done
  umask 022 # everybody may read it
  { printf 'comborun-leases 1\nrun=%s user=%s dispatcher=%s start=%s boot=%s\n%s.\n' \
    "$run_id" "${USER:-$UID}" "$$" "$lease_start" "$lease_boot" "$line" >"$draft"; } 2>/dev/null || who=''
  umask "$lease_umask"
  if [[ ! $who ]] || ! mv -fT -- "$draft" "$file" 2>/dev/null 3>&- 4>&- 8>&-; then
    rm -f -- "$draft" 3>&- 4>&- 8>&-
    return 1
  fi
  lease_stale=0 lease_written_s=$SECONDS
}

lease::flush() { # what has ended since, now and then; and every hour, since what lies in /tmp for days is removed
  ((lease_stale || (${#promised[@]} && SECONDS - lease_written_s > 3600))) || return 0
  lease::lock || return 0 # what is ours can be told, whatever others have left
  lease::write
  lease::leave
}
