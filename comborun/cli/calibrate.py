"""combo calibrate: time and memory of a grid's sessions on its host, alone and side by side."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from comborun import __version__
from comborun.cli.options import episodes_option, grid_argument, host_options, json_option
from comborun.cli.terminal import program, show_json, show_table, warn
from comborun.errors import UserError
from comborun.monitor.trial_setup import Progress, TrialSetup, tidy, trial_setup
from comborun.monitor.trials import measure_alone, measure_beside
from comborun.planner.calibrating import best, disturbed
from comborun.planner.knowledge import Calibration, calibration_path, calibration_text, gpu_names
from comborun.remote.grids import read_calibrations
from comborun.text import harmless, several

if TYPE_CHECKING:
    from pathlib import Path

    from comborun.cli.options import GridChoice, HostChoice
    from comborun.grid import Grid

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
        show_json({**asdict(result), "file": str(path)})
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
