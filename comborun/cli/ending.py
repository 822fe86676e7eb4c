"""combo report: what all ends with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from comborun.cli.comparing import tell_between
from comborun.cli.frame import json_option
from comborun.cli.reporting import bring, report_on, tell_report
from comborun.cli.where import Where, root_option, where_options
from comborun.errors import UserError
from comborun.names import clean

if TYPE_CHECKING:
    from comborun.reporter.collected import Collected


@click.command()
@click.argument("run", required=False, metavar="[RUN|FOLDER]")
@where_options
@root_option
@click.option(
    "--compare", "pair", nargs=2, metavar="RUN1 RUN2", help="Set two runs side by side: did the second get better?"
)
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Where the report goes.")
@click.option("--max-size", metavar="SIZE", help="The most that is copied here of a run elsewhere; 50 GiB by default.")
@json_option
def report(
    run: str | None,
    where: Where,
    root: str | None,
    *,
    pair: tuple[str, str] | None,
    output: Path | None,
    max_size: str | None,
    as_json: bool,
) -> None:
    """Report on a run, or on any folder of result files.

    \b
    combo report
    combo report ~/old_results
    combo report --compare quadruped-20260509T073525Z quadruped-20260510T221502Z
    """
    if pair:
        if run:
            raise UserError(f"`{run}` besides the two runs of --compare", "name two runs, or leave --compare out")
        _compare(pair, where, root, output, as_json=as_json)
        return
    if run and _is_folder(run, where, root):
        from comborun.reporter import report_folder

        target = output or Path(run) / "report"
        summary = report_folder(Path(run), target)
    else:
        transport, found = where.find(run, root)
        summary, target = report_on(transport, found.id, found.directory, output, most=_size(max_size))
    tell_report(summary, target, as_json=as_json)


def _size(text: str | None) -> int | None:
    """Bytes, as `2 GiB` tells them."""
    if text is None:
        return None
    from comborun.grid.keys.quantity import parse_size

    return parse_size(text)


def _compare(pair: tuple[str, str], where: Where, root: str | None, output: Path | None, *, as_json: bool) -> None:
    """Report two runs, or folders of results, against each other."""
    from comborun.reporter import report_between

    (first, _), (second, source) = (_collect(word, where, root) for word in pair)
    target = output or source / "report" / f"against-{clean(first.name)}"
    between = report_between(first, second, target)
    tell_between(between, target, as_json=as_json)


def _collect(word: str, where: Where, root: str | None) -> tuple[Collected, Path]:
    """All that a run or a folder holds, and where it is on this machine."""
    from comborun.reporter.collect import collect_folder, collect_run

    if _is_folder(word, where, root):
        return collect_folder(Path(word)), Path(word)
    transport, found = where.find(word, root)
    source, skipped = bring(transport, found.id, found.directory)
    return collect_run(source, dict(skipped)), source


def _is_folder(word: str, where: Where, root: str | None) -> bool:
    """Whether a word means a folder of result files here: a path does; a bare name only when no run is called so."""
    folder = Path(word)
    if where.host is not None or not folder.is_dir() or (folder / "run.json").is_file():
        return False
    if "/" in word or word in {".", ".."}:
        return True
    try:
        _, run = where.find(word, root)
    except UserError:
        return True
    return word not in {run.id, run.id.rsplit("-", 2)[0]}
