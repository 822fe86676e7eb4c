"""combo completion, and the words that it offers, from files of this machine. It asks no host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from comborun.remote.runs import copy_of, plan_of, remembered
from comborun.remote.transport import LOCAL

if TYPE_CHECKING:
    from comborun.model.plan import Plan
    from comborun.remote.runs import Launch


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes commands, options, runs, sessions, hosts, presets and keys.

    \b
    combo completion bash >> ~/.bashrc
    """
    from comborun.cli import combo

    kind = get_completion_class(shell)
    assert kind
    click.echo(kind(combo, {}, "combo", "_COMBO_COMPLETE").source())


def hosts(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    return _fitting([LOCAL, *(launch.host for launch in reversed(remembered()))], begun)


def runs(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    return _fitting([launch.run for launch in reversed(remembered())], begun)


def presets(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    from comborun.grid import known_presets

    return _fitting([*known_presets()], begun)


def topics(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    from comborun.reference import pages, reference_keys

    found = pages()
    return _fitting([*found, *reference_keys(found["grid"].read_text("utf-8"))], begun)


def sessions(ctx: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    """Sessions of the run that --run names, or of the newest one."""
    wanted = ctx.params.get("wanted") or ""
    launches = [launch for launch in remembered() if launch.run.startswith(wanted) or launch.grid == wanted]
    plan = _plan(launches[-1]) if launches else None
    return _fitting([one.name for one in plan.current], begun) if plan else []


def _plan(launch: Launch) -> Plan | None:
    if launch.host != LOCAL:
        from comborun.monitor.observe import last_look

        kept = last_look(launch.host, launch.run, launch.directory)
        return kept.view.plan if kept else None
    try:
        return plan_of(copy_of(launch.host, launch.run, launch.directory))[0]
    except (OSError, ValueError):
        return None


def _fitting(words: list[str], begun: str) -> list[str]:
    return [word for word in dict.fromkeys(words) if word.startswith(begun)]
