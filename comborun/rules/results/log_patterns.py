"""Reads matches of a grid's pattern in a log, and holds the patterns that are proposed. Pure."""

from __future__ import annotations

import re

from comborun.rules.facts import Fact
from comborun.rules.patterns import LONGEST_RECORD
from comborun.rules.results.caught import OVERWRITTEN, Caught
from comborun.rules.results.codings import verdict_word
from comborun.rules.results.counts import UNCLEAR_COMMA
from comborun.rules.results.episodes import THOUSANDS, cell
from comborun.rules.results.fields import Identity, integer
from comborun.rules.results.rates import Count, goes_on, total
from comborun.rules.results.readers import NOTHING, LogLines, stating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from comborun.rules.results.readers import Entry

_TELLS = re.compile(r"ep|trial|rollout|task|scene|env|id|rank|inst|seed|suite|index|^i$|^n$|number", re.IGNORECASE)
"""names of groups that tell one episode from another"""
_SEARCHED_MOST = 1 << 17
"""characters of a line that are searched for records, LONGEST_RECORD at a time"""
VERDICT = "verdict"
"""the group of a pattern that holds the verdict as a word"""
_COUNTS = ("successes", "episodes")
"""the groups of a pattern that finds counts"""
LISTED = "verdicts"
"""the group of a pattern that holds a list of verdicts, an episode each: `[True, False]`, `SFS`"""
_ELEMENT = re.compile(r"[A-Za-z_][\w.]*|[-+]?\d[\d.]*|[^\s\w,;()\[\]{}'\"]")
_LETTERS = re.compile(r"[SF✅❌✓✗✔✘]+")
_PRINTED_AS = re.compile(r"^(?:np|numpy)\.|_$|(?<=^[01])\.0*$")
"""what numpy and torch print around a verdict"""
_NUMBER = r"(?i)\b(?:episode|ep|trial|rollout)\D{0,4}(?P<episode>\d{1,9})\b"
_COUNTER = (
    r"(?i)(?:^|[\[(\s])(?P<episode>\d{1,9})\s?/\s?\d{1,9}"
    r"(?:[\])]|(?!\d|\s?(?:\w{1,12}\s){0,2}(?:succe\w{0,8}|solved|passed)\b(?!\s?[:=])))"
)
"""a number of episodes so far; behind `37/50 succeeded` stands what it counts"""
_SCORE = r".{0,200}?\b(?:return|reward|score)\D{0,6}?(?P<score>[-+]?\d{1,15}(?:\.\d{1,15})?)"
_WORD = (
    r".{0,200}?\b(?P<verdict>(?:not? (?:an? )?|un)?"
    r"(?:success(?:ful)?|succeeded|solved|pass(?:ed)?|ok|fail(?:ed|ure)?|timeout))\b"
    r"(?![ _]?(?:rate|count)|\s?[:=]\s?[\d\[({])"
)
_SIGN = (
    r"(?:\s?(?:/|of)\s?\d{1,9}\b)?\W{1,6}(?P<verdict>[SF✅❌✓✗✔✘]|erfolg(?:reich)?|fehlgeschlagen"
    r"|succès|échec|éxito|fracaso|sucesso|falha|成功|失败)(?!\w)"
)
"""verdicts as letters, as signs and in other languages, right behind the number"""
_RATE = r"(?i)\bsucc(?:ess\w*)?(?:[ _]rate)?(?: so far)?\W{0,4}(?:\d{1,3}(?:\.\d{1,9})?\W{1,4})?"
_TRUTH = r"\bsuccess(?!_?rate)\w*\W{1,4}(?P<verdict>true|false|0|1)\b(?![.%/,]\d|\s?[%/])"
_NAMED = (
    r"\b(?i:(?:episode_|is_)?succ(?:ess(?:es|ful)?|eeded)?(?:_(?:list|flags?|mask|array))?"
    r"|results?|outcomes?|verdicts?|solved|passed)(?![ _](?i:rate))[^\w✅❌✓✗✔✘]{1,4}"
)
"""what a list of verdicts is called"""
_BOOLEANS = (
    r"(?:(?:np\.|torch\.)?(?:array|tensor)\()?\[?"
    r"(?P<verdicts>(?:[\s,]{0,8}(?:np\.)?(?i:true_?|false_?|[01](?:\.0{0,6})?)(?![\w.])){2,256})[\s,]{0,8}\]"
)
COUNTER_TRUTH = _COUNTER + r".{0,200}?" + _TRUTH
RUNNING = (
    r"(?i)(?:^|[\[(\s])(?P<episodes>\d{1,9})\s?/\s?\d{1,9}\b.{0,200}?"
    r"\bsuccess(?!_?rate)\w*\W{1,4}(?P<successes>\d{1,9})\b(?![.%/,]\d|\s?[%/])"
)
"""a count that goes on from line to line: `[4/6] success: 1`. So may print who means the verdict of the fourth"""
_K_OF_N = r"\b(?P<successes>\d{1,9})\s?(?:/|(?:out )?of\b)\s?(?P<episodes>\d{1,9})\b"
LOG_PATTERNS = (
    _NUMBER + r".{0,200}?" + _TRUTH,
    _NUMBER + _SCORE + _WORD,
    _NUMBER + _WORD,
    COUNTER_TRUTH,
    _COUNTER + _WORD,
    r"(?i)" + _TRUTH,
    r"(?i)^\W{0,8}(?P<verdict>success(?:ful)?|succeeded|solved|pass(?:ed)?|fail(?:ed|ure)?|timeout)\W{0,8}$",
    _RATE + r"(?P<successes>\d{1,9})\s?/\s?(?P<episodes>\d{1,9})\b",
    r"(?i)" + _K_OF_N + r".{0,20}?\bsucce(?:ss|ed)(?!\w{0,8}(?:[ _]rate)?\s?[:=])",
    r"(?i)\b(?P<successes>\d{1,9}) succe\w{2,9} (?:out )?of (?P<episodes>\d{1,9})\b",
    _NUMBER + _SCORE,
    _NUMBER + _SIGN,
    RUNNING,
    _NAMED + _BOOLEANS,
    _NAMED + r"(?P<verdicts>[SF✅❌✓✗✔✘]{2,512})(?!\w)",
)
"""lines that programs print for each episode. Repeats are bounded, since a log may hold anything"""


class LogPattern(LogLines):
    """Matches of the grid's pattern in a log. Its groups are the fields; `verdict` holds a word, `verdicts` a list, of
    which each element is an episode. With the groups
    `successes` and `episodes` they are counts: the last one, if it counts on, else all of them together.

    Every match counts. What a carriage return overwrites counts if it names its episode; of several that name the same
    one the last counts. Text behind the last line end counts when nothing more comes, since it may be cut off.
    """

    def __init__(self, identity: Identity, path: str = "") -> None:
        super().__init__(identity, path)
        self._pattern = re.compile(identity.pattern)
        named = {*self._pattern.groupindex}
        index = identity.episode.names or (identity.episode.name,)
        self._counting = {*_COUNTS} <= named
        self._listing = LISTED in named
        self._lists: list[list[Any]] = []
        self._counts: list[dict[str, Any]] = []
        self._has_index = "episode" in named or named.issuperset(index)
        self._count = 0
        """rows so far"""
        self._caught = Caught(identity.rules.errors)
        self._unclear: dict[str, str] = {}
        """fields with numbers whose comma may stand for thousands, and the first of each"""
        self._overwritten: list[dict[str, Any]] = []
        """rows that name no episode, on text that a carriage return overwrites"""

    def take(self, line: bytes, *, whole: bool) -> Iterator[Entry]:
        pieces = [self._escape.sub("", piece) for piece in line.decode("utf-8", "replace").split("\r")]
        if not whole and not self.over:
            pieces.pop()
        pieces = [piece for piece in pieces if piece and not piece.isspace()]
        told: dict[tuple[Any, ...], dict[str, Any]] = {}
        if not self._has_index:
            for piece in pieces[:-1]:
                rows = self._matches(piece)
                if rows and self._caught.texts:
                    rows[0][self.identity.verdict_key] = None
                self._overwritten += rows
            pieces = pieces[-1:]
        for piece in pieces:
            for row in self._rows(piece):
                told[self._key(row) if self._has_index else (len(told),)] = row
        if self._counting:
            self._counts += told.values()
            return
        if self._listing:
            self._lists += (elements(str(row.pop(LISTED, ""))) for row in told.values())
            return
        for row in told.values():
            yield self.row(row, None, None if "episode" in self._pattern.groupindex else self._count)
            self._count += 1

    @property
    def pending(self) -> bool:
        told = self._counts or self._lists or self._unclear or self._overwritten
        return super().pending or bool(told) or any(self._caught.remarks())

    def finish(self) -> Iterator[Entry]:
        yield from super().finish()
        if self._counts:
            yield from self._counted()
        name = self.identity.success.name
        planned = self.identity.planned
        yield from (self.row({name: one}, None, at) for at, one in enumerate(_listed(self._lists, planned)))
        if self.over and self._overwritten and not self._counting:
            if self._count + len(self._overwritten) == planned:  # so they are episodes, and no bar of one
                yield from (self.row(row, None, at) for at, row in enumerate(self._overwritten, self._count))
            elif self._count < planned or not planned:
                yield 0, NOTHING, Fact(OVERWRITTEN, matches=len(self._overwritten)), None
        for name, value in self._unclear.items():
            yield 0, NOTHING, Fact(UNCLEAR_COMMA, field=name, value=value), None
        yield from ((0, NOTHING, remark, None) for remark in self._caught.remarks())

    def _counted(self) -> Iterator[Entry]:
        """The counts of all lines. A program that counts on says it anew after each episode."""
        pairs = [tuple(integer(row.get(name)) or 0 for name in _COUNTS) for row in self._counts]
        counts = [Count(good, of) for good, of in pairs if 0 <= good <= of and of]
        for one in counts:
            one.parts = (f"{one.successes} of {one.episodes}",)
        if counts:
            whole = counts[-1] if goes_on(counts) else total(counts)
            whole.sure = False
            yield from stating(whole)

    def _rows(self, piece: str) -> list[dict[str, Any]]:
        """The rows of a line; one that comes after a caught error has no verdict."""
        rows = self._matches(piece)
        if rows and (error := self._caught.verdict()):
            rows[0].update({self.identity.verdict_key: None, "exception": error})
        return rows

    def _matches(self, piece: str) -> list[dict[str, Any]]:
        """The rows of a line; one without any may tell of a caught error."""
        text, rows = piece[:_SEARCHED_MOST], []
        position, end = 0, min(len(text), LONGEST_RECORD)
        while position < len(text):
            found = self._pattern.search(text, position, end)
            position = max(found.end(), position + 1) if found else end
            end = min(len(text), position + LONGEST_RECORD)
            if found:
                rows.append(self._row(found.groupdict()))
        if not rows:
            self._caught.hear(piece)
        return rows

    def _key(self, row: dict[str, Any]) -> tuple[Any, ...]:
        """What tells the episode of one match from others on its line."""
        own = (self.identity.success.name, "exception", *(name for name in row if not _TELLS.search(name)))
        return tuple((name, row[name]) for name in row if name not in own)

    def _row(self, groups: dict[str, Any]) -> dict[str, Any]:
        row = {name: cell(text, True) for name, text in groups.items() if text is not None and name != VERDICT}
        if LISTED in row:
            row[LISTED] = groups[LISTED]
        for name, value in row.items():
            if isinstance(value, str) and THOUSANDS.fullmatch(value):
                self._unclear.setdefault(name, value)
        word = str(groups.get(VERDICT) or "").strip().lower()
        if word:
            row[self.identity.success.name] = verdict_word(word)
        return row


def elements(text: str) -> list[Any]:
    """The verdicts of a printed list. What is none stays text, so that it is told."""
    text = text.strip().strip("[]()'\" ")
    found = list(text) if _LETTERS.fullmatch(text) else _ELEMENT.findall(text)
    return [verdict_word(_PRINTED_AS.sub("", _PRINTED_AS.sub("", one.lower()))) for one in found]


def _listed(lists: list[list[Any]], planned: int) -> list[Any]:
    """The elements of all lists; of one that is printed anew after each episode, or once more, the last."""
    every = [one for told in lists for one in told]
    last = lists[-1] if lists else []
    grows = all(after[: len(one)] == one and len(after) > len(one) for one, after in zip(lists, lists[1:]))
    again = every[: -len(last)] == last or all(one == last for one in lists)
    return last if grows or (again and len(every) != planned) else every
