"""combo calibrate: what sessions of a grid take and hold on its host, alone and side by side."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from comborun import __version__
from comborun.cli.check import check_setup
from comborun.cli.globbing import with_policies
from comborun.cli.options import grid_argument, json_option, where_options
from comborun.cli.terminal import answer, program, warn
from comborun.cli.trying import Bench
from comborun.errors import UserError
from comborun.forecast.calibrating import (
    LENGTH_S,
    again,
    alone,
    beside,
    best,
    crowded,
    disturbed,
    kinds,
    measured,
    refused,
    step,
    stops,
)
from comborun.forecast.calibration import Calibration, Step, calibration_path, gpu_names, text_of
from comborun.grid import load_grid
from comborun.planner import lay_out
from comborun.planner.furnished import with_threads
from comborun.remote.earlier import read_calibrations
from comborun.remote.host import ask, check
from comborun.remote.secrets import asked_of_host, check_host, from_laptop
from comborun.remote.shipping import digest_of, survey
from comborun.remote.sync import compare as compare_files
from comborun.remote.sync import deliver
from comborun.text import harmless, several

if TYPE_CHECKING:
    from pathlib import Path

    from comborun.cli.options import Where
    from comborun.forecast.calibrating import Trial
    from comborun.forecast.calibration import Measured
    from comborun.grid import Grid
    from comborun.plan import Plan, Session
    from comborun.resources import HostFacts

_MOST = 64
_EPISODES = 3


@dataclass(frozen=True)
class _Work:
    """What is calibrated, and where."""

    bench: Bench
    grid: Grid
    plan: Plan
    facts: HostFacts
    as_json: bool

    def say(self, text: str) -> None:
        if not self.as_json:
            click.echo(harmless(text))


@click.command()
@grid_argument
@where_options
@click.option(
    "--episodes", type=click.IntRange(min=1), default=_EPISODES, show_default=True, metavar="K", help="Of each combo."
)
@click.option("--most", type=click.IntRange(min=1), default=_MOST, show_default=True, help="Sessions side by side.")
@json_option
def calibrate(grid: Path, where: Where, episodes: int, most: int, as_json: bool) -> None:
    """Measure what sessions of a grid take and hold: one of each combo alone, then 2, 4, 8 ... side by side.

    Runs in the foreground, in a folder of its own, and ends what it started when it is interrupted. Stops where twice
    as many sessions get less than 10 % more done, or would take what is reserved. What it measured goes into a file
    beside the grid, by which `combo plan` and `combo launch` go from then on.

    \b
    combo calibrate grid.yaml
    combo calibrate grid.yaml --host h100 --episodes 5
    """
    work = _prepare(grid, where, as_json=as_json)
    facts = work.facts
    work.bench.tidy()
    found = _alone(work, episodes)
    steps, stopped = _beside(work, found, most)
    result = Calibration(
        hostname=facts.hostname,
        cpus=facts.cpus,
        gpus=gpu_names(facts),
        at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        comborun=__version__,
        combos=tuple(one for _, one in found),
        steps=tuple(steps),
        best=best(steps),
        stopped=stopped,
    )
    path = _write(work.grid, result)
    if as_json:
        answer({**asdict(result), "file": str(path)})
    else:
        _tell(result, path)


def _prepare(path: Path, where: Where, *, as_json: bool) -> _Work:
    grid = load_grid(path)
    warn(grid)
    check_setup(grid)
    read_calibrations(grid)  # a file that can't be read is told before anything runs
    secrets, shipments = from_laptop(grid.secrets), survey(grid.sync, grid.path.parent)
    transport = where.connect(grid.host)
    grid = with_policies(grid, transport)
    facts = ask(transport, asked_of_host(grid.secrets), grid.host_python)
    check(facts, None)
    check_host(facts)
    plan = lay_out(_uncut(grid), facts, digest_of(shipments))
    if endless := next((one for one in plan.sessions if not one.count), None):
        raise UserError(f"nothing says how many episodes `{endless.name}` has", "such as `episodes: 100`")

    def ready(root: str) -> None:
        deliver(transport, compare_files(transport, shipments), root)

    bench = Bench(transport, grid.root, grid.text, secrets, ready)
    return _Work(bench, grid, plan, facts, as_json)


def _length_s() -> float:
    """How long a session has to take to tell something; tests have less time."""
    return float(os.environ.get("COMBORUN_CALIBRATE_S") or LENGTH_S)


def _uncut(grid: Grid) -> Grid:
    """One session for each combo, in the grid's order."""
    combos = (replace(one, settings=replace(one.settings, shards=None, block=None)) for one in grid.combos)
    return replace(grid, combos=tuple(combos), stop_early=None)


def _alone(work: _Work, episodes: int) -> list[tuple[Session, Measured]]:
    """Every combo that is measured, alone; those that are over at once a second time, with more episodes."""
    sessions = kinds(work.plan.sessions)
    whole = {(one.policy, one.environment) for one in work.plan.sessions}
    work.say(f"alone, one after another: {several(len(sessions), 'combo')} of {len(whole)}")
    first = _run(work, alone(work.plan, sessions, [min(episodes, one.count) for one in sessions]))
    trials = {one.name: [trial] for one, trial in zip(sessions, first, strict=True)}
    more = [
        (one, count) for one, trial in zip(sessions, first, strict=True) if (count := again(one, trial, _length_s()))
    ]
    if more:
        work.say(f"{several(len(more), 'combo')} over too soon to tell: once more, with more episodes")
        longer, counts = [one for one, _ in more], [count for _, count in more]
        for one, trial in zip(longer, _run(work, alone(work.plan, longer, counts)), strict=True):
            trials[one.name].append(trial)
    found = [(one, measured(one, trials[one.name])) for one in sessions]
    return sorted(found, key=lambda pair: pair[1].pace.length(pair[0].count), reverse=True)


def _beside(work: _Work, found: list[tuple[Session, Measured]], most: int) -> tuple[list[Step], str]:
    """Those steps that went well, one session alone first, and why there are no more."""
    length = round(sum(one.pace.length(one.episodes) for _, one in found), 3)
    counted = sum(one.episodes for _, one in found)
    steps, at_once = [Step(1, length, 1.0, episodes=counted, one_by_one_s=length)], 2
    most = min(most, work.grid.limits.parallel or most)
    if not any(session.ranged for session in work.plan.sessions):
        most = min(most, len(work.plan.sessions))
    while at_once <= most:
        plan = beside(work.plan, found, at_once, _length_s())
        if reason := crowded(found, plan, at_once) or refused(plan, ask(work.bench.transport), work.facts):
            return steps, reason
        work.say(f"{at_once} side by side")
        tried = step(found, plan, _run(work, plan))
        stopped = stops([*steps, tried])
        steps += [tried] if tried.speed else []
        if stopped:
            return steps, stopped
        at_once *= 2
    return steps, f"{most} at once is the most that was asked for"


def _run(work: _Work, plan: Plan) -> list[Trial]:
    """How each session went, in the order of the plan, with as many threads as it has cores."""
    plan = with_threads(plan, work.grid, work.facts)
    live = not work.as_json and sys.stdout.isatty()

    def told(ended: int, of: int) -> None:
        if live:
            click.echo(f"\r  {ended} of {several(of, 'session')} ended", nl=ended == of)

    trials = work.bench.run(plan, told)
    return [trials[session.name] for session in plan.sessions]


def _write(grid: Grid, result: Calibration) -> Path:
    path = calibration_path(grid.path)
    text = text_of(read_calibrations(grid), result)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise UserError(
            f"{path} can't be written: {error}", "calibrate a copy of the grid in a folder of yours"
        ) from None
    return path


def _tell(result: Calibration, path: Path) -> None:
    console = Console(highlight=False)
    combos = Table(box=None, pad_edge=False)
    for name in ("policy", "environment", "episodes", "start-up", "an episode", "memory", "GPU memory", "cores"):
        combos.add_column(name, header_style="dim", justify="left" if name in {"policy", "environment"} else "right")
    for one in result.combos:
        held = [f"{size} MiB" if size else "-" for size in (one.memory_mib, one.gpu_memory_mib)]
        cores = "-" if one.cores is None else f"{one.cores:.1f}"
        combos.add_row(
            *(Text(harmless(name, keep="")) for name in (one.policy, one.environment)),
            *(str(one.episodes), f"{one.start_up_s:.1f} s", f"{one.episode_s:.3g} s", *held, cores),
        )
    levels = Table(box=None, pad_edge=False)
    for name in ("at once", "episodes", "one by one", "side by side", "done, one alone = 1"):
        levels.add_column(name, header_style="dim", justify="right")
    for level in result.steps:
        spans = (f"{seconds:.1f} s" for seconds in (level.one_by_one_s, level.seconds))
        levels.add_row(str(level.at_once), str(level.episodes), *spans, f"{level.speed:.2f}")
    for table in (combos, levels):
        console.print()
        console.print(table)
    if disturbed(result.steps):
        click.echo("\n! More got done side by side than can be: something else was busy while combos ran alone.")
        click.echo("  Calibrate again when the host is quiet.")
    click.echo(f"\nBest: {result.best} at once ({result.stopped}).")
    click.echo(f"Written to {path}; `{program()} plan` goes by it.")
