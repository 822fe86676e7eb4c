"""combo report: report on a run or a folder, or compare two runs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from comborun.cli.options import HostChoice, Target, json_option, one_run, root_options, run_option
from comborun.cli.terminal import program, show_json, show_rows, show_table, warn, working, wrapped
from comborun.errors import UserError
from comborun.remote.runs import is_remembered
from comborun.remote.transport import LOCAL
from comborun.rules.names import RUN
from comborun.rules.vocabulary import Life
from comborun.text import alike, clean, harmless, printable, several
from comborun.words.endings import outcome_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.monitor.status import RunStatus
    from comborun.remote.mirror import Skipped
    from comborun.reporter.counting.combo import ComboSummary
    from comborun.reporter.pages.between import Between
    from comborun.reporter.records.collected import Collected
    from comborun.reporter.summary import Summary

_MOST_SKIPPED = 5
_CLAIM_LINES = 6
"""lines of claims, so that they and the files below fit on a screen"""
_ROWS_MOST, _FINDINGS_MOST = 24, 6
NOT_SHOWN = 4
"""exit code if a condition of --gate is not shown; 0 if all are"""
_METRICS = 2
"""metrics that are shown if there is no rate"""
_PURPOSES = {
    "report.html": "for reading; one file, opens offline",
    "report.md": "for pasting",
    "report.tex": "for a paper",
    "final_benchmark_report.json": "every number, for programs",
    "summary.csv": "every combo",
    "episodes.csv": "every episode",
    "figures": "for papers and slides",
}


@click.command()
@click.argument("run", required=False, metavar="[RUN|FOLDER]")
@run_option
@root_options
@click.option("--compare", "pair", nargs=2, metavar="RUN1 RUN2", help="Compare two runs: is the second one better?")
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Folder for the report.")
@click.option(
    "--grid",
    type=click.Path(path_type=Path),
    metavar="GRID",
    help="For a FOLDER: the grid with the planned episodes, and with `results`.",
)
@click.option("--max-size", metavar="SIZE", help="The most to copy from another host; 50 GiB by default.")
@click.option("--videos", type=click.Choice(["failed", "all"]), help="Also copy the videos of these episodes here.")
@click.option("--figures", metavar="FORMS", help="Also write figures as files: pdf, png or svg, separated by commas.")
@click.option("--ranking", type=click.Choice(["bradley-terry"]), help="Also rank policies that did not all meet.")
@click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="CONDITION",
    help="Check a condition, such as 'pi1 not worse than pi0 by 5 points'; exit code 4 if it is not shown.",
)
@json_option
def report(
    run: str | None, wanted: str | None, where: HostChoice, output: Path | None, as_json: bool, **how: Any
) -> None:
    """Report on a run, or on any folder of result files.

    \b
    combo report
    combo report ~/old_results
    combo report ~/old_results --grid grid.yaml
    combo report --gate 'rough not worse than flat by 5 points'
    combo report --compare quadruped-20260509T073525Z quadruped-20260510T221502Z
    """
    run = one_run(run, wanted)
    if pair := how["pair"]:
        if run:
            raise UserError(f"`{run}` besides the two runs of --compare", "name two runs, or leave --compare out")
        if other := next((name for name in ("grid", "videos", "figures", "ranking", "gates") if how[name]), None):
            other = other.removesuffix("s") if other == "gates" else other
            raise UserError(f"--{other} with --compare", f"--{other} is for the report of one run: leave it out")
        _compare(pair, where, output, _size(how["max_size"]), as_json=as_json)
        return
    forms, grid, ranked = _forms(how["figures"] or ""), how["grid"], bool(how["ranking"])
    if run and grid and (Path(run) / RUN.manifest).is_file():
        warn(f"{run} is a run: its own grid counts, and --grid is not needed")
        grid = None
    if run and (grid or _is_folder(run, where)):
        from comborun.monitor.trial_setup import plan_anywhere
        from comborun.remote.grids import read_grid
        from comborun.reporter.report import report_folder

        if how["videos"] or how["max_size"]:
            option = "--videos" if how["videos"] else "--max-size"
            raise UserError(f"{option} with a folder", f"{option} is for files on a host; a folder is read in place")
        folder = output or Path(run) / "report"
        plan = plan_anywhere(read_grid(grid), where.connect) if grid else None  # a session for each combo
        with working("making the report"):
            summary = report_folder(Path(run), folder, forms, plan, ranked=ranked, gates=how["gates"])
    elif grid:
        raise UserError("--grid without a folder", f"such as `{program()} report ~/old_results --grid {grid}`")
    else:
        target = where.find(run, kept=True)
        source, skipped = brought(target, _size(how["max_size"]))
        if how["videos"]:
            bring_videos(target, source, skipped, how["videos"])
        summary, folder = make_report(source, skipped, output, forms, ranked=ranked, gates=how["gates"])
    show_report(summary, folder, as_json=as_json)
    if not all(gate.holds for gate in summary.gates):
        sys.exit(NOT_SHOWN)


def make_report(
    source: Path,
    skipped: Sequence[Skipped],
    output: Path | None = None,
    forms: Sequence[str] = (),
    *,
    ranked: bool = False,
    gates: Sequence[str] = (),
) -> tuple[Summary, Path]:
    """Make the report of a run, from its directory on this machine or its mirror. Returns it and its folder."""
    from comborun.reporter.report import report_run

    show_skipped(skipped)
    folder = output or source / "report"
    with working("making the report"):
        return report_run(source, folder, dict(skipped), forms, ranked=ranked, gates=gates), folder


def bring_videos(target: Target, source: Path, skipped: Sequence[Skipped], which: str) -> None:
    """Copy the videos of failed episodes, or of all, that are not on this machine yet."""
    from comborun.remote.fetch import FetchOptions, fetch
    from comborun.reporter.collect import collect_run

    records = collect_run(source, dict(skipped)).records
    chosen = (record.extra.get("video") for record in records if which == "all" or not record.success)
    named = [video for video in chosen if isinstance(video, str)]
    if not named:
        click.echo(f"no video to copy: no {'failed ' if which == 'failed' else ''}episode names one", err=True)
    if target.transport.host == LOCAL:
        return
    missing = [PurePosixPath(video) for video in named if not (source / video).exists()]
    wanted = {path for path in missing if path.parts[:1] == ("sessions",)}
    if unlisted := sum(path not in wanted for path in missing):  # several may have one name
        words = f"not copied: {several(unlisted, 'video')} that the host does not list"
        click.echo(f"{words}; `results: {{videos: '**/*.mp4'}}` in the grid lists them", err=True)
    if not wanted:
        return
    with click.progressbar(length=len(wanted), label=f"{several(len(wanted), 'video')}", file=sys.stderr) as bar:
        options = FetchOptions(others=wanted, progress=lambda come: bar.update(come - bar.pos))
        fetch(target.transport, target.directory, source, options)


def show_skipped(skipped: Sequence[Skipped]) -> None:
    for path, reason in skipped[:_MOST_SKIPPED]:
        click.echo(f"not copied: {harmless(str(path), keep='')}: {reason}", err=True)
    if len(skipped) > _MOST_SKIPPED:
        click.echo(f"and {len(skipped) - _MOST_SKIPPED} more: the report has all of them", err=True)


def _forms(words: str) -> tuple[str, ...]:
    from comborun.reporter.figures.files import FORMS

    wanted = tuple(word.strip().lower() for word in words.split(",") if word.strip())
    if unknown := [word for word in wanted if word not in FORMS]:
        raise UserError(f"--figures {unknown[0]}: unknown type of file", f"one or more of {', '.join(FORMS)}")
    return wanted


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    from comborun.grid.keys.values import parse_size

    return parse_size(text)


def _compare(pair: tuple[str, str], where: HostChoice, output: Path | None, most: int | None, *, as_json: bool) -> None:
    from comborun.reporter.report import report_between, without_garbage_collection

    with without_garbage_collection():
        (first, _), (second, source) = (_collect(word, where, most) for word in pair)
        folder = output or source / "report" / f"against-{clean(first.name)}"
        with working("comparing the records"):
            between = report_between(first, second, folder)
        show_comparison(between, folder, as_json=as_json)


def _collect(word: str, where: HostChoice, most: int | None) -> tuple[Collected, Path]:
    """The records of a run or a folder, and their place on this machine."""
    from comborun.reporter.collect import collect_folder

    if not _is_folder(word, where):
        return collected(where.find(word), most)
    with working(f"reading {word}"):
        return collect_folder(Path(word)), Path(word)


def brought(target: Target, most: int | None = None) -> tuple[Path, tuple[Skipped, ...]]:
    """Copy the records of a run to this machine. Returns their place, and the files that could not be copied."""
    from comborun.remote.fetch import MOST, FetchOptions

    with working("copying the records") as tell:
        options = FetchOptions(most=MOST if most is None else most, progress=lambda files: tell(several(files, "file")))
        return target.bring(options)


def collected(target: Target, most: int | None = None) -> tuple[Collected, Path]:
    """The records of a run, and their place on this machine."""
    from comborun.reporter.collect import collect_run

    source, skipped = brought(target, most)
    show_skipped(skipped)
    with working("reading the records"):
        return collect_run(source, dict(skipped)), source


def _is_folder(word: str, where: HostChoice) -> bool:
    """Whether a word means a folder of result files: a path does; another name only if no run has it."""
    folder, is_path = Path(word), "/" in word or word.startswith((".", "~"))
    if where.host is None and not folder.is_dir() and is_path and not is_remembered(word):
        what = "is a file, not a folder of results" if folder.exists() else "no such file or folder"
        raise UserError(f"{word}: {what}", "combo report RUN reports on a run; combo runs lists them")
    if where.host is not None or not folder.is_dir() or (folder / RUN.manifest).is_file():
        return False
    if is_path:
        return True
    try:
        run = where.find(word).run
    except UserError:
        return True
    return word not in {run, run.rsplit("-", 2)[0]}


def show_report(summary: Summary, folder: Path, *, as_json: bool = False) -> None:
    """Print a report's first claims, its rates and its folder."""
    if as_json:
        gates = {"gates": [asdict(gate) for gate in summary.gates]} if summary.gates else {}
        show_json({"run": summary.run, "report": str(folder), "files": list(_report_files(folder)), **gates})
        return
    _show_claims(summary)
    _show_rates(summary)
    click.echo(f"\nReport: {click.style(str(folder), bold=True)}")
    show_rows({name: purpose for name, purpose in _PURPOSES.items() if (folder / name).exists()})


def _report_files(folder: Path) -> Iterator[str]:
    for name in _PURPOSES:
        for path in sorted((folder / name).iterdir()) if (folder / name).is_dir() else [folder / name]:
            if path.is_file():
                yield path.relative_to(folder).as_posix()


def _show_claims(summary: Summary) -> None:
    """Print the answer, the most serious sentence about the run, and as many claims as fit."""
    from comborun.reporter.pages.words import sentences

    click.echo()
    for sentence in sentences(summary)[: 2 + len(summary.gates)]:
        click.echo(wrapped(printable(sentence)))
    claims, lines = summary.claims.sentences, 0
    for number, sentence in enumerate(claims):
        claim = wrapped(printable(sentence), "- ")
        lines += claim.count("\n") + 1
        if number and lines > _CLAIM_LINES:
            click.echo(f"{len(claims) - number} more in the report")
            return
        click.echo(claim)


def _show_rates(summary: Summary) -> None:
    """Print a row for each combo with records, and problems of the data."""
    recorded = [combo for combo in summary.combos if combo.counts and combo.counts.recorded]
    if recorded:
        heads, *rows = _rates(recorded)
        click.echo()
        show_table(heads, rows, numbers=heads[2:])
        if len(recorded) > len(rows):
            click.echo(f"and {len(recorded) - len(rows)} more combos in the report")
    _show_findings(alike((one.where, one.what) for one in summary.quality.findings))


def _show_findings(findings: Sequence[str]) -> None:
    click.echo("\nOf the data:" if findings else "", nl=bool(findings))
    for sentence in findings[:_FINDINGS_MOST]:
        click.echo(wrapped(printable(sentence), "! "))
    if len(findings) > _FINDINGS_MOST:
        click.echo(f"! and {len(findings) - _FINDINGS_MOST} more findings in the report")


def _rates(combos: Sequence[ComboSummary]) -> Iterator[tuple[str, ...]]:
    """The heads and the first rows: successes, the rate and its interval; without verdicts means of metrics."""
    from comborun.reporter import text

    judged = any(combo.rate and combo.rate.n for combo in combos)
    names = [] if judged else list(dict.fromkeys(one.name for combo in combos for one in combo.metrics))[:_METRICS]
    yield ("policy", "environment", *(("successes", "rate", "95 %") if judged else ("recorded", *names)))
    for combo in combos[:_ROWS_MOST]:
        if judged:
            numbers = [text.of(combo.rate), text.rate(combo.rate), text.interval(combo.rate)]
        else:
            recorded = combo.counts.recorded if combo.counts else 0
            means = {one.name: text.with_interval(one.mean, one.interval) for one in combo.metrics}
            numbers = [f"{recorded}/{combo.planned}" if combo.planned else str(recorded)]
            numbers += [means.get(name, text.NOTHING) for name in names]
        yield combo.policy, combo.environment, *numbers


def differences(seen: RunStatus, summary: Summary) -> list[str]:
    """A sentence for each session whose outcome differs in the report, which reads every record."""
    outcomes = {combo.key: combo.ending.outcome for combo in summary.combos}
    lines: list[str] = []
    for session in seen.proper:
        reported = outcomes.get((session.policy, session.environment))
        alone = not session.part  # otherwise the combo's outcome is that of several sessions
        if alone and session.life is Life.ENDED and reported not in {None, session.outcome}:
            words = f"{outcome_words(session.outcome)}, but {outcome_words(reported)} by its records"
            lines.append(f"{session.policy} in {session.environment}: {words}")
    return lines


def show_comparison(between: Between, folder: Path, *, as_json: bool) -> None:
    if as_json:
        show_json({"report": str(folder), **json.loads((folder / "comparison.json").read_text("utf-8"))})
        return
    click.echo(harmless(f"{between.after} against {between.before}"))
    colours = ["" if not one.decided else "green" if one.difference > 0 else "red" for _, one in between.rows]
    table = between.table
    show_table([head for head, _ in table.columns], table.rows, colours=colours)
    for sentence in (between.answer, *between.sentences, *between.notes):
        click.echo(wrapped(printable(sentence)))
    _show_findings(between.quality)
    click.echo(f"\nReport: {click.style(str(folder), bold=True)}")
    purposes = {"html": "for reading; one file, opens offline", "md": "for pasting", "json": "for programs"}
    show_rows({f"comparison.{kind}": purpose for kind, purpose in purposes.items()})
