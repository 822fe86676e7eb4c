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


def words(what: str, context: click.Context) -> list[str]:
    """The words for hosts, runs, presets, topics of `combo docs`, or sessions of the run that --run names."""
    match what:
        case "hosts":
            return [LOCAL, *(launch.host for launch in reversed(remembered()))]
        case "runs":
            return [launch.run for launch in reversed(remembered())]
        case "presets":
            from comborun.grid import known_presets

            return [*known_presets()]
        case "topics":
            from comborun.reference import pages, reference_keys

            found = pages()
            return [*found, *reference_keys(found["grid"].read_text("utf-8"))]
    wanted = context.params.get("wanted") or ""
    launches = [launch for launch in remembered() if launch.run.startswith(wanted) or launch.grid == wanted]
    plan = _plan(launches[-1]) if launches else None
    return [one.name for one in plan.current] if plan else []


def _plan(launch: Launch) -> Plan | None:
    if launch.host != LOCAL:
        from comborun.monitor.observe import last_look

        kept = last_look(launch.host, launch.run, launch.directory)
        return kept.view.plan if kept else None
    try:
        return plan_of(copy_of(launch.host, launch.run, launch.directory))[0]
    except (OSError, ValueError):
        return None
