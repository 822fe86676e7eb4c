"""How a program writes its verdicts: whether the values of a field are verdicts, and the line that says which. Pure.

Without a test of the grid only true and false, 1 and 0 are verdicts. A field that mixes them with other numbers or with
words is a percentage, a score or a coding of its own: then even its 0 and 1 may mean something else, so nothing of it
counts.
"""

from __future__ import annotations

import re

from comborun.rules.results.fields import amount_of, number
from comborun.rules.vocabulary import word_set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

VALUES_MOST = 12
"""different values that are kept"""
TEXT_MOST = 60
_FULL_MARKS = (1, 10, 100, 1000)
_FEW = 3
"""rows with true or false that show that these are the coding"""
_GOOD = word_set(
    "success succeeded successful pass passed true 1 yes ok done solved y t s okay complete completed finished"
    " win won reached succ suc goal reached_goal achieved accomplished correct good wahr ja erfolg erfolgreich"
    " vrai oui succès réussi réussite verdadero si sí éxito exito vero sì successo sim sucesso успех да 成功 是 true_"
    " np.true_ bool(true) + ✓ ✔ ✅ √ goal_reached"
)
_BAD = word_set(
    "fail failed failure false 0 no timeout n f ko nok incomplete lost lose loss unsolved unsuccessful missed"
    " miss wrong bad collision collided fell fallen dropped stuck truncated timelimit time_limit out_of_time"
    " max_steps step_limit horizon falsch nein fehler misserfolg fehlgeschlagen faux non échec echec falso fallo"
    " fracaso fallito falha неудача нет 失败 否 false_ np.false_ bool(false) ✗ ✘ ❌ × timed_out"
) | {"timed out", "time out", "time limit"}
"""words that are known when they are seen, and are proposed only"""
ERRORED = word_set(
    "error errored crash crashed exception nan n/a na none null nil unknown skipped invalid aborted - ? --"
)
"""words of an episode without a verdict"""
_CALL = re.compile(r"[\w.]+\(\[?(\w+?)(?:\.0?)?\]?(?:, ?\w+=[\w.']+)*\)")
"""as numpy and torch print a value: `tensor([True])`"""
_AROUND = "[](){}<>!.:*'\" "
"""signs around a word"""
_DENIAL = re.compile(r"not?[ _-](?:an? )?|un|in(?=c)")


def verdict_word(word: str) -> bool | str:
    """A word as a verdict: `not` and `un` negate it. An unknown word stays text, so that `success` can test it."""
    if word in _GOOD or word in _BAD:
        return word in _GOOD
    denial = _DENIAL.match(word)
    bare = word[denial.end() :].lstrip("_-") if denial else word
    return bare in _BAD if denial and (bare in _GOOD or bare in _BAD) else word


class Coding:
    """The values of one field in the rows of a session."""

    def __init__(self, field: str = "") -> None:
        self.field = field
        self.truths: dict[str, None] = {}
        """true and false, 1 and 0, as they are written, in the order in which they came"""
        self.others: dict[str | float, int] = {}
        """other numbers and texts -> rows with them, the first few"""
        self.rows = 0
        """rows with others"""
        self.decided = 0
        """rows with a verdict"""

    def add(self, value: object, verdict: bool | None) -> None:
        """Add the value of one row, and its verdict. What is empty or says that the episode broke off is no value."""
        if verdict is not None:
            self.decided += 1
            text = value.strip() if isinstance(value, str) else str(value).lower()
            if text in self.truths or len(self.truths) < VALUES_MOST:
                self.truths[text] = None
        elif isinstance(value, (int, float)) and abs(value) < float("inf"):
            self._add(value, 1)
        elif isinstance(value, str) and value.strip() and value.strip().lower() not in ERRORED:
            self._add(value.strip()[:TEXT_MOST], 1)

    def _add(self, value: str | float, rows: int) -> None:
        self.rows += rows
        if value in self.others or len(self.others) < VALUES_MOST:
            self.others[value] = self.others.get(value, 0) + rows

    def join(self, other: Coding) -> None:
        """Add the values of other rows."""
        self.field = self.field or other.field
        self.decided += other.decided
        self.truths = {**other.truths, **self.truths}
        for value, rows in other.others.items():
            self._add(value, rows)
        self.rows += other.rows - sum(other.others.values())

    @property
    def numeric(self) -> bool:
        """Whether its verdicts are 0 and 1, which may be numbers like those of another session."""
        return bool(self.truths) and {*self.truths} <= {"0", "1", "0.0", "1.0"}

    @property
    def numbers(self) -> bool:
        """Whether its other values are numbers, all of them."""
        return bool(self.others) and all(isinstance(value, (int, float)) for value in self.others)

    @property
    def undecided(self) -> bool:
        """Whether it has another coding, or several. One odd value among true and false costs only its own row, and so
        do a few odd texts."""
        if self.rows == 1 and self.decided >= _FEW and {"true", "false"} & {text.lower() for text in self.truths}:
            return False
        known = any(amount_of(value) is not None or isinstance(_word(str(value)), bool) for value in self.others)
        return known or (self.rows > 1 and self.rows * 10 >= self.rows + self.decided)

    @property
    def values(self) -> list[str]:
        """Some of the values, as they are written."""
        return [*self.truths, *(f"{value:g}" if isinstance(value, float) else str(value) for value in self.others)]

    def proposal(self) -> dict[str, Any]:
        """What to write for `success`, if the values show which of them mean a success; empty otherwise."""
        amounts = {value: amount_of(value) for value in (*self.others, *self.truths)}
        if self.others and all(amount is not None for amount in amounts.values()):
            most = max(amount for amount in amounts.values() if amount is not None)
            if most < 1 or (most in _FULL_MARKS[1:] and 1 in amounts.values()):
                return {}  # no full mark is seen, or 1 may be one as well
            signed = any(isinstance(value, str) and number(value) is None for value in self.others)
            if most not in _FULL_MARKS and (signed or len(amounts) == 1 or 0 not in amounts.values()):
                return {}  # rates of several episodes, say
            if most not in _FULL_MARKS and most > 2 * len(amounts) > 4:
                return {}  # the steps or seconds that successes took
            if signed:
                return {
                    "field": self.field,
                    "any_of": [str(value) for value, amount in amounts.items() if amount == most],
                }
            least = 1.0 if most <= 1 else most
            return {"field": self.field, "at_least": int(least) if float(least).is_integer() else least}
        if any(not isinstance(value, str) or amount_of(value) not in (None, 0, 1) for value in self.others):
            return {}
        good = [value for value in self.others if isinstance(value, str) and (_word(value) is True or amounts[value])]
        told = good or all(isinstance(value, str) and _word(value) is False for value in self.others)
        good += [text for text in self.truths if text.lower().startswith(("1", "true"))] if told else []
        return {"field": self.field, "any_of": good} if good else {}


def _word(text: str) -> bool | str:
    called = _CALL.fullmatch(text)
    return verdict_word((called.group(1) if called else text).lower().strip(_AROUND) or text)


def joined(codings: Iterable[Coding]) -> Coding:
    """All of them together."""
    whole = Coding()
    for one in codings:
        whole.join(one)
    return whole
