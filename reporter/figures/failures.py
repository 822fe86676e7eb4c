"""Why episodes failed: a bar per policy, in the words of the records."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from comborun.reporter.figures.colours import SERIES, ink_on
from comborun.reporter.figures.frame import NORMAL, PERCENT, SMALL, WIDTH, Frame, gutter, heading
from comborun.reporter.figures.key import Entry, key
from comborun.reporter.figures.names import fit
from comborun.reporter.figures.plate import Drawing, Plate
from comborun.reporter.figures.sheet import FAINT, Sheet, measure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comborun.reporter.counting.measures import FailureKinds
    from comborun.reporter.summary import ComboSummary, Summary

ROW = 0.26
HEAD = 0.34
FOOT = 0.26
LABEL = 1.3
KINDS = len(SERIES) - 1
"""kinds with a colour of their own"""
OTHER = "other kinds"
NUMBERED = 80
"""combos whose bars carry numbers; of more, the table below the figure has them"""
UNTOLD = "not told"
ERRORED = "errored"


@dataclass(frozen=True)
class _Shown:
    colours: Mapping[str, str]
    """of the kinds that there are, in the order of the key"""
    numbered: bool


def failure_kinds(summary: Summary) -> Plate | None:
    """None where no record says how it failed."""
    if not any(combo.failures and combo.failures.field for combo in summary.combos):
        return None
    told = [combo for combo in summary.combos if _tells(combo)]
    totals = Counter[str]()
    for combo in told:
        assert combo.failures
        totals.update(dict(combo.failures.counts))
    every = _colours([kind for kind, _ in totals.most_common(KINDS)])
    seen = {colour for combo in told if combo.failures for colour, _ in _segments(combo.failures, every)}
    colours = {kind: colour for kind, colour in every.items() if colour in seen}
    shown = _Shown(colours, numbered=len(told) <= NUMBERED)
    groups = {name: [combo for combo in told if combo.environment == name] for name in summary.environments}
    drawings = tuple(
        Drawing(WIDTH, HEAD + ROW * len(combos) + FOOT, partial(_draw, combos, shown))
        for combos in groups.values()
        if combos
    )
    return Plate(
        name="failure_kinds",
        title="Failure kinds",
        note="The share in per cent of all episodes with a record that failed, or were errored, in the words of their"
        f" records; what a bar leaves free succeeded.{' Numbers in the bars are episodes.' * shown.numbered}",
        drawings=drawings,
        key=key([Entry(kind, colour) for kind, colour in colours.items()]),
    )


def _tells(combo: ComboSummary) -> bool:
    """Whether its records say how it failed, or it never did."""
    if combo.failures is None or combo.counts is None:
        return False
    return combo.failures.field is not None or (combo.counts.completed > 0 and combo.failures.total == 0)


def _colours(kinds: Sequence[str]) -> dict[str, str]:
    rest = {OTHER: "#666666", UNTOLD: "#b0b0b0", ERRORED: SERIES[-2]}
    spare = [colour for colour in SERIES[:-1] if colour != SERIES[-2]]
    return {**dict(zip(kinds, spare, strict=False)), **rest}


def _segments(failures: FailureKinds, colours: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Colour and episodes, in the order of the key."""
    found = Counter[str]()
    for kind, count in failures.counts:
        found[kind if kind in colours else OTHER] += count
    found[OTHER] += failures.other
    found[UNTOLD] += failures.untold
    found[ERRORED] += failures.errored
    yield from ((colour, found[kind]) for kind, colour in colours.items() if found[kind])


def _draw(combos: Sequence[ComboSummary], shown: _Shown, sheet: Sheet, x: float, y: float) -> None:
    names = [fit(combo.policy, LABEL, NORMAL) for combo in combos]
    left = gutter(names, LABEL) + 0.14
    frame = Frame(x + left, y + HEAD, WIDTH - left - 0.25, ROW * len(combos))
    heading(sheet, (x, y + 0.14), combos[0].environment, WIDTH)
    for row, (combo, name) in enumerate(zip(combos, names, strict=True)):
        middle = frame.top + (row + 0.5) * ROW
        sheet.text((frame.left - 0.1, middle), name, NORMAL, "right")
        _bar(sheet, frame, middle, (combo, shown))
    frame.columns(sheet, PERCENT)


def _bar(sheet: Sheet, frame: Frame, middle: float, of: tuple[ComboSummary, _Shown]) -> None:
    from matplotlib.colors import to_rgba

    combo, shown = of
    assert combo.failures
    assert combo.counts
    episodes = combo.counts.completed + combo.counts.errored
    sheet.box((frame.left, middle - 0.08), frame.width, 0.16, FAINT, alpha=0.12)
    start = 0
    for colour, count in _segments(combo.failures, shown.colours):
        place, width = frame.x(start / episodes), frame.width * count / episodes
        sheet.box((place, middle - 0.08), width, 0.16, colour)
        if shown.numbered and width > measure(str(count), SMALL) + 0.05:
            sheet.text((place + width / 2, middle), str(count), SMALL, color=ink_on(to_rgba(colour)))
        start += count
