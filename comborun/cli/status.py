"""combo monitor and combo status, and the report after the last session."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from rich.console import Console

from comborun.api.named import HostChoice
from comborun.cli.options import json_option, of_run
from comborun.cli.terminal import INTERRUPTED, SOME_DID_NOT, show_rows, unasked, working
from comborun.errors import HostError, UserError
from comborun.monitor.document import to_json
from comborun.monitor.observe import last_look
from comborun.monitor.screen import JsonScreen, PlainScreen, StatusScreen, show_once
from comborun.monitor.watch import Clock, Settings, last_seen, once, until_answered
from comborun.monitor.watcher import Watcher, watch
from comborun.remote.transport import LocalTransport
from comborun.rules.endings.failures import Failure
from comborun.rules.results.counts import WROTE_NOTHING
from comborun.rules.vocabulary import Life, Outcome
from comborun.text import harmless, several
from comborun.words.times import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from comborun.api.named import Target
    from comborun.monitor.status import Link, RunStatus, SessionStatus
    from comborun.monitor.watch import Source
    from comborun.reporter.comparing.stopping import ComparisonProgress, EarlyStopping

_MEND = "Correct `results` in the grid and give the same command again: it reads these files, and runs nothing."
interval_option = click.option(
    "--interval", type=click.FloatRange(min=0.2), metavar="S", help="Seconds between two looks; by default `poll`."
)
plain_option = click.option("--plain", is_flag=True, help="Print lines instead of using the whole screen.")
_MIRROR_S = 60.0
"""seconds between two copies of the records beside a live table"""


class Shown(NamedTuple):
    interval: float | None = None
    """seconds between two looks"""
    plain: bool = False
    as_json: bool = False

    @property
    def full(self) -> bool:
        """Whether the whole screen can be used: it needs a terminal that moves its cursor, and keys."""
        console = Console()
        able = console.is_terminal and not console.is_dumb_terminal and sys.stdin.isatty() and sys.stdout.isatty()
        return able and not self.plain and not self.as_json

    def screen(self) -> StatusScreen:
        if self.as_json:
            return JsonScreen(lambda text: click.echo(text, nl=False))
        return PlainScreen(Console(highlight=False))


@click.command()
@partial(of_run, kept=True)
@click.option("--once", "just_once", is_flag=True, help="The same as `combo status`.")
@click.option("--all", "everywhere", is_flag=True, help="Watch the runs of all hosts, a row for each.")
@interval_option
@plain_option
@json_option
def monitor(target: Target | HostChoice, just_once: bool, **shown: Any) -> int:
    """Watch a run in a live table; make the report when all sessions have exited.

    Watching changes nothing: Ctrl-C leaves the sessions alone.

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
    if just_once:
        return show_status(target, as_json=shown["as_json"])
    if target.away:
        raise target.away
    return watch_until_the_end(target, Shown(**shown))


@click.command()
@partial(of_run, kept=True)
@json_option
def status(target: Target, as_json: bool) -> int:
    """Show the table of a run once.

    \b
    combo status
    """
    return show_status(target, as_json=as_json)


def watch_until_the_end(target: Target, shown: Shown) -> int:
    """Watch a run and report at its end. Returns the exit code, which says whether all sessions succeeded."""
    from comborun.cli.report import brought, differences, make_report, show_report  # `combo status` needs none of them

    ended = None
    try:
        source = target.source()
        settings = Settings(shown.interval or source.view.plan.poll)
        stop_early = StopEarly(target) if source.view.plan.stop_early else None
        ended = watched(target, source, settings, shown, stop_early or Mirroring(target))
        # wait for a host that went away before the report
        copy = until_answered(partial(brought, target), Clock(), settings, _show_lost_link)
        summary, folder = make_report(*copy)
    except KeyboardInterrupt:
        _show_way_back(target, ended)
        return INTERRUPTED
    differing = differences(ended, summary)
    if not shown.as_json:
        if stop_early:
            stop_early.tell(ended)
        show_report(summary, folder)
        for line in differing:
            click.echo(f"! {harmless(line)}; the report explains it", err=True)
        if any(_unread(session) for session in ended.sessions):
            click.echo(_MEND, err=True)
    return SOME_DID_NOT if differing else exit_code(ended)


def watched(
    target: Target,
    source: Source,
    settings: Settings,
    shown: Shown,
    react: Callable[[RunStatus], str] | None = None,
) -> RunStatus:
    """Show a run until it has finished, on the whole screen where there is one. Returns the last status.

    Raises KeyboardInterrupt if the user leaves before.
    """
    if not shown.full:
        return watch(source, shown.screen(), Clock(), settings, react)
    if isinstance(target.transport, LocalTransport):
        target.transport.forks = False  # from here on there are threads
    with unasked():
        watcher = Watcher(source, Clock(), settings, react)
        watcher.start()
        from comborun.cli.orders import orders  # both are slow to import, and the host is asked meanwhile
        from comborun.monitor.fullscreen.app import show_full_screen

        left, lines = show_full_screen(watcher, orders(target))
    console = Console(highlight=False)
    for line in lines:
        console.print(line, soft_wrap=True)
    if left:
        raise KeyboardInterrupt
    return watcher.look.status


def _unread(session: SessionStatus) -> bool:
    """Whether it ended well, but wrote files that the grid does not read."""
    wrote = session.reasons and not any(fact.code == WROTE_NOTHING for fact in session.reasons)
    return bool(wrote) and not session.done_with and session.failure in (None, Failure.NO_RESULT)


def _show_lost_link(link: Link) -> None:
    if link.failures == 1:
        why = f" ({harmless(link.complaint)})" if link.complaint else ""
        since = f"! {link.trouble} since {clock(link.since)}{why}"
        click.echo(f"{since}; the report follows when the host answers", err=True)


def _show_way_back(target: Target, ended: RunStatus | None) -> None:
    if ended:
        click.echo("\nNo longer waiting. All sessions have ended; there is no report yet.", err=True)
    else:
        click.echo("\nNo longer watching. The sessions go on.", err=True)
    rows = {"report": "report"} if ended else {"watch": "monitor", "stop": "stop"}
    show_rows({label: target.command(verb) for label, verb in rows.items()}, err=True)


def show_status(target: Target, *, as_json: bool) -> int:
    if away := target.away:
        kept = last_look(target.transport.host, target.run, target.directory)
        if kept is None:
            raise away
        seen = last_seen(kept, away.headline, Clock())
    else:
        with working(f"looking at {target.run}"):
            source = target.source()
            seen = once(source)
        if source.view.plan.stop_early and seen.recorded and not seen.finished:
            seen = replace(seen, undecided=StopEarly(target).decide_only())
    if as_json:
        click.echo(to_json(seen))
    else:
        show_once(Console(highlight=False), seen)
    return away.exit_code if away else exit_code(seen)


def exit_code(seen: RunStatus) -> int:
    """1 if a session of an ended run did not succeed, or the run was abandoned; else 0. Smoke tests don't count."""
    if not seen.finished:
        return SOME_DID_NOT if seen.abandoned else 0
    sessions = [*seen.proper, *([seen.after] if seen.after else [])]
    return 0 if all(session.done_with for session in sessions) else SOME_DID_NOT


class Mirroring:
    """Copies new records beside a live table, so that a report is possible if the host goes away.

    It also loads the libraries of the report while sessions run, because that takes most of a second.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._brought = (-1, -1)
        self._at = 0.0

    def __call__(self, seen: RunStatus) -> str:
        """A failed copy leaves the mirror as it is. Raises HostError, since the link may be the reason."""
        with suppress(ImportError):  # the report names what is missing
            import scipy.special  # noqa: F401

            import comborun.reporter.report  # noqa: F401
        ended = sum(one.life is Life.ENDED for one in seen.every)
        changed = (seen.recorded, ended) != self._brought
        if changed and not seen.finished and time.monotonic() >= self._at + _MIRROR_S:  # the report copies at the end
            try:
                if self._target.bring_some():
                    self._brought = seen.recorded, ended
            except HostError:
                raise
            except UserError:  # such as a full disk, which the report reports
                self._brought = seen.recorded, ended
            finally:
                self._at = time.monotonic()
        return ""


class StopEarly:
    """Copies new records after a look, decides comparisons, and sends the decisions to the host.

    Decisions come from the records alone, so it does not matter when, how often, or by how many this is done.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._recorded = -1
        self._told = ""
        self._undecided = ""

    def __call__(self, seen: RunStatus) -> str:
        """Returns why comparisons can't be decided, or nothing. Raises HostError if the host can't be reached."""
        if seen.recorded == self._recorded:
            return self._undecided
        try:
            decided = self._decide(whole=seen.finished)
            if decided is None:
                return self._undecided
            queued = {session.name for session in seen.proper if session.life is Life.QUEUED}
            names, lines = [name for name in decided.not_needed if name in queued], decided.lines()
            if names or lines != self._told:
                from comborun.remote.program import send_decisions

                send_decisions(self._target.transport, self._target.directory, lines, names)
                self._told = lines
        except HostError:
            raise
        except UserError as error:  # without a decision the run only takes longer
            self._undecided = f"stop_early decides nothing: {error.message}"
        self._recorded = seen.recorded
        return self._undecided

    def decide_only(self) -> str:
        """The same, without sending decisions."""
        try:
            self._decide()
        except UserError:
            return ""
        return self._undecided

    def tell(self, ended: RunStatus) -> None:
        """Print the early decisions, and how many episodes they saved."""
        for line in self._told.splitlines():
            if sentence := _sentence(json.loads(line)):
                click.echo(harmless(sentence))
        if saved := sum(one.planned - one.due for one in ended.proper if one.outcome is Outcome.NOT_NEEDED):
            click.echo(f"{saved} of {sum(one.planned for one in ended.proper)} planned episodes were not needed.")
        if self._undecided:
            click.echo(f"! {harmless(self._undecided)}", err=True)

    def _decide(self, *, whole: bool = False) -> EarlyStopping | None:
        """None if not all records are here yet."""
        from comborun.reporter.comparing.stopping import decide_run

        brought = self._target.bring() if whole else self._target.bring_some()
        if not brought:
            return None
        source, skipped = brought
        decided = decide_run(source, dict(skipped))
        self._undecided = undecided_sentence(decided.standings)
        return decided


def undecided_sentence(standings: Sequence[ComparisonProgress]) -> str:
    """A sentence about comparisons whose next episodes may not be a pair."""
    stuck = [one for one in standings if one.unpaired]
    if not stuck:
        return ""
    first = stuck[0].planned
    more = f" and {several(len(stuck) - 1, 'more comparison')}" if len(stuck) > 1 else ""
    comparison = f"{first.a} against {first.b} in {first.environment}{more}"
    return f"stop_early can't decide {comparison}, so all episodes run: {stuck[0].unpaired}"


def _sentence(decision: dict[str, object]) -> str:
    better, a, b = (decision[key] for key in ("better", "a", "b"))
    if better is None or decision["pairs"] == decision["n_max"]:
        return ""
    return (
        f"Decided early in {decision['environment']}: {better} beats {b if better == a else a},"
        f" after {decision['pairs']} of {decision['n_max']} pairs."
    )
