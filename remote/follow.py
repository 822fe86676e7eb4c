"""The growing end of a session's log, byte for byte."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from comborun.errors import HostError
from comborun.remote import program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import PurePosixPath

    from comborun.remote.transport import Transport

_PIECE = 1 << 20
"""bytes of a log that one answer holds at most"""


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
    python = program.of_run(log.parents[3])
    offset = _offset(transport, log, lines, python)
    over = str(end or log.with_name("end"))
    while True:
        words = (str(log), str(offset), str(_PIECE), over)
        answer = program.run_packed(transport, "logs", "next", *words, timeout=60, python=python)
        if answer.code:
            raise HostError(f"the log {log} on {transport.host} can't be read", answer.complaint)
        if answer.stdout:
            yield answer.stdout
        offset += len(answer.stdout)
        if len(answer.stdout) == _PIECE:
            continue
        if not on or answer.stderr.endswith(b"1"):
            return
        sleep(1.0)


def _offset(transport: Transport, log: PurePosixPath, lines: int, python: program.Python) -> int:
    done = program.run_packed(transport, "logs", "start", str(log), str(lines), timeout=60, python=python)
    if done.code:
        raise HostError(f"the log {log} on {transport.host} can't be read", done.complaint)
    return int(program.answer(transport, done))
