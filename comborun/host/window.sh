# shellcheck shell=bash
# window.sh: what runs in the window of a session. It keeps the window open while the supervisor lives, which writes
# there itself, and hands Ctrl-C on to it. It holds nothing and decides nothing: killing it closes a window only.
#
#   window.sh <fifo of the window> <fifo of the dispatcher> <session> <attempt>
#
# The dispatcher keeps the window's FIFO open for writing, and later the supervisor does. So it ends with both of them.

fifo=$1 dispatcher=$2 name=$3 attempt=$4 supervisor=''
[[ -p $fifo && -p $dispatcher ]] || exit 0
# shellcheck disable=SC2094 # opened for both first, since that waits for nobody
exec 3<>"$fifo" 4<"$fifo" 3>&-
trap '[[ $supervisor ]] || exit 0; kill -INT "$supervisor"' INT
trap '' QUIT TSTP
printf '%s waits for a free slot\n' "$name"
printf 'window %s %s %s\n' "$name" "$attempt" "$$" 1<>"$dispatcher"
read -r supervisor <&4 || exit 0
while read -r _ <&4 || (($? > 128)); do :; done
