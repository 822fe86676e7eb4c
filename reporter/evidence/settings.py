"""How often episodes had which setting, and episodes that their record says not to count. Pure.

Two policies that met other objects, or the same ones not equally often, differ by more than themselves.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from comborun.model.attempt import EpisodeRecord, field_column, held
from comborun.reporter.evidence.states import plain
from comborun.rules.facts import Fact
from comborun.rules.results.fields import Field
from comborun.rules.results.one_row import verdict_of
from comborun.rules.results.proposals import of_whole

MOST = 50
"""most values of a setting"""
SURE = 0.001
"""p of the same mix, below which two mixes differ"""
STRONG = 1e-4
"""p of outcomes that do not go with a setting, below which they do"""
VALUES, EACH = 5, 5
"""fewest values of such a setting, and fewest episodes of each, on average"""
SEEN = 0.1
"""least gap between two shares that matters"""
_SETTING = re.compile(
    r"(?:.*_)?(?:scene|scenario|object|obj|asset|task|difficulty|difficulty_level|split|instruction|prompt|language|layout"
    r"|variant|variation|camera|light|lighting|background|texture|distractor|category|station|rig|room|house|operator"
    r"|terrain|perturbation|condition|date|day|phase)s?(?:_?(?:id|name|idx|index|type|kind|number))?",
    re.IGNORECASE,
)
_AFTERWARDS = re.compile(
    r"(?:^|_)(?:final|last|grasped|reached|held|picked|predicted|chosen|detected|failed|failure|end|completed|done|stop)"
    r"(?:_|$)",
    re.IGNORECASE,
)
"""names of what an episode came to"""
_MARK = re.compile(
    r"(?:is_)?(?:(?P<valid>valid)|invalid|excluded?|discard(?:ed)?|ignored?|warm_?up|aborted|void|outlier|unusable)"
    r"(?:_(?:episode|trial|run))?",
    re.IGNORECASE,
)
_YES, _NO = ({True, "true", "yes"}, {False, "false", "no"})


class SettingFact(StrEnum):
    MIX = "settings_not_alike"
    MARKED = "marked_episodes_count"
    CLUSTERS = "outcomes_go_with_field"
    OTHERWISE = "other_verdict_disagrees"


@dataclass(frozen=True)
class Settings:
    mix: Mapping[str, Mapping[object, int]] = field(default_factory=dict)
    """by field, in how many episodes it has each value"""
    marks: tuple[Fact, ...] = ()
    """what records say against counting episodes as they do"""
    clusters: tuple[Fact, ...] = ()


NO_SETTINGS = Settings()


def settings_of(records: Sequence[EpisodeRecord], *, chosen: bool = False) -> Settings:
    """`chosen`: the grid names the field of the verdict, so that another one is no question."""
    names = dict.fromkeys(name for both in sorted(held(records)) for some in both for name in some)
    mix = {}
    for name in names:
        if _SETTING.fullmatch(name) and not _AFTERWARDS.search(name):
            counts = Counter(one for one in map(plain, field_column(records, name)) if one is not None)
            if 0 < len(counts) <= min(MOST, counts.total() // 2):
                mix[name] = counts
    marks = [*_marks(records, names), *(() if chosen else _otherwise(records, names))]
    return Settings(mix, (*marks,), (*_clusters(records, mix),))


def _otherwise(records: Sequence[EpisodeRecord], names: Mapping[str, None]) -> Iterator[Fact]:
    """Other verdicts of the whole episode that disagree with the one that counts."""
    for name in filter(of_whole, names):
        field = Field("success", name)
        pairs = [(one.success, verdict_of({name: one.field(name)}, field)[0]) for one in records]
        told = [own != other for own, other in pairs if own is not None and other is not None]
        if any(told) and len(told) == len(pairs):
            yield Fact(SettingFact.OTHERWISE, field=name, episodes=sum(told), of=len(told))


def _clusters(records: Sequence[EpisodeRecord], mix: Mapping[str, Mapping[object, int]]) -> Iterator[Fact]:
    """Settings of many values with which outcomes go: ten objects in a hundred episodes are no hundred objects."""
    for name, counts in mix.items():
        if len(counts) < VALUES or sum(counts.values()) < EACH * len(counts):
            continue
        went: dict[bool, Counter[object]] = {True: Counter(), False: Counter()}
        for value, record in zip(map(plain, field_column(records, name)), records, strict=True):
            if value is not None and record.success is not None:
                went[record.success][value] += 1
        if all(went.values()) and _p(went[True], went[False]) < STRONG:
            yield Fact(SettingFact.CLUSTERS, field=name, values=len(counts))


def _marks(records: Sequence[EpisodeRecord], names: Mapping[str, None]) -> Iterator[Fact]:
    for name in names:
        if match := _MARK.fullmatch(name):
            values = [one.casefold() if isinstance(one, str) else one for one in field_column(records, name)]
            known = [one for one in values if isinstance(one, str | int | float)]
            marked = sum(one in (_NO if match["valid"] else _YES) for one in known)
            if marked:
                yield Fact(SettingFact.MARKED, field=name, valid=bool(match["valid"]), episodes=marked, of=len(records))


def unlike_mixes(a: Settings, b: Settings, names: tuple[str, str]) -> Iterator[Fact]:
    """Settings that two policies had, and one of them more often; `names` are those of the policies."""
    for name in a.mix.keys() & b.mix.keys():
        first, second = a.mix[name], b.mix[name]
        if len(first) == 1 == len(second):
            continue  # other constants are conditions
        totals = [sum(some.values()) for some in (first, second)]
        gaps = {one: first.get(one, 0) / totals[0] - second.get(one, 0) / totals[1] for one in {**first, **second}}
        widest = max(gaps, key=lambda one: (round(abs(gaps[one]), 9), str(one)))
        if abs(gaps[widest]) >= SEEN and _p(first, second) < SURE:
            told = f"{widest:g}" if isinstance(widest, float) else str(widest)
            counts = [some.get(widest, 0) for some in (first, second)]
            yield Fact(SettingFact.MIX, field=name, value=told, policies=[*names], episodes=counts, of=totals)


def _p(first: Mapping[object, int], second: Mapping[object, int]) -> float:
    """Chi-square of two mixes."""
    from scipy.special import chdtrc

    totals = [sum(some.values()) for some in (first, second)]
    chi = 0.0
    for value in {**first, **second}:
        both = first.get(value, 0) + second.get(value, 0)
        for some, total in zip((first, second), totals, strict=True):
            expected = both * total / sum(totals)
            chi += (some.get(value, 0) - expected) ** 2 / expected
    return float(chdtrc(len({**first, **second}) - 1, chi))
