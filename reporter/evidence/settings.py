"""How often episodes had which setting, and episodes that their record says not to count. Pure.

If two policies met different objects, or the same ones not equally often, these explain a part of their difference. A
field is a setting by its name, or if it is a text with few values that do not say how an episode ended.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from statistics import median

from comborun.model.attempt import EpisodeRecord, field_column, held
from comborun.reporter.counting.measures import FAILURE_FIELDS
from comborun.reporter.evidence.states import episodes_by, field_names, shown, values_of
from comborun.rules.facts import Fact
from comborun.rules.results.fields import Field
from comborun.rules.results.one_row import verdict_of
from comborun.rules.results.proposals import of_whole

MOST = 50
"""most values of a setting; more numbers are divided at their median"""
FEW = 12
"""most values of a text whose name says nothing"""
LOOKED_AT = 100
"""episodes that show at once that a text has more"""
SURE = 0.001
"""p of the same mix, below which two mixes differ"""
STRONG = 1e-4
"""p of outcomes that do not go with a setting, below which they do"""
VALUES, EACH = 5, 5
"""fewest values of such a setting, and fewest episodes of each, on average"""
MANY = 10
"""values from which on two episodes of each show it"""
SEEN = 0.1
"""least gap between two shares that matters"""
_SETTING = re.compile(
    r"(?:.*_)?(?:scene|scenario|object|obj|asset|task|difficulty|difficulty_level|split|instruction|prompt|language|layout"
    r"|variant|variation|camera|light|lighting|background|texture|distractor|category|station|rig|room|house|operator"
    r"|evaluator|rater|tester|experimenter|annotator|robot|lab|laboratory|site|week|shift"
    r"|terrain|perturbation|condition|date|day|session|batch|phase|level|seen|unseen|ood|held_?out|novel|in_distribution)s?(?:_?(?:id|name|idx|index|type|kind|number|no))?",
    re.IGNORECASE,
)
_AFTERWARDS = re.compile(
    r"(?:^|_)(?:final|last|grasped|reached|held|picked|predicted|chosen|detected|failed|failure|end|completed|done|stop)"
    r"(?:_|$)",
    re.IGNORECASE,
)
"""names of what an episode came to"""
_NO_SETTING = re.compile(
    r"outcome|result|status|verdict|message|video|path|file|host|gpu|device|worker|time|stamp|id$|uuid|hash|seed|error"
    r"|checkpoint|ckpt|weights|model|policy|agent|commit|git|sha|version|exception|traceback",
    re.IGNORECASE,
)
"""texts of other rooms: names of the policy, of machines and files, and of how an episode ended"""
_START = re.compile(r"(?:init|initial|start)\w*_(?:id|idx|index|number)", re.IGNORECASE)
"""fields that number starts: where each episode has a seed of its own, they tell only of a part of the start"""
_VERDICT = re.compile(r"(?:.*_)?(?:success|succeeded|solved|passed)(?:_.*)?", re.IGNORECASE)
_HELPED = re.compile(
    r"(?:n_|num_|human_|operator_)*(?:interven(?:ed|tions?)|take_?overs?|teleop\w*|assist(?:ed|s|ance)?)(?:_(?:count|steps?))?",
    re.IGNORECASE,
)
_MARK = re.compile(
    r"(?:is_)?(?:(?P<valid>valid|used?|keep|kept|included?)|invalid|excluded?|discard(?:ed)?|ignored?|warm_?up|aborted|void|outlier|unusable)"
    r"(?:_(?:episode|trial|run))?",
    re.IGNORECASE,
)
_YES, _NO = ({True, "true", "yes"}, {False, "false", "no"})


class SettingFact(StrEnum):
    MIX = "settings_not_alike"
    MARKED = "marked_episodes_count"
    CLUSTERS = "outcomes_go_with_field"
    NESTED = "field_as_random_effect"
    ALONE = "one_value_each"
    WITHIN = "compared_within_values"
    OTHERWISE = "other_verdict_disagrees"
    HELPED = "episodes_with_help"
    OTHER_VERDICT = "other_verdict_differs"


@dataclass(frozen=True)
class Settings:
    mix: Mapping[str, Mapping[object, int]] = field(default_factory=dict)
    """by field, in how many episodes it has each value"""
    marks: tuple[Fact, ...] = ()
    """what records say against counting episodes as they do"""
    clusters: tuple[Fact, ...] = ()
    groups: Mapping[str, Mapping[str, frozenset[int]]] = field(default_factory=dict)
    """by setting, the episodes of each of its values"""
    verdicts: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    """by another field that says success or not: successes by it, by the verdict, and of how many"""


NO_SETTINGS = Settings()


def settings_of(records: Sequence[EpisodeRecord], *, chosen: bool = False) -> Settings:
    """`chosen`: the grid names the field of the verdict, so that another one is no question."""
    names = field_names(records)
    others = {name for _, some in held(records) for name in some}
    mix: dict[str, Counter[object]] = {}
    verdicts: dict[str, tuple[int, int, int]] = {}
    for name in names:
        named = any(pattern.fullmatch(name) for pattern in (_SETTING, _VERDICT, _HELPED))
        if not named and (name not in others or name in FAILURE_FIELDS or _NO_SETTING.search(name)):
            continue
        column = field_column(records, name)
        if not named and len({*map(str, column[:LOOKED_AT])}) > FEW:
            continue
        values = [*values_of(records, name)]
        told = [(value, one.success) for value, one in zip(values, records, strict=True) if value is not None]
        if _VERDICT.fullmatch(name) and told and all(value in (0, 1) for value, _ in told):
            verdicts[name] = sum(bool(value) for value, _ in told), sum(bool(won) for _, won in told), len(told)
        elif not _AFTERWARDS.search(name):
            counts = _counts(name, values, records)
            mix |= {name: counts} if counts else {}
    fresh = len({one.seed for one in records} - {None}) == len(records)
    many = {name: Counter(values_of(records, name)) for name in names if fresh and _START.fullmatch(name)}
    many |= {name: counts for name, counts in mix.items() if _SETTING.fullmatch(name)}
    marks = [*_marks(records, names), *(() if chosen else _otherwise(records, names))]
    groups = {name: episodes_by(records, name) for name, counts in many.items() if len(counts) <= MOST}
    return Settings(mix, (*marks,), (*_clusters(records, many),), groups, verdicts)


def uneven(counts: Iterable[tuple[int, int]]) -> float:
    """Chi-square of several rates, each (successes, n), being one."""
    counts = [*counts]
    k, n = (sum(column) for column in zip(*counts, strict=True))
    rate = k / n
    return sum((won - rate * of) ** 2 / (of * rate * (1 - rate)) for won, of in counts) if 0 < k < n else 0.0


def chance(chi: float, freedom: int) -> float:
    """p of chi-square."""
    from scipy.special import chdtrc

    return float(chdtrc(freedom, chi))


def _p(first: Mapping[object, int], second: Mapping[object, int]) -> float:
    """That two mixes are alike (chi-square)."""
    counts = [(first.get(value, 0), second.get(value, 0)) for value in {**first, **second}]
    return chance(uneven((own, own + other) for own, other in counts), len(counts) - 1)


def _otherwise(records: Sequence[EpisodeRecord], names: Iterable[str]) -> Iterator[Fact]:
    """Other verdicts of the whole episode that disagree with the one that counts."""
    for name in filter(of_whole, names):
        field = Field("success", name)
        pairs = [(one.success, verdict_of({name: one.field(name)}, field)[0]) for one in records]
        told = [own != other for own, other in pairs if own is not None and other is not None]
        if any(told) and len(told) == len(pairs):
            yield Fact(SettingFact.OTHERWISE, field=name, episodes=sum(told), of=len(told))


def _counts(name: str, values: Sequence[object], records: Sequence[EpisodeRecord]) -> Counter[object]:
    """How often a setting has each value; nothing of a field that is none."""
    found: Counter[object] = Counter(one for one in values if one is not None)
    numbers = all(isinstance(one, int | float) for one in found)
    if _HELPED.fullmatch(name):
        return Counter(bool(one) for one in found.elements()) if numbers else Counter()
    if _SETTING.fullmatch(name):
        return found if numbers or len(found) <= min(MOST, found.total() // 2) else Counter()
    if not all(isinstance(one, str) for one in found):
        return Counter()
    texts = [value or "" for value in values]
    few = len({*texts}) <= min(FEW, len(texts) // 2)
    return Counter(texts) if few and not _tells_verdict(texts, records) else Counter()


def _tells_verdict(values: Sequence[object], records: Sequence[EpisodeRecord]) -> bool:
    """Whether all episodes of each value ended alike, and those of others did not: a text of how they ended."""
    ended = {(value, one.success) for value, one in zip(values, records, strict=True)}
    return len({success for _, success in ended}) > 1 and len({value for value, _ in ended}) == len(ended)


def clusters_of(name: str, settings: Settings) -> tuple[Fact, ...]:
    """Of a setting that explains the order of outcomes; few values are conditions, and nobody takes them for a draw."""
    values = len(settings.groups[name])
    return (Fact(SettingFact.CLUSTERS, field=name, values=values),) if values >= VALUES else ()


def _clusters(records: Sequence[EpisodeRecord], many: Mapping[str, Mapping[object, int]]) -> Iterator[Fact]:
    """Settings of many values with which outcomes go: ten objects in a hundred episodes are no hundred objects."""
    for name, counts in many.items():
        if len(counts) < VALUES or sum(counts.values()) < (EACH if len(counts) < MANY else 2) * len(counts):
            continue
        went: dict[bool, Counter[object]] = {True: Counter(), False: Counter()}
        for value, record in zip(values_of(records, name), records, strict=True):
            if value is not None and record.success is not None:
                went[record.success][value] += 1
        if all(went.values()) and _p(went[True], went[False]) < STRONG:
            yield Fact(SettingFact.CLUSTERS, field=name, values=len(counts))


def _marks(records: Sequence[EpisodeRecord], names: Iterable[str]) -> Iterator[Fact]:
    for name in names:
        if _HELPED.fullmatch(name):
            if helped := sum(isinstance(one, int | float) and one > 0 for one in field_column(records, name)):
                yield Fact(SettingFact.HELPED, field=name, episodes=helped, of=len(records))
        elif match := _MARK.fullmatch(name):
            values = [one.casefold() if isinstance(one, str) else one for one in field_column(records, name)]
            known = [one for one in values if isinstance(one, str | int | float)]
            marked = sum(one in (_NO if match["valid"] else _YES) for one in known)
            if marked:
                yield Fact(SettingFact.MARKED, field=name, valid=bool(match["valid"]), episodes=marked, of=len(records))


def unlike_mixes(a: Settings, b: Settings, names: tuple[str, str]) -> Iterator[Fact]:
    """Settings that two policies had, and one of them more often; `names` are those of the policies."""
    for name in a.mix.keys() & b.mix.keys():
        first, second = a.mix[name], b.mix[name]
        if len(first) == 1 == len(second) and not all(isinstance(one, bool) for one in (*first, *second)):
            continue  # other constants are conditions
        above: dict[str, float] = {}
        if len({**first, **second}) > MOST:
            first, second, above = _halves(first, second)
        totals = [sum(some.values()) for some in (first, second)]
        gaps = {one: first.get(one, 0) / totals[0] - second.get(one, 0) / totals[1] for one in {**first, **second}}
        widest = max(gaps, key=lambda one: (round(abs(gaps[one]), 9), str(one)))
        if abs(gaps[widest]) >= SEEN and _p(first, second) < SURE:
            counts = [some.get(widest, 0) for some in (first, second)]
            apart = not above and not first.keys() & second.keys() and min(len(first), len(second)) > 1
            none: dict[str, bool] = {"in_common": False} if apart else {}
            yield Fact(
                SettingFact.MIX,
                field=name,
                value=shown(widest),
                policies=[*names],
                episodes=counts,
                of=totals,
                **above,
                **none,
            )


def _halves(
    first: Mapping[object, int], second: Mapping[object, int]
) -> tuple[Mapping[object, int], Mapping[object, int], dict[str, float]]:
    """Of numbers, how many are above the median of both."""
    both = [
        [float(one) for one in Counter(some).elements() if isinstance(one, int | float)] for some in (first, second)
    ]
    middle = median(chain(*both))
    a, b = (Counter[object](one > middle for one in some) for some in both)
    return a, b, {"above": middle}


def other_verdicts(a: Settings, b: Settings, names: tuple[str, str]) -> Iterator[Fact]:
    """Fields by which the difference of two policies is not half as large, or has the other sign."""
    for name in a.verdicts.keys() & b.verdicts.keys():
        (k, own, n), (other_k, other_own, m) = a.verdicts[name], b.verdicts[name]
        gap, told = own / n - other_own / m, k / n - other_k / m
        if abs(gap) >= SEEN and told * (1 if gap > 0 else -1) < abs(gap) / 2:
            yield Fact(SettingFact.OTHER_VERDICT, field=name, policies=[*names], episodes=[k, other_k], of=[n, m])
