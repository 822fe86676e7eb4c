# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# repetition.sh: whether a log that grows says anything new. To be sourced by watch.sh.
#
# The same line again is nothing new when it is the same to the letter, or when it complains or waits and only its
# numbers change: `retry 17: connection refused`. A line that counts, `step 17 of 500`, is progress.

repeated_line='' repeated=0 # what the log ends in again and again, and how often as far as its tail reaches
repetition_complaint='error|exception|fail|refuse|time.?out|timed out|retry|retries|waiting|unable|can.?not|can.t|denied|lost'

repetition::look() { # <log> -> repeated_line repeated; 0 when it has said something new since the last look
  local lines line last='' run=0 i first before=$repeated_line times=$repeated
  mapfile -t lines < <(tail -c 32768 -- "$1" 2>/dev/null | tr '\r\0' '\n')
  first=$((${#lines[@]} > 40)) # the first may be the end of one that is cut
  for ((i = ${#lines[@]} - 1; i >= first; i--)); do
    [[ ${lines[i]} ]] || continue
    repetition::essence "${lines[i]::400}"
    [[ $last ]] || last=$line
    [[ $line == "$last" ]] || break
    run=$((run + 1))
  done
  repeated_line=$last repeated=$run
  [[ $last == "$before" ]] || return 0
  ((i >= first && run <= times)) # other lines have come between; a run that fills the tail can't grow
}

repetition::essence() { # <line> -> line: what stays when a complaint comes again: no times, addresses, numbers
  local number='^(.*)0x[0-9a-f]+(.*)$'
  line=$1
  [[ ${line,,} =~ $repetition_complaint ]] || return 0
  line=${line,,}
  while [[ $line =~ $number ]]; do line=${BASH_REMATCH[1]}${BASH_REMATCH[2]}; done
  line=${line//[0-9]/}
}
