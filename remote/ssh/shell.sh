# Runs scripts for the transport at the other end of its streams: one after the other, each in a bash of its own.
#
# A request: "MARK SECONDS BYTES\n", then BYTES bytes: the script, NUL, the script's standard input.
# The answer, on both streams: MARK<\n, what the script wrote, MARK>\n; on standard output it is MARK>CODE\n.
#
# A script writes into relays of its own, never into the streams themselves, so what its background children write
# later reaches nobody. A relay is ended when the next request shows that the answer has arrived.

set -m # a job of its own for each script, with INT and QUIT as they were
relays=()
trap '((${#relays[@]} == 0)) || kill -KILL "${relays[@]}"' EXIT
exec 8>&2 9<> <(:) 2>&9 # bash tells of a job's end on its standard error

# as long as 6 and 7 are open here the relays live, so that their pids are theirs when they are ended
open_relays() {
  exec 3<> <(:)
  cat </dev/fd/3 3<&- 8>&- 9>&- &
  relays=("$!")
  exec 6>/dev/fd/3
  exec 3<> <(:)
  cat </dev/fd/3 >&8 3<&- 6>&- 8>&- 9>&- &
  relays+=("$!")
  exec 7>/dev/fd/3 3<&-
}

end_relays() {
  ((${#relays[@]})) || return 0
  kill -KILL "${relays[@]}"
  wait "${relays[@]}"
  exec 6>&- 7>&-
}

# 137 is said by a script that exits with 137 and by one that was killed: bash's notice tells them apart
# (bash 5.3 gives none of TERM and INT: there they are exits with 143 and 130)
read_notice() {
  local line
  notice=''
  while read -r -t 0 -u 9; do
    IFS= read -r -u 9 line
    [[ $line != *'timeout -s KILL'* ]] || notice=$line
  done
}

while read -r mark seconds size; do
  end_relays
  printf '%s<\n' "$mark"
  printf '%s<\n' "$mark" >&8
  open_relays
  read_notice
  exec 5< <(exec head -c "$size" <&0)
  # shellcheck disable=SC2016 # the script is what that bash reads
  timeout -s KILL "$seconds" bash --noprofile --norc -c 'read -r -d ""; eval "$REPLY"' comborun \
    <&5 >&6 2>&7 5<&- 6>&- 7>&- 8>&- 9>&- &
  wait "$!"
  code=$?
  read_notice
  if ((code > 128)) && [[ $notice && $notice != *" $code "*'timeout -s'* ]]; then code=$((128 - code)); fi
  printf '%s>%s\n' "$mark" "$code" >&6
  printf '%s>\n' "$mark" >&7
  cat <&5 >/dev/null # what the script left unread
  exec 5<&-
done
