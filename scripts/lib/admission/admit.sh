# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# admit.sh: who may start now, and who has to wait for what. To be sourced by dispatch.sh.
#
# Others than sessions take a part of the host in the same way (a model server):
#   request::read WHO GPUS [MIB CORES MIB TOKENS GROUP PER_GPU PER_HOST ONLY SERVERS]     once; WHO in [A-Za-z0-9_@-]
#   admit::choose WHO && admit::secure WHO ATTEMPT_FOLDER      -> chosen; else wait_for and wait_why say why not
#   admit::give_back WHO                                       its processes carry COMBORUN_SESSION=RUN_ID/WHO/ATTEMPT
#
# What it goes by: what WHO asks for (asked_*, cap_*: request.sh), what this run has promised (promised_*, gpus_*,
# token_of: promise.sh) and other runs have (lease_*: leased.sh), what is kept for those that were passed (kept_*:
# passing.sh), and what was measured (host_mib: measured.sh, room_*: room.sh).

memory_asked=0 # whether anybody asks for main memory

admit::open() { # what the queue asks for is known
  local kind
  for ((kind = 1; kind < kinds; kind++)); do ((asked_memory[kind] == 0)) || memory_asked=1; done
  handout::open
}

admit::measured() { # <number of the answer>
  measure::heard "$1" || return 0
  { [[ $lease_start ]] || lease::open; } && lease::read # what other runs hold is theirs, from the first answer on
  promise::measure
  room::measure
}

admit::choose() { # <who> [a function that has a say about each GPU] -> chosen: its GPUs; 1 when it has to wait: wait_for
  # and wait_why
  local kind=${kind_of[$1]:-0}
  chosen=''
  ((kind)) || return 0
  wait_for='' wait_why='' wait_rank=0
  admit::token "$kind" "$1" && admit::host_cap "$kind" && admit::cpus "$kind" && admit::memory "$kind" &&
    gpus::pick "$kind" "$@"
}

admit::token() { # <kind> <who>
  local token holder
  for token in ${asked_tokens[$1]//,/ }; do
    holder=${token_of[$token]-}${lease_token[$token]-}
    [[ $holder || ${kept_token[$token]:-$2} == "$2" ]] || holder=${kept_token[$token]}
    [[ ! $holder ]] || {
      room::because 1 token "only one on the host may have $token, and $holder has it"
      return 1
    }
  done
}

admit::host_cap() { # <kind>
  local group=${asked_group[$1]} count
  ((cap_host[$1])) || return 0
  count=$((${group_host[$group]:-0} + ${lease_group_host[$group]:-0}))
  ((count < cap_host[$1])) || {
    room::because 1 cap "$count of $group run, as many as its per_host allows"
    return 1
  }
}

admit::cpus() { # <kind>
  ((asked_cpus[$1] && policy[cpus])) || return 0
  local rest free=$((policy[cpus] - promised_cpus - lease_cpus - kept_cpus))
  ((asked_cpus[$1] <= free)) || {
    admit::rest "$lease_cpus" "$kept_cpus"
    room::because 1 cpus "asks for ${asked_cpus[$1]} cores; of ${policy[cpus]} are promised $promised_cpus here$rest"
    return 1
  }
}

admit::memory() { # <kind> : of the host
  ((asked_memory[$1])) || return 0
  local others=$room_memory_others free rest
  if [[ ! $others ]] || ! measure::fresh; then
    measure::again $((measure_answer && ${#others} == 0 ? ${COMBORUN_MEMORY_ASK_MS:-5000} : 0))
    room::because 1 unknown 'main memory is being measured'
    return 1
  fi
  ((others >= policy[reserve_memory_mib])) || others=${policy[reserve_memory_mib]}
  free=$((host_mib - others - promised_memory - lease_memory - kept_memory))
  ((asked_memory[$1] > free)) || return 0
  measure::again "${COMBORUN_MEMORY_ASK_MS:-5000}"
  admit::rest "$lease_memory" "$kept_memory"
  room::because 1 host_memory "asks for ${asked_memory[$1]} MiB; of $host_mib others use $room_memory_others (reserved: ${policy[reserve_memory_mib]}), promised here $promised_memory$rest"
  return 1
}

admit::rest() { # <promised to other runs> <kept> -> rest
  rest=''
  (($1 == 0)) || rest=", to other runs of yours $1"
  (($2 == 0)) || rest+=", kept for one that has waited for longer $2"
}

admit::never() { # <kind> -> why: it can't ever start on this host; 1 when it can
  local gpu candidates most=$((${host_mib:-0} - policy[reserve_memory_mib])) mib fitting=0 told=0 s=s
  why=''
  ((asked_gpus[$1] != 1)) || s=''
  gpus::of "$1"
  if ((asked_gpus[$1] > ${#candidates[@]})); then
    why="it asks for ${asked_gpus[$1]} GPU$s${asked_only[$1]:+ of ${asked_only[$1]}}, and may use ${#candidates[@]}"
  elif ((policy[cpus] && asked_cpus[$1] > policy[cpus])); then
    why="it asks for ${asked_cpus[$1]} cores, and may use ${policy[cpus]}"
  elif [[ $host_mib ]] && ((asked_memory[$1] > most)); then
    why="it asks for ${asked_memory[$1]} MiB of memory; the host has $host_mib, reserved ${policy[reserve_memory_mib]}"
  elif ((asked_mib[$1])); then
    for gpu in "${candidates[@]}"; do
      [[ ${gpu_total[$gpu]-} ]] || return
      mib=$((gpu_total[$gpu] - policy[reserve_gpu_mib] - policy[headroom_gpu_mib]))
      ((told >= mib)) || told=$mib
      ((mib < asked_mib[$1])) || fitting=$((fitting + 1))
    done
    ((fitting < asked_gpus[$1])) || return
    why="it asks for ${asked_mib[$1]} MiB on ${asked_gpus[$1]} of its GPUs; $fitting can give that, the largest $told MiB"
  else
    return 1
  fi
}

admit::secure() { # <who> <attempt folder> : what was chosen is promised, for all runs of this user; 1 when it is gone
  local kind=${kind_of[$1]:-0}
  ((kind)) || return 0
  lease::enter || return
  if ((lease_news)) && ! admit::choose_again "$1"; then
    lease::leave
    return 1
  fi
  promise::take "$1" "$chosen" "$2"
  handout::take "$1" "${asked_cpus[kind]}"
  lease::write && lease::leave && return
  lease::leave
  promise::give_back "$1"
  wait_for=lease wait_why="can't write in $lease_directory"
  return 1
}

admit::choose_again() { # <who> -> chosen: by the rules of the first time; one that ran out of memory has rules of its own
  if [[ ! ${short_of[$1]-} ]]; then
    admit::choose "$1"
    return
  fi
  short::choose "$1" && return
  wait_for=lease wait_why='another run was promised what this one was about to get'
  return 1
}

admit::grant() { # <session> <GPUs> : our lines of its grant; without a UUID the index has to do
  local gpu uuids=''
  [[ ! ${cores_of[$1]-} ]] || grant+=("cores=${cores_of[$1]}")
  for gpu in ${2//,/ }; do
    [[ ${gpu_uuid[$gpu]-} ]] || return 0
    uuids+=${uuids:+,}${gpu_uuid[$gpu]}
  done
  [[ ! $uuids ]] || grant+=("uuids=$uuids")
}

admit::lapsed() { # <who> <attempt folder> : it has not begun for so long that another run may have what it was promised
  local now made
  ((${kind_of[$1]:-0})) && [[ ! -e $2/claim ]] || return
  made=$(stat -c %Y -- "$2/grant" 2>/dev/null)
  record::now
  [[ $made =~ ^[0-9]{1,12}$ ]] && ((${now%.*} - made >= lease_start_s))
}

admit::give_back() { # <who>
  promise::give_back "$1"
}
