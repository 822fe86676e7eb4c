# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# repetition.sh: whether a log that grows says anything new. To be sourced by watch.sh.
#
# The same line again to the letter is nothing new; neither is a complaint that comes again and again, alone or in a round
# of lines (a traceback, `connection refused` and `trying again`), whatever numbers and times change in it. A line that
# counts is progress: `step 17 of 500`, and `episode 17: failed` however much that sounds like a complaint.

repeated_line='' repeated=0              # what the log ends in again and again, and how often as far as its tail reaches
repetition_loop=''                       # it complains, and so often that no CPU time speaks for it
repetition_round='' repetition_covered=0 # one round of it, a line each, and how many lines at the end are of such rounds
repetition_complaint='error|exception|fail|refuse|time.?out|timed out|retry|retries|waiting|unable|can.?not|can.t|denied|lost'
repetition_stamp='^[[(]?(([0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[t ]+)?[0-9]{1,2}:[0-9]{2}:[0-9]{2}|[0-9]{10}\.)[0-9.,]*z?[])]?'
repetition_often=20 repetition_longest=120 repetition_lines=400

repetition::look() { # <log> -> repeated_line repeated repetition_loop; 0 when it has said something new since the last look
  local lines=() shapes=() size cut=0 round=1 covered=1 before=$repetition_round times=$repetition_covered LC_ALL=C
  mapfile -t lines < <(tail -c 32768 -- "$1" 2>/dev/null | tr -s '\r\0' '\n')
  size=${#lines[@]}
  ((size)) || return 0
  ((size > 40)) && cut=1 # the first may be the end of one that is cut
  ((size <= repetition_lines)) || cut=$((size - repetition_lines))
  repetition::find
  repetition::tell
  [[ $before$before == *"$repetition_round"* && ${#before} == "${#repetition_round}" ]] || return 0
  ((covered < size - cut && covered <= times)) # other lines have come between; what fills the tail can't grow
}

repetition::find() { # -> round covered: how many lines at the end come again together, and how many lines do
  local last=${lines[size - 1]} ending length i most=$(((size - cut) / 3))
  while ((covered < size - cut)) && [[ ${lines[size - 1 - covered]} == "$last" ]]; do covered=$((covered + 1)); done
  ending="${lines[*]:size-(size < repetition_longest ? size : repetition_longest)}"
  [[ ${ending,,} =~ $repetition_complaint ]] || return 0
  most=$((most > repetition_longest ? repetition_longest : most > 0 ? most : 1))
  for ((length = 1; length <= most && covered < size - cut; length++)); do
    for ((i = length; i < size - cut; i++)); do
      repetition::shape "$i"
      repetition::shape $((i - length))
      [[ ${shapes[i]} == "${shapes[i - length]}" ]] || break
    done
    ((i > covered && i >= (length > 1 ? 3 : 2) * length)) && repetition::same "$length" && round=$length covered=$i
  done
}

repetition::shape() { # <which line, from the end> -> shapes: the line without all that may be of a number or an address
  [[ ${shapes[$1]-} ]] || shapes[$1]=_${lines[size - 1 - $1]//[0-9a-f]/}
}

repetition::same() { # <lines> : whether the last two rounds of so many tell the same, and something in them complains
  local i complains essence newest complaint=''
  for ((i = 0; i < $1; i++)); do
    repetition::essence "${lines[size - 1 - i]}"
    newest=$essence
    [[ ! $complains ]] || complaint=1
    repetition::essence "${lines[size - 1 - i - $1]}"
    [[ $essence == "$newest" ]] || return
  done
  [[ $complaint ]]
}

repetition::essence() { # <line> -> essence complains: what stays when it comes again: no time in front, and in a complaint no
  # numbers and addresses but the one that counts what is to be done
  local number='^(.*)0x[0-9a-f]+(.*)$' counter=''
  local counts="(episode|rollout|${unit:-episode})s?[^a-z0-9]{0,3}[0-9]+|[0-9]+ ?(/|of) ?${count:-0}([^0-9]|\$)"
  essence=${1::400} complains=''
  essence=${essence,,}
  [[ ! $essence =~ $repetition_stamp ]] || essence=${essence:${#BASH_REMATCH[0]}}
  [[ $essence =~ $repetition_complaint ]] || return 0
  complains=1
  [[ ! $essence =~ $counts ]] || counter=" (${BASH_REMATCH[0]})"
  while [[ $essence =~ $number ]]; do essence=${BASH_REMATCH[1]}${BASH_REMATCH[2]}; done
  essence=${essence//[0-9]/}$counter
}

repetition::tell() { # what was found is what there is
  local i essence complains filled=$((cut && covered == size - cut))
  repeated=$((covered / round)) repetition_covered=$covered repetition_round='' repetition_loop='' repeated_line=''
  for ((i = 0; i < round; i++)); do
    repetition::essence "${lines[size - 1 - i]}"
    if [[ $complains ]]; then # of several, the longest says most
      ((${#essence} <= ${#repeated_line})) || repeated_line=$essence
    elif ((round == 1)); then
      essence=${lines[size - 1]::400} # to the letter, its time too
    fi
    repetition_round+=$essence$'\n'
  done
  [[ ! $repeated_line ]] || ((repeated < repetition_often && (repeated < 3 || !filled))) || repetition_loop=1
  repeated_line=${repeated_line:-$essence}
}
