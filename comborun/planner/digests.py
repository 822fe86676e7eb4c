"""Content, not position: the digests by which a session and a run are known again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from comborun.resources import BARE

if TYPE_CHECKING:
    from comborun.plan import Session

_NOT_WORK = {
    "progress",
    "evidence",
    "failures",
    "watch",
    "components",
    "counted",
    "ranged",
    "flag",
    "unpaired",
    "request",
    "pin",
    "display",
    "threads",
    "expected_s",
}
"""how work is shown, watched and judged: it may change while a run is under way, and the work is the same"""


def session_digest(session: Session) -> str:
    """Of the combo, its episodes and everything that is run for it."""
    content: dict[str, Any] = {key: value for key, value in asdict(session).items() if key not in _NOT_WORK}
    content["digest"] = ""
    del content["results"]["videos"]
    if session.around == BARE:  # nothing is said, as before there was a way to say it
        del content["around"]
    if not session.servers:
        del content["servers"]
    return digest_of(content)


def digest_of(*content: object) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
