"""Errors that a program has caught in an episode, as its log tells: the verdict after one says nothing about a policy.
Pure.
"""

from __future__ import annotations

import re

from comborun.rules.facts import Fact
from comborun.rules.results.codings import verdict_word
from comborun.rules.results.fields import TEXT_MOST, number
from comborun.rules.results.log_noise import aside, ignored, of_others

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Sequence

ENDED_IN_EXCEPTIONS, SUSPECT, OVERWRITTEN = "ended_in_exceptions", "verdicts_after_errors", "matches_overwritten"
WITH_ERRORS, BESIDE_ERRORS = "failures_with_errors", "failures_beside_errors"

ASIDE = (ENDED_IN_EXCEPTIONS, SUSPECT, OVERWRITTEN, WITH_ERRORS, BESIDE_ERRORS)
"""codes of what is remarked about rows that count"""
_AFTER = r"\s*[:(](?!\s*[-+\d.e]+ *[\w/%°]{0,5}\)?$)"
"""a text, and no number: `position error: 0.02 m` is a metric"""
# Compiled when a line first needs them: that takes 5 ms, and each session and each look at a run loads this module.
_CAUGHT = (
    r"Traceback \(most recent call last\)|\[Errno \d+\]"
    rf"|(?:^|[\s:>|\[(-])(?:\w+\.)*\w+(?:Error|Exception){_AFTER}|\bexceptions?\.\w+: "
    rf"|(?i:\bcaught (?:an? )?(?:\w+ )?(?:exception|error)\b|\b(?:exception|error)\b.{{0,20}}\b(?:in|during)\b"
    rf".{{0,20}}\b(?:episode|rollout|trial|task|step|inference)\b"
    r"|\braised (?:an? )?(?:\w+\.)*\w*(?:error|exception)\b"
    rf"|\b(?:episode|rollout|trial|task|inference|policy|environment|env|simulator)\b.{{0,25}}"
    rf"\b(?:error|exception|crashed){_AFTER})"
)
_LOOKS_WRONG = (
    r"(?i)\b(?:error|exception|crash(?:ed)?|refused|disconnected|out of memory|connection (?:reset|lost|closed)"
    r"|abort(?:ed|ing)|failed to (?:reset|load|connect|step|render|initiali[sz]e|start|reach the server))\b"
)
_MEASURED = (
    r"(?i)\b(?:no|zero|0(?:/\d+)?)\s+(?:\w+\s+)?(?:errors?|exceptions?|crash(?:es)?)\b|\berrors?\s*[:=]\s*0(?![\w.:])"
    r"|\w*(?:error|exceptions?|crash(?:es)?)\w*(?:\s*\([^()]{0,30}\))?(?:\s*[:=]\s*\[?|\s+(?:(?:of|is|was)\s+)?)"
    r"[-+]?\d*\.\d+(?:e[-+]?\d+)?(?![.\d])"
)
"""`0 errors`, and an error that is a number with a point, wherever they are in a line"""
_METRIC = r"(?i)\b(?:error|exceptions?|crash(?:es)?)\b\w*\s*[:=]\s*[-+\d.e]+ *[\w/%°]{0,5}\W*$|\bno error"
_HINTS = (
    *("error", "errno", "exception", "traceback", "crash", "refused", "disconnected", "memory", "connection", "abort"),
    "failed to ",
)
"""one of which is in every such line: the other searches take longer"""
_TOLD = (
    r"^\W*(?:\w+\.)+(?:exceptions?|errors?)\.\w+"
    rf"|^(?!\W*(?:wandb|tensorboard)).*\b(?i:caught|raised)\b.*\w(?:Error|Exception){_AFTER}"
)
"""an exception in a line that only warns: it may have ended the episode"""
_NAMED = re.compile(r"^.*?\b(?i:caught exception|episode error):\s*")
_STACK = re.compile(r"\s|$")


_ERRORS = frozenset({"error", "exception", "traceback", "error_message", "exception_message"})
"""fields that tell what ended an episode"""
_ENDS = frozenset({"status", "termination", "termination_reason", "end_reason"})
"""fields with a word for how an episode ended"""
_BROKEN_OFF = frozenset({"error", "errored", "crash", "crashed", "exception", "aborted"})
_NOTHING = frozenset({"", "none", "null", "nil", "no", "nan", "n/a", "-", "ok", "[]", "{}"})


def broken_off(field: str, value: object, failed: bool) -> bool:
    """Whether a field of an episode's row tells that it broke off, and so says nothing about its policy.

    `failed`: what stands in a field for errors is one then, unless it is a number or a word for a failure.
    """
    if not isinstance(value, str):
        return False
    text = value.strip()
    small, name = text.lower(), field.rpartition(".")[2].lower()
    if name in _ERRORS or name in _ENDS:
        words = re.split(r"[\W_]+", small) if failed else [small]
        if words[0] in _BROKEN_OFF or (words[-1] in _BROKEN_OFF and words[-1] != "error"):  # `sim_crash`
            return True
        if name in _ERRORS and failed:
            return small not in _NOTHING and number(small) is None and verdict_word(small) is not False
    if name in _ERRORS:
        return looks_wrong(text)
    hinted = failed and any(word in small for word in _HINTS)
    return hinted and bool(re.search(_CAUGHT, re.sub(_MEASURED, " ", text)))


def looks_wrong(text: str) -> bool:
    """Whether a text tells of an exception or something like it."""
    bare = re.sub(_MEASURED, " ", text)
    return bool(re.search(_CAUGHT, bare) or re.search(_LOOKS_WRONG, bare)) and not re.search(_METRIC, bare)


class Caught:
    """Hears the lines between two verdicts. `markers`: patterns of the grid for lines that tell of a caught error."""

    def __init__(self, markers: Sequence[str] = ()) -> None:
        self._markers = [re.compile(one) for one in markers]
        self._before = ""
        self._beside = False
        """in a traceback of a thread, or of another program's logger"""
        self.texts: list[str] = []
        """the errors since the last verdict"""
        self._suspect = ""
        self.episodes = self._doubted = 0
        self._example = ""

    def hear(self, text: str) -> bool:
        """Whether a line tells of a caught error."""
        before, self._before = self._before, text
        found = next(filter(None, (marker.search(text) for marker in self._markers)), None)
        if found:
            self.texts.append(text[found.end() :].strip(" :") or text.strip())
            return True
        small = text.lower()
        if not self._beside and not any(word in small for word in _HINTS):
            return False
        if self._beside:
            self._beside = _STACK.match(text) is not None
            return False
        if of_others(text) or aside(text):
            if re.search(_TOLD, text) and not ignored(text):
                self._suspect = self._suspect or text
            return False
        bare = re.sub(_MEASURED, " ", text)
        if re.search(_CAUGHT, bare):
            self._beside = "Traceback (" in text and (aside(before) or of_others(before))
            if self._beside:
                self._suspect = self._suspect or before
                return False
            if not text.endswith("Traceback (most recent call last):") or not self.texts:
                self.texts.append(_NAMED.sub("", text.strip()))
            return True
        if not self._suspect and re.search(_LOOKS_WRONG, bare) and not re.search(_METRIC, bare):
            self._suspect = text
        return False

    def verdict(self) -> str:
        """The errors before a verdict, which is errored then; empty without any."""
        said = [text for text in self.texts if not text.startswith("Traceback (")] or self.texts
        texts, suspect = "; ".join(said), self._suspect
        self.forget()
        self.episodes += bool(texts)
        if suspect and not texts:
            self._doubted += 1
            self._example = self._example or suspect.strip()
        return texts

    def forget(self) -> None:
        """An episode begins."""
        self.texts, self._suspect = [], ""

    def remarks(self) -> Iterator[Fact]:
        if self.episodes:
            yield Fact(ENDED_IN_EXCEPTIONS, episodes=self.episodes)
        if self._doubted:
            yield Fact(SUSPECT, episodes=self._doubted, line=self._example[:TEXT_MOST])
