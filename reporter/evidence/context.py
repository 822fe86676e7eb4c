"""Fields of the records that say under which conditions episodes ran, and names that may mean the same. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from types import MappingProxyType
from typing import Any
from unicodedata import category, normalize
from unicodedata import name as name_of

from comborun.model.attempt import EpisodeRecord, Verdict, field_column, having, held, metric_columns
from comborun.model.work import grouped
from comborun.reporter.counting.measures import FAILURE_FIELDS
from comborun.reporter.evidence.runs import RunFact
from comborun.reporter.evidence.starts import RUN
from comborun.reporter.evidence.states import HASHES, field_names, shown, values_of
from comborun.reporter.records.path_parts import without_date
from comborun.rules.facts import Fact
from comborun.text import natural

Context = Mapping[str, frozenset[object]]
"""by field, its few values"""
NO_CONTEXT: Context = MappingProxyType({})
FEW = 5
"""most values of a field that are conditions; more are measurements or names of episodes"""
SHOWN = 10
"""fewest episodes that show that a number never varies"""
CHECKPOINTS = 100
"""most values of a field that names checkpoints"""
LEAST = 2
"""fewest episodes of a value: a text of a single episode describes that episode"""

_OF_THE_POLICY = re.compile(
    r"checkpoint|ckpt|weights|model|policy|agent|(?:^|_)(?:commit|git|sha|revision)(?:_|$)"
    r"|^(?:global|train|training)_?steps?$",
    re.IGNORECASE,
)
_CHECKPOINT = re.compile(r"checkpoint|ckpt|weights|^(?:global|train|training)_?steps?$", re.IGNORECASE)
_STEPS = re.compile(r"steps?|epochs?|iter(?:ation)?s?|updates?", re.IGNORECASE)
"""of a training, if all episodes in a row have the same; else of an episode"""
_CONDITION = re.compile(
    r"(?:^|_)(?:max|limit|horizon|timeout|hz|fps|freq|frequency|dt|timestep|frame_skip|decimation|version|sim|simulator"
    r"|engine|physics|backend|split|difficulty|instruction|camera|resolution)(?:_|$)",
    re.IGNORECASE,
)
_RESULT = re.compile(
    r"outcome|result|status|verdict|message|note|comment|video|path|file|host|time|date|id$|uuid", re.IGNORECASE
)
DAY = re.compile(r"(?:eval_|test_)?(?:date|day)", re.IGNORECASE)
"""a condition where each policy has its own, if robots or people change from day to day; episodes that are paired by
their starts are those of a program"""
_SEAMS = re.compile(r"[\s_\-\u2010-\u2015\u2212.,:;/()\[\]]+")
_BEHIND_ZERO = re.compile(r"(?<!\d)0 (?=\d)")
"""the point of `0.5`"""
_BETWEEN_NUMBERS = re.compile(r"(?<=\d) (?=\d)")
_RUN_NAME = re.compile(
    r"(?P<policy>.+?)[-_. (/]+(?P<run>(?:(?:train|training)[-_]?)?(?:s|seed|run|rep|replica|replicate)[-_=]?\d+)\)?",
    re.IGNORECASE,
)
"""a policy's name with that of a run: `pi0_s1`, `act-seed-42`"""
_DAY_IN_NAME = re.compile(
    r"[-_. (]+(?:0[1-9][0-3]\d|2\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-_ ]?[0-3]?\d)\)?$",
    re.IGNORECASE,
)
"""a day at the end of a name, which may also be another number: `pi0_0501`, `pi0_260501`, `pi0-May01`"""
_RUN_OF_PLACE = re.compile(
    r"(?P<policy>.+?)[-_. (/]+(?:(?:train|training)[-_]?)?(?:seed|run|rep|replica|replicate)[-_=]?\d+\)?", re.IGNORECASE
)
PART = re.compile(
    r"[-_. (/]+(?:resum(?:ed?|ing)|cont(?:d|inued?|inuation)?|rest|remaining|re[-_]?run|re[-_]?try|re[-_]?tried|fixed"
    r"|(?:part|chunk|shard)[-_=]?\d+)\)?$",
    re.IGNORECASE,
)
"""behind a policy's name, that its evaluation went on or was made again: `pi0_resumed`, `act-part2`"""
_LEFT_OUT = {*FAILURE_FIELDS, *HASHES}


class ContextFact(StrEnum):
    VARIES = "field_varies_inside"
    DIFFERS = "field_differs_between"
    ONE_SIDED = "field_of_one_side"
    SHARED = "checkpoint_of_both"
    NAMES_ALIKE = "names_alike"
    NAMES_OF_RUNS = "names_of_runs"
    NAMES_OF_PARTS = "names_of_parts"
    OTHER_WORDS = "kinds_that_one_side_names"
    NAMES_OF_STEPS = "names_of_steps"


def context_of(records: Sequence[EpisodeRecord]) -> Context:
    """The conditions of a combo: texts with few values, and numbers whose names say that they are conditions."""
    found = {}
    numbers = {name for metrics, _ in held(records) for name in metrics}
    both_ways = any(one.success for one in records) and any(one.success is False for one in records)
    for name in field_names(records):
        trained = name in numbers and bool(_STEPS.fullmatch(name)) and _in_blocks(records, name)
        told = trained or bool(_CONDITION.search(name) or _OF_THE_POLICY.search(name))
        if name in _LEFT_OUT or RUN.fullmatch(name) or (_RESULT.search(name) and not (told or DAY.fullmatch(name))):
            continue
        if name in numbers and not told and not (both_ways and _constant(records, name)):
            continue
        values: dict[object, int] = {}
        most = CHECKPOINTS if trained or _CHECKPOINT.search(name) else FEW
        for value in values_of(records, name):
            if value is not None and not (isinstance(value, bool) and not told):
                values[value] = values.get(value, 0) + 1
            if len(values) > most:
                break
        if values and len(values) <= most and min(values.values()) >= LEAST:
            found[name] = frozenset(values)
    return found


def _constant(records: Sequence[EpisodeRecord], name: str) -> bool:
    """Whether a number is the same in all episodes: while results vary, it is none."""
    first = records[0].metric(name)
    few = all(one.metric(name) == first for one in records[:LEAST])
    return few and len(records) >= SHOWN and all(one.metric(name) == first for one in records)


def _in_blocks(records: Sequence[EpisodeRecord], name: str) -> bool:
    """Whether a number is the same in many episodes in a row, and does not come again."""
    runs = [(value, len([*some])) for value, some in groupby(field_column(records, name))]
    return min(length for _, length in runs) >= SHOWN and len({value for value, _ in runs}) == len(runs)


def varying(context: Context, others: Iterable[Context]) -> Iterator[Fact]:
    """Conditions that vary inside one policy in an environment, unless they do so in the others of it, too."""
    alike = [one for one in others if one is not context]
    for name, values in context.items():
        named = _OF_THE_POLICY.search(name) or _STEPS.fullmatch(name)
        if len(values) > 1 and (named or (_CONDITION.search(name) and any(one.get(name) != values for one in alike))):
            yield Fact(ContextFact.VARIES, field=name, values=_told(values))


def differing(a: Context, b: Context, *, one_policy: bool) -> Iterator[Fact]:
    """Conditions that are constant in each of two policies and not the same; what names a policy may differ."""
    for one, other in ((a, b), (b, a)):
        for name in sorted(one.keys() - other.keys()):
            if _CONDITION.search(name) or (one_policy and _OF_THE_POLICY.search(name)):
                yield Fact(ContextFact.ONE_SIDED, field=name, values=_told(one[name]))
    for name in a.keys() & b.keys() if not one_policy else ():
        text = next(iter(a[name])) if len(a[name]) == 1 and a[name] == b[name] else None
        if _CHECKPOINT.search(name) and isinstance(text, str) and "/" in text:  # `last.pt` may be of each policy
            yield Fact(ContextFact.SHARED, field=name, value=text)
    for name in a:
        may_differ = _OF_THE_POLICY.search(name) and not one_policy
        if len(a[name]) == 1 == len(b.get(name, ())) and a[name] != b[name] and not may_differ:
            if one_policy and DAY.fullmatch(name):  # each run has its own
                continue
            when = {"when": ["after", "before"]} if one_policy else {}
            yield Fact(ContextFact.DIFFERS, field=name, a=_told(a[name])[0], b=_told(b[name])[0], **when)


def _told(values: Iterable[object]) -> list[str]:
    return sorted(map(shown, values), key=natural)


def alike(names: Iterable[str], kind: str) -> Iterator[Fact]:
    """Names that are equal but for case, blanks, punctuation, and how their signs are written."""
    for found in grouped(names, normal).values():
        if len(found) > 1:
            yield Fact(ContextFact.NAMES_ALIKE, kind=kind, names=list(found))


def run_names(names: Iterable[str], kind: str = "policy") -> Iterator[Fact]:
    """Policies whose names differ only by that of a run; or environments, where `s1` may be a scene."""
    told = [(policy, name) for name in names if (policy := _without_run(name, kind)) not in ("", name)]
    for policy, found in grouped(told, lambda one: one[0]).items():
        if len(found) > 1:
            of = policy if policy.count("(") == policy.count(")") else f"{policy})"
            yield Fact(ContextFact.NAMES_OF_RUNS, kind=kind, of=of, names=[name for _, name in found])


def _without_run(name: str, kind: str) -> str:
    if match := (_RUN_NAME if kind == "policy" else _RUN_OF_PLACE).fullmatch(name):
        return match["policy"]
    return _DAY_IN_NAME.sub("", without_date(name)) if kind == "policy" else name


def parts_of_one(names: tuple[str, str], episodes: tuple[Collection[int], Collection[int]]) -> Iterator[Fact]:
    """Two policies that may be one, resumed or run again: one has the other's name with such a word behind it, or with
    any word, and the episodes that follow those of the other."""
    short, long = sorted(names, key=len)
    behind = long[len(short) :] if long.startswith(short) else ""
    word = len({PART.sub("", name) for name in names}) == 1
    if not (word or (behind and not behind[0].isalnum())) or not all(episodes):
        return
    first, second = sorted(zip(names, episodes, strict=True), key=lambda one: min(one[1]))
    if word or max(first[1]) + 1 == min(second[1]):
        yield Fact(ContextFact.NAMES_OF_PARTS, names=[first[0], second[0]], apart=not {*first[1]} & {*second[1]})


def runs_in_names(a: str, b: str) -> list[str]:
    """What the names of two policies say of their runs; empty unless both do, or if they are of one policy."""
    found = [match for name in (a, b) if (match := _RUN_NAME.fullmatch(name))]
    policies = {match["policy"] for match in found}
    return [*dict.fromkeys(match["run"] for match in found)] if len(policies) == len(found) == 2 else []


def once(facts: Iterable[Fact]) -> Iterator[Fact]:
    """With names that belong together in one fact, though each pair of policies has its own, and rates of runs, though
    each environment has."""

    def topic(one: Fact) -> object:
        if one.code == ContextFact.NAMES_OF_RUNS:
            return one.code, one.text("of")
        if one.code == RunFact.JOINED:
            return one.code, one.text("policy"), *one.texts("runs")
        return normal(one.texts("names")[0]) if one.code == ContextFact.NAMES_ALIKE else id(one)

    groups = grouped(facts, topic)
    for first, *others in groups.values():
        every = (first, *others)
        together: dict[str, Any] = {"names": sorted({name for one in every for name in one.texts("names")})}
        if first.code == RunFact.JOINED:
            together = {"rates": [rate for one in every for rate in one.fields["rates"]]}
        yield Fact(first.code, **{**first.fields, **together}) if others else first


def namesakes(these: Iterable[str], those: Iterable[str]) -> dict[str, str]:
    """Names that are not in the other list, each with the one there that differs by case, blanks or punctuation."""
    known = {normal(name): name for name in those}
    lacking = (name for name in dict.fromkeys(these) if name not in known.values())
    return {name: known[normal(name)] for name in lacking if normal(name) in known}


@lru_cache(maxsize=4096)
def normal(name: str) -> str:
    """Without case, blanks, punctuation and signs that can't be seen, except between two numbers: `v1-1` is not `v11`,
    but `pi0_5` is `pi05`. A Greek letter is its name: `π0` is `pi0`."""
    signs = name if name.isascii() else "".join(map(_in_latin, normalize("NFKC", name)))
    words = " ".join(_SEAMS.sub(" ", signs).split()).casefold()
    return _BETWEEN_NUMBERS.sub("-", _BEHIND_ZERO.sub("0", words)).replace(" ", "")


def _in_latin(sign: str) -> str:
    called = (
        name_of(sign, "").partition("GREEK SMALL LETTER ")[2] or name_of(sign, "").partition("GREEK CAPITAL LETTER ")[2]
    )
    return called.partition(" ")[0].lower() if called else "" if category(sign) == "Cf" else sign


# -- the time limit of episodes, as far as the lengths of failures show it --------------------------------------------

LIMITS, LONGER = "failures_end_at_other_lengths", "episodes_longer_than_the_limit"
FEWEST = 5
"""fewest failures of one length, the longest of all, that show that it is the limit; they are half of the failures"""
_LENGTH = re.compile(r"(?:^|_)(?:steps?|length|len|duration|frames|time)(?:_|$)", re.IGNORECASE)
_NO_LENGTH = re.compile(r"(?:^|_)(?:to|until|wall|wait|mean|min|max|per|limit|global|train)(?:_|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Length:
    longest: float
    limit: float | None
    """at which failures end, above 0; None where they don't show it"""


Lengths = Mapping[str, Length]
"""by field"""


def lengths_of(records: Sequence[EpisodeRecord]) -> Lengths:
    names = {name for metrics, _ in held(records) for name in metrics}
    names = {name for name in names if _LENGTH.search(name) and not _NO_LENGTH.search(name)}
    if not names:
        return {}
    every = metric_columns(having(records, Verdict.SUCCESS, Verdict.FAILURE), names)
    failed = metric_columns(having(records, Verdict.FAILURE), names)
    found = {}
    for name, values in sorted(every.items()):
        longest, own = max(values), failed.get(name, [])
        ended = own.count(longest)
        # A number that successes always have, too, is a constant: the step of a training, say.
        ends = FEWEST <= ended >= len(own) / 2 and not (len(own) < len(values) and min(values) == longest)
        found[name] = Length(longest, longest if ends and longest > 0 else None)
    return found


def unlike_limits(a: tuple[str, Lengths], b: tuple[str, Lengths]) -> Iterator[Fact]:
    """Two policies whose failures end at other lengths, or one of them has episodes longer than the other's limit."""
    (_, first), (_, second) = a, b
    for name in (name for name in first if name in second):
        limits = [one[name].limit for one in (first, second)]
        if None not in limits:
            if limits[0] != limits[1]:
                yield Fact(LIMITS, field=name, names=[a[0], b[0]], limits=limits)
            continue
        for (one, own), (other, theirs) in ((a, b), (b, a)):
            limit = own[name].limit
            if limit is not None and theirs[name].longest > limit:
                yield Fact(LONGER, field=name, of=one, limit=limit, other=other, longest=theirs[name].longest)


def limits_of(sides: Mapping[str, Lengths]) -> Iterator[Fact]:
    """The same of all policies of an environment together."""
    for name in sorted({name for one in sides.values() for name in one}):
        found = {who: one[name].limit for who, one in sides.items() if name in one and one[name].limit is not None}
        if len({*found.values()}) > 1:
            yield Fact(LIMITS, field=name, names=[*found], limits=[*found.values()])
