"""The commands. The only part of `comborun` that sees every package; nobody imports it."""

from __future__ import annotations

import click

from comborun import __version__
from comborun.cli.calibrating import calibrate
from comborun.cli.canary import canary
from comborun.cli.control import drain, notify, pause, retry, slots
from comborun.cli.doctor import doctor
from comborun.cli.ending import report
from comborun.cli.explaining import explain
from comborun.cli.exporting import export
from comborun.cli.frame import guarded
from comborun.cli.grids import check, init, plan, schema
from comborun.cli.launching import launch, run
from comborun.cli.looking import attach, logs, runs
from comborun.cli.presets import presets
from comborun.cli.resuming import resume
from comborun.cli.stopping import stop
from comborun.cli.watching import monitor, status


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="combo")
def combo() -> None:
    """Run a policy x environment evaluation grid: one detached session per combo, and a report that can be trusted.

    \b
    combo init > grid.yaml      write a starter grid
    combo check grid.yaml       find every mistake in it
    combo plan grid.yaml        see what would run where
    combo run grid.yaml         launch, watch, report
    """


_COMMANDS = (
    *(init, check, plan, schema, presets, doctor),
    *(launch, run),
    *(monitor, status, logs, attach, runs, explain),
    *(stop, retry, slots, pause, drain, resume, notify),
    *(report, export, canary, calibrate),
)
for _command in _COMMANDS:
    combo.add_command(_command)


__all__ = ["combo", "guarded"]
