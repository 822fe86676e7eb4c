"""What stands around a session's command beside its GPUs: a display, a port, EGL's number, threads. And its script's
lines for that."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from comborun.servers import OF_SERVERS
from comborun.session.command import START_TIME
from comborun.session.display import DEFAULT_GEOMETRY
from comborun.session.inputs import FILES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from comborun.plan import Session
    from comborun.session.word import BashWord

OF_GPUS = ("gpu", "gpus", "gpu_count", "egl_device")
"""placeholders that nothing fills for a session without a GPU"""
FILLED = re.compile(r"(?<!\{)\{[a-z][a-z0-9_]*(?:\.[A-Za-z0-9_-]+)*\}(?!\})")
"""what may be a placeholder of a variable"""


def fillable(text: str) -> tuple[str, ...]:
    """The pieces of a variable's value that may be placeholders, with their braces."""
    return tuple(match.group() for match in FILLED.finditer(text))


def furnishing(session: Session) -> Iterator[str]:
    """The constants of a session's script, as far as they are not what the library does by itself."""
    if session.pin != "cvd":
        yield f"pin={session.pin}"
    if session.threads:
        yield f"threads={session.threads}"
    if display := session.display:
        yield f"display={shlex.quote(display.word())}"
        if display.own and display.geometry != DEFAULT_GEOMETRY:
            yield f"geometry={display.geometry}"
    if session.servers:
        yield f"servers=({' '.join(name for name, _ in session.servers)})"
    if asks_for(session, "port"):
        yield "wants_port=1"
    if asks_for(session, "egl_device"):
        yield "wants_egl=1"
    if session.progress.pattern:
        yield f"progress_line={shlex.quote(session.progress.pattern)}"


def asks_for(session: Session, placeholder: str) -> bool:
    """Whether anything that it runs names this start-time value."""
    name = START_TIME[placeholder]
    texts = (*session.command, *(word for _, word in session.variables), session.setup, *session.around.words)
    texts += session.around.words
    return any(name in text for text in texts)


def late(word: str, placeholder: str = "") -> bool:
    """Whether a bash word waits for a start-time value, or for this one."""
    names = [START_TIME[placeholder]] if placeholder else [*START_TIME.values(), FILES]
    return any(f'"${name}"' in word for name in names) or (not placeholder and f'"${OF_SERVERS}' in word)


def early(variables: Iterable[tuple[str, BashWord]]) -> tuple[tuple[str, BashWord], ...]:
    """Those that are known before the session starts."""
    return tuple((name, word) for name, word in variables if not late(word))


def late_variables(variables: Iterable[tuple[str, BashWord]]) -> Iterator[str]:
    """The lines that add those that are not, once the session is prepared."""
    if found := [f"  {name}={word}" for name, word in variables if late(word)]:
        yield from ("variables+=(", *found, ")")
