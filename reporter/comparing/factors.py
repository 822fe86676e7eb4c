"""Factors of the episodes, such as a camera's offset or a mass: which go with success. Pure.

A factor is set before the episode: the grid names it, or it is the same for every policy at the same start. If it does
not matter, the results of starts could be exchanged. So p is the share of such exchanges that go with the factor as
much; from many starts on it is chi-square's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import fmean, median
from typing import TYPE_CHECKING

from comborun.model.attempt import EpisodeRecord, field_column
from comborun.model.work import Combo, grouped
from comborun.reporter.comparing.comparison import ALPHA
from comborun.reporter.comparing.sides import Arm, Results
from comborun.reporter.counting.measures import FAILURE_FIELDS, JUDGED
from comborun.reporter.counting.quality import DataFinding
from comborun.reporter.evidence.fields import Fields
from comborun.reporter.evidence.states import HASHES, field_names, plain, shown
from comborun.reporter.json_types import Rounded
from comborun.reporter.statistics.difference import holm
from comborun.reporter.statistics.proportion import Interval, clopper_pearson
from comborun.reporter.text import fraction, p_value, per_cent
from comborun.text import natural

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHARED = 20
"""fewest starts of two policies that show that a field is the same for both"""
LOOKED_AT = 50
FEWEST = 5
"""fewest starts of a level"""
LEVELS = 6
"""most levels of a factor; numbers with more are halved at their median, and ranked for p"""
MANY = 300
"""starts from which on p is chi-square's"""
DRAWN = 9_999


@dataclass(frozen=True)
class Level:
    name: str
    starts: int
    """different starts; each counts once, at its mean over episodes and policies"""
    rate: Rounded
    interval: Interval
    """95 % for all levels of the factor together"""


@dataclass(frozen=True)
class Factor:
    field: str
    environments: tuple[str, ...]
    """in which it varies"""
    levels: tuple[Level, ...]
    p: Rounded
    """of "success does not go with it\""""
    p_holm: Rounded = 1.0
    """corrected over all factors, which have 5 % of error of their own"""

    @property
    def decided(self) -> bool:
        return self.p_holm <= ALPHA


@dataclass(frozen=True)
class _Start:
    """What started the same, in one environment or in several: a hard start may be hard in all of them."""

    environments: frozenset[str]
    value: Hashable
    success: float
    residual: float
    """success minus the mean of its policy in its environment"""


def factors(results: Results, named: Collection[str], fields: Fields) -> tuple[Factor, ...]:
    """The smallest p first. `named`: by the grid."""
    arms = {combo: side for combo, side in results.sides.items() if isinstance(side, Arm) and combo in results.merged}
    judged = {combo: [one for one in results.merged[combo].accepted if one.verdict in JUDGED] for combo in arms}
    left_out = {*HASHES, *FAILURE_FIELDS, *fields.identifiers, *fields.running} - {*fields.going_on, *named}
    inside = {name for name in named if any(len(values_of(some, name)) > 1 for some in judged.values())}
    names = sorted((inside | _same_for_all(judged)) - left_out)
    found = [one for name in names if (one := _factor(name, _starts(name, judged, arms, named=name in named)))]
    adjusted = zip(found, holm([one.p for one in found]), strict=True)
    return tuple(sorted((replace(one, p_holm=p) for one, p in adjusted), key=lambda one: one.p_holm))


def values_of(records: Sequence[EpisodeRecord], name: str) -> set[object]:
    """The values of a field."""
    return {*map(plain, field_column(records, name))} - {None}


def _same_for_all(judged: Mapping[Combo, Sequence[EpisodeRecord]]) -> set[str]:
    """Fields that are the same in the first common episodes of two policies: candidates."""
    found = set[str]()
    for combos in grouped(judged, lambda combo: combo[1]).values():
        if len(combos) > 1:
            a, b = ({one.episode: one for one in islice(judged[combo], LOOKED_AT)} for combo in combos[:2])
            common = a.keys() & b.keys()
            if len(common) >= SHARED:
                names = field_names(a.values())
                found |= {name for name in names if all(a[one].field(name) == b[one].field(name) for one in common)}
    return found


def _starts(
    name: str, judged: Mapping[Combo, Sequence[EpisodeRecord]], arms: Mapping[Combo, Arm], *, named: bool
) -> list[_Start]:
    """The starts with this field, over policies and environments; none if two policies differ in it, and it is not
    `named`: then it is a result."""
    told: dict[tuple[str, Hashable], Hashable] = {}
    found: defaultdict[tuple[Hashable, Hashable], list[tuple[str, bool, float]]] = defaultdict(list)
    for combo, records in judged.items():
        rate = len(arms[combo].successes) / max(1, len(arms[combo].completed))
        for one in records:
            if (value := plain(one.field(name))) is not None:
                start = arms[combo].starts.of(one.episode)
                start = ("episode", one.episode) if start is None else start
                if told.setdefault((combo[1], start), value) != value and not named:
                    return []
                found[value, start].append((combo[1], bool(one.success), bool(one.success) - rate))
    return [
        _Start(
            frozenset(place for place, _, _ in some),
            value,
            fmean(won for _, won, _ in some),
            fmean(residual for _, _, residual in some),
        )
        for (value, _), some in found.items()
    ]


def _factor(name: str, starts: Sequence[_Start]) -> Factor | None:
    """None unless it varies within an environment, and each level has enough starts."""
    strata = grouped(starts, lambda one: one.environments)
    used = [some for some in strata.values() if len({one.value for one in some}) > 1]
    whole = [one for some in used for one in some]
    if not whole:
        return None
    levels = _levels(whole)
    if not 1 < len(levels) <= LEVELS or min(map(len, levels.values())) < FEWEST:
        return None
    confidence = 1 - ALPHA / len(levels)
    shown = [
        Level(told, len(some), fmean(one.success for one in some),
              clopper_pearson(sum(one.success for one in some), len(some), confidence) or (0.0, 1.0))
        for told, some in levels.items()
    ]  # fmt: skip
    places = sorted({name for one in whole for name in one.environments}, key=natural)
    return Factor(name, (*places,), (*shown,), _p(used, [*levels.values()]))


def _levels(starts: Sequence[_Start]) -> dict[str, list[_Start]]:
    values = {one.value for one in starts}
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]

    def order(value: Hashable) -> tuple[bool, float, str]:
        number = isinstance(value, int | float)
        return not number, float(value) if isinstance(value, int | float) else 0.0, str(value)

    if len(numbers) < len(values) or len(values) <= LEVELS:
        names = {value: shown(value).lower() if isinstance(value, bool) else shown(value) for value in values}
        return {names[value]: [one for one in starts if one.value == value] for value in sorted(values, key=order)}
    middle = median(_number(one) for one in starts)
    halves = {f"up to {middle:g}": True, f"above {middle:g}": False}
    return {told: [one for one in starts if (_number(one) <= middle) is low] for told, low in halves.items()}


def _number(start: _Start) -> float:
    return float(start.value) if isinstance(start.value, int | float) else 0.0


def _p(strata: Sequence[Sequence[_Start]], levels: Sequence[Sequence[_Start]]) -> float:
    import numpy as np
    from scipy.special import chdtrc

    numeric = any(len({one.value for one in level}) > 1 for level in levels)
    level_of = {id(one): at for at, level in enumerate(levels) for one in level}
    seen, columns = [np.array([one.residual for one in some]) for some in strata], []
    seen = [values - values.mean() for values in seen]
    for some in strata:
        ranks = _ranks([_number(one) for one in some]) if numeric else np.zeros(0)
        at = [level_of[id(one)] for one in some]
        columns.append((ranks - ranks.mean())[:, None] if numeric else np.eye(len(levels))[at])
    design = np.vstack(columns)
    design = design / np.sqrt((design**2).sum(axis=0))
    whole = np.concatenate(seen)
    found = float(((whole @ design) ** 2).sum())
    if len(whole) > MANY:
        spread = float((whole**2).sum()) / (len(whole) - len(seen)) or 1.0
        return float(chdtrc(1 if numeric else len(levels) - 1, found / spread))
    rng = np.random.default_rng(len(whole))
    drawn = np.hstack([rng.permuted(np.tile(values, (DRAWN, 1)), axis=1) for values in seen])
    return float((1 + (((drawn @ design) ** 2).sum(axis=1) >= found * (1 - 1e-9)).sum()) / (1 + DRAWN))


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """Equal values share the mean of their ranks. scipy.stats has this, too, and takes a second to load."""
    import numpy as np

    _, group, count = np.unique(values, return_inverse=True, return_counts=True)
    means: NDArray[np.float64] = np.cumsum(count) - (count - 1) / 2
    return means[group]


def said(found: Sequence[Factor]) -> Iterator[str]:
    """A sentence for each factor that goes with success."""
    for one in found:
        if one.decided:
            levels = "; ".join(
                f"{level.name}: {fraction(level.rate)} % {per_cent(level.interval)} of {level.starts} starts"
                for level in one.levels
            )
            alone = f" (Holm over {len(found)} factors)" if len(found) > 1 else ""
            yield (
                f"Success goes with {one.field} ({levels}), p {p_value(one.p_holm)}{alone}. Factors that change"
                " together are not told apart."
            )


def without_levels(results: Results, named: Collection[str], found: Sequence[Factor]) -> Iterator[DataFinding]:
    """Factors that the grid names, but about which nothing can be said, and why."""
    for name in sorted({*named} - {one.field for one in found}):
        values = [values_of(one.accepted, name) for one in results.merged.values()]
        why = f"has a level with fewer than {FEWEST} starts, or more than {LEVELS} levels that are texts"
        if not any(values):
            why = "is in no record"
        elif max(map(len, values)) == 1:
            why = "never varies inside a policy and an environment, so nothing tells it from them"
        yield DataFinding("factors", f"{name!r} {why}")
