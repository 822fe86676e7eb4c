"""combo try, calibrate, recheck: short runs that show what counts, what sessions need, and whether results repeat."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from typing import TYPE_CHECKING

import click

from comborun import __version__
from comborun.answers import runs
from comborun.answers.grids import Calibrated
from comborun.api.joint import parts_of
from comborun.api.named import Target
from comborun.cli.options import Shown, episodes_option, grid_argument, host_options, json_option, of_run
from comborun.cli.proposals import show_line, show_videos, show_why
from comborun.cli.status import watched
from comborun.cli.terminal import SOME_DID_NOT, program, show_json, show_rows, show_table, warn, wrapped
from comborun.errors import HostError, UserError
from comborun.monitor.beginning import await_beginning
from comborun.monitor.screen import JsonScreen
from comborun.monitor.trial_setup import Progress, TrialSetup, tidy, trial_setup
from comborun.monitor.trials import FOLDER, chosen, measure_alone, measure_beside, try_one
from comborun.monitor.watch import Clock, Settings, Source, once
from comborun.monitor.watcher import watch
from comborun.monitor.wording import MARKS, indented
from comborun.planner.calibrating import best, disturbed
from comborun.planner.knowledge import Calibration, calibration_path, calibration_text, gpu_names
from comborun.remote.grids import read_calibrations
from comborun.rules.names import AttemptLayout
from comborun.rules.results.counts import WROTE_NOTHING
from comborun.rules.results.fields import NO_VERDICTS
from comborun.rules.vocabulary import Outcome, amount
from comborun.text import harmless, several
from comborun.words import say
from comborun.words.rows import why_not_counted, without_line
from comborun.words.times import brief

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from comborun.api.named import GridChoice, HostChoice
    from comborun.grid import Grid
    from comborun.monitor.trials import TryResult
    from comborun.reporter.records.collected import Canary
    from comborun.reporter.records.reading import Reject

_FILES_SHOWN = 8


@click.command("try")
@grid_argument
@click.argument("combo", nargs=-1, metavar="[COMBO]")
@host_options
@episodes_option(default=1)
@json_option
def try_(grid: GridChoice, combo: tuple[str, ...], where: HostChoice, episodes: int, as_json: bool) -> int:
    """Run one episode of one combo, here or on the grid's host, and show which of its results count.

    Shows the command, the end of its log, its files, and the lines for `results:` that would make more rows count.
    COMBO is a session's name, or its policy and environment; the default is the first combo. Changes no run.

    \b
    combo try grid.yaml
    combo try grid.yaml flat stairs --episodes 3
    """
    read = grid.read()
    warn(*map(str, read.warnings))
    progress = Progress(lambda text: click.echo(harmless(text), err=True))
    setup = trial_setup(read, where.connect, lambda whole: chosen(whole, combo), progress, FOLDER)
    tidy(setup)
    tried = try_one(setup, episodes, None if as_json else _running)
    if as_json:
        show_json(tried.answer)
    else:
        again = " ".join([str(grid), *map(shlex.quote, () if tried.counts else combo)])
        host = where.options(where.host) if where.host else ""
        _show_tried(tried, f"{program()} {'run' if tried.counts else 'try'} {again}{host}")
    return 0 if tried.counts else SOME_DID_NOT


def _running(seconds: float, line: str) -> None:
    """Draw one line of the terminal, again and again."""
    if sys.stdout.isatty():
        text = f"  running for {brief(seconds)}  {harmless(line)}"
        click.echo(f"\r\033[K{text[: shutil.get_terminal_size().columns - 1]}", nl=False)


def _show_tried(tried: TryResult, then: str) -> None:
    """`then`: the command to give next."""
    session, end = tried.session, tried.end
    if sys.stdout.isatty():
        click.echo("\r\033[K", nl=False)
    dropped = end.outcome is Outcome.SUCCEEDED and not tried.counts
    mark = MARKS[Outcome.PARTIAL if dropped else end.outcome]
    sign = click.style(mark.symbol, fg=mark.style)
    combo = click.style(f"{session.policy} in {session.environment}", bold=True)
    click.echo(f"{sign} {combo}: {harmless(': '.join(filter(None, (_verdict(tried), _trouble(tried)))))}")
    click.echo(wrapped(harmless(tried.command), "  $ "))
    for line in filter(str.strip, tried.log):
        click.echo(click.style(f"  | {indented(line)}", dim=True))
    how = f"ended with code {end.code}" if end.code is not None else f"ended: {end.cause}"
    after = f" after {brief(tried.seconds)}" if tried.seconds is not None else ""
    click.echo(f"  {how}{after}" + (f" ({harmless(end.note)})" if end.note else ""))
    _show_files(tried)
    said = why_not_counted(end.counts.facts) == _trouble(tried)
    if not said and session.unit == "episode" and not any(fact.code == WROTE_NOTHING for fact in end.counts.facts):
        show_why(end.counts.facts, tried.grid)
    if tried.seed and tried.counts:
        click.echo(f"  Its rows have the seed in {harmless(tried.seed)!r}. This line compares policies by it:")
        show_line({"seed": tried.seed}, tried.grid)
    show_videos(tried.videos, tried.grid)
    click.echo(f"\nNext: {then}")


def _trouble(tried: TryResult) -> str:
    """Why nothing counts, in a few words: how the program ended, or what its files lack; empty if it counts."""
    if tried.counts:
        return ""
    if tried.end.clean and tried.session.unit != "episode":
        return "give `results: none`, since a training has no episodes that files could hold" * tried.looks_for_rows
    if tried.end.clean:
        return why_not_counted([kept for fact in tried.end.counts.facts for kept in without_line(fact)])
    last = next((line.strip() for line in reversed(tried.log) if line.strip()), "")
    return ": ".join(filter(None, (say(tried.end.how), tried.end.note or indented(last))))


def _show_files(tried: TryResult) -> None:
    for path, size in tried.files[:_FILES_SHOWN]:
        click.echo(f"  wrote {harmless(path, keep='')} ({amount(size)})")
    if len(tried.files) > _FILES_SHOWN:
        click.echo(f"  and {len(tried.files) - _FILES_SHOWN} more files")
    output = AttemptLayout(tried.attempt).output
    where = f"in {output}" if tried.files else f"It wrote no file below {{output_dir}}, {output}"
    click.echo(click.style(f"  {harmless(where)}", dim=True))


def _verdict(tried: TryResult) -> str:
    counts, planned = tried.end.counts, tried.session.count
    if not tried.session.results.has_records or tried.session.unit != "episode":
        evidence = tried.session.evidence.beside_records
        proven = f"its end is proven by {evidence}" if evidence else "only its exit code counts"
        if tried.session.unit == "episode":
            return f"{proven}: the grid says `results: none`"
        trained = say(counts.trained) if counts.trained else "no curve is found in its log and files"
        return f"a training, {trained}; {proven}"
    of = f" of {planned}" if planned else ""
    if not tried.counts and not tried.end.clean:
        return "it failed"
    if not counts.countable:
        return "the results are there; the report counts them"
    if not counts.records:
        return "no episode counts"
    if not counts.verdicts and tried.session.results.success.word != NO_VERDICTS:
        return f"none of {several(counts.records, 'episode')} has a verdict"
    noun = "episode counts" if max(planned, counts.records) == 1 else "episodes count"
    if tried.session.results.success.word == NO_VERDICTS:
        return f"{counts.records}{of} {noun}, by numbers alone"
    verdicts = f"{counts.successes} with success, {counts.failures} without"
    errored = f", {counts.errored} without a verdict" if counts.errored else ""
    return f"{counts.records}{of} {noun}: {verdicts}{errored}"


_COMBO_HEADS = ("policy", "environment", "episodes", "start-up", "an episode", "memory", "GPU memory", "cores")
_LEVEL_HEADS = ("at once", "episodes", "one by one", "side by side", "speed (one alone: 1)")


@click.command()
@grid_argument
@host_options
@episodes_option(default=3)
@click.option(
    "--most", type=click.IntRange(min=1), default=64, show_default=True, metavar="N", help="Sessions side by side."
)
@json_option
def calibrate(grid: GridChoice, where: HostChoice, episodes: int, most: int, as_json: bool) -> None:
    """Measure the time and memory of a grid's sessions: one of each combo alone, then 2, 4, 8 ... side by side.

    Runs in the foreground, in a folder of its own, and ends its sessions if you interrupt it. Stops when twice as many
    sessions do less than 10 % more work, or would need reserved resources. Writes the measurements into a file beside
    the grid, which `combo plan` and `combo launch` use from then on.

    \b
    combo calibrate grid.yaml
    combo calibrate grid.yaml --host h100 --episodes 5
    """
    setup = _prepare(grid, where, _progress(quiet=as_json))
    tidy(setup)
    found = measure_alone(setup, episodes)
    steps, stopped = measure_beside(setup, found, most)
    result = Calibration(
        hostname=setup.facts.hostname,
        cpus=setup.facts.cpus,
        gpus=gpu_names(setup.facts),
        at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        comborun=__version__,
        combos=tuple(one for _, one in found),
        steps=tuple(steps),
        best=best(steps),
        stopped=stopped,
    )
    path = _write(setup.grid, result)
    if as_json:
        show_json(Calibrated(**vars(result), file=str(path)))
    else:
        show_calibration(result, path)


def _progress(*, quiet: bool) -> Progress:
    def warn(text: str) -> None:
        click.echo(harmless(text), err=True)

    def count(ended: int, of: int) -> None:
        if sys.stdout.isatty():
            click.echo(f"\r  {ended} of {several(of, 'session')} ended", nl=ended == of)

    return Progress(warn) if quiet else Progress(warn, lambda text: click.echo(harmless(text)), count)


def _prepare(chosen: GridChoice, where: HostChoice, progress: Progress) -> TrialSetup:
    grid = chosen.read()
    warn(*map(str, grid.warnings))
    read_calibrations(grid)  # an error in the old file comes before anything runs
    setup = trial_setup(grid, where.connect, lambda whole: whole, progress, ".calibrate")
    if endless := next((one for one in setup.plan.sessions if not one.count), None):
        raise UserError(f"nothing says how many episodes `{endless.name}` has", "add them, such as `episodes: 100`")
    return setup


def _write(grid: Grid, result: Calibration) -> Path:
    path = calibration_path(grid.path)
    text = calibration_text(read_calibrations(grid), result)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise UserError(f"can't write {path}: {error}", "calibrate a copy of the grid in a folder of yours") from None
    return path


def show_calibration(result: Calibration, path: Path) -> None:
    combos = []
    for one in result.combos:
        held = [f"{size} MiB" if size else "-" for size in (one.memory_mib, one.gpu_memory_mib)]
        cores = "-" if one.cores is None else f"{one.cores:.1f}"
        times = f"{one.start_up_s:.1f} s", f"{one.episode_s:.3g} s"
        combos.append((one.policy, one.environment, str(one.episodes), *times, *held, cores))
    levels = []
    for level in result.steps:
        spans = (f"{seconds:.1f} s" for seconds in (level.one_by_one_s, level.seconds))
        levels.append((str(level.at_once), str(level.episodes), *spans, f"{level.speed:.2f}"))
    for heads, rows in ((_COMBO_HEADS, combos), (_LEVEL_HEADS, levels)):
        click.echo()
        show_table(heads, rows, numbers={*heads} - {"policy", "environment"})
    if disturbed(result.steps):
        click.echo("\n! Sessions side by side were faster than possible: the host was busy while combos ran alone.")
        click.echo("  Calibrate again when the host is quiet.")
    click.echo(f"\nBest: {result.best} at once ({result.stopped}).")
    click.echo(f"Written to {path}; `{program()} plan` uses it.")


_WRITE = """
case $1 in "~/"*) run=$HOME/${1#"~/"} ;; *) run=$1 ;; esac
cat >"$run/.canary.part" && mv -fT -- "$run/.canary.part" "$run/canary.json"
"""


@click.command()
@of_run
@episodes_option(default=3)
@json_option
def recheck(target: Target, episodes: int, as_json: bool) -> int:
    """Run the first episodes of every combo once more, alone, and compare them with the run.

    Runs one session at a time, with the same commands and seeds. If outcomes or starts of episodes differ, the program
    is not repeatable, or parallel sessions change its results. Then the run's report begins with that. Of a run on
    several hosts, each combo runs on its own host, one host after the other.

    \b
    combo recheck
    combo recheck 4_env_test --episodes 5
    """
    parts = [part for part, _ in parts_of(target, ())]
    if target.boxes:
        parts = [part for part in parts if any(not one.flag for one in part.source().view.plan.sessions)]
        for part in parts:
            _refuse_company(part.source())
    found = [_recheck(part, episodes, quiet=as_json) for part in parts]
    if as_json:
        answers = [answer for answer, _ in found]
        show_json(answers if target.boxes else answers[0])
    return max((code for _, code in found), default=0)


def _recheck(target: Target, episodes: int, *, quiet: bool) -> tuple[runs.Rechecked, int]:
    """What the recheck on one host has found, and the exit code."""
    from comborun.amendment.resumption import episodes_each, recheck_plan
    from comborun.api.reports import collected
    from comborun.remote.launching import launch_recheck
    from comborun.reporter.canary import compare_canary

    transport = target.transport
    source = target.source()
    view = source.view
    _refuse_company(source)
    plan = recheck_plan(view.plan, view.id, episodes)
    publication = launch_recheck(transport, plan, view.directory, episodes)
    await_beginning(transport, publication.directory)
    alone = Target(transport, publication.run, publication.directory)
    if not quiet:
        click.echo(f"{view.id}: {episodes_each(plan)} of every combo run alone, as {alone.run}")
    _watch(alone, quiet=quiet)
    (beside, _), (found, _) = collected(target), collected(alone)
    result = compare_canary(alone.run, beside.records, found.records)
    # beside the run's records, so that every report of the run shows it
    done = transport.run(_WRITE, target.directory, stdin=result.to_json().encode("utf-8", "replace"))
    if done.code:
        raise HostError(f"can't write {target.directory}/canary.json on {transport.host}", done.complaint)
    if not quiet:
        _show_recheck(result, target, found.rejects)
    combos = tuple(runs.RecheckedCombo(**vars(combo)) for combo in result.combos)
    answer = runs.Rechecked(target.run, result.run, combos, len(found.rejects))
    return answer, SOME_DID_NOT if result.differing or result.silent or not result.combos else 0


def _refuse_company(source: Source) -> None:
    """Raise UserError while the run goes on: a recheck must run alone."""
    view = source.view
    if view.plan.slurm:
        hint = f"on a node of yours (srun --pty bash): {program()} run GRID --new, and then {program()} recheck"
        raise UserError(f"{view.id} ran on Slurm, and a recheck needs a machine for itself", hint)
    if not once(source).finished:
        hint = f"wait for its end, or {program()} stop {view.id}"
        raise UserError(f"{view.id} still runs, and a recheck must be alone on the machine", hint)


def _watch(alone: Target, *, quiet: bool) -> None:
    source = alone.source()
    settings = Settings(min(source.view.plan.poll, 5.0))
    try:
        if quiet:
            watch(source, JsonScreen(lambda _: None), Clock(), settings)
        else:
            watched(alone, source, settings, Shown())
    except KeyboardInterrupt:
        click.echo(f"\nNo longer watching. The recheck goes on; {program()} stop {alone.run} ends it.", err=True)
        raise


def _show_recheck(result: Canary, target: Target, rejects: Sequence[Reject]) -> None:
    click.echo()
    show_rows({harmless(combo.name, keep=""): ("! " if combo.differs else "") + combo.words for combo in result.combos})
    if result.differing:
        click.echo(
            "Some episodes had another outcome alone: the program is not repeatable, or parallel sessions affect each"
            " other."
        )
    elif result.combos and not result.silent:
        click.echo("All compared episodes had the same outcome as in the run.")
    elif result.combos:
        click.echo(f"{several(len(result.silent), 'combo')} of {len(result.combos)} could not be compared.")
    elif not rejects:
        click.echo("The recheck left no record, so nothing can be compared.")
    if rejects:
        from comborun.reporter.canary import told_rejects

        click.echo(harmless(told_rejects(result, rejects)))
    show_rows({"report": f"{program()} report {target.run}"})
