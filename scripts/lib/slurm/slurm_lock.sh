# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_lock.sh: one submission or settling of a run at a time, on whichever node. To be sourced; needs `run` and record.sh.
# The lock is a link that is made or not. It saves work and keeps the journal in order; that nothing runs twice does not
# hang on it but on the claims, so that a lock whose holder is gone may simply be taken away.

slurm_lock_stale_s=300 # seconds; nobody holds it for that long without a word (slurm_lock::renew)

slurm_lock::take() { # <seconds to wait at most> : 1 when somebody else has it
  local deadline=$((SECONDS + $1)) state start boot
  process::boot
  process::look $$
  slurm_lock_draft=$run/dispatch/.slurm.${HOSTNAME//[^A-Za-z0-9]/-}.$$.$RANDOM
  printf '%s\n' "host=$HOSTNAME" "boot=$boot" "pid=$$" "start=$start" >"$slurm_lock_draft" || return
  until ln -T -- "$slurm_lock_draft" "$run/dispatch/slurm.lock" 2>/dev/null; do
    [[ $slurm_lock_draft -ef $run/dispatch/slurm.lock ]] && return
    slurm_lock::stale && slurm_lock::break && continue
    ((SECONDS < deadline)) || { rm -f -- "$slurm_lock_draft" && return 1; }
    sleep 0.2
  done
}

slurm_lock::renew() { # before what may take minutes: its holder lives. The lock is a link to the draft
  [[ ! ${slurm_lock_draft-} ]] || touch -c -- "$slurm_lock_draft" 2>/dev/null || true
}

slurm_lock::stale() { # its holder was of this machine, and is gone; or of another one, and it is too old, by the file
  # server's clock
  local made now boot
  record::read "$run/dispatch/slurm.lock" || return
  process::boot
  if [[ ${record[boot]-} == "$boot" ]]; then
    ! process::alive "${record[pid]-}" "${record[start]-}" "$boot"
    return
  fi
  touch -- "$slurm_lock_draft"
  read -r made now < <(stat -c %Y -- "$run/dispatch/slurm.lock" "$slurm_lock_draft" 2>/dev/null | tr '\n' ' ')
  [[ $made =~ ^[0-9]+$ && $now =~ ^[0-9]+$ ]] && ((now - made > slurm_lock_stale_s))
}

slurm_lock::break() { # reads record: the holder that is gone
  local gone=$slurm_lock_draft.gone before="${record[pid]-} ${record[start]-} ${record[boot]-}"
  mv -T -- "$run/dispatch/slurm.lock" "$gone" 2>/dev/null || return 0
  record::read "$gone"
  if [[ "${record[pid]-} ${record[start]-} ${record[boot]-}" != "$before" ]]; then
    ln -T -- "$gone" "$run/dispatch/slurm.lock" 2>/dev/null # somebody has taken it just now
  fi
  rm -f -- "$gone"
}

slurm_lock::give() {
  [[ ${slurm_lock_draft-} ]] || return 0
  [[ $slurm_lock_draft -ef $run/dispatch/slurm.lock ]] && rm -f -- "$run/dispatch/slurm.lock"
  rm -f -- "$slurm_lock_draft"
  slurm_lock_draft=''
}
