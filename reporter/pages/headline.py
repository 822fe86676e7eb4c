"""What the report says in words, before any table. Pure.

Only facts about the run as a whole; what its comparisons decide is told by claims.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from comborun.reporter.text import duration
from comborun.rules.words import Completeness, Outcome
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.reporter.summary import Summary


def sentences(summary: Summary) -> tuple[str, ...]:
    """The state of the whole run."""
    words = [
        *_canary(summary),
        *_unfinished(summary),
        _episodes(summary),
        *_early(summary),
        *_sessions(summary),
        *_times(summary),
    ]
    return tuple(filter(None, words))


def _canary(summary: Summary) -> Iterator[str]:
    """A warning before all else; and that all is well where that was looked at."""
    found = summary.canary
    if found is None or not found.combos:
        return
    compared = sum(combo.compared for combo in found.combos)
    if found.differing:
        yield (
            f"Warning: of {several(compared, 'episode')} that {'was' if compared == 1 else 'were'} run alone once more,"
            f" some went otherwise in {len(found.differing)} of {several(len(found.combos), 'combo')}: the program is"
            " not repeatable, or sessions that run side by side change each other's results."
        )
    elif compared:
        yield f"{several(compared, 'episode')} run alone once more went the same."


def _unfinished(summary: Summary) -> Sequence[str]:
    return () if summary.ended else ("Not all sessions had ended when this report was made.",)


def _episodes(summary: Summary) -> str:
    counted = [combo for combo in summary.combos if combo.counts]
    counts = summary.counts
    if not counted:
        return ""
    if not summary.planned:
        errored = f" and {several(counts.errored, 'errored one')}" if counts.errored else ""
        return (
            f"{several(counts.completed, 'completed episode')}{errored} of {several(len(counted), 'combo')};"
            " no plan says how many there should be."
        )
    whole = sum(combo.counts.completeness is Completeness.COMPLETE for combo in counted if combo.counts)
    among = "" if len(counted) == len(summary.combos) else " counted in episodes"
    state = f"{whole} of {len(counted)} combos{among} {'is' if whole == 1 else 'are'}"
    if whole == len(counted) > 1:
        state = f"All {len(counted)} combos{among} are"
    short = [f"{count} {word}" for count, word in ((counts.errored, "errored"), (counts.missing, "missing")) if count]
    rest = f" ({', '.join(short)})" if short else ""
    return f"{state} complete: {counts.completed} of {counts.planned} planned episodes have a verdict{rest}."


def _early(summary: Summary) -> Iterator[str]:
    """What stopping early has spared; nothing about runs that could not."""
    found = [one for one in summary.comparisons.all if one.sequential]
    stopped = sum(one.sequential.stopped for one in found if one.sequential)
    if not found:
        return
    spare, planned = sum(combo.not_needed for combo in summary.combos), summary.counts.planned
    yield (
        f"{stopped} of {several(len(found), 'comparison')} decided before the last pair of episodes;"
        f" {spare} of the grid's {spare + planned} episodes were not needed and are planned no more."
    )


def _sessions(summary: Summary) -> Iterator[str]:
    """Outcomes other than success, and training, which has nothing but an outcome."""
    outcomes = Counter(combo.ending.words for combo in summary.combos)
    bad = [f"{count} {words}" for words, count in outcomes.items() if words != Outcome.SUCCEEDED]
    if summary.planned and bad:
        yield f"Outcomes other than succeeded: {', '.join(bad)}."
    if steps := sum(combo.unit == "step" for combo in summary.combos):
        yield f"{several(steps, 'combo')} counted in steps: outcome and duration, no rate."


def _times(summary: Summary) -> Sequence[str]:
    timing = summary.timing
    if timing.makespan is None:
        return ()
    words = f"From the first start to the last end: {duration(timing.makespan)}"
    if timing.sequential is None:
        return (f"{words}.",)
    return (f"{words}; the session times add up to {duration(timing.sequential)}.",)
