"""combo report: report on a run or a folder, or compare two runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from comborun.api import reports
from comborun.cli.options import json_option, one_run, root_options, run_option
from comborun.cli.terminal import program, show_json, show_rows, show_table, warn, working, wrapped
from comborun.errors import UserError
from comborun.rules.names import RUN
from comborun.rules.vocabulary import Life
from comborun.text import alike, harmless, printable, several
from comborun.words.endings import outcome_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comborun.api.named import HostChoice
    from comborun.model.plan import Plan
    from comborun.monitor.status import RunStatus
    from comborun.reporter.counting.combo import ComboSummary
    from comborun.reporter.pages.between import AnyBetween
    from comborun.reporter.summary import Summary

_CLAIM_LINES = 6
"""lines of claims, so that they and the files below fit on a screen"""
_ROWS_MOST, _FINDINGS_MOST = 24, 6
NOT_SHOWN = 4
"""exit code if a condition of --gate is not shown; 0 if all are"""
_METRICS = 2
"""metrics that are shown if there is no rate"""
_RUNS_SHOWN = 3


@click.command()
@click.argument("run", required=False, metavar="[RUN|FOLDER]")
@run_option
@root_options
@click.option("--compare", "pair", nargs=2, metavar="RUN1 RUN2", help="Compare two runs: is the second one better?")
@click.option(
    "--same",
    multiple=True,
    metavar="NAME2=NAME1",
    help="With --compare: a policy or an environment of RUN2 and what RUN1 calls it.",
)
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
    run, same = one_run(run, wanted), _same(how.pop("same"), how["pair"])
    if how["pair"]:
        _compare(run, where, output, same, as_json=as_json, **how)
        return
    forms, grid = _forms(how.pop("figures") or ""), how.pop("grid")
    if run and (whole := _run_around(Path(run))):
        warn(f"{run} is a part of the run {whole.name}: the whole run is reported, by its own grid")
        run, grid = str(whole), None
    if run and grid and (Path(run) / RUN.manifest).is_file():
        warn(f"{run} is a run: its own grid counts, and --grid is not needed")
        grid = None
    if run and (grid or reports.is_folder(run, where)):
        if runs := _runs_in(Path(run)):
            names = f"{', '.join(runs[:_RUNS_SHOWN])}{' ...' * (len(runs) > _RUNS_SHOWN)}"
            held = f"{run} holds {several(len(runs), 'run')} ({names})"
            warn(f"{held}: `{program()} report RUN` reports one of them, by its own grid")
        folder = output or Path(run) / "report"
        summary = _of_folder(Path(run), where, folder, grid, forms, **how)
    elif grid:
        raise UserError("--grid without a folder", f"such as `{program()} report ~/old_results --grid {grid}`")
    else:
        found = where.find(run, kept=True)
        target = found.of_one_host(f"report --videos {how['videos']}") if how["videos"] else found
        copy = reports.brought(target, _size(how["max_size"]))
        if how["videos"]:
            reports.bring_videos(target, copy, how["videos"])
        request = reports.ReportRequest(output, forms, bool(how["ranking"]), how["gates"])
        summary, folder = reports.make_report(target, copy, request)
    show_report(summary, folder, as_json=as_json)
    if not all(gate.holds for gate in summary.gates):
        sys.exit(NOT_SHOWN)


def _run_around(folder: Path) -> Path | None:
    """The run whose `results` or `sessions` a folder is: file names there say less than the run."""
    at = folder.absolute()
    inside = at.name in (RUN.results, RUN.sessions) and (at.parent / RUN.manifest).is_file()
    return at.parent if inside else None


def _runs_in(folder: Path) -> list[str]:
    """The runs that lie in a folder, as in a host's."""
    found = folder.glob(f"*/{RUN.manifest}")
    return sorted(name for one in found if not (name := one.relative_to(folder).parts[0]).startswith("."))


def _compare(
    run: str | None, where: HostChoice, output: Path | None, same: Mapping[str, str], *, as_json: bool, **how: Any
) -> None:
    if run:
        raise UserError(f"`{run}` besides the two runs of --compare", "name two runs, or leave --compare out")
    if other := next((name for name in ("grid", "videos", "figures", "ranking", "gates") if how[name]), None):
        other = other.removesuffix("s") if other == "gates" else other
        raise UserError(f"--{other} with --compare", f"--{other} is for the report of one run: leave it out")
    between, folder = reports.compare(how["pair"], where, output, _size(how["max_size"]), same)
    show_comparison(between, folder, as_json=as_json)


def _of_folder(
    source: Path, where: HostChoice, folder: Path, grid: Path | None, forms: tuple[str, ...], **how: Any
) -> Summary:
    """Report on a folder of results, with the names and rules of a grid if one is given."""
    from comborun.reporter.report import report_folder

    if how["videos"] or how["max_size"]:
        option = "--videos" if how["videos"] else "--max-size"
        raise UserError(f"{option} with a folder", f"{option} is for files on a host; a folder is read in place")
    plan = _plan_of(grid, where) if grid else None  # a session for each combo
    ranked = bool(how["ranking"])
    with working("making the report"):
        return report_folder(source, folder, forms, plan, ranked=ranked, gates=how["gates"])


def _plan_of(grid: Path, where: HostChoice) -> Plan:
    from comborun.monitor.trial_setup import plan_anywhere
    from comborun.remote.grids import read_grid

    return plan_anywhere(read_grid(grid), where.connect)


def _forms(words: str) -> tuple[str, ...]:
    from comborun.reporter.figures.files import FORMS

    wanted = tuple(word.strip().lower() for word in words.split(",") if word.strip())
    if unknown := [word for word in wanted if word not in FORMS]:
        raise UserError(f"--figures {unknown[0]}: unknown type of file", f"one or more of {', '.join(FORMS)}")
    return wanted


def _same(words: Sequence[str], pair: tuple[str, str] | None) -> dict[str, str]:
    """Names of the first run by those of the second."""
    if words and not pair:
        raise UserError("--same without --compare", "--same says which names of two runs mean the same")
    for word in words:
        if not all(word.partition("=")):
            raise UserError(f"--same {word}: not two names", "such as `--same Stairs=stairs`")
    return {own: theirs for own, _, theirs in (word.partition("=") for word in words)}


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    from comborun.grid.keys.amounts import parse_size

    return parse_size(text)


def show_report(summary: Summary, folder: Path, *, as_json: bool = False) -> None:
    """Print a report's first claims, its rates and its folder."""
    if as_json:
        show_json(reports.report_answer(summary, folder))
        return
    from comborun.reporter.summary import Report

    summary = Report(summary, ()).shown.summary
    _show_claims(summary)
    _show_rates(summary)
    click.echo(f"\nReport: {click.style(str(folder), bold=True)}")
    show_rows({name: purpose for name, purpose in reports.FILES.items() if (folder / name).exists()})


def _show_claims(summary: Summary) -> None:
    """Print the answer, the most serious sentence about the run, and as many claims as fit."""
    from comborun.reporter.pages.words import sentences

    click.echo()
    for sentence in sentences(summary)[: 2 + len(summary.gates) + summary.by_numbers + bool(summary.part)]:
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
            click.echo(f"and {several(len(recorded) - len(rows), 'more combo')} in the report")
    _show_trainings(summary)
    _show_findings(alike((one.where, one.what) for one in summary.quality.findings))


def _show_trainings(summary: Summary) -> None:
    """Print a row for each training with curves or checkpoints."""
    from comborun.reporter.pages.training_tables import trainings

    if (table := trainings(summary.trainings)) is None:
        return
    heads, left = zip(*table.columns, strict=True)
    click.echo()
    show_table(
        heads,
        table.rows[:_ROWS_MOST],
        numbers=[head for head, side in zip(heads, left, strict=True) if side == "right"],
    )
    if len(table.rows) > _ROWS_MOST:
        click.echo(f"and {several(len(table.rows) - _ROWS_MOST, 'more training')} in the report")


def _show_findings(findings: Sequence[str]) -> None:
    click.echo("\nData quality:" if findings else "", nl=bool(findings))
    for sentence in findings[:_FINDINGS_MOST]:
        click.echo(wrapped(printable(sentence), "! "))
    if len(findings) > _FINDINGS_MOST:
        click.echo(f"! and {several(len(findings) - _FINDINGS_MOST, 'more finding')} in the report")


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
            means = {
                one.name: text.with_interval(one.mean, one.interval, one.runs)
                + (f" of {one.n}" if one.n < recorded else "")
                for one in combo.metrics
            }
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


def show_comparison(between: AnyBetween, folder: Path, *, as_json: bool) -> None:
    if as_json:
        show_json(reports.comparison_answer(folder))
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
