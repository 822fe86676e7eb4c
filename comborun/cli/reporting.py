"""Making the report of a run, wherever the run is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from comborun.cli.frame import answer, tell
from comborun.cli.where import LOCAL

if TYPE_CHECKING:
    from comborun.transport import Transport
    from reporter.summary import Summary


def report_on(transport: Transport, run: str, directory: str, output: Path | None = None) -> tuple[Summary, Path]:
    """The report of a run, made from its own directory on this machine, else from a mirror of it."""
    from reporter import report_run

    source = Path(directory)
    if transport.host != LOCAL:
        from remote.fetch import fetch, mirror_directory

        source = mirror_directory(transport.host, run)
        fetch(transport, directory, source)
    target = output or source / "report"
    return report_run(source, target), target


def tell_report(summary: Summary, target: Path, *, as_json: bool = False) -> None:
    """Say where a report is and what it is about."""
    if as_json:
        answer({"run": summary.run, "report": str(target), "files": sorted(path.name for path in target.iterdir())})
        return
    click.echo(f"\nReport: {click.style(str(target), bold=True)}")
    tell({path.name: _purpose(path.name) for path in sorted(target.iterdir()) if path.is_file()})


def _purpose(name: str) -> str:
    return {
        "report.html": "for reading; one file, opens offline",
        "report.md": "for pasting",
        "final_benchmark_report.json": "every number, for programs",
        "episodes.csv": "every episode",
    }.get(name, "")
