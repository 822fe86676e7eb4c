"""Which files of a host are policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.errors import HostError
from comborun.policy_files import Match

if TYPE_CHECKING:
    from comborun.policy_files import PolicyGlob
    from comborun.transport import Transport

MOST = 2000
"""files that one glob may find"""

_SCRIPT = r"""
shopt -s nullglob globstar
many=$1 count=0 IFS=
shift
patterns=("${@:1:many}") exclude=("${@:many+1}")
for pattern in "${patterns[@]}"; do
  home=''
  if [[ $pattern == '~/'* ]]; then
    home=$HOME/
    files=("$HOME"/${pattern#'~/'})
  else
    files=($pattern)
  fi
  for file in "${files[@]}"; do
    [[ -e $file ]] || continue
    file=${file%/}
    for no in "${exclude[@]}"; do
      [[ ${file##*/} == $no || $file == */$no ]] && continue 2
    done
    ((++count > 2000)) && exit 0
    kind=file
    [[ -d $file ]] && kind=folder
    [[ $home ]] && file="~/${file#"$home"}"
    printf '%s\0%s\0%s\0' "$pattern" "$file" "$kind"
  done
done
"""


def find_policies(transport: Transport, glob: PolicyGlob) -> tuple[Match, ...]:
    """All files and folders that a glob finds on the host, in one round trip. Links that lead nowhere are none."""
    answer = transport.run(_SCRIPT, str(len(glob.patterns)), *glob.patterns, *glob.exclude, timeout=120)
    if answer.code:
        raise HostError(f"{transport.host} can't look for {glob}", answer.complaint)
    words = answer.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    rows = zip(words[0::3], words[1::3], words[2::3], strict=True)
    return tuple(Match(pattern, path, kind == "folder") for pattern, path, kind in rows)
