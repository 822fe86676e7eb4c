"""combo doctor: problems on a host, the cost of each, and the fix."""

from __future__ import annotations

import textwrap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from comborun.answers.grids import Examined, FoundOnHost
from comborun.cli.options import json_option, root_options
from comborun.cli.terminal import SOME_DID_NOT, show_json, working
from comborun.errors import UserError
from comborun.grid import load_grid
from comborun.remote.grids import with_policies
from comborun.remote.host import NOTHING_MORE, Examination, examine, wanted_by
from comborun.remote.transport import LOCAL
from comborun.rules.findings import Finding, Level
from comborun.rules.names import DEFAULT_ROOT
from comborun.text import harmless
from comborun.text import several as counted
from comborun.words.doctor import told

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comborun.api.named import HostChoice
    from comborun.grid import Grid

_SYMBOLS = {Level.ERROR: "✗", Level.WARNING: "!", Level.NOTE: "·", Level.OK: "✓"}
_STYLES = {Level.ERROR: "bold red", Level.WARNING: "bold yellow", Level.NOTE: "cyan", Level.OK: "green"}
_COUNTED = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "note"}
_UNBROKEN = 10_000
"""columns without a terminal: lines are not broken"""


@click.command()
@root_options
@click.option(
    "--grid",
    type=click.Path(path_type=Path),
    metavar="GRID",
    help="Also check what this grid needs: folders, programs, files, conda environments, disk space.",
)
@json_option
def doctor(where: HostChoice, grid: Path | None, as_json: bool) -> int:
    """Look for problems on a host, with the cost of each and the fix; on each of them if the grid has several.

    Changes nothing there. The exit code is 1 if a problem would prevent or end sessions.

    \b
    combo doctor
    combo doctor --host gpubox --grid grid.yaml
    """
    checked = load_grid(grid) if grid else None
    several = checked.hosts if checked and not where.named else ()
    grids = [checked.on(entry) for entry in several] if checked and several else [checked]
    found: list[tuple[str, Examination]] = []
    failed: dict[str, UserError] = {}
    for one in grids:
        try:
            found.append(_examined(where, one))
        except UserError as error:
            if not several or not one:
                raise
            failed[str(one.host)] = error
            continue
        if not as_json:
            _show(*found[-1], first=len(found) == 1)
    if failed:
        raise _all_of(failed, len(grids))
    if as_json:
        answers = [answer(*each) for each in found]
        show_json(answers if several else answers[0])
    return 0 if all(examination.healthy for _, examination in found) else SOME_DID_NOT


def _all_of(failed: Mapping[str, UserError], hosts: int) -> UserError:
    """The errors of all hosts that could not be looked at, as one."""
    first = next(iter(failed.values()))
    if hosts == 1:
        return first
    lines = "".join(f"\n  {host}: {one.headline}" for host, one in failed.items())
    return type(first)(f"{counted(len(failed), 'host')} of {hosts} can't be looked at:{lines}", first.hint, first.code)


def _examined(where: HostChoice, grid: Grid | None) -> tuple[str, Examination]:
    transport = where.connect(grid.host if grid else None)
    with working(f"looking at {transport.host}"):
        grid = with_policies(grid, transport) if grid else None
        wanted = wanted_by(grid, local=transport.host == LOCAL) if grid else NOTHING_MORE
        return transport.host, examine(transport, where.root or (grid.root if grid else DEFAULT_ROOT), wanted)


def _show(host: str, examination: Examination, *, first: bool) -> None:
    console = Console(highlight=False)
    width = console.width if console.is_terminal else _UNBROKEN
    if not first:
        console.print()
    for line in lines(host, examination, width):
        console.print(line, soft_wrap=True)


def answer(host: str, examination: Examination) -> Examined:
    found = (FoundOnHost(one.check, str(one.level), *told(one), one.fact) for one in examination.findings)
    return Examined(host, examination.healthy, tuple(found), examination.about)


def lines(host: str, examination: Examination, width: int) -> Iterator[Text]:
    """The examination for people. Commands are not broken into lines, so that they can be copied."""
    yield _title(host, examination.about)
    yield Text()
    label = max((len(finding.check) for finding in examination.findings), default=0)
    for finding in examination.findings:
        yield from _finding(finding, label, width)
    yield Text()
    yield _summary(examination)


def _title(host: str, about: Mapping[str, Any]) -> Text:
    name, memory = about.get("hostname", ""), about.get("memory_kib")
    parts = [name if host != name else "", about.get("os", ""), f"{about.get('cpus')} CPUs"]
    parts += [f"{memory / (1 << 20):.0f} GiB"] if memory else []
    return Text().append(host, "bold").append("  " + ", ".join(part for part in parts if part), "dim")


def _finding(finding: Finding, label: int, width: int) -> Iterator[Text]:
    found, cost, fix = (harmless(text) for text in told(finding))
    indent = " " * (label + 4)
    room = max(30, width - len(indent) - 1)
    first, *more = textwrap.wrap(found, room, break_long_words=False, break_on_hyphens=False) or [""]
    symbol = (f"{_SYMBOLS[finding.level]} ", _STYLES[finding.level])
    check = (finding.check.ljust(label), "" if finding.level is Level.OK else "bold")
    yield Text.assemble(symbol, check, "  ", first)
    yield from (Text(indent + line) for line in more)
    for line in textwrap.wrap(f"cost: {cost}" if cost else "", room, break_long_words=False, break_on_hyphens=False):
        yield Text(indent).append(line, "dim")
    if fix:
        yield Text(indent).append("fix:  ", "dim").append(fix, "cyan")


def _summary(examination: Examination) -> Text:
    counts = Counter(finding.level for finding in examination.findings)
    parts = [f"{counts[level]} {word}{'s' * (counts[level] != 1)}" for level, word in _COUNTED.items() if counts[level]]
    if not parts:
        return Text("No problems found.", "green")
    worst = examination.findings[0].level
    return Text().append(", ".join(parts), _STYLES[worst]).append(f"; {counts[Level.OK]} fine", "dim")
