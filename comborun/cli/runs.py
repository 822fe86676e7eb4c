"""combo runs and combo clean: the runs on all hosts that this machine has used, and the removal of old runs."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from comborun.answers.orders import Cleaned
from comborun.answers.runs import AllRuns
from comborun.cli.options import json_option, offers, root_options, take_over_option
from comborun.cli.terminal import INTERRUPTED, show_json, show_record, show_rows, show_table, working
from comborun.errors import HostError, UserError
from comborun.monitor.fleet import Fleet, FleetRow, answer, looked_at, state
from comborun.monitor.fleet_table import Layout, complaints, day, show_live, table
from comborun.remote import run_orders
from comborun.remote.launches import host_of, remembered
from comborun.remote.runs import choose_run, copy_of, remove, sizes
from comborun.remote.transport import LOCAL
from comborun.rules.vocabulary import amount
from comborun.text import harmless, several
from comborun.words import say
from comborun.words.times import clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.text import Text

    from comborun.api.named import HostChoice
    from comborun.remote.runs import Run

_INTERVAL_S = 5.0
"""seconds between two looks at a host while all are watched"""
_STEP_S = 0.5


@click.command()
@click.argument("grid", required=False, type=click.Path(path_type=Path))
@root_options
@json_option
def runs(grid: Path | None, where: HostChoice, as_json: bool) -> int:
    """List the runs on all hosts that this machine has used, as the hosts answer; with --host, only on that host.

    With GRID, a grid file, only on that grid's host. A host that does not answer within two seconds is shown as it was
    last seen, and waited for six seconds at most; with --host, for longer. In a narrow terminal the last four
    characters of a run's id stand for it.

    \b
    combo runs
    combo runs --host h100
    combo runs grid.yaml
    """
    at = where.of_grid(grid) if grid else None
    if grid and not at:
        raise UserError(f"{grid} is not a grid file", "combo runs takes a grid's file, such as grid.yaml")
    return show_everywhere(at[0] if at else where, as_json=as_json, grid=grid)


def show_everywhere(where: HostChoice, *, as_json: bool, grid: Path | None = None) -> int:
    """Print the runs of all hosts once, each host's as soon as it answers. Returns the exit code."""
    transports = where.everywhere()
    console = Console(highlight=False)
    live = console.is_terminal and not console.is_dumb_terminal and not as_json
    with nullcontext() if live else working(f"asking {several(len(transports), 'host')}"):
        fleet = Fleet(transports, where.look)
        shown, waits = dict[str, str](), False
        if live:
            show_live(fleet, console, time.time, lasting=False)
        while not fleet.over:
            fleet.wait(_STEP_S)
            if not as_json:
                shown |= print_new(fleet, shown)
            if fleet.late and not waits:
                waits = True
                click.echo(f"waiting for {', '.join(map(harmless, fleet.late))} ...", err=True)
    fleet.close()
    found = fleet.listings()
    code = HostError.exit_code if all(one.complaint for one in found) else 0
    rows = fleet.rows()
    if as_json:
        show_json([answer(row) for row in rows])
        return code
    if live:
        _print(table(rows, console.width, time.time()))
    else:
        print_new(fleet, shown, last=True)
    folders: dict[str, dict[str, None]] = {}
    for one in (part for row in rows for part in row.each):
        folders.setdefault(one.host, {})[one.run.directory.rpartition("/")[0]] = None
    click.echo("\nFolders:" if rows else "", nl=bool(rows))
    show_rows({harmless(host): harmless(", ".join(names)) for host, names in folders.items()})
    for line in complaints(fleet):
        click.echo(line, err=True)
    asked = [harmless(one.host) for one in found if not one.complaint]
    if not rows and asked:
        where_else = "" if grid else "; `combo runs GRID` looks in the `root` of that grid"
        click.echo(f"no runs on {', '.join(asked)}{where_else}")
    return code


def watch_everywhere(where: HostChoice, interval: float | None, *, plain: bool, as_json: bool) -> int:
    """Show the runs of all hosts until Ctrl-C: in a table that redraws itself, else a line for each change."""
    console, last = Console(highlight=False), dict[str, str]()
    fleet = Fleet(where.everywhere(), where.look, interval or _INTERVAL_S)
    try:
        if console.is_terminal and not console.is_dumb_terminal and not (plain or as_json):
            show_live(fleet, console, time.time, lasting=True)
        while True:
            if not fleet.wait(1.0):
                continue
            if as_json:
                show_record(AllRuns(tuple(map(answer, fleet.rows()))))
                continue
            for row in fleet.rows():
                said = f"{row.run.id} on {row.host}: {row.state}" + (f" ({row.complaint})" if row.complaint else "")
                if last.get(row.run.id) != said:
                    click.echo(harmless(f"{clock(time.time())}  {said}"))
                last[row.run.id] = said
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        fleet.close()


def print_new(fleet: Fleet, shown: Mapping[str, str], *, last: bool = False) -> dict[str, str]:
    """Print the runs that are not shown yet, each once.

    A run that was launched on another host than the one that lists it waits for that host, and one on several hosts for
    all of them. If a host answers after its
    runs were shown as last seen, standard error gets those whose state is another one now.
    """
    launched = {launch.run: launch.host for launch in remembered()}
    shares: dict[str, set[str]] = {}
    for launch in remembered():
        shares.setdefault(launch.grid_run, set()).add(launch.host)
    heard = {one.host for one in fleet.listings()}

    def is_whole(row: FleetRow) -> bool:
        if grid_run := row.each[0].run.grid_run:
            return shares.get(grid_run, heard) <= heard
        return launched.get(row.run.id, row.host) in {row.host, *heard}

    new = [row for row in fleet.rows() if row.run.id not in shown and (last or is_whole(row))]
    layout = Layout(fleet.awaited(), None, time.time())
    _print([*([] if shown or not new else [layout.head()]), *map(layout.line, new)])
    for row in fleet.rows() if last else ():
        if (before := shown.get(row.run.id)) and not row.complaint and row.state != before:
            click.echo(harmless(f"{row.run.id} on {row.host} has answered: {row.state}"), err=True)
    return {row.run.id: row.state for row in new}


def _print(lines: Iterable[Text]) -> None:
    for line in lines:
        click.echo(click.style(line.plain, dim=True) if line.style else line.plain)
    sys.stdout.flush()


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
@json_option
def clean(
    names: tuple[str, ...], wanted: str | None, where: HostChoice, older: float, as_json: bool, **how: bool
) -> None:
    """Remove old runs from a host, after showing them and their size.

    The host is that of the first RUN, or this machine. A run on several hosts is removed from all of them.

    Keeps a run that goes on, and a run on another host that `combo report` has not copied since its end. Keeps a run
    that was stopped, or is on this machine, unless you name it.

    \b
    combo clean --host h100
    combo clean --host h100 --older 7
    combo clean 4_env_test-20260729T101500Z-ab12
    """
    names += (wanted,) if wanted else ()
    parts = where.parts(names[0]) if len(names) == 1 else ()
    found = [
        _clean(
            (one.run,),
            replace(where, host=one.host, hosts={}, root=where.root or one.root),
            older,
            as_json=as_json,
            **how,
        )
        for one in parts
    ] or [_clean(names, where, older, as_json=as_json, **how)]
    if as_json:
        show_json(found if parts else found[0])


def _clean(names: tuple[str, ...], where: HostChoice, older: float, *, as_json: bool, **how: bool) -> Cleaned:
    """Remove runs from one host."""
    transport = where.connect(host_of(names[0]) if names else None)
    with working(f"asking {transport.host}"):
        there = where.runs(transport)
    chosen = [choose_run(there, name, transport.host) for name in names] or there
    older = -math.inf if names else older
    kept = {run.id: why for run in chosen if (why := _why_kept(run, transport.host, older, named=bool(names)))}
    going = looked_at(transport, tuple(run for run in chosen if run.id not in kept))
    for why, count in Counter(kept.values()).items():
        who = ", ".join(one for one in kept if kept[one] == why) if names else several(count, "run")
        click.echo(f"{who} {'stays' if count == 1 else 'stay'}: {why}", err=as_json)
    with working("measuring them"):
        bytes_of = dict(zip((run.id for run in going), sizes(transport, going), strict=True)) if going else {}
    rows = [(run.id, state(run), day(run.started), amount(bytes_of[run.id])) for run in going]
    if not as_json:
        show_table(("run", "state", "started", "size"), rows)
    total = f"{several(len(going), 'run')} on {transport.host}, {amount(sum(bytes_of.values()))}"
    if not going:
        click.echo(f"nothing to remove on {transport.host}", err=as_json)
    elif _may_remove(total, as_json=as_json, dry_run=how["dry_run"], yes=how["yes"]):
        for run in going:
            if how["take_over"]:
                run_orders.take_over(transport, run.directory)
            if left := remove(transport, run.directory):
                kept[run.id] = say(left)
            click.echo(f"{run.id}: {f'stays: {say(left)}' if left else 'removed'}", err=as_json)
    gone = tuple(run.id for run in going if run.id not in kept)
    return Cleaned(transport.host, gone, kept, sum(bytes_of[run] for run in gone), not how["dry_run"])


def _may_remove(total: str, *, as_json: bool, dry_run: bool, yes: bool) -> bool:
    """Ask. Raises UserError where nobody can be asked."""
    if dry_run:
        click.echo(f"would remove {total}", err=as_json)
        return False
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise UserError(f"this would remove {total}", "--yes removes them", code="needs_yes")
        click.confirm(f"Remove {total}?", abort=True, err=True)
    return True


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
