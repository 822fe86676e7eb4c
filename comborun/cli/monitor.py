"""combo monitor. It loads the rest when a line on the terminal says what is being done."""

from __future__ import annotations

from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from comborun.api.named import HostChoice
from comborun.cli.options import Shown, interval_option, json_lines_option, of_run, plain_option
from comborun.cli.terminal import AT_ONCE, working

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.api.named import Target


def _at_once(command: Callable[..., int]) -> Callable[..., int]:
    """Before the full screen, all work is shown at once."""

    @wraps(command)
    def shown_at_once(**given: Any) -> int:
        if Shown(plain=given["plain"], as_json=given["as_json"]).full and not given["just_once"]:
            click.get_current_context().meta[AT_ONCE] = True
        return command(**given)

    return shown_at_once


@click.command()
@_at_once
@partial(of_run, kept=True)
@click.option("--once", "just_once", is_flag=True, help="The same as `combo status`.")
@click.option("--all", "everywhere", is_flag=True, help="Watch the runs of all hosts, a row for each.")
@interval_option
@plain_option
@json_lines_option
def monitor(target: Target | HostChoice, just_once: bool, **shown: Any) -> int:
    """Watch a run on the whole screen; make the report when all sessions have exited.

    `?` shows the keys. Watching changes nothing: q and Ctrl-C leave the sessions alone. Without a terminal, or with
    --plain, it prints a line for each change.

    \b
    combo monitor                        the newest run
    combo monitor --host h100            the newest run there
    combo monitor 4_env_test --json      a document for each look
    combo monitor --all                  every run on every host
    """
    shown.pop("everywhere")
    if isinstance(target, HostChoice):
        from comborun.cli.runs import show_everywhere, watch_everywhere

        if just_once:
            return show_everywhere(target, as_json=shown["as_json"])
        return watch_everywhere(target, **shown)
    with working(f"reading {target.run}"):
        from comborun.cli import status  # slow to import
    if just_once:
        return status.show_status(target, as_json=shown["as_json"])
    if target.away:
        raise target.away
    return status.watch_until_the_end(target, Shown(**shown))
