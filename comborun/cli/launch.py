"""combo launch, run and follow: start a grid's sessions, perhaps after a smoke test."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from comborun.amendment.resumption import smoke_sessions
from comborun.api.boxes import TogetherRequest, several_hosts, start_together
from comborun.api.launching import start_run, with_failures, with_smoke_test
from comborun.api.named import Target
from comborun.cli.options import (
    SLOTS,
    Shown,
    environment_option,
    grid_argument,
    host_options,
    hosts_options,
    interval_option,
    json_lines_option,
    plain_option,
    slurm_option,
    take_over_option,
    with_options,
)
from comborun.cli.terminal import SOME_DID_NOT, show_record, show_rows, show_table
from comborun.monitor.beginning import recorded
from comborun.remote.preparing import LaunchRequest
from comborun.rules.endings.failures import Failure
from comborun.rules.names import MULTIPLEXER_NAMES
from comborun.text import harmless, several
from comborun.words import say
from comborun.words.endings import outcome_words
from comborun.words.times import duration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comborun.api.launching import Started
    from comborun.api.named import GridChoice, HostChoice
    from comborun.monitor.status import SessionStatus

_ALWAYS = (
    click.option("--parallel", type=SLOTS, metavar="N", help="The most sessions that run at once."),
    click.option(
        "--multiplexer", type=click.Choice(MULTIPLEXER_NAMES), help="The program whose windows show the sessions."
    ),
    click.option("--new", is_flag=True, help="Start another run, even if this grid has one."),
    environment_option,
    take_over_option,
    click.option("--force", is_flag=True, help="Start even if the host lacks something that the grid needs."),
)
"""options of all commands that launch"""
_launch_options = with_options(
    hosts_options,
    click.option(
        "--leave-out", is_flag=True, help="With several hosts: run without those that are away or can't be used."
    ),
    slurm_option,
    *_ALWAYS,
    click.option(
        "--changed",
        type=click.Choice(["rerun", "keep"]),
        help="For combos that the new grid changes or removes: `rerun` uses the new grid, `keep` keeps their old"
        " settings and records.",
    ),
    click.option(
        "--smoke",
        type=click.IntRange(min=1),
        metavar="K",
        help="Run K episodes of every combo first; continue only if each leaves a record.",
    ),
)


@click.command()
@grid_argument
@_launch_options
@json_lines_option
def launch(grid: GridChoice, where: HostChoice, as_json: bool, **options: Any) -> int:
    """Start a grid's sessions and return; the same command again resumes what is missing.

    \b
    combo launch grid.yaml
    combo launch grid.yaml --parallel 4 --multiplexer screen
    combo launch grid.yaml --set limits.parallel=4 --set episodes=10
    combo launch grid.yaml --smoke 1            an episode of each combo first
    combo launch grid.yaml --changed rerun      changed combos run again
    combo launch grid.yaml --slurm --host login1
    combo launch grid.yaml --host h100 --host box2    both share the sessions
    """
    started = _launched(grid, where, as_json=as_json, returns=True, **options)
    return 0 if isinstance(started, Target) or (started.passed and not started.all_failed) else SOME_DID_NOT


@click.command()
@partial(grid_argument, envvar="COMBORUN_GRID")
@_launch_options
@interval_option
@plain_option
@json_lines_option
def run(grid: GridChoice, where: HostChoice, **options: Any) -> int:
    """Launch a grid, watch it, and report once all sessions have exited.

    \b
    combo run grid.yaml

    Ctrl-C stops watching only: the sessions go on.
    """
    from comborun.cli.status import watch_until_the_end  # slow to import

    shown = Shown(**{key: options.pop(key) for key in Shown._fields})
    started = _launched(grid, where, as_json=shown.as_json, **options)
    if isinstance(started, Target):
        return watch_until_the_end(started, shown)
    if started.launched.hold:
        return 0
    return watch_until_the_end(started.target, shown) if started.passed else SOME_DID_NOT


def _launched(
    grid: GridChoice,
    where: HostChoice,
    hosts: tuple[str, ...],
    *,
    as_json: bool,
    leave_out: bool,
    returns: bool = False,
    **options: Any,
) -> Started | Target:
    """Launch, say what was started, and wait for the smoke test. On several hosts, their run.

    `returns`: the command ends then, so it waits for sessions that fail at once.
    """
    request = LaunchRequest(**options)
    if together := several_hosts(grid, hosts):
        return _launch_together(grid, where, request, TogetherRequest(together, leave_out), as_json=as_json)
    started = start_run(grid, where, request)
    if returns and not request.smoke:
        started = with_failures(started)
    if as_json:
        show_record(started.answer)
    else:
        _show(started)
    return _tried(started, as_json=as_json) if request.smoke and not started.launched.hold else started


@click.command()
@grid_argument
@host_options
@click.option(
    "--pid", type=click.IntRange(1, 2**31), help="The training on the host: when it has ended, so has the run."
)
@with_options(*_ALWAYS)
@json_lines_option
def follow(grid: GridChoice, where: HostChoice, pid: int | None, as_json: bool, **options: Any) -> int:
    """Evaluate the checkpoints of a training as they appear, on its host, until it has ended.

    \b
    combo follow grid.yaml --pid 4711

    Without --pid it goes on until `combo stop`. The host does it alone; this machine may be switched off. The same
    command again goes on with the same run.
    """
    started = start_run(grid, where, LaunchRequest(follow=str(pid or "stopped"), **options))
    if as_json:
        show_record(started.answer)
        return 0
    launched, publication, target = started.launched, started.launched.publication, started.target
    new = publication.state == "new"
    click.echo(
        f"{click.style(launched.plan.grid, bold=True)}: {'follows' if new else 'goes on to follow'} the training"
    )
    for note in (*launched.replaced, *started.changes):
        click.echo(f"  {harmless(note)}")
    commands = {verb: target.command(verb) for verb in ("status", "monitor", "report", "stop")}
    show_rows({"run": publication.run, "folder": publication.directory, **commands})
    return 0


_NEXT = {"watch": "monitor", "page": "view", "stop": "stop"}


def _launch_together(
    grid: GridChoice, where: HostChoice, request: LaunchRequest, together: TogetherRequest, *, as_json: bool
) -> Target:
    """Launch on several hosts, and say what was started where."""
    started = start_together(grid, where, request, together)
    if as_json:
        for one in started.parts:
            show_record(one.answer)
        return started.target
    parts = {one.target.transport.host: one for one in started.parts}
    new = all(one.launched.publication.state == "new" for one in started.parts)
    what = "dealt to" if new else "this grid has a run already, which goes on, on"
    click.echo(f"{click.style(started.parts[0].launched.plan.grid, bold=True)}: {what} {several(len(parts), 'host')}")
    rows = {}
    for host, count in started.counts.items():
        part = parts.get(host)
        state = "given up" if host in started.deal.lost else "not started now" if part is None else ""
        waits = f"; the first {say(part.waits)}" if part and part.waits else ""
        ends = f", ends after about {duration(started.seconds[host])}" if count and started.seconds.get(host) else ""
        rows[harmless(host)] = harmless(f"{several(count, 'session')}{ends}{waits}{f' ({state})' if state else ''}")
    show_rows(rows)
    for one in started.parts:
        for note in (*(f"shipped {line}" for line in one.launched.shipped), *one.launched.replaced, *one.changes):
            click.echo(f"  {harmless(one.target.transport.host)}: {harmless(note)}")
    for host, why in started.left_out.items():
        click.echo(f"! {harmless(host)} is left out: {harmless(why)}", err=True)
    show_rows({name: started.target.command(verb) for name, verb in _NEXT.items()})
    return started.target


def _show(started: Started) -> None:
    launched, publication = started.launched, started.launched.publication
    click.echo(f"{click.style(launched.plan.grid, bold=True)}: {harmless(_sentence(started))}")
    shipped = (f"shipped {line}" for line in launched.shipped)
    for note in (*shipped, *launched.replaced, *launched.submitted, *started.changes, started.lacks):
        if note:
            click.echo(f"  {harmless(note)}")
    rows = {"run": publication.run, "folder": publication.directory}
    if publication.state != "finished":
        first = launched.plan.current[0].name
        rows["watch"] = started.target.command("monitor")
        rows["page"] = started.target.command("view")
        rows["attach"] = started.target.command("attach", first)
        rows["stop"] = started.target.command("stop")
        if started.failed:
            rows["why"] = started.target.command("explain", started.failed[0].name)
    elif started.lacks:
        rows |= {verb: started.target.command(verb) for verb in ("resume", "report")}
    show_rows(rows)


def _sentence(started: Started) -> str:
    launched = started.launched
    if launched.hold:
        kind, why = launched.hold
        lifts = f"run `{started.target.command('resume')}` to continue"
        return f"this grid's run is {kind}{f' ({why})' if why else ''}, and nothing was started: {lifts}"
    tried = len(smoke_sessions(launched.plan))
    rest = len(launched.plan.current) - tried
    smoke = f", after {tried} of a smoke test" if tried else ""
    now = f"the first {say(started.waits)}" if started.waits else _failures(started.failed, rest)
    begins = "Slurm has them" if launched.plan.slurm else now or "the first is running"
    return {
        "new": f"{several(rest, 'session')} planned{smoke}; {begins}",
        "resumed": f"this grid has a run already, which goes on with its missing work{f'; {now}' if now else ''}",
        "finished": "this grid's run has finished, and no session starts again; --new starts another run",
    }[launched.publication.state]


def _failures(failed: tuple[SessionStatus, ...], of: int) -> str:
    """`6 of 6 failed at once: exit code 2 (unknown flag --x)`; empty if none has."""
    if not failed:
        return ""
    first = failed[0]
    line = f" ({first.unquoted_line})" if first.unquoted_line and first.failure is not Failure.LAUNCH_FAILED else ""
    return f"{len(failed)} of {of} failed at once: {first.note}{line}"


def _tried(started: Started, *, as_json: bool) -> Started:
    """Wait for the smoke test, and show it."""

    def progress(done: int, of: int) -> None:
        if not as_json:
            click.echo(f"smoke test: {done} of {of} combos have left a record")

    try:
        started = with_smoke_test(started, progress)
    except KeyboardInterrupt:
        click.echo("\nNo longer waiting. The smoke test goes on, and the rest follows if it passes.", err=True)
        show_rows({"watch": started.target.command("monitor")}, err=True)
        raise
    if as_json:
        show_record(replace(started.answer, record="smoke"))
        return started
    show_tried(started.tried or ())
    if started.tried and not started.passed:
        failed = next(one for one in started.tried if not recorded(one))
        click.echo("The rest was not started. Fix the cause, then launch again.")
        show_rows({"why": started.target.command("logs", failed.name), "resume": started.target.command("resume")})
    return started


def show_tried(tried: Iterable[SessionStatus]) -> None:
    """Print each combo that was tried, those without a record first."""
    rows = []
    for one in sorted(tried, key=recorded):
        mark, line = ("✓", "") if recorded(one) else ("✗", one.last_line)
        records = "-" if one.recorded is None else f"{one.recorded} of {one.planned}"
        how = outcome_words(one.word) + (f" ({one.remark})" if one.remark else "")
        rows.append((mark, one.policy, one.environment, records, how, line))
    heads = ("", "policy", "environment", "verdicts", "ended", "last line of its log")
    show_table(heads, rows, colours=["green" if row[0] == "✓" else "red" for row in rows])
