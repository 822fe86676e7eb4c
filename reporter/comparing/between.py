"""Two runs side by side: the same policies in the same environments, before and after. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.reporter.comparing.comparisons import Comparison, comparison_of
from comborun.reporter.comparing.pairing import meet, results_of
from comborun.reporter.comparing.stopping import spared
from comborun.reporter.counting.arms import between_runs
from comborun.reporter.statistics.difference import holm
from comborun.reporter.text import combo_name, p_value, points, points_interval
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.reporter.collected import Collected
    from comborun.reporter.comparing.pairing import Side
    from comborun.work import Combo


@dataclass(frozen=True)
class Between:
    before: str
    after: str
    rows: tuple[tuple[str, Comparison], ...]
    """the policy (or both names if they differ) and the comparison, in which a is the second run and b the first, so
    that a gain is positive; Holm's p is over all of them
    """
    notes: tuple[str, ...]
    """combos that are not compared, and cautions; plain text with unescaped names"""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The decided comparisons, and the number of undecided ones."""
        decided = [_sentence(policy, one) for policy, one in self.rows if one.decided]
        if undecided := sum(not one.decided for _, one in self.rows):
            decided.append(
                f"{several(undecided, 'comparison')} not decided, which does not mean that nothing has changed."
            )
        return tuple(decided)


def compare_runs(before: Collected, after: Collected) -> Between:
    """Compare every combo that both have, paired if seeds or initial states show it. Raises UserError without any."""
    if before.name == after.name:
        raise UserError(f"{before.name} is compared with itself", "name two runs")
    first, second = _sides(before), _sides(after)
    partner = _partners(first, second)
    pairs = [(partner[combo], combo) for combo in second if combo in partner]
    if not pairs:
        raise UserError(
            f"{before.name} and {after.name} have no combo in common",
            "compared are policies of the same name in environments of the same name, or one policy with one",
        )
    found = [comparison_of(meet(now[1], second[now], first[then])) for then, now in pairs]
    adjusted = zip(holm([one.p for one in found]), holm([one.worst_p for one in found]), strict=True)
    return Between(
        before=before.name,
        after=after.name,
        rows=tuple(
            (
                now[0] if then == now else f"{then[0]} → {now[0]}",
                replace(one, a=after.name, b=before.name, p_holm=p, worst_holm=worst),
            )
            for one, (p, worst), (then, now) in zip(found, adjusted, pairs, strict=True)
        ),
        notes=tuple(_notes((before, after), (first.keys() - {*partner.values()}, second.keys() - partner.keys()))),
    )


def _sides(collected: Collected) -> dict[Combo, Side]:
    """Combos with completed episodes."""
    return {combo: side for combo, side in results_of(collected).sides.items() if side.counts[1]}


def _partners(first: dict[Combo, Side], second: dict[Combo, Side]) -> dict[Combo, Combo]:
    """Combo of the second run -> combo of the first. A single policy is matched with the other's, whatever its name."""
    names = tuple({policy for policy, _ in combos} for combos in (first, second))
    if len(names[0]) == len(names[1]) == 1:
        (then,) = names[0]
        return {combo: (then, combo[1]) for combo in second if (then, combo[1]) in first}
    return {combo: combo for combo in second if combo in first}


def _notes(runs: Sequence[Collected], alone: Sequence[set[Combo]]) -> Iterator[str]:
    for run, combos in zip(runs, alone, strict=True):
        if combos:
            yield f"Only in {run.name}: {', '.join(combo_name(*combo) for combo in sorted(combos))}."
        if run.stop_early and spared(run.sessions, ()):
            yield f"{run.name} stopped early: how many episodes it has depends on how they went, and so do its rates."
    yield from between_runs(*runs)


def _sentence(policy: str, one: Comparison) -> str:
    better = "better" if one.difference > 0 else "worse"
    numbers = f"{points(one.difference)} points {points_interval(one.interval)}"
    test = f"{one.paired_word} ({one.test})"
    return f"{policy} in {one.environment} got {better}: {numbers}, {test}, Holm p {p_value(one.p_holm)}."
