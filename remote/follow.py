"""The growing end of a session's log, byte for byte."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from comborun.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import PurePosixPath

    from comborun.transport import Transport

_PIECE = 1 << 20
"""bytes of a log that one answer holds at most"""

_START = r"""
log=$1 lines=$2
[[ -e $log ]] || exit 66
size=$(stat -c %s -- "$log") || exit 66
short=$(head -c "$size" -- "$log" | tail -n "$lines" | wc -c)
printf '%s\n' "$((size - short))"
"""

_NEXT = r"""
log=$1 offset=$2 most=$3 end=$4
ended=0
[[ -e $end ]] && ended=1
tail -c "+$((offset + 1))" -- "$log" | head -c "$most"
printf '%s' "$ended" >&2
"""


def follow(
    transport: Transport,
    log: PurePosixPath,
    lines: int,
    *,
    on: bool,
    end: PurePosixPath | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[bytes]:
    """The last `lines` lines of a log, and with `on` what comes after them until the session has ended.

    `end` is the attempt's end record, where that does not lie beside the log.

    One round trip a second at most. A log that is longer than a piece comes in several pieces, without a pause.
    """
    offset = _offset(transport, log, lines)
    over = str(end or log.with_name("end"))
    while True:
        answer = transport.run(_NEXT, str(log), str(offset), str(_PIECE), over, timeout=60)
        if answer.stdout:
            yield answer.stdout
        offset += len(answer.stdout)
        if len(answer.stdout) == _PIECE:
            continue
        if not on or answer.stderr.endswith(b"1"):
            return
        sleep(1.0)


def _offset(transport: Transport, log: PurePosixPath, lines: int) -> int:
    answer = transport.run(_START, str(log), str(lines), timeout=60)
    if answer.code or not answer.text.strip().isdecimal():
        raise HostError(f"the log {log} on {transport.host} can't be read", answer.complaint)
    return int(answer.text)
