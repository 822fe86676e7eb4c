"""The commands. This package may import every other one; no other one imports it."""

from __future__ import annotations

import gc
from importlib import import_module
from keyword import iskeyword

import click

from comborun import __version__
from comborun.cli.terminal import guarded
from comborun.text import close_to

_COMMANDS = {
    "Write a grid": {
        "init": ("check", "Write a starter grid with comments."),
        "presets": ("check", "List the evaluation programs that a grid can name."),
        "check": ("check", "Find every mistake in a grid file."),
        "try": ("trials", "Run one episode of one combo, and show whether it counts."),
        "docs": ("check", "Print the reference of a key of a grid."),
    },
    "Look ahead": {
        "doctor": ("doctor", "Look for problems on a host."),
        "plan": ("plan", "Show what a new run would do."),
        "calibrate": ("trials", "Measure what sessions need, with a short trial."),
    },
    "Run": {
        "run": ("launch", "Launch a grid, watch it, and report at its end."),
        "launch": ("launch", "Start a grid's sessions and return."),
        "follow": ("launch", "Evaluate the checkpoints of a training as they appear."),
        "resume": ("control", "Continue a run: run what is missing."),
        "recheck": ("trials", "Run the first episodes once more, alone, and compare."),
    },
    "Watch": {
        "monitor": ("monitor", "Watch a run on the whole screen, and report at its end."),
        "status": ("status", "Show the table of a run once."),
        "view": ("view", "Show a run on a live page in a browser."),
        "runs": ("runs", "List the runs on all hosts."),
        "explain": ("explain", "Explain why a session waits, runs or has ended."),
        "logs": ("logs", "Show the end of a session's log."),
        "attach": ("attach", "Open a session's window."),
    },
    "Steer": {
        "stop": ("control", "End a run, or sessions of it."),
        "retry": ("control", "Start failed sessions again."),
        "set": ("control", "Change GPUs, reserves or the number of sessions while a run goes on."),
        "slots": ("control", "Let N sessions run at once from now on."),
        "pause": ("control", "Start nothing new until `combo resume`."),
        "drain": ("control", "Start nothing new, and let running sessions end."),
        "notify": ("control", "Send a test notice."),
    },
    "Report": {
        "report": ("report", "Report on a run, or on any folder of result files."),
    },
    "Hosts and old runs": {
        "hosts": ("hosts", "Show the hosts that share a run, or give one of them up."),
        "keep": ("keep", "Let sessions move to hosts with room, until the run has ended."),
        "disconnect": ("options", "End kept connections to hosts."),
        "clean": ("runs", "Remove old runs, after showing them and their size."),
    },
    "For other programs": {
        "completion": ("options", "Print a script that completes words in your shell."),
        "schema": ("check", "Write the JSON Schema of a grid file, for editors."),
        "export": ("plan", "Write the plan for another program, such as Docker Compose."),
        "mcp": ("mcp", "Offer tools about a run to an assistant (MCP)."),
    },
}
"""heading -> command -> its module, and its line in `combo --help`"""
_FORMER = {"canary": "recheck"}
"""former names of commands; they go on working, and no help shows them"""


class Commands(click.Group):
    """Loads a command only when it is used: `combo --help` and `combo stop` need no grid model."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_modules())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        name = _FORMER.get(cmd_name, cmd_name)
        return command_named(name) if name in _modules() else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            meant = close_to(args[0], _modules())
            if not meant:
                raise
            raise click.UsageError(f"{error.format_message()} Did you mean '{meant}'?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        width = max(map(len, _modules()))
        for heading, names in _COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in names.items()])


def _modules() -> dict[str, str]:
    return {name: module for names in _COMMANDS.values() for name, (module, _) in names.items()}


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="combo")
def combo() -> None:
    """Run a policy x environment evaluation grid: one detached session per combo, and a report that can be trusted.

    \b
    combo init > grid.yaml      write a starter grid
    combo check grid.yaml       find every mistake in it
    combo try grid.yaml         run one episode of one combo, and see what counts
    combo plan grid.yaml        see what would run where
    combo run grid.yaml         launch, watch, report
    """


def command_named(name: str) -> click.Command:
    """A command by its name, loaded now."""
    module = import_module(f"comborun.cli.{_modules()[name]}")
    command: click.Command = getattr(module, f"{name}_" if iskeyword(name) or name == "set" else name)
    import_module("comborun.cli.options").order_options(command)
    gc.freeze()
    gc.enable()
    return command


__all__ = ["combo", "command_named", "guarded"]
