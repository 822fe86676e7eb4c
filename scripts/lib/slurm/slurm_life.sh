# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_life.sh: where an attempt is that runs on a node of a cluster. To be sourced after attempt.sh, for runs whose
# engine is Slurm. No pid of another node says anything here, and no lock is trusted across nodes: an attempt lives when
# Slurm runs its task, where Slurm says nothing, and while its supervisor's heart beats, whatever Slurm says: a controller
# that was restarted may have forgotten what its nodes do.

slurm_run=1 # attempt.sh asks here before it calls an attempt lost
source "${BASH_SOURCE[0]%/*}/slurm_state.sh"
source "${BASH_SOURCE[0]%/*}/slurm_words.sh"
source "${BASH_SOURCE[0]%/*}/slurm_close.sh"

slurm::own_end() { # <attempt directory> : whether the end in `record` is that of the attempt's own start
  local line claimed=''
  while IFS= read -r line; do
    [[ $line != nonce=* ]] || claimed=${line#*=}
  done 2>/dev/null <"$1/claim"
  [[ ${record[nonce]-} == "$claimed" ]]
}

slurm::glance() { # <attempt directory> -> life: running or lost, of one that has a claim, no end, and no process here;
  # record[job]: its task; slurm_stray: its heart beats, and Slurm has no task of it
  local id=${record[job]:-${record[address]-}} # a begin has its address
  record[job]=$id life=running slurm_stray=0
  [[ $id =~ ^[0-9]+(_[0-9]+)?$ ]] || { life=lost && return; } # it never belonged to a task
  [[ ! $1/claim -nt $run/slurm/states ]] || return 0          # the answer is older than its start
  case ${task_state[$id]-} in
    PENDING | REQUEUED | REQUEUE_HOLD | REQUEUE_FED | SPECIAL_EXIT) life=lost ;; # its task starts anew
    '') slurm::answered && life=lost ;;
  esac
  [[ $life != lost ]] || slurm::silent "$1" || life=running slurm_stray=1
}

slurm::silent() { # <attempt directory> : whether its heart has not beaten lately, by the file server's clock; where no file
  # can be made, by this node's. Of a heart of which nothing can be told nobody may say that it is silent
  local file=$1/beat beaten now clock=$run/slurm/.clock.${HOSTNAME//[^A-Za-z0-9]/-}.$BASHPID.$RANDOM beat
  [[ -e $file ]] || file=$1/claim
  read -r beat 2>/dev/null <"$file" # what is opened is asked for again, whatever this node remembers
  : 2>/dev/null >"$clock"
  read -r beaten now < <(stat -c %Y -- "$file" "$clock" 2>/dev/null | tr '\n' ' ')
  rm -f -- "$clock"
  [[ $now ]] || record::now
  now=${now%.*}
  [[ $beaten =~ ^[0-9]+$ && $now =~ ^[0-9]+$ ]] && ((now - beaten >= ${COMBORUN_HEART_S:-30}))
}

slurm::answered() { # whether Slurm has said what it has, and has not fallen silent since
  [[ $slurm_at && ! $slurm_silent ]]
}
