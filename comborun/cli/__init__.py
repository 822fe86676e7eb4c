"""The commands. The only part of `comborun` that sees every package; nobody imports it."""

from __future__ import annotations

import gc
from collections import UserDict
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from comborun import __version__
from comborun.cli.frame import guarded

if TYPE_CHECKING:
    from types import ModuleType

_OF_MODULES = {
    "attaching": ("attach",),
    "calibrating": ("calibrate",),
    "canary": ("canary",),
    "control": ("drain", "notify", "pause", "retry", "slots"),
    "doctor": ("doctor",),
    "ending": ("report",),
    "explaining": ("explain",),
    "exporting": ("export",),
    "grids": ("check", "init", "plan", "schema"),
    "launching": ("launch", "run"),
    "looking": ("logs", "runs"),
    "presets": ("presets",),
    "resuming": ("resume",),
    "stopping": ("stop",),
    "watching": ("monitor", "status"),
}


class OnDemand(UserDict[str, Any]):
    """Loads a command when it is asked for: `combo stop` needs no grid file and `combo report` no host."""

    def __getitem__(self, name: str) -> click.Command:
        if isinstance(self.data[name], str):
            self.data[name] = getattr(_loaded(self.data[name]), name)
        command: click.Command = self.data[name]
        return command


def _loaded(module: str) -> ModuleType:
    """Without a look for garbage, since all that is loaded stays: a fifth of the time."""
    gc.disable()
    try:
        return import_module(f"comborun.cli.{module}")
    finally:
        gc.freeze()
        gc.enable()


@click.group(
    commands=OnDemand({name: module for module, names in _OF_MODULES.items() for name in names}),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="combo")
def combo() -> None:
    """Run a policy x environment evaluation grid: one detached session per combo, and a report that can be trusted.

    \b
    combo init > grid.yaml      write a starter grid
    combo check grid.yaml       find every mistake in it
    combo plan grid.yaml        see what would run where
    combo run grid.yaml         launch, watch, report
    """


__all__ = ["combo", "guarded"]
