"""The commands. The only part of `comborun` that sees every package; nobody imports it."""

from __future__ import annotations

import click

from comborun import __version__
from comborun.cli.doctor import doctor
from comborun.cli.ending import report, stop
from comborun.cli.frame import guarded
from comborun.cli.grids import check, init, plan, schema
from comborun.cli.launching import launch, run
from comborun.cli.looking import attach, logs, runs
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


for _command in (init, check, plan, schema, doctor, launch, run, monitor, status, logs, attach, runs, stop, report):
    combo.add_command(_command)


__all__ = ["combo", "guarded"]
