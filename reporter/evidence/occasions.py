"""Days, operators, robots and the like that differ between two policies: what then is compared with what. Pure.

Without a value in common, all of a difference may be that of the days. So the day is the unit, as a run is. With some
values in common, the policies are compared within these, unless the values leave more units than these leave episodes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from comborun.reporter.evidence.settings import SEEN, SURE, Settings, chance, uneven

KNOWN, COVERED = 0.5, 0.9
"""least share of the episodes of both whose value is known: to see that none is common; to leave out the others"""
MAY_MATTER = 0.2
"""p of outcomes that do not go with a setting that may be a policy's own, such as its instructions, below which they
may"""
_NUMBERED = r"s?(?:_?(?:id|name|idx|index|type|kind|number|no))?"
_DATE = r"(?:.*_)?(?:date|day|week)"
_PEOPLE = r"(?:.*_)?(?:operator|evaluator|rater|tester|experimenter|annotator)"
_PLACES = r"(?:.*_)?(?:rig|station|lab|laboratory|site|robot)"
_VISITS = r"(?:.*_)?(?:session|batch|room|house|shift)"
_THINGS = r"(?:.*_)?(?:object|obj|asset|scene|scenario|layout|task|terrain|background|texture|distractor|category)"
_ALONE = re.compile(f"(?:{_DATE}|{_PEOPLE}|{_PLACES}){_NUMBERED}", re.IGNORECASE)
"""of which a single one of each policy tells nothing; others may be named for each policy, or are conditions"""
_MET = re.compile(f"(?:{_DATE}|{_PEOPLE}|{_PLACES}|{_VISITS}|{_THINGS}){_NUMBERED}", re.IGNORECASE)
_BY_HAND = re.compile(f"(?:{_PEOPLE}|(?:.*_)?(?:rig|station)){_NUMBERED}", re.IGNORECASE)
"""what no program has"""
_REAL = re.compile(f"(?:{_PEOPLE}|{_PLACES}){_NUMBERED}", re.IGNORECASE)
"""fields of records of real robots: without one of them, a date tells when a program ran"""


@dataclass(frozen=True)
class Occasion:
    field: str
    values: tuple[int, int]
    """how many each policy has"""
    common: tuple[str, ...] = ()
    """the values within which the policies are compared; empty: the value is the unit"""
    shared: bool = False
    """whether there are such values, though too few episodes have them"""
    even: bool = True
    """whether both have the common values alike"""


@dataclass(frozen=True)
class _Groups:
    name: str
    a: Mapping[str, frozenset[int]]
    b: Mapping[str, frozenset[int]]

    @property
    def common(self) -> list[str]:
        return [value for value in self.a if value in self.b]

    @property
    def fewest(self) -> int:
        return min(len(self.a), len(self.b))

    @property
    def within(self) -> int:
        """Episodes of the policy that has fewer with a common value."""
        return min(sum(len(some[value]) for value in self.common) for some in (self.a, self.b))

    @property
    def gaps(self) -> list[float]:
        """By how much the shares of the common values differ."""
        totals = [sum(len(some[value]) for value in self.common) for some in (self.a, self.b)]
        return [abs(len(self.a[value]) / totals[0] - len(self.b[value]) / totals[1]) for value in self.common]

    @property
    def even(self) -> bool:
        return max(self.gaps) < SEEN

    def matters(self, successes: tuple[Collection[int], Collection[int]]) -> bool:
        """Whether outcomes may go with it."""
        chi, freedom = 0.0, 0
        for own, won in zip((self.a, self.b), successes, strict=True):
            chi += uneven((len(some.intersection(won)), len(some)) for some in own.values())
            freedom += len(own) - 1
        return chance(chi, freedom) < MAY_MATTER


def occasion_of(
    sides: tuple[Settings, Settings],
    completed: tuple[frozenset[int], frozenset[int]],
    successes: tuple[Collection[int], Collection[int]],
    *,
    paired: bool,
    runs: int,
    one_policy: bool,
) -> Occasion | None:
    """The setting by which two policies are not comparable as they are; None if there is none.

    `paired`: episodes of a program, unless people took part. `runs`: the fewest runs that a policy has, of which each
    may be the unit. `one_policy`: each of its two runs has its own day.
    """
    found = [*_groups(sides, completed)]
    real = any(_REAL.fullmatch(one.name) for one in found)
    if paired and not any(_BY_HAND.fullmatch(one.name) for one in found):
        return None
    apart = [one for one in found if not one.common and _is_unit(one, successes, real=real and not one_policy)]
    if apart:
        coarsest = min(apart, key=lambda one: one.fewest)
        return _unit(coarsest) if runs < 2 or coarsest.fewest < runs else None
    partly = [one for one in found if one.common and _MET.fullmatch(one.name) and _unlike(one)]
    if not partly or runs > 1:
        return None
    one = min(partly, key=lambda one: one.within)
    if one.within < one.fewest:
        return _unit(one)
    return Occasion(one.name, (len(one.a), len(one.b)), (*one.common,), shared=True, even=one.even)


def _is_unit(one: _Groups, successes: tuple[Collection[int], Collection[int]], *, real: bool) -> bool:
    if max(len(one.a), len(one.b)) > 1:
        return bool(_MET.fullmatch(one.name)) or one.matters(successes)
    return bool(_ALONE.fullmatch(one.name)) and real


def _unit(one: _Groups) -> Occasion:
    return Occasion(one.name, (len(one.a), len(one.b)), shared=bool(one.common))


def _unlike(one: _Groups) -> bool:
    """Whether one of both has values that the other lacks, or the same ones far more often."""
    if one.a.keys() != one.b.keys():
        return True
    counts = [(len(one.a[value]), len(one.a[value]) + len(one.b[value])) for value in one.common]
    return not one.even and chance(uneven(counts), len(counts) - 1) < SURE


def _groups(sides: tuple[Settings, Settings], completed: tuple[frozenset[int], frozenset[int]]) -> Iterator[_Groups]:
    for name in sorted(sides[0].groups.keys() & sides[1].groups.keys()):
        known = [
            {value: some & done for value, some in side.groups[name].items() if some & done}
            for side, done in zip(sides, completed, strict=True)
        ]
        told = [sum(map(len, some.values())) for some in known]
        share = KNOWN if not known[0].keys() & known[1].keys() else COVERED
        if all(few and few >= share * len(done) for few, done in zip(told, completed, strict=True)):
            yield _Groups(name, known[0], known[1])
