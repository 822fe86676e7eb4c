"""The values below `evidence`, `failures`, `retry`, `limits` and `notify`."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, NamedTuple

from pydantic import PlainValidator, WithJsonSchema

from comborun.errors import UserError
from comborun.grid.keys.quantity import parse_duration, parse_whole
from comborun.grid.keys.values import DURATION_SCHEMA, guarded, line_of, scalar_of
from comborun.judging import IGNORE, NOTICE_KINDS, PLANNED, NoticeKind
from comborun.rules.patterns import PatternError, compiled, unhurried
from comborun.rules.words import Failure
from comborun.text import did_you_mean, listed

LONGEST_WAIT = 1800.0
"""seconds; the dispatcher doubles waits up to it"""
LONGEST_SILENCE = 86400.0
"""seconds between two notices"""
SEEN_IN_A_LOG = (
    Failure.GPU_MEMORY,
    Failure.GPU_FAULT,
    Failure.HOST_MEMORY,
    Failure.DISK_FULL,
    Failure.LAUNCH_FAILED,
    Failure.CRASHED,
    Failure.SERVER_LOST,
    Failure.ERROR,
)
"""classes that a line can tell; all others are seen by the supervisor or the dispatcher"""
_MEMORY = "`gpu_memory` or `host_memory`"
_OTHER_WORDS = {
    "oom": _MEMORY,
    "out_of_memory": _MEMORY,
    "timeout": "`timed_out`",
    "segfault": "`crashed`",
    "failed": "`error`",
}


class FailFast(NamedTuple):
    """Sessions without success that are enough: a count, or a share of all."""

    sessions: int = 0
    percent: int = 0


NEVER = FailFast()


def _pattern(tree: object) -> str:
    return check_pattern(line_of(tree))


def check_pattern(text: str) -> str:
    """A regular expression for lines of logs. Raises UserError."""
    try:
        return unhurried(compiled(text).pattern)
    except PatternError as error:
        raise UserError(str(error), error.hint) from None


def _evidence(tree: object) -> str:
    """A pattern in which {episodes} stands for how many the attempt has to make."""
    text = line_of(tree)
    check_pattern(text.replace(PLANNED, "1"))
    return text


def _failure(word: object) -> Failure:
    word = str(word)
    if word in set(Failure):
        return Failure(word)
    raise UserError(f"there is no class of failures `{word}`", _meant(word, tuple(Failure)))


def _signature(word: object) -> str:
    word = str(word)
    if word in {*SEEN_IN_A_LOG, IGNORE}:
        return word
    if word in set(Failure):
        raise UserError(
            f"`{word}` is not told by a log",
            f"lines can tell {listed(SEEN_IN_A_LOG)}; `{IGNORE}` is for lines that mean nothing",
        )
    raise UserError(f"there is no class of failures `{word}`", _meant(word, (*SEEN_IN_A_LOG, IGNORE)))


def _meant(word: str, known: tuple[str, ...]) -> str:
    if other := _OTHER_WORDS.get(word.casefold()):
        return f"did you mean {other}?"
    return did_you_mean(word, known) or f"known here: {listed(known)}"


def _wait(tree: object) -> float:
    seconds = parse_duration(scalar_of(tree).text)
    if seconds > LONGEST_WAIT:
        raise UserError("no retry waits longer than 30 min", "write 30 min, or less")
    return seconds


def _every(tree: object) -> float:
    seconds = parse_duration(scalar_of(tree).text)
    if seconds > LONGEST_SILENCE:
        raise UserError("no notice is held back longer than a day", "write 1 d, or less")
    return seconds


def _whole_seconds(tree: object) -> int:
    return math.ceil(parse_duration(scalar_of(tree).text))


def _fail_fast(tree: object) -> FailFast:
    text = scalar_of(tree).text
    share = re.fullmatch(r"([^%]*?)\s*%", text)
    number = parse_whole(share[1] if share else text)
    if number < 1:
        raise UserError(f"`{text}` would let nothing start", "at least 1; remove it to go on whatever fails")
    if share and number > 100:
        raise UserError(f"`{text}` is more than all", "at most 100 %")
    return FailFast(percent=number) if share else FailFast(sessions=number)


def _kind(tree: object) -> NoticeKind:
    word = line_of(tree)
    for kind in NOTICE_KINDS:
        if kind == word:
            return kind
    raise UserError(f"there is no notice of `{word}`", did_you_mean(word, NOTICE_KINDS))


def _enum(*words: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": list(words)})


FAIL_FAST_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": r"^[1-9][0-9]*\s*%$"}]
}

EvidencePattern = Annotated[str, PlainValidator(guarded(_evidence)), WithJsonSchema({"type": "string", "minLength": 1})]
LogPattern = Annotated[str, PlainValidator(guarded(_pattern)), WithJsonSchema({"type": "string", "minLength": 1})]
FailureWord = Annotated[Failure, PlainValidator(guarded(_failure)), _enum(*Failure)]
SignatureWord = Annotated[str, PlainValidator(guarded(_signature)), _enum(*SEEN_IN_A_LOG, IGNORE)]
Wait = Annotated[float, PlainValidator(guarded(_wait)), WithJsonSchema(DURATION_SCHEMA)]
Every = Annotated[float, PlainValidator(guarded(_every)), WithJsonSchema(DURATION_SCHEMA)]
WholeSeconds = Annotated[int, PlainValidator(guarded(_whole_seconds)), WithJsonSchema(DURATION_SCHEMA)]
FailFastLimit = Annotated[FailFast, PlainValidator(guarded(_fail_fast)), WithJsonSchema(FAIL_FAST_SCHEMA)]
NoticeWord = Annotated[NoticeKind, PlainValidator(guarded(_kind)), _enum(*NOTICE_KINDS)]
