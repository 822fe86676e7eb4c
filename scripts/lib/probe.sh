#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# probe.sh RUN [KNOWN] [TAIL]: one look at a whole run (docs/architecture.md, "The probe"). A handful of processes
# however many sessions there are; everything else is bash.
set -uo pipefail
export LC_ALL=C # bash and stat write times with a comma where the locale does

library=${BASH_SOURCE[0]%/*}
source "$library/base/record.sh"
source "$library/attempt/evidence.sh"
source "$library/attempt/attempt.sh"
source "$library/base/driver.sh"
source "$library/base/host.sh"
source "$library/base/clock.sh"
source "$library/base/hold.sh"
source "$library/probe/held.sh"
source "$library/probe/count.sh"

running_share=73728 ended_share=24576 fewest=160 # bytes of log in one answer, and of one log even if it gets to be more

shown=() logs=() ended_logs=()                    # `name attempt` of every block; logs of those that have not ended, and have
declare -A ended=() log_of=() live_of=() begun=() # attempt directory -> what is known of it
allowed='' gpus=()                                # indexes of the GPUs that this run may use; what is known of each

probe::main() { # <run> [known] [tail]
  local name names=() known i=0 share running_tail ended_tail
  if ! cd -- "${1-}" 2>/dev/null || ! read -r run_id 2>/dev/null <id; then
    printf 'probe: %s is no run directory\n' "${1:-RUN}" >&2
    exit 66
  fi
  run=$PWD
  [[ ! -e dispatch/engine ]] || { source "$library/slurm/slurm_probe.sh" && slurm_probe::open; }
  while IFS=$'\t' read -r name _ || [[ $name ]]; do
    [[ $name =~ ^[A-Za-z0-9_-]+$ ]] && names+=("$name")
  done <dispatch/queue.tsv
  [[ -e sessions/after/session.sh ]] && names+=(after)
  IFS=, read -ra known <<<"${2-}"
  for name in "${names[@]}"; do
    probe::find "$name" "${known[i]-0}"
    i=$((i + 1))
  done
  host::allowed "${logs[@]%/log}"
  [[ $allowed ]] && host::ask_gpus dispatch/policy.tsv
  probe::share "${3-}" "$running_share" "${#logs[@]}"
  running_tail=$share
  probe::share "${3-}" "$ended_share" "${#ended_logs[@]}"
  ended_tail=$share
  count::records
  count::logs "${logs[@]}" "${ended_logs[@]}"
  [[ $allowed ]] && host::hear_gpus "$allowed"
  probe::header
  for name in "${shown[@]}"; do probe::block "$name"; done
  printf 'tails\n'
  local tails_between=''
  probe::tails "$running_tail" "${logs[@]}"
  probe::tails "$ended_tail" "${ended_logs[@]}"
  exit 0
}

probe::find() { # <session> <attempt whose end is known>
  local number=$2 at life success planned globs files
  [[ $number =~ ^[0-9]{1,9}$ ]] || number=0
  number=$((10#$number + 1))
  at=sessions/$1/attempt-$number
  while [[ -e $at/claim || -e $at/grant || -e $at/end ]]; do
    shown+=("$1 $number")
    attempt::glance "$at"
    [[ $life == ended ]] || probe::alive "$1" "$at"
    if [[ $life == ended ]]; then
      ended[$at]=1
      [[ -s $at/log ]] && ended_logs+=("$at/log")
    else
      attempt::rules "$at"
      evidence::files "$at/out" "${globs[@]}"
      count::add "$success" "${files[@]}"
      [[ -e $at/log ]] && logs+=("$at/log")
    fi
    number=$((number + 1)) at=sessions/$1/attempt-$number
  done
}

probe::alive() { # <session> <attempt directory> : reads life, record; -> life: ended, if it has ended meanwhile
  local supervisor=0 leader=0 claimed=0 stalled=''
  [[ ! ${slurm_run-} || $life != running ]] || supervisor=1 # on another machine, so no pid says it
  [[ ${record[pid]-} ]] && begun[$2]=1
  [[ -e $2/claim ]] && claimed=1
  process::alive "${record[supervisor]-}" "${record[supervisor_start]-}" "${record[boot]-}" && supervisor=1
  if process::alive "${record[pid]-}" "${record[pid_start]-}" "${record[boot]-}"; then
    leader=1
  elif ((supervisor == 0 && claimed)) && lock::held "sessions/$1/lock"; then
    leader=1
  fi
  [[ -e $2/stalled ]] && record::read "$2/stalled" && stalled=${record[since]-}
  live_of[$2]="supervisor=$supervisor command=$leader claimed=$claimed stalled=$stalled"
  [[ -e $2/wrong_gpu ]] && record::read "$2/wrong_gpu" && live_of[$2]+=" wrong_gpu=${record[found]-}"
  ((supervisor + leader == 0)) && record::read "$2/end" && life=ended
}

probe::tails() { # <bytes of each> <log>... : a header stands on a line of its own, behind whatever came before
  local i
  for ((i = 2; i <= $#; i += 500)); do
    printf '%s' "$tails_between"
    tail -q -v -c "$1" -- "${@:i:500}" 2>/dev/null
    tails_between=$'\n'
  done
}

probe::share() { # <bytes that are asked for> <bytes for all> <logs> -> share: bytes of each
  local asked=0
  [[ $1 =~ ^[0-9]{1,9}$ ]] && asked=$((10#$1))
  share=$(($2 / ($3 ? $3 : 1)))
  ((share >= fewest)) || share=$fewest
  ((share <= asked)) || share=$asked
}

probe::header() {
  local now boot slots='' load='' multiplexer='' stopped=0 memory disk plan
  record::now
  process::boot
  record::read dispatch/dispatcher
  process::alive "${record[pid]-}" "${record[start]-}" "${record[boot]-}" || record[pid]=''
  [[ ! ${slurm_run-} ]] || slurm_probe::dispatcher
  [[ -e dispatch/slots ]] && read -r slots <dispatch/slots
  [[ -e dispatch/multiplexer ]] && read -r multiplexer <dispatch/multiplexer
  [[ -e dispatch/stopped ]] && stopped=1
  read -r load _ 2>/dev/null </proc/loadavg
  host::memory
  host::disk .
  probe::plan
  printf '%s\n' 'comborun-probe 1' "run=$run_id" "now=$now" "boot=$boot" "dispatcher=${record[pid]}" "slots=$slots" \
    "stopped=$stopped" "load=$load" "cpus=$(nproc)" "multiplexer=$multiplexer" "plan=$plan" "$memory" "$disk" "${gpus[@]}"
  probe::held
  if [[ -e dispatch/servers.tsv ]]; then
    source "$library/probe/serving.sh"
    probe::servers
  fi
  [[ ! ${slurm_run-} ]] || slurm_probe::tell
  [[ -e dispatch/done ]] && probe::record 'done' dispatch/done
  printf '.\n'
}

probe::record() { # <word> <file> : its lines; the dot that closes it comes from the caller
  local lines
  mapfile -t lines 2>/dev/null <"$2"
  printf '%s\n' "$1" "${lines[@]}"
}

probe::block() { # <name attempt>
  local at=sessions/${1% *}/attempt-${1##* }
  printf 'session %s\n' "$1"
  [[ ${begun[$at]-} || (${ended[$at]-} && -e $at/begin) ]] && probe::record begin "$at/begin" && printf '.\n'
  if [[ ${ended[$at]-} ]]; then
    probe::record end "$at/end"
    printf '.\n'
    [[ -z ${log_of[$at]-} ]] || printf 'log %s tail=%s\n' "${log_of[$at]}" "$ended_tail"
    return
  fi
  printf 'live %s\n' "${live_of[$at]}"
  local records=${records_of[$at]:-0} successes=${successes_of[$at]:-0} # a torn last line may look like a success
  printf 'counts records=%s successes=%s\n' "$records" "$((successes < records ? successes : records))"
  printf 'log %s tail=%s\n' "${log_of[$at]:-size=0 changed=}" "$running_tail"
}

probe::main "$@"
