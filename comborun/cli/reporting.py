"""Making the report of a run, wherever the run is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from comborun.cli.frame import answer, tell
from comborun.cli.where import LOCAL
from comborun.plaintext import harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from comborun.transport import Transport
    from remote.fetch.answer import Skipped
    from remote.fetch.transfer import Fetched
    from reporter.summary import Summary

    Patience = Callable[[Callable[[], Fetched]], Fetched]
    """how a fetch is made: once, or until the host answers"""

_MOST_SKIPPED = 5


def report_on(
    transport: Transport,
    run: str,
    directory: str,
    output: Path | None = None,
    patience: Patience = lambda bring: bring(),
) -> tuple[Summary, Path]:
    """The report of a run, made from its own directory on this machine, else from a mirror of it."""
    from reporter import report_run

    source = Path(directory)
    skipped: tuple[Skipped, ...] = ()
    if transport.host != LOCAL:
        from remote.fetch.transfer import fetch, mirror_directory

        source = mirror_directory(transport.host, run)
        skipped = patience(lambda: fetch(transport, directory, source)).skipped
        _tell_skipped(skipped)
    target = output or source / "report"
    return report_run(source, target, dict(skipped)), target


def tell_report(summary: Summary, target: Path, *, as_json: bool = False) -> None:
    """Say where a report is and what it is about."""
    if as_json:
        answer({"run": summary.run, "report": str(target), "files": sorted(path.name for path in target.iterdir())})
        return
    click.echo(f"\nReport: {click.style(str(target), bold=True)}")
    tell({path.name: _purpose(path.name) for path in sorted(target.iterdir()) if path.is_file()})


def _tell_skipped(skipped: Sequence[Skipped]) -> None:
    """Name what the report has to do without."""
    for path, reason in skipped[:_MOST_SKIPPED]:
        click.echo(f"not brought: {harmless(str(path), keep='')}: {reason}", err=True)
    if len(skipped) > _MOST_SKIPPED:
        click.echo(f"and {len(skipped) - _MOST_SKIPPED} more: the report names them all", err=True)


def _purpose(name: str) -> str:
    return {
        "report.html": "for reading; one file, opens offline",
        "report.md": "for pasting",
        "final_benchmark_report.json": "every number, for programs",
        "episodes.csv": "every episode",
    }.get(name, "")
