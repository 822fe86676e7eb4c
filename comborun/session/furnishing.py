"""Which values a session's command can only be given when it starts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from comborun.servers import OF_SERVERS
from comborun.session.command import START_TIME
from comborun.session.inputs import FILES

if TYPE_CHECKING:
    from comborun.plan import Session

OF_GPUS = ("gpu", "gpus", "gpu_count", "egl_device")
"""placeholders that nothing fills for a session without a GPU"""
FILLED = re.compile(r"(?<!\{)\{[a-z][a-z0-9_]*(?:\.[A-Za-z0-9_-]+)*\}(?!\})")
"""what may be a placeholder of a variable"""


def fillable(text: str) -> tuple[str, ...]:
    """The pieces of a variable's value that may be placeholders, with their braces."""
    return tuple(match.group() for match in FILLED.finditer(text))


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
