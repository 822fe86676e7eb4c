# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# orphan.sh: a session whose supervisor is gone is watched for the dispatcher that found it, by the limits of its script:
# one that hangs or has left something behind must not keep its run open for ever. To be sourced by session.sh.
#
#   bash session.sh ATTEMPT none orphan     leaves when the command has ended, or the dispatcher has

orphan::watch() { # it only ends what it must; the dispatcher writes the end
  local pid='' pid_start='' watch_keeper
  trap '' HUP INT QUIT TSTP
  record::read "$run/dispatch/dispatcher"
  watch_keeper="${record[pid]-} ${record[start]-} ${record[boot]-}"
  record::read "$session_at/begin"
  pid=${record[pid]-} pid_start=${record[pid_start]-}
  if [[ $pid ]]; then
    process::alive "$pid" "$pid_start" "${record[boot]-}" || orphan::tidy
  else
    orphan::leader || orphan::tidy
  fi
  exec 0<> <(:) # nothing ever comes of it, not even an end
  watch::main
}

orphan::tidy() { # what the command has left behind holds the session's lock
  marker::sweep "$session_marker" "${COMBORUN_GRACE_S:-5}" 5
  exit 0
}

orphan::leader() { # -> pid pid_start: nobody wrote down that it began, so it is the one that leads its process session
  local pids fields
  marker::pids "$session_marker" || return
  for pid in "${pids[@]}"; do
    process::fields "$pid" && ((fields[3] == pid)) && pid_start=${fields[19]} && return
  done
  return 1
}

orphan::goes_on() { # for as long as both live
  # shellcheck disable=SC2086 # pid, start time and boot id
  process::alive $watch_keeper && watch::supervised
}
