"""The content of one result file: its records, its rejected lines with reasons, and facts needed to compare them."""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any

from comborun.model.attempt import Aggregate, EpisodeRecord, JsonValue, Verdict, packed
from comborun.model.work import Combo
from comborun.reporter.records.plain import PlainRows, once
from comborun.rules.results.codings import Coding
from comborun.rules.results.episodes import DEPTH_LIMIT
from comborun.rules.results.fields import (
    ENVIRONMENT,
    MISSING,
    NAMES_ANOTHER,
    NO_RECORD,
    POLICY,
    Field,
    Identity,
    RefusedError,
    ResultRules,
    integer,
)
from comborun.rules.results.one_row import Record, of_sibling, read_row
from comborun.rules.results.rates import Count
from comborun.rules.results.repeats import ROWS_MOST, Kept, key_of
from comborun.words import say

UNNAMED = "unnamed"
"""a policy or an environment that nothing names"""
_VERDICTS = {True: Verdict.SUCCESS, False: Verdict.FAILURE, None: Verdict.ERRORED}


@dataclass(frozen=True)
class Context:
    """What is known of a result file before it is read. `policy` and `environment` are None if its records must name
    them. `path` is its name in messages."""

    path: str
    policy: str | None = None
    environment: str | None = None
    rules: ResultRules = field(default_factory=ResultRules)
    session: str = ""
    attempt: int = 0
    first: int = 0
    planned: int = 0
    """number of episodes of its attempt; 0: not known"""
    keys: dict[tuple[object, ...], int] = field(default_factory=dict)
    """if the grid names several fields for the episode: their values in files of the attempt -> its number"""
    skipped: int = 0
    """if its format numbers its rows, and they continue those of other files: how many these have"""
    lines: Counter[Combo] = field(default_factory=Counter)
    """if rows are numbered by their place: how many of each combo these files have had so far"""
    over: bool = True
    """whether its program has ended"""
    words: Identity | None = None
    """how its records name things, in its format"""
    planned_names: bool = False
    """whether a grid says how combos are called; then JSON lines take no other names from their path"""
    keeps: bool = False
    """whether rows are kept besides their records"""

    @cached_property
    def identity(self) -> Identity:
        return self.words or Identity(self.policy, self.environment, self.rules, self.planned)

    def named(self, policy: str, environment: str | None) -> Context:
        return replace(self, policy=self.policy or policy, environment=self.environment or environment)


class RejectKind(StrEnum):
    TORN = "torn"
    """a last line without its end: in progress, or cut off"""
    NOT_A_RECORD = "not a record"
    """not an object, too long, or without an episode or a combo"""
    FOREIGN = "foreign"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Defect:
    """A fault of a record that was accepted; line 0 means the whole file."""

    path: str
    line: int
    reason: str

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


@dataclass(frozen=True)
class Reject(Defect):
    """A line that gave no record."""

    kind: RejectKind


@dataclass
class Reading:
    """The content of one file, or of one folder of files whose names are the episodes."""

    path: str
    format: str = ""
    why: str = ""
    records: list[EpisodeRecord] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    defects: list[Defect] = field(default_factory=list)
    aggregates: list[Aggregate] = field(default_factory=list)
    """counts without episodes"""
    counts: list[Count] = field(default_factory=list, compare=False, repr=False)
    """the same as the rules read them"""
    unpaired: str = ""
    """why neither index nor seed identifies the starts of its episodes; empty if one does"""
    by_ending: bool = False
    """whether episodes are numbered as they ended, so that equal indexes in two attempts mean nothing"""
    unknown: str = field(default="", compare=False)
    codings: dict[tuple[str, Combo, int], Coding] = field(default_factory=dict, compare=False, repr=False)
    """by session, combo and attempt: how the verdicts of rows are written, if not as true and false"""
    runs: dict[Combo, tuple[str, range]] = field(default_factory=dict, compare=False)
    """of a combo with several runs side by side: the run that this file is of, and its episodes"""
    numeric: int = 0
    """records whose verdict is a number"""
    lacking: int = 0
    """records without the field of the verdict"""
    proposal: str = ""
    """what was said of how to read it"""
    judged_by: str = ""
    """the field of the verdict"""
    numbered_by: str = ""
    """the field of the index"""

    guessed: set[tuple[str, str]] = field(default_factory=set, compare=False)
    """policies and environments that its path names, and nothing in it"""
    parted: set[str] = field(default_factory=set, compare=False)
    """policies that its rows name alike with others, and only its path apart"""
    order_told: bool = field(default=False, compare=False)
    """whether columns tell which of the names that only its path has is the policy's"""
    identity: Identity | None = field(default=None, compare=False, repr=False)
    """how its rows name things"""
    kept: Kept = field(default_factory=Kept, compare=False, repr=False)
    """some of its rows, by which repeated ones are told apart; only if the context asks for them"""
    plain: PlainRows | None = field(default=None, compare=False, repr=False)

    @property
    def entries(self) -> tuple[EpisodeRecord | Aggregate, ...]:
        return (*self.records, *self.aggregates)

    @property
    def combos(self) -> set[Combo]:
        return {one.combo for one in self.entries}

    @property
    def named_by_path(self) -> bool:
        """Whether it has records, and only its path names their policies and their environments."""
        return bool(self.entries) and {kind for kind, _ in self.guessed} == {POLICY, ENVIRONMENT}

    def reject(self, line: int, reason: str, kind: RejectKind = RejectKind.NOT_A_RECORD) -> None:
        self.rejects.append(Reject(self.path, line, reason, kind))

    def defect(self, line: int, reason: str, path: str = "") -> None:
        self.defects.append(Defect(path or self.path, line, reason))

    def named(self, context: Context, policy: str, environment: str) -> Context:
        """The context; names that it lacks are those of its path, which are given here."""
        named = context.named(policy, environment)
        found = ((POLICY, context.policy, named.policy), (ENVIRONMENT, context.environment, named.environment))
        self.guessed.update((kind, str(name)) for kind, own, name in found if not own)
        return named

    def by_path(self, context: Context, policy: str | None, environment: str | None) -> Context:
        """The context of rows without these names, which are those of their path."""
        self.guessed.update((kind, one) for kind, one in ((POLICY, policy), (ENVIRONMENT, environment)) if one)
        identity = context.identity
        own = policy or identity.policy, environment or identity.environment
        return replace(context, policy=own[0], environment=own[1], words=identity.of(*own))

    def withdraw(self, *reasons: str) -> None:
        """Say no longer what another finding says better."""
        self.defects = [one for one in self.defects if one.reason not in reasons]

    def take_alike(self, context: Context, line: int, rows: Sequence[Any]) -> bool:
        """Accept the records of rows on consecutive lines, if each looks like an earlier row of this file."""
        if self.plain is None or self.plain.identity is not context.identity:
            return False
        records = self.plain.read(rows, line)
        self.records += records or ()
        if records and context.keeps and len(self.kept) < ROWS_MOST:
            for record, row in zip(records, rows, strict=True):
                self.kept.add(record.episode, row)
        return records is not None

    def take(self, context: Context, line: int, value: Any, order: int | None = None) -> None:
        """Accept the record in a decoded value, or reject it. `order`: its index, if it has none."""
        if self.plain is None or self.plain.identity is not context.identity:
            self.plain = PlainRows(context.identity)
        alike = order is None and context.path == self.path
        if alike and self.take_alike(context, line, [value]):
            return
        identity = context.identity
        if of_sibling(value, identity):
            return
        asked = identity.episode
        by_line = order is None and asked.word
        known = len(self.defects)
        try:
            if asked.names and isinstance(value, dict):
                order = context.first + context.keys.setdefault(key_of(value, asked, context.path), len(context.keys))
            held = read_row(value, context.identity, context.first if by_line else order)
            record = self._record(context, line, held, value)
            if by_line:  # a file may be of several combos
                record = replace(record, episode=context.first + context.lines[record.combo])
                context.lines[record.combo] += 1
            self.records.append(record)
            self.identity = context.identity
            if context.keeps and not asked.word:
                self.kept.add(record.episode, value)
            if held.value is not None and held.value is not MISSING and not isinstance(held.value, bool):
                key = (record.session, record.combo, record.attempt)
                self.codings.setdefault(key, Coding(context.identity.success.name)).add(held.value, held.verdict)
            if alike and len(self.defects) == known:
                self.plain.learn(value, record)
        except RefusedError as refused:
            foreign = refused.fact.code == NAMES_ANOTHER
            self.reject(line, say(refused.fact), RejectKind.FOREIGN if foreign else RejectKind.NOT_A_RECORD)

    def take_count(self, context: Context, line: int, counted: Count) -> None:
        """Accept a count. Which episodes succeeded is unknown: nothing can be paired."""
        self.identity = self.identity or context.identity
        self.counts.append(counted)
        self.unpaired = "its program tells how many episodes succeeded, not which"
        wanted = {*(context.rules.metrics or counted.metrics)}
        self.aggregates.append(
            Aggregate(
                policy=context.policy or UNNAMED,
                environment=context.environment or UNNAMED,
                successes=counted.successes,
                episodes=counted.episodes,
                metrics=MappingProxyType({name: one for name, one in counted.metrics.items() if name in wanted}),
                session=context.session,
                attempt=context.attempt,
                source=f"{context.path}:{line}" if line else context.path,
            )
        )

    def rename(self, combos: Mapping[Combo, Combo]) -> None:
        self._rename(lambda combo: combos.get(combo, combo))

    def translate(self, names: Mapping[str, Mapping[str, str]]) -> None:
        """Give its records the names of a grid. `names`: by kind, what rows say -> the name."""
        policies, environments = names["policy"], names["environment"]

        def own(combo: Combo) -> Combo:
            return policies.get(combo[0], combo[0]), environments.get(combo[1], combo[1])

        self._rename(own)

    def _rename(self, own: Callable[[Combo], Combo]) -> None:
        records = ((one, own(one.combo)) for one in self.records)
        self.records = [replace(one, policy=combo[0], environment=combo[1]) for one, combo in records]
        aggregates = ((one, own(one.combo)) for one in self.aggregates)
        self.aggregates = [replace(one, policy=combo[0], environment=combo[1]) for one, combo in aggregates]
        self.codings = {(key[0], own(key[1]), key[2]): one for key, one in self.codings.items()}

    def join(self, combo: Combo, run: str, episodes: range) -> None:
        """Number the combo's episodes as those of one of several runs, or of a process if `run` is empty."""
        first = episodes.start
        self.records = [
            replace(one, episode=one.episode + first) if one.combo == combo else one for one in self.records
        ]
        if run:
            self.runs[combo] = run, episodes

    def _record(self, context: Context, line: int, record: Record, row: dict[str, Any]) -> EpisodeRecord:
        identity = context.identity
        seed = None if identity.seed.word else _seed(identity.seed.find(row))
        known = {identity.policy_field.name, identity.environment_field.name}
        if seed is not None:
            known.add(identity.seed.name)
        if not isinstance(row.get(identity.episode.name), str):
            known.add(identity.episode.name)
        self.judged_by, self.numbered_by = identity.success.name, identity.episode.name
        verdict = identity.success.find(row)
        self.numeric += type(verdict) in (int, float)
        self.lacking += verdict is MISSING
        if record.complaint:
            self.defect(line, f"{say(record.complaint)}: errored")
        elif not identity.success.tests:
            known.add(identity.success.name)
        metrics, extra = self._fields(row, known, context.rules.metrics, line)
        return EpisodeRecord(
            policy=sys.intern(record.policy),
            environment=sys.intern(record.environment),
            episode=record.index,
            verdict=Verdict.MEASURED if identity.success.word else _VERDICTS[record.verdict],
            seed=seed,
            session=context.session,
            attempt=context.attempt,
            path=context.path,
            line=line,
            **packed(metrics, extra),
        )

    def _fields(
        self, row: Mapping[str, Any], known: Collection[str], wanted: tuple[str, ...], line: int
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """The metrics and the other fields, without those that are `known`."""
        metrics: dict[str, float] = {}
        extra: dict[str, Any] = {}
        for key, value in row.items():
            if key in known:
                continue
            kind = type(value)  # values from json have no subclasses; this is the slowest part of large runs
            if kind is str:
                extra[sys.intern(key)] = once(value)
            elif kind is not float and kind is not int:
                extra[sys.intern(key)] = value if kind is bool or value is None else _without_nan(value)
            elif not finite(value):
                self.defect(line, f"the field {key!r} is not a finite number: left out")
            elif not wanted or key in wanted:
                metrics[sys.intern(key)] = float(value)
            else:
                extra[sys.intern(key)] = value
        for name in (name for name in wanted if "." in name and name not in metrics):
            value = Field("metric", name).find(row)
            if isinstance(value, int | float) and not isinstance(value, bool) and finite(value):
                metrics[name] = float(value)
        return metrics, extra


_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")
"""a text that spells a number as a number spells itself: "7", but not "07" """


def _seed(value: object) -> int | float | str | None:
    """Any equal values are equal seeds; a list, an object or a boolean counts as its JSON text."""
    if isinstance(value, bool):
        return json.dumps(value)  # as True it would be equal to the seed 1
    if (whole := integer(value)) is not None:
        return whole
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | dict):
        return json.dumps(value, sort_keys=True, ensure_ascii=False) if value else None
    if isinstance(value, str):
        return int(value) if _WHOLE.fullmatch(value) else value or None
    return None


def finite(value: float) -> bool:
    """Also False for an integer that is too large for a float."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _without_nan(value: JsonValue, depth: int = 0) -> JsonValue:
    """The list or object, with null for values that JSON can't express."""
    if depth > DEPTH_LIMIT:
        raise RefusedError(NO_RECORD, "nested_too_deeply")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_without_nan(entry, depth + 1) for entry in value]
    if isinstance(value, dict):
        return {key: _without_nan(entry, depth + 1) for key, entry in value.items()}
    return value
