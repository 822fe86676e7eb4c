"""Making the report of a run, wherever the run is."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from comborun.cli.frame import answer, tell
from comborun.cli.where import LOCAL
from comborun.plaintext import harmless, printable
from comborun.rules.words import Life

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from comborun.monitor.status import RunStatus
    from comborun.remote.fetch.answer import Skipped
    from comborun.remote.fetch.transfer import Fetched
    from comborun.reporter.summary import Summary
    from comborun.transport import Transport

    Patience = Callable[[Callable[[], Fetched]], Fetched]
    """how a fetch is made: once, or until the host answers"""

_MOST_SKIPPED = 5
_CLAIM_LINES = 6
"""for what the comparisons say, so that the files below stay on the screen with it"""


_PURPOSES = {
    "report.html": "for reading; one file, opens offline",
    "report.md": "for pasting",
    "report.tex": "for a paper",
    "final_benchmark_report.json": "every number, for programs",
    "summary.csv": "every combo",
    "episodes.csv": "every episode",
    "figures": "as SVG, PNG and PDF",
}


def report_on(
    transport: Transport,
    run: str,
    directory: str,
    output: Path | None = None,
    patience: Patience = lambda bring: bring(),
    most: int | None = None,
) -> tuple[Summary, Path]:
    """The report of a run, made from its own directory on this machine, else from a mirror of it."""
    from comborun.reporter import report_run

    source, skipped = bring(transport, run, directory, patience, most)
    target = output or source / "report"
    return report_run(source, target, dict(skipped)), target


def bring(
    transport: Transport,
    run: str,
    directory: str,
    patience: Patience = lambda bring: bring(),
    most: int | None = None,
) -> tuple[Path, tuple[Skipped, ...]]:
    """Where the records of a run are on this machine, and what could not be brought here; that is told too.

    `most` are the bytes that may be kept of it here, unless that is left to comborun.
    """
    if transport.host == LOCAL:
        return Path(directory), ()
    from comborun.remote.fetch.transfer import MOST, fetch, mirror_directory

    mirror = mirror_directory(transport.host, run)
    skipped = patience(lambda: fetch(transport, directory, mirror, most=MOST if most is None else most)).skipped
    _tell_skipped(skipped)
    return mirror, skipped


def _files(target: Path) -> Iterator[str]:
    """Names relative to the report's folder, those of its own folders too."""
    for name in _PURPOSES:
        for path in sorted((target / name).iterdir()) if (target / name).is_dir() else [target / name]:
            if path.is_file():
                yield path.relative_to(target).as_posix()


def tell_report(summary: Summary, target: Path, *, as_json: bool = False) -> None:
    """Say what a report says first, and where it is."""
    if as_json:
        answer(
            {
                "run": summary.run,
                "report": str(target),
                "files": list(_files(target)),
            }
        )
        return
    _tell_head(summary)
    click.echo(f"\nReport: {click.style(str(target), bold=True)}")
    tell({name: purpose for name, purpose in _PURPOSES.items() if (target / name).exists()})


def _tell_head(summary: Summary) -> None:
    """The report's first sentence, which is its gravest, and its claims as far as they have room."""
    from comborun.reporter.pages.headline import sentences

    click.echo()
    for sentence in sentences(summary)[:1]:
        click.echo("\n".join(_broken(sentence)))
    claims, lines = summary.claims.told, 0
    for told, sentence in enumerate(claims):
        broken = _broken(sentence, "- ")
        if told and lines + len(broken) > _CLAIM_LINES:
            click.echo(f"{len(claims) - told} more in the report")
            return
        click.echo("\n".join(broken))
        lines += len(broken)


def _broken(sentence: str, lead: str = "") -> list[str]:
    """Its lines on the terminal that shows it, by the columns that its letters take; one where there is none."""
    text = printable(sentence)
    if not sys.stdout.isatty():
        return [f"{lead}{text}"]
    room = max(1, shutil.get_terminal_size().columns - len(lead))
    first, *others = Text(text).wrap(Console(), room)
    indent = " " * len(lead)
    return [f"{lead}{first.plain}".rstrip(), *(f"{indent}{line.plain}".rstrip() for line in others)]


def _tell_skipped(skipped: Sequence[Skipped]) -> None:
    """Name what the report has to do without."""
    for path, reason in skipped[:_MOST_SKIPPED]:
        click.echo(f"not brought: {harmless(str(path), keep='')}: {reason}", err=True)
    if len(skipped) > _MOST_SKIPPED:
        click.echo(f"and {len(skipped) - _MOST_SKIPPED} more: the report names them all", err=True)


def differences(seen: RunStatus, summary: Summary) -> list[str]:
    """Where the report, which reads every record, comes to another outcome than a session did: a sentence each."""
    outcomes = {combo.key: combo.ending.outcome for combo in summary.combos}
    lines: list[str] = []
    for session in seen.proper:
        reported = outcomes.get((session.policy, session.environment))
        alone = not session.part  # else the combo's outcome is that of several
        if alone and session.life is Life.ENDED and reported not in {None, session.outcome}:
            lines.append(f"{session.policy} in {session.environment}: {session.outcome}, but {reported} by its records")
    return lines
