"""The map of the grid as lines of text. Pure."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text

from comborun.monitor.fullscreen.table import clipped, symbol
from comborun.monitor.grid_map import GridMap, MapCell
from comborun.monitor.wording import visible

_NARROWEST, _WIDEST = 7, 14


def drawn(found: GridMap, cursor: tuple[int, int], width: int) -> tuple[Text, list[Text]]:
    """The head, and a line for each policy; columns around the cursor if not all fit.

    A cell has the state, then successes of episodes with a verdict, else episodes done; the last column is the mean.
    """
    names = max((cell_len(row.policy) for row in found.rows), default=0)
    first = max(8, min(names, 28, width // 3))
    cells = [[_cell(cell) for cell in row.cells] for row in found.rows]
    written = [text.cell_len for row in cells for text in row]
    needed = max([*map(cell_len, found.environments), *written], default=0)
    column = max(_NARROWEST, min(_WIDEST, needed)) + 1
    fitting = max(1, (width - first - 3 - 16) // column)
    begin = max(0, min(cursor[1] - fitting + 1, len(found.environments) - fitting)) if cursor[1] >= fitting else 0
    shown = found.environments[begin : begin + fitting]
    more = f"  ({len(found.environments) - len(shown)} more)" if len(shown) < len(found.environments) else ""
    head = Text(" " * (first + 3), "dim")
    for one in shown:
        head.append(clipped(visible(one), column - 1) + " ")
    head.append(f"mean{more}")
    lines = []
    for place, row in enumerate(found.rows):
        line = Text(("▸ " if place == cursor[0] else "  ") + clipped(visible(row.policy), first) + " ", no_wrap=True)
        for at in range(begin, begin + len(shown)):
            cell = cells[place][at].copy()
            cell.truncate(column - 1, overflow="ellipsis", pad=True)
            if (place, at) == cursor:
                cell.stylize("reverse")
            cell.apply_meta({"act": ("cell", place, at)})
            line.append_text(cell).append(" ")
        known = row.mean is not None
        lines.append(line.append(f"{100 * (row.mean or 0):.0f} %" if known else "-", "bold" if known else "dim"))
    return head, lines


def _cell(cell: MapCell | None) -> Text:
    if cell is None:
        return Text()
    text = symbol(cell.urgent.word)
    known = cell.successes is not None and cell.recorded
    share = f"{100 * cell.done // cell.planned} %" if cell.done and cell.planned else ""
    return text.append(f" {cell.successes}/{cell.recorded}" if known else f" {share}")
