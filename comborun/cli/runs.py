"""combo runs and combo clean: the runs on all hosts that this machine has used, and the removal of old runs."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from comborun.cli.options import json_option, offers, root_options, take_over_option
from comborun.cli.terminal import show_json, show_rows, show_table, working
from comborun.errors import HostError, UserError
from comborun.monitor.listing import each_once, look_everywhere, looked_at, state, to_document
from comborun.remote import program
from comborun.remote.runs import choose_run, copy_of, host_of, remembered, remove, sizes
from comborun.remote.transport import LOCAL
from comborun.rules.vocabulary import amount
from comborun.text import harmless, several
from comborun.words import say
from comborun.words.times import brief, duration

if TYPE_CHECKING:
    from comborun.api.named import HostChoice
    from comborun.remote.runs import Listing, Run


@click.command()
@click.argument("grid", required=False, type=click.Path(path_type=Path))
@root_options
@json_option
def runs(grid: Path | None, where: HostChoice, as_json: bool) -> int:
    """List the runs on all hosts that this machine has used, newest first; with --host, only on that host.

    With GRID, a grid file, only on that grid's host. A host that does not answer is shown as it was last seen.

    \b
    combo runs
    combo runs --host h100
    combo runs grid.yaml
    """
    at = where.of_grid(grid) if grid else None
    if grid and not at:
        raise UserError(f"{grid} is not a grid file", "combo runs takes a grid's file, such as grid.yaml")
    where = at[0] if at else where
    everywhere = dict.fromkeys([LOCAL, *(launch.host for launch in reversed(remembered()))])
    transports = {host: where.connect(host) for host in ([where.host] if where.host else everywhere)}
    with working(f"asking {several(len(transports), 'host')}"):
        found = look_everywhere(transports, where.runs)
    entries = each_once(found)
    code = HostError.exit_code if all(one.complaint for one in found) else 0
    if as_json:
        show_json([to_document(one, run) for one, run in entries])
        return code
    for recheck in (False, True):
        rows = [_row(one, run) for one, run in entries if run.canary == recheck]
        click.echo("\nRechecks, which repeat episodes of a run:" if rows and recheck else "", nl=bool(rows and recheck))
        show_table(("run", "state", "host", "started", "time"), rows)
    folders: dict[str, dict[str, None]] = {}
    for one, run in entries:
        folders.setdefault(one.host, {})[run.directory.rpartition("/")[0]] = None
    click.echo("\nFolders:" if entries else "", nl=bool(entries))
    show_rows({harmless(host): harmless(", ".join(names)) for host, names in folders.items()})
    for host, why in {one.host: one.complaint for one in found if one.complaint}.items():
        click.echo(harmless(f"! {host}: {why}"), err=True)
    asked = [harmless(one.host) for one in found if not one.complaint]
    if not entries and asked:
        where_else = "" if grid else "; `combo runs GRID` looks in the `root` of that grid"
        click.echo(f"no runs on {', '.join(asked)}{where_else}")
    return code


def _row(one: Listing, run: Run) -> tuple[str, ...]:
    age = f" (seen {brief(time.time() - one.seen)} ago)" if one.complaint and one.seen else ""
    time_taken = "-" if run.seconds is None else duration(run.seconds)
    return run.id, state(run) + age, one.host, _started(run), time_taken


def _started(run: Run) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started))


@click.command()
@click.argument("names", nargs=-1, metavar="[RUN]...", shell_complete=offers("runs"))
@click.option("--run", "wanted", metavar="RUN", shell_complete=offers("runs"), help="The same as RUN.")
@root_options
@click.option(
    "--older", default=30.0, show_default=True, metavar="DAYS", help="Without RUN: remove only runs older than this."
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@take_over_option
def clean(names: tuple[str, ...], wanted: str | None, where: HostChoice, older: float, **how: bool) -> None:
    """Remove old runs from a host, after showing them and their size.

    The host is that of the first RUN, or this machine.

    Keeps a run that goes on, and a run on another host that `combo report` has not copied since its end. Keeps a run
    that was stopped, or is on this machine, unless you name it.

    \b
    combo clean --host h100
    combo clean --host h100 --older 7
    combo clean 4_env_test-20260729T101500Z-ab12
    """
    names += (wanted,) if wanted else ()
    transport = where.connect(host_of(names[0]) if names else None)
    with working(f"asking {transport.host}"):
        there = where.runs(transport)
    chosen = [choose_run(there, name, transport.host) for name in names] or there
    older = -math.inf if names else older
    kept = {run.id: why for run in chosen if (why := _why_kept(run, transport.host, older, named=bool(names)))}
    going = looked_at(transport, tuple(run for run in chosen if run.id not in kept))
    for why, count in Counter(kept.values()).items():
        who = ", ".join(one for one in kept if kept[one] == why) if names else several(count, "run")
        click.echo(f"{who} {'stays' if count == 1 else 'stay'}: {why}")
    with working("measuring them"):
        bytes_of = dict(zip((run.id for run in going), sizes(transport, going), strict=True)) if going else {}
    rows = [(run.id, state(run), _started(run), amount(bytes_of[run.id])) for run in going]
    show_table(("run", "state", "started", "size"), rows)
    if not going:
        click.echo(f"nothing to remove on {transport.host}")
        return
    total = f"{several(len(going), 'run')} on {transport.host}, {amount(sum(bytes_of.values()))}"
    if how["dry_run"]:
        click.echo(f"would remove {total}")
        return
    if not how["yes"]:
        if not sys.stdin.isatty():
            raise UserError(f"this would remove {total}", "--yes removes them")
        click.confirm(f"Remove {total}?", abort=True, err=True)
    for run in going:
        if how["take_over"]:
            program.take_over(transport, run.directory)
        left = remove(transport, run.directory)
        click.echo(f"{run.id}: {f'stays: {say(left)}' if left else 'removed'}")


def _why_kept(run: Run, host: str, older: float, *, named: bool) -> str:
    if run.started >= time.time() - older * 86400:
        return f"younger than {older:g} days (--older)"
    stopped = not run.done and run.held.get("kind") == "stopped"
    if not run.done and not stopped:
        return "not finished; `combo stop RUN` ends a run"
    end = "stopped" if stopped else "done"
    if host != LOCAL and not (copy_of(host, run.id, run.directory) / "dispatch" / end).is_file():
        return f"not copied to this machine; `combo report RUN --host {host}` copies a run"
    if stopped and not named:
        return "stopped, can be resumed; name a run to remove it"
    return "" if host != LOCAL or named else "on this machine, without a copy; name a run to remove it"
