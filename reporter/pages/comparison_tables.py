"""Tables of comparisons: by success rates, by metrics, by failure kinds; losses and factors. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from comborun.reporter.comparing.comparison import Comparison, Tested
from comborun.reporter.comparing.factors import Factor
from comborun.reporter.comparing.graded import Graded, MeanDifference
from comborun.reporter.comparing.kinds import KindComparison
from comborun.reporter.comparing.nominal import Loss
from comborun.reporter.pages.text_table import LEANS, SHOWN, Strong, TextTable, columns, filled, smallest
from comborun.reporter.text import NOTHING, fraction, number, numbers, p_number, per_cent, points, points_interval

_UNPLANNED, _OF_RUNS = ", not CASM as planned", " and t of runs"


def comparisons(found: Sequence[Comparison], title: str, note: str = "") -> TextTable:
    several = len({one.environment for one in found}) > 1
    rows = [
        [
            *(one.environment if several else "", one.a, one.b),
            *(strong(f"{points(one.difference)}{'†' * one.leans}", one), points_interval(one.interval)),
            *(
                holm_p(one),
                _both(one.rate_a.n, one.rate_b.n),
                f"{one.test}{_UNPLANNED if one.prevented else ''}{_OF_RUNS * one.by_runs}, {one.paired_word}",
                _better(one),
            ),
        ]
        for one in smallest(found)
    ]
    heads = columns("environment|a|b", "a − b|95 % interval|p (Holm)|n", "test|better")
    note = f"{note} {LEANS}".strip() if any(one.leans for one in found) else note
    return filled(TextTable(title, heads, rows, note, len(found)))


def graded(found: Sequence[Graded]) -> TextTable | None:
    rows = [
        [
            *(one.metric, f"all {len(one.environments)}" if one.environments[1:] else one.environments[0]),
            *(one.a, one.b, strong(fraction(one.chance), one), per_cent(one.chance_interval), *map(number, one.middle)),
            *(holm_p(one), _both(*one.n), one.test, _better(one)),
        ]
        for one in smallest(found)
    ]
    note = (
        "How often a has more of the metric than b, in per cent of the same episodes or, unpaired, of all pairings;"
        " equal values count half. 50 is no difference. IQM is the interquartile mean. Intervals are 95 % for each"
        " alone; p adjusted by Holm over all comparisons by rates and metrics."
    )
    heads = columns("metric|environment|a|b", "a above b|95 % interval|IQM a|IQM b|p (Holm)|n", "test|more")
    return TextTable("Compared by metrics", heads, rows, note, len(found)) if rows else None


def mean_differences(found: Sequence[MeanDifference]) -> TextTable | None:
    rows = [
        [
            *(one.metric, f"all {len(one.environments)}" if one.environments[1:] else one.environments[0]),
            *(one.a, one.b, strong(f"{number(one.difference)}{'†' * one.leans}", one)),
            *(numbers(one.interval), *map(number, one.means)),
            *(holm_p(one), _both(*one.n), one.test, _better(one)),
        ]
        for one in smallest(found)
    ]
    note = (
        "The difference of means with its 95 % t interval, each environment with the same weight; p by permutation,"
        " adjusted by Holm over all comparisons by rates and metrics."
    )
    if any(one.sequential for one in found):
        note = f"The difference of means, tested after every pair, and its 95 % interval, both by betting. {LEANS}"
    heads = columns("metric|environment|a|b", "a − b|95 % interval|mean a|mean b|p (Holm)|n", "test|more")
    return TextTable("Means of metrics compared", heads, rows, note, len(found)) if rows else None


def losses(found: Sequence[Loss]) -> TextTable | None:
    rows = [
        [
            *(one.policy, f"all {len(one.environments)} others" if one.environments[1:] else one.environments[0]),
            *(fraction(one.rate_nominal), fraction(one.rate), strong(points(one.difference), one)),
            *(points_interval(one.interval), holm_p(one)),
        ]
        for one in smallest(found)
    ]
    note = (
        "How much lower each policy's rate is than in the nominal environment, in percentage points, of independent"
        " episodes (Barnard, Newcombe; over several environments t), and of runs where there are several; p adjusted by"
        " Holm over all losses, with 5 % of error of their own."
    )
    title = f"Losses from {found[0].nominal}" if found else ""
    heads = columns("policy|environment", "nominal|here|loss|95 % interval|p (Holm)")
    return TextTable(title, heads, rows, note, len(found)) if rows else None


def factors(found: Sequence[Factor]) -> TextTable | None:
    rows = [
        [one.field, level.name, str(level.starts), fraction(level.rate), per_cent(level.interval), p_number(one.p_holm)]
        for one in found
        for level in one.levels
    ]
    note = (
        "Success at the levels of what was set before the episodes. Each start counts once, at its mean over policies;"
        " intervals are 95 % for all levels of a factor together; p by permutation within environments, adjusted by"
        " Holm over all factors. Factors that change together are not told apart."
    )
    heads = columns("factor|level", "starts|success, %|95 % interval|p (Holm)")
    return TextTable("Factors", heads, rows, note, len(rows)) if rows else None


def kinds_compared(found: Sequence[KindComparison]) -> TextTable | None:
    rows = [
        [
            *(kind.kind, one.a, one.b, strong(points(one.difference), one), points_interval(one.interval)),
            *(holm_p(one), _better(one)),
        ]
        for kind, one in ((kind, kind.found) for kind in found[:SHOWN])
    ]
    note = (
        "How much more of a's episodes end so than of b's, in percentage points, over all environments; p adjusted by"
        " Holm over all failure kinds, apart from the success rates."
    )
    heads = columns("kind|a|b", "a − b|95 % interval|p (Holm)", "more")
    return TextTable("Failure kinds compared", heads, rows, note, len(found)) if rows else None


def strong(text: str, comparison: Tested) -> str:
    return Strong(text) if comparison.decided else text


def _better(comparison: Tested) -> str:
    return Strong(comparison.better) if comparison.better else ""


def holm_p(comparison: Tested) -> str:
    return p_number(comparison.p_holm, bound=comparison.bounded) if comparison.computed else NOTHING


def _both(a: int, b: int) -> str:
    return str(a) if a == b else f"{a}, {b}"
