"""Why episodes failed: a bar per policy, in the words of the records."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.reporter.figures.plate import Drawing, Entry, Plate, key
from comborun.reporter.figures.sheet import (
    ABREAST,
    FAINT,
    NORMAL,
    PERCENT,
    SERIES,
    SMALL,
    Frame,
    Sheet,
    fit,
    gutter,
    heading,
    ink_on,
    measure,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comborun.reporter.counting.measures import FailureKinds
    from comborun.reporter.summary import ComboSummary, Summary

ROW = 0.26
HEAD = 0.34
FOOT = 0.26
LABEL = 1.3
NUMBERED = 80
"""combos whose bars carry numbers; of more, the table below the figure has them"""
OTHER, UNTOLD, ERRORED = "other kinds", "not told", "errored"
REST = {OTHER: "#666666", UNTOLD: "#b0b0b0", ERRORED: SERIES[-2]}
SPARE = SERIES[:-2]
"""colours of the most frequent kinds"""


def failure_kinds(summary: Summary) -> Plate | None:
    """None where no record says how it failed."""
    if not any(combo.failures and combo.failures.field for combo in summary.combos):
        return None
    told = {combo.key: combo.failures for combo in summary.combos if combo.failures and _tells(combo)}
    totals = Counter[str]()
    for failures in told.values():
        totals.update(dict(failures.counts))
    most = (kind for kind, _ in totals.most_common(len(SPARE)))
    every = {**dict(zip(most, SPARE, strict=False)), **REST}
    seen = {colour for failures in told.values() for colour, _ in _segments(failures, every)}
    colours = {kind: colour for kind, colour in every.items() if colour in seen}
    numbered = len(told) <= NUMBERED
    groups = [
        [combo for combo in summary.combos if combo.key in told and combo.environment == name]
        for name in summary.environments
    ]
    return Plate(
        name="failure_kinds",
        title="Failure kinds",
        note="The share in per cent of all episodes with a record that failed, or were errored, in the words of their"
        f" records; what a bar leaves free succeeded.{' Numbers in the bars are episodes.' * numbered}",
        drawings=tuple(
            Drawing(ABREAST, HEAD + ROW * len(combos) + FOOT, _Bars(combos, colours, numbered).draw)
            for combos in groups
            if combos
        ),
        key=key([Entry(kind, colour) for kind, colour in colours.items()]),
    )


def _tells(combo: ComboSummary) -> bool:
    """Whether its records say how it failed, or it never did."""
    if combo.failures is None or combo.counts is None:
        return False
    return combo.failures.field is not None or (combo.counts.completed > 0 and combo.failures.total == 0)


def _segments(failures: FailureKinds, colours: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Colour and episodes, in the order of the key."""
    found = Counter({UNTOLD: failures.untold, ERRORED: failures.errored, OTHER: failures.other})
    for kind, count in failures.counts:
        found[kind if kind in colours else OTHER] += count
    yield from ((colour, found[kind]) for kind, colour in colours.items() if found[kind])


@dataclass(frozen=True)
class _Bars:
    combos: Sequence[ComboSummary]
    colours: Mapping[str, str]
    """of the kinds that there are, in the order of the key"""
    numbered: bool

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        names = [fit(combo.policy, LABEL, NORMAL) for combo in self.combos]
        left = gutter(names, LABEL) + 0.14
        frame = Frame(x + left, y + HEAD, ABREAST - left - 0.25, ROW * len(self.combos))
        heading(sheet, (x, y), self.combos[0].environment)
        for row, (combo, name) in enumerate(zip(self.combos, names, strict=True)):
            assert combo.failures
            assert combo.counts
            middle = frame.top + (row + 0.5) * ROW
            episodes = combo.counts.completed + combo.counts.errored
            sheet.text((frame.left - 0.1, middle), name, NORMAL, "right")
            sheet.box((frame.left, middle - 0.08), frame.width, 0.16, FAINT, alpha=0.12)
            start = 0
            for colour, count in _segments(combo.failures, self.colours):
                place, width = frame.x(start / episodes), frame.width * count / episodes
                sheet.box((place, middle - 0.08), width, 0.16, colour)
                if self.numbered and width > measure(str(count), SMALL) + 0.05:
                    sheet.text((place + width / 2, middle), str(count), SMALL, color=ink_on(colour))
                start += count
        frame.columns(sheet, PERCENT)
