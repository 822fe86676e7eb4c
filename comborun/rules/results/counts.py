"""The counts of an attempt, of all attempts of a session, and how complete they are. Pure.

The counts of an attempt are in its records. `marks` holds two bits for each planned episode, so the end records of
several attempts give the same sum as their result files.
"""

from __future__ import annotations

from comborun.rules.facts import Fact, facts_of
from comborun.rules.records import FACTS, TRAINED, integer
from comborun.rules.results.caught import ASIDE
from comborun.rules.results.fields import OUTSIDE
from comborun.rules.vocabulary import Completeness, word_set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Mapping, Optional, Sequence, Tuple

    Verdicts = Dict[int, Optional[bool]]
    """episode -> its verdict, None if it is errored"""
    Span = Tuple[int, int]
    """the first planned episode, and how many; 0: as many as the program decides"""

PLANNED = "{episodes}"
"""in a pattern of evidence: the number of episodes of the attempt"""
OF_ANOTHER, WITHOUT_INDEX, REFUSED = "rows_of_another", "rows_without_index", "rows_refused"
WITHOUT_VERDICT = "rows_without_verdict"
NOT_PLANNED, REPEAT, NOT_COUNTED = "episodes_not_planned", "rows_repeat_episodes", "file_not_counted"
PROPOSAL, ANOTHER_RAN, UNDECIDED = "results_line", "another_ran", "verdicts_undecided"
EACH_AGAIN = "each_row_again"
NOT_IN_GRID, IN_COLUMNS = "names_not_in_grid", "names_in_columns"
EITHER = "verdicts_or_a_count"
NOT_READ, FILE_NOT_READ, NO_EPISODE, NO_MATCH = "results_not_read", "file_not_read", "no_episode_in", "no_file_matches"
WROTE_NOTHING, TOO_MANY, FORMER = "wrote_nothing", "too_many_files", "former_words"
COUNTING_FAILED, CHANGED, UNCLEAR_COMMA = "counting_failed", "results_changed", "unclear_comma"
NOT_RECOUNTED, TAKES_LONG = "results_changed_not_counted", "counting_takes_long"
NOT_LOOKED_AT, NOT_IN_TIME = "changes_not_looked_for", "not_counted_in_time"
REASONS = frozenset(
    (
        *(OF_ANOTHER, WITHOUT_INDEX, REFUSED, WITHOUT_VERDICT, NOT_PLANNED, REPEAT, NOT_COUNTED, PROPOSAL),
        *(ANOTHER_RAN, UNDECIDED, NOT_READ, FILE_NOT_READ, NO_EPISODE, NO_MATCH, WROTE_NOTHING, TOO_MANY, FORMER),
        *(
            *ASIDE,
            EITHER,
            UNCLEAR_COMMA,
            COUNTING_FAILED,
            CHANGED,
            NOT_RECOUNTED,
            TAKES_LONG,
            NOT_LOOKED_AT,
            NOT_IN_TIME,
        ),
    )
)
"""Codes of the facts that say why rows don't count. A PROPOSAL, and some others, hold `keys`: what to write in
`results`, each with `key` and `value`. FORMER holds a sentence of an earlier version."""

OF_LINE = ("keys", "score", "rivals")
"""fields of a fact that belong to the line which it proposes"""


def keys_of(fact: Fact) -> dict[str, Any]:
    """What a fact proposes to write in `results`: key -> value; empty if it proposes nothing."""
    keys = fact.fields.get("keys")
    listed = keys if isinstance(keys, (list, tuple)) else ()
    return {str(one["key"]): one["value"] for one in listed if isinstance(one, dict) and {"key", "value"} <= one.keys()}


_TORN = word_set(
    "empty_file half_written_json half_written_archive half_written_database json_broken_off"
    " last_line_cut_off last_row_cut_off member_cut_off printed_results_cut_off printed_statistics_cut_off"
    " packed_file not_json not_json_after_record not_json_document python_object nothing_but_nul"
    " document_not_finished count_not_finished"
)
"""codes of what is wrong with a file that no line of `results` mends"""


def broken(fact: Fact) -> bool:
    """Whether a fact names a file that is torn, no JSON or packed, so that no line of `results` reads it."""
    why = fact.fields.get("why")
    return isinstance(why, dict) and why.get("code") in _TORN


EPISODES_MOST = 30_000
"""most episodes of an attempt with marks, so that its end record stays small"""
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_ABSENT, _ERRORED, _FAILURE, _SUCCESS = range(4)
_CODES = {None: _ERRORED, False: _FAILURE, True: _SUCCESS}
_VERDICTS = {_ERRORED: None, _FAILURE: False, _SUCCESS: True}


class Counts:
    """Counts of an attempt, or of all attempts of a session."""

    def __init__(self) -> None:
        self.records = self.successes = self.failures = 0
        """planned episodes: with a record, succeeded, failed"""
        self.rows = 0
        """rows that were read, whether they count or not"""
        self.refused: dict[str, int] = {}
        """why rows don't count -> how many"""
        self.facts: tuple[Fact, ...] = ()
        """the same in detail: of REASONS, with examples, and what would make more rows count"""
        self.marks = ""
        """the episodes and their verdicts, as `marked` writes them"""
        self.ordered = False
        """episodes are numbered as they ended, so equal indexes in two attempts mean nothing"""
        self.numeric = ""
        """the field of the verdicts, if it holds 0 and 1 only: beside other numbers elsewhere these are numbers"""
        self.trained: Fact | None = None
        """of a training: its newest step and values"""
        self.countable = True
        """False if only the report can read the files; then `records` says nothing"""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counts) and self.pairs() == other.pairs()

    __hash__ = None  # type: ignore[assignment]

    @property
    def verdicts(self) -> int:
        return self.successes + self.failures

    @property
    def proposes(self) -> bool:
        """Whether another line for `results` would make more rows count."""
        return any("keys" in fact.fields for fact in self.facts)

    @property
    def errored(self) -> int:
        """Records without a verdict."""
        return self.records - self.verdicts

    @property
    def misread(self) -> bool:
        """Whether the grid seems to read the rows wrongly: no verdict, episodes outside the plan, or a line that would
        make more rows count."""
        return bool(self.facts and (not self.verdicts or self.refused.get(OUTSIDE) or self.proposes))

    def take(self, verdicts: Verdicts) -> None:
        self.records = len(verdicts)
        self.successes = sum(verdict is True for verdict in verdicts.values())
        self.failures = sum(verdict is False for verdict in verdicts.values())

    def pairs(self) -> list[tuple[str, object]]:
        """The fields of a record; default values are left out."""
        fields: list[tuple[str, object]] = [("records", self.records), ("successes", self.successes)]
        fields += [("verdicts", self.verdicts), ("rows", self.rows)]
        optional = {
            "refused": ",".join(f"{reason}:{count}" for reason, count in self.refused.items()),
            "marks": self.marks,
            "ordered": "1" if self.ordered else "",
            "numeric": self.numeric,
            "countable": "" if self.countable else "0",
            FACTS: self.facts,
            TRAINED: self.trained,
        }
        return fields + [(key, value) for key, value in optional.items() if value]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Counts:
        """From the fields of a record."""
        counts = cls()
        counts.records, counts.rows = _number(record, "records"), _number(record, "rows")
        counts.successes = _number(record, "successes")
        counts.failures = max(0, _number(record, "verdicts") - counts.successes)
        for word in record.get("refused", "").split(","):
            reason, _, count = word.partition(":")
            if count.isdecimal():
                counts.refused[reason] = int(count[:18])
        counts.marks, counts.numeric = record.get("marks", ""), record.get("numeric", "")
        facts = record.get(FACTS)
        counts.facts = tuple(fact for fact in (facts if isinstance(facts, tuple) else ()) if fact.code in REASONS)
        if not counts.facts and record.get("why"):
            counts.facts = (Fact(FORMER, text=record["why"]),)
        trained = record.get(TRAINED)
        counts.trained = trained if isinstance(trained, Fact) else None
        counts.ordered, counts.countable = record.get("ordered") == "1", record.get("countable") != "0"
        return counts


def _number(record: Mapping[str, str], key: str) -> int:
    return max(0, integer(record, key) or 0)


def proven(end: Mapping[str, str]) -> bool:
    """Whether an attempt shows that its combo can be evaluated and counted, as a smoke test demands."""
    return end.get("completeness") == "complete" or Counts.of(end).verdicts > 0


def join(verdicts: Verdicts, further: Iterable[tuple[int, bool | None]]) -> None:
    """Add records of later files. The first record with a verdict counts, whatever the verdict; without any, the
    episode is errored.
    """
    for index, verdict in further:
        if verdicts.get(index) is None:
            verdicts[index] = verdict


def within(verdicts: Verdicts, span: Span) -> tuple[Verdicts, list[int]]:
    """Splits these episodes into planned and other ones."""
    first, count = span
    if not count:
        return verdicts, []
    planned = {index: verdict for index, verdict in verdicts.items() if first <= index < first + count}
    return planned, sorted(index for index in verdicts if index not in planned) if len(planned) < len(verdicts) else []


def marked(verdicts: Verdicts, span: Span) -> str:
    """Two bits for each planned episode, three episodes to a letter; empty for too many episodes."""
    first = span[0] if span[1] else 0
    most = max(verdicts, default=first) + 1 - first
    if most > EPISODES_MOST:
        return ""
    codes = [_ABSENT] * (most + 2)
    for index, verdict in verdicts.items():
        codes[index - first] = _CODES[verdict]
    return "".join(_DIGITS[codes[at] << 4 | codes[at + 1] << 2 | codes[at + 2]] for at in range(0, most, 3) if verdicts)


def unmarked(marks: str, span: Span) -> Verdicts:
    """Reads what `marked` wrote; unknown letters hold nothing."""
    first = span[0] if span[1] else 0
    verdicts: Verdicts = {}
    for place, letter in enumerate(marks):
        value = _VALUES.get(letter, 0)
        for offset, shift in ((0, 4), (1, 2), (2, 0)):
            code = value >> shift & 3
            if code:
                verdicts[first + 3 * place + offset] = _VERDICTS[code]
    return verdicts


def joined(attempts: Sequence[tuple[Span, Counts]], span: Span) -> Counts:
    """The counts of a session over all its attempts, lowest first, as the report merges them: of each episode the
    lowest attempt with a verdict counts. `span` is the session's; each attempt has its own.
    """
    if len(attempts) == 1:
        return attempts[0][1]
    counts = Counts()
    verdicts: Verdicts = {}
    single, written = _whole_attempt(attempts, span), any(one.rows for _, one in attempts)
    for part, one in attempts:
        if not one.ordered or one is single:
            join(verdicts, within(unmarked(one.marks, part), span)[0].items())
        counts.rows += one.rows
        if one.rows or not written:  # that another attempt wrote nothing does not matter then
            counts.facts = one.facts or counts.facts
        for reason, number in one.refused.items():
            counts.refused[reason] = counts.refused.get(reason, 0) + number
        counts.trained = one.trained or counts.trained
        counts.numeric = counts.numeric or one.numeric
    counts.countable = all(one.countable for _, one in attempts)
    undecided = next((fact for _, one in attempts for fact in one.facts if fact.code == UNDECIDED), None)
    if undecided:  # the verdicts of another attempt are of the same coding, whose values it did not show
        verdicts = dict.fromkeys(verdicts)
        counts.facts = (undecided, *(fact for fact in counts.facts if fact.code != UNDECIDED))
    counts.take(verdicts)
    counts.marks = marked(verdicts, span)
    if single and all(one.ordered for _, one in attempts):  # a count may be larger than the plan
        counts.records, counts.successes, counts.failures = single.records, single.successes, single.failures
        counts.marks = single.marks
    best = max((one for _, one in attempts), key=lambda one: one.records, default=counts)
    if best.records > counts.records:  # too many for marks
        counts.records, counts.successes, counts.failures = best.records, best.successes, best.failures
    return counts


def in_numbers(facts: Iterable[Fact]) -> dict[str, Fact]:
    """The fields that some session of a run shows to hold other numbers than 0 and 1, each with what says so."""
    shown = (fact for fact in facts if fact.code == UNDECIDED and fact.fields.get("numbers"))
    return {fact.text("field"): fact.without("rows", "of") for fact in shown}


def _whole_attempt(attempts: Sequence[tuple[Span, Counts]], span: Span) -> Counts | None:
    """If episodes are numbered as they ended: the lowest attempt with all of them, else the one with the most."""
    ordered = [one for _, one in attempts if one.ordered]
    return max(ordered, key=lambda one: min(one.records, span[1] or one.records), default=None)


def where_it_ran(facts: Sequence[Fact], names: Mapping[str, Iterable[str]]) -> tuple[Fact, ...]:
    """The reasons, with the names of the grid known, by kind. Rows that name another policy or environment of this grid
    are no matter of `results`: to accept them would count episodes of others.
    """
    foreign = [kind for kind, known in names.items() if any({*known}.intersection(_named(one, kind)) for one in facts)]
    if not foreign:
        return tuple(facts)
    kept = (fact.without(*OF_LINE) for fact in facts if fact.code != PROPOSAL)
    return (*kept, *(Fact(ANOTHER_RAN, kind=kind) for kind in foreign))


def _named(fact: Fact, kind: str) -> tuple[str, ...]:
    """The policies or environments that the rows of a reason name instead of their session's."""
    if fact.code == OF_ANOTHER:
        return fact.texts("named") if fact.text("kind") == kind else ()
    return tuple(name for inner in facts_of(fact.fields.get("another")) for name in _named(inner, kind))


class RequiredEvidence:
    """The evidence that an attempt must show to be complete."""

    def __init__(
        self, planned: int, records: bool, others: int = 0, results: bool = False, verdicts: bool = True
    ) -> None:
        self.planned = planned
        """number of episodes or steps; 0: the program decides"""
        self.records = records
        """whether each of them needs a record"""
        self.others = others
        """number of other pieces of evidence: a line of the log, files"""
        self.results = results
        """whether result files must exist, even if their content is not counted"""
        self.verdicts = verdicts
        """whether at least one record needs a verdict; records of steps have none"""


def completeness(required: RequiredEvidence, counts: Counts, held: int, files: int, code: int | None) -> Completeness:
    """How complete an attempt is, by all named evidence. The exit code counts only if nothing else decides.

    `held`: pieces of other evidence that hold. `code` is None if it is unknown or proves nothing: a program that was
    told to end, and ended with 0.
    """
    found = counts.records > 0 or (not counts.countable and files > 0)
    less = Completeness.PARTIAL if found else Completeness.NONE
    counted = required.records and counts.countable
    if files == 0 and (required.results or (required.records and not counted)):
        return less
    if not counted and not required.others:
        return Completeness.COMPLETE if code == 0 else less
    enough = not counted or _enough(required, counts, code)
    return Completeness.COMPLETE if enough and held == required.others else less


def over_all(
    ends: Iterable[Completeness], counts: Counts, required: RequiredEvidence, code: int | None
) -> Completeness:
    """How complete a session is by the results of all its attempts. `ends`: each of them alone; `counts`: together."""
    found = {*ends, *((Completeness.PARTIAL,) if counts.records else ())}
    if required.records and required.planned and not required.others:
        found.add(completeness(required, counts, 0, 1, code))
    return next(one for one in Completeness if one in found)  # from complete to none


def _enough(required: RequiredEvidence, counts: Counts, code: int | None) -> bool:
    """Whether all records are there. Without a planned number only the exit or other evidence can show it."""
    if required.verdicts and not counts.verdicts:
        return False
    if required.planned:
        return counts.records >= required.planned
    return counts.records > 0 and (required.others > 0 or code == 0)
