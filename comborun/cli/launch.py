"""combo launch and combo run: start a grid's sessions, perhaps after a smoke test."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import click

from comborun.amendment.resumption import smoke_sessions
from comborun.api.named import GridChoice, HostChoice, Target
from comborun.cli.options import (
    SLOTS,
    environment_option,
    grid_argument,
    host_options,
    json_option,
    slurm_option,
    take_over_option,
)
from comborun.cli.status import Shown, interval_option, plain_option, watch_until_the_end
from comborun.cli.terminal import SOME_DID_NOT, hush, program, show_json, show_rows, show_table, warn, working
from comborun.errors import UserError
from comborun.monitor.beginning import await_beginning, await_smoke, failed_at_once, lacking, recorded
from comborun.monitor.watch import once
from comborun.remote.launching import Launched, LaunchRequest, prepare, publish_run, start
from comborun.remote.runs import Launch, remember
from comborun.rules.endings.failures import Failure
from comborun.rules.facts import Fact
from comborun.rules.names import MULTIPLEXER_NAMES
from comborun.rules.vocabulary import Life
from comborun.text import harmless, several
from comborun.words import say
from comborun.words.endings import outcome_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from comborun.monitor.status import SessionStatus

_OPTIONS = (
    host_options,
    slurm_option,
    click.option("--parallel", type=SLOTS, metavar="N", help="The most sessions that run at once."),
    click.option(
        "--multiplexer", type=click.Choice(MULTIPLEXER_NAMES), help="The program whose windows show the sessions."
    ),
    click.option("--new", is_flag=True, help="Start another run, even if this grid has one."),
    click.option(
        "--changed",
        type=click.Choice(["rerun", "keep"]),
        help="For combos that the new grid changes or removes: `rerun` uses the new grid, `keep` keeps their old"
        " settings and records.",
    ),
    environment_option,
    take_over_option,
    click.option("--force", is_flag=True, help="Start even if the host lacks something that the grid needs."),
    click.option(
        "--smoke",
        type=click.IntRange(min=1),
        metavar="K",
        help="Run K episodes of every combo first; continue only if each leaves a record.",
    ),
)


def _launch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@grid_argument
@_launch_options
@json_option
def launch(grid: GridChoice, where: HostChoice, as_json: bool, **options: Any) -> int:
    """Start a grid's sessions and return; the same command again resumes what is missing.

    \b
    combo launch grid.yaml
    combo launch grid.yaml --parallel 4 --multiplexer screen
    combo launch grid.yaml --set limits.parallel=4 --set episodes=10
    combo launch grid.yaml --smoke 1            an episode of each combo first
    combo launch grid.yaml --changed rerun      changed combos run again
    combo launch grid.yaml --slurm --host login1
    """
    started = start_run(grid, where, LaunchRequest(**options))
    if started.launched.begins and not started.waits and not options["smoke"]:
        started = replace(started, failed=failed_at_once(started.target.source()))
    if not as_json:
        _show(started)
    tried = bool(options["smoke"]) and not started.launched.hold
    passed = smoke_test(started, quiet=as_json) if tried else True
    if as_json:
        show_json(_record(started) | ({"smoke": passed} if tried else {}))
    failed = [one for one in started.failed if one.life is Life.ENDED]  # the others start again
    all_failed = len(failed) == len(started.launched.plan.current)
    return 0 if passed and not all_failed else SOME_DID_NOT


@click.command()
@partial(grid_argument, envvar="COMBORUN_GRID")
@_launch_options
@interval_option
@plain_option
def run(grid: GridChoice, where: HostChoice, interval: float | None, plain: bool, **options: Any) -> int:
    """Launch a grid, watch it, and report once all sessions have exited.

    \b
    combo run grid.yaml

    Ctrl-C stops watching only: the sessions go on.
    """
    started = start_run(grid, where, LaunchRequest(**options))
    _show(started)
    if started.launched.hold:
        return 0
    if options["smoke"] and not smoke_test(started):
        return SOME_DID_NOT
    return watch_until_the_end(started.target, Shown(interval, plain))


@dataclass(frozen=True)
class Started:
    """A launch, and what is known of the run afterwards."""

    target: Target
    launched: Launched
    waits: Fact | None = None
    """what the first session waits for; None if one has begun, or it is unknown"""
    lacks: str = ""
    """the missing work of a finished run"""
    failed: tuple[SessionStatus, ...] = ()
    """sessions that failed at once"""

    @property
    def changes(self) -> tuple[str, ...]:
        launched = self.launched
        if not launched.running:
            return launched.changes
        target = self.target
        stop = f"{program()} stop {target.run} {' '.join(launched.running)}{target.options}"
        note = f"still running, but their records no longer count: {', '.join(launched.running)}. To stop them: {stop}"
        return (*launched.changes, note)


def start_run(chosen: GridChoice, where: HostChoice, request: LaunchRequest) -> Started:
    """Check, publish and start a grid. This is safe to repeat, so an interruption loses nothing."""
    run = ""
    try:
        grid = chosen.read()
        warn(*map(str, grid.warnings))
        with working("looking at the host"):
            prepared = prepare(request, grid, where.connect)
        warn(*prepared.warnings)
        transport = prepared.transport
        with working(f"bringing the run to {transport.host}"):
            launched = publish_run(prepared, _confirm, _tell)
        publication, run = launched.publication, launched.publication.run
        way = where.way(transport.host)
        made = Launch(run, transport.host, publication.root, publication.directory, grid.name, way)
        again = chosen.options + (where.options(where.host) if where.host else "") + " --slurm" * request.slurm
        digest = sha256(grid.text.encode()).hexdigest()
        remember(made._replace(file=str(chosen.path.resolve()), sha256=digest, options=again))
        told = replace(where, root=grid.root).options(transport.host)
        target = Target(transport, run, publication.directory, told)
        doing = f"sending {prepared.sends} to" if prepared.sends else "starting on"
        with working(f"{doing} {transport.host}"):
            launched = start(prepared, launched)
        with working("waiting for the first session"):
            waits = await_beginning(transport, target.directory, target.options) if launched.begins else None
        lacks = lacking(once(target.source())) if publication.state == "finished" else ""
        return Started(target, launched, waits, lacks)
    except KeyboardInterrupt:
        click.echo(f"\nInterrupted. {_rest(request, run)}.", err=True)
        raise


def _rest(request: LaunchRequest, run: str) -> str:
    """How to do the rest of an interrupted launch: with --new the same command would make another run."""
    if not request.new:
        return "Started sessions go on; the same command again does the rest"
    rest = "the same command without --new does the rest"
    if run:
        return f"The run {run} exists, and started sessions go on; {rest}"
    return f"If `{program()} runs` shows a new run, {rest}; else nothing was started"


def _tell(text: str) -> None:
    hush()
    click.echo(harmless(text), err=True)


def _confirm(changes: str) -> bool:
    """Ask whether the run should follow a changed grid. Raises UserError without a terminal."""
    if not sys.stdin.isatty():
        raise UserError(
            changes,
            "--changed rerun uses the new grid for these combos, and their old records no longer count; --changed"
            " keep keeps their old settings and records; --new starts another run. None of them stops a session",
        )
    _tell(changes)
    try:
        return click.confirm(
            "With n they keep their old settings and records. Use the new grid?", default=True, err=True
        )
    except click.Abort:
        click.echo("\nNothing was changed.", err=True)
        raise


def _record(started: Started) -> dict[str, Any]:
    launched, publication = started.launched, started.launched.publication
    return {
        "run": publication.run,
        "host": started.target.transport.host,
        "directory": publication.directory,
        "state": publication.state,
        "hold": dict(zip(("kind", "why"), launched.hold, strict=True)) if launched.hold else None,
        "sessions": [session.name for session in launched.plan.current],
        "shipped": list(launched.shipped),
        "replaced": list(launched.replaced),
        "waits": started.waits and say(started.waits),
        "fact": started.waits and started.waits.as_data(),
        "engine": launched.plan.engine,
        "submitted": list(launched.submitted),
        "changes": list(started.changes),
        "lacks": started.lacks or None,
        "failed": [one.name for one in started.failed],
    }


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
    line = f" ({first.last_line})" if first.last_line and first.failure is not Failure.LAUNCH_FAILED else ""
    return f"{len(failed)} of {of} failed at once: {first.note}{line}"


def smoke_test(started: Started, *, quiet: bool = False) -> bool:
    """Wait until the run's smoke sessions have ended. Returns whether each of them left a record.

    The dispatcher holds the other sessions back and halts the run, so the user may stop waiting.
    """
    if not smoke_sessions(started.launched.plan):
        return True

    def progress(done: int, of: int) -> None:
        if not quiet:
            click.echo(f"smoke test: {done} of {of} combos have left a record")

    try:
        tried = await_smoke(started.target.source(), progress)
    except KeyboardInterrupt:
        click.echo("\nNo longer waiting. The smoke test goes on, and the rest follows if it passes.", err=True)
        show_rows({"watch": started.target.command("monitor")}, err=True)
        raise
    failed = [one for one in tried if not recorded(one)]
    if not quiet:
        show_tried(tried)
    if failed and not quiet:
        click.echo("The rest was not started. Fix the cause, then launch again.")
        show_rows({"why": started.target.command("logs", failed[0].name), "resume": started.target.command("resume")})
    return not failed


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
