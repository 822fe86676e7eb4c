"""combo monitor and combo status, and the report when all sessions have ended."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from comborun.cli.options import Where, json_option, root_option, run_argument, where_options
from comborun.cli.report import differences, report_on, tell_report
from comborun.cli.terminal import INTERRUPTED, SOME_DID_NOT, program, tell
from comborun.errors import HostError, UserError
from comborun.monitor.document import to_json
from comborun.monitor.observe import load_run
from comborun.monitor.report_file import as_reported, last_report
from comborun.monitor.screen import JsonScreen, Screen, open_screen, show_once
from comborun.monitor.watch import Clock, Settings, Source, once, until_answered, watch
from comborun.monitor.wording import clock
from comborun.remote.control import tell_decided
from comborun.remote.transport import LOCAL
from comborun.rules.words import Life, Outcome
from comborun.text import harmless, several

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.cli.report import Patience
    from comborun.monitor.status import Link, RunStatus
    from comborun.remote.mirror import Skipped
    from comborun.remote.transport import Transport
    from comborun.reporter.comparing.stopping import Standing


@dataclass(frozen=True)
class Watching:
    """Which run to watch and how to show it."""

    run: str
    directory: str
    interval: float | None = None
    plain: bool = False
    as_json: bool = False

    def screen(self) -> Screen:
        if self.as_json:
            return JsonScreen(lambda text: click.echo(text, nl=False))
        return open_screen(Console(highlight=False), plain=self.plain)


@click.command()
@run_argument
@where_options
@root_option
@click.option("--interval", type=click.FloatRange(min=0.2), metavar="S", help="Seconds between two looks [60].")
@click.option("--once", "just_once", is_flag=True, help="Look once, show it, and end.")
@click.option("--plain", is_flag=True, help="Lines instead of a live table.")
@json_option
def monitor(run: str | None, where: Where, root: str | None, just_once: bool, **shown: Any) -> int:
    """Watch a run in a live table; make the report when all sessions have exited.

    Watching changes nothing: Ctrl-C leaves the sessions alone.

    \b
    combo monitor                        the newest run
    combo monitor --host h100            the newest run there
    combo monitor 4_env_test --once --json
    """
    transport, found = where.find(run, root)
    watching = Watching(found.id, found.directory, **shown)
    if just_once:
        return _look_once(transport, watching)
    return watch_until_the_end(transport, watching)


@click.command()
@run_argument
@where_options
@root_option
@json_option
def status(run: str | None, where: Where, root: str | None, as_json: bool) -> int:
    """Show the table of a run once.

    \b
    combo status
    """
    transport, found = where.find(run, root)
    return _look_once(transport, Watching(found.id, found.directory, as_json=as_json))


def watch_until_the_end(transport: Transport, watching: Watching) -> int:
    """Watch a run, report when it has ended; the exit code says whether all succeeded."""
    ended = None
    try:
        source = Source(transport, load_run(transport, watching.directory))
        settings = Settings(watching.interval or source.view.plan.poll)
        heed = StopEarly(transport, watching.run, watching.directory) if source.view.plan.stop_early else None
        ended = watch(source, watching.screen(), Clock(), settings, heed)
        summary, target = report_on(transport, watching.run, watching.directory, patience=_patience(settings))
    except KeyboardInterrupt:
        _tell_how_to_come_back(watching, ended)
        return INTERRUPTED
    differing = differences(ended, summary)
    if not watching.as_json:  # a stream of statuses stays one
        if heed:
            heed.tell(ended)
        tell_report(summary, target)
        for line in differing:
            click.echo(f"! {harmless(line)}; the report says why", err=True)
    return SOME_DID_NOT if differing else exit_code(ended)


def _patience(settings: Settings) -> Patience:
    """A host that went away just when the report was to be made is waited for, and that is said once."""

    def tell_link(link: Link) -> None:
        if link.failures == 1:
            why = f" ({harmless(link.complaint)})" if link.complaint else ""
            since = f"! unreachable since {clock(link.since, None)}{why}"
            click.echo(f"{since}; the report follows when the host answers", err=True)

    return lambda bring: until_answered(bring, Clock(), settings, tell_link)


def _look_once(transport: Transport, watching: Watching) -> int:
    view = load_run(transport, watching.directory)
    seen = once(Source(transport, view))
    if view.plan.stop_early and seen.recorded and not seen.finished:
        seen = replace(seen, undecided=StopEarly(transport, watching.run, watching.directory).undecided())
    if seen.finished:
        seen = as_reported(seen, last_report(transport.host, watching.run, watching.directory))
    if watching.as_json:
        click.echo(to_json(seen))
    else:
        show_once(Console(highlight=False), seen)
    return exit_code(seen)


def exit_code(seen: RunStatus) -> int:
    """0 unless a session of an ended run did not succeed, or nobody goes on with the run.

    A smoke test is none of the plan's.
    """
    if not seen.finished:
        return SOME_DID_NOT if seen.abandoned else 0
    sessions = [*seen.proper, *([seen.after] if seen.after else [])]
    return 0 if all(session.done_with for session in sessions) else SOME_DID_NOT


def _tell_how_to_come_back(watching: Watching, ended: RunStatus | None) -> None:
    if ended:
        click.echo("\nNo longer waiting. All sessions have ended; there is no report of them yet.", err=True)
        rows = {"report": f"{program()} report {watching.run}"}
    else:
        click.echo("\nNo longer watching. The sessions go on.", err=True)
        rows = {"watch": f"{program()} monitor {watching.run}", "stop": f"{program()} stop {watching.run}"}
    tell(rows, err=True)


class StopEarly:
    """What is called after each look at a run. A decision comes from the records alone, so nothing hangs on when it is
    called, or how often, or by how many at once."""

    def __init__(self, transport: Transport, run: str, directory: str) -> None:
        self._transport = transport
        self._run = run
        self._directory = directory
        self._recorded = -1
        self._told = ""
        self._undecided = ""

    def __call__(self, seen: RunStatus) -> str:
        """Why some of what is to be decided can't be; empty where nothing is in the way. Raises HostError when the host
        can't be reached."""
        if seen.recorded == self._recorded:
            return self._undecided
        try:
            self._decide(seen)
        except HostError:
            raise
        except UserError as error:  # the run goes on without: it only takes longer
            self._undecided = f"stop_early decides nothing: {error.message}"
        self._recorded = seen.recorded
        return self._undecided

    def undecided(self) -> str:
        """The same for one look, by which nothing is decided: it changes nothing."""
        from comborun.reporter.comparing.stopping import decide_run

        try:
            source, skipped = self._bring()
            return undecidable(decide_run(source, dict(skipped)).standings)
        except UserError:  # a look tells what it can
            return ""

    def _decide(self, seen: RunStatus) -> None:
        from comborun.reporter.comparing.stopping import decide_run

        source, skipped = self._bring()
        decided = decide_run(source, dict(skipped))
        self._undecided = undecidable(decided.standings)
        queued = {session.name for session in seen.proper if session.life is Life.QUEUED}
        names = [name for name in decided.not_needed if name in queued]
        lines = decided.lines()
        if names or lines != self._told:
            tell_decided(self._transport, self._directory, lines, names)
            self._told = lines

    def _bring(self) -> tuple[Path, tuple[Skipped, ...]]:
        """Where the records are on this machine; of a run elsewhere in a copy that gets what is new."""
        if self._transport.host == LOCAL:
            return Path(self._directory), ()
        from comborun.remote.fetch import fetch, mirror_directory

        mirror = mirror_directory(self._transport.host, self._run)
        return mirror, fetch(self._transport, self._directory, mirror).skipped

    def tell(self, ended: RunStatus) -> None:
        """What was decided before its last pair, and what that has saved."""
        for line in self._told.splitlines():
            if told := _sentence(json.loads(line)):
                click.echo(harmless(told))
        if saved := sum(one.planned - one.due for one in ended.proper if one.outcome is Outcome.NOT_NEEDED):
            click.echo(f"{saved} of {sum(one.planned for one in ended.proper)} planned episodes were not needed.")
        if self._undecided:
            click.echo(f"! {harmless(self._undecided)}", err=True)


def undecidable(standings: Sequence[Standing]) -> str:
    """A sentence about comparisons whose next pair the records don't show to be one. Pure."""
    stuck = [one for one in standings if one.unpaired]
    if not stuck:
        return ""
    first = stuck[0].planned
    more = f" and {several(len(stuck) - 1, 'more comparison')}" if len(stuck) > 1 else ""
    told = f"{first.a} against {first.b} in {first.environment}{more}"
    return f"stop_early can't decide {told}, so all episodes run: {stuck[0].unpaired}"


def _sentence(decision: dict[str, object]) -> str:
    better, a, b = (decision[key] for key in ("better", "a", "b"))
    if better is None or decision["pairs"] == decision["n_max"]:
        return ""
    return (
        f"Decided early in {decision['environment']}: {better} beats {b if better == a else a},"
        f" after {decision['pairs']} of {decision['n_max']} pairs."
    )
