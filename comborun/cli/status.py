"""combo status; a run shown until its end, on the full screen or in lines, and the report after it."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from comborun.api.listener import QUIET
from comborun.api.watching import Mirroring, StopEarly, status_of
from comborun.cli.options import json_option, of_run
from comborun.cli.terminal import (
    INTERRUPTED,
    SOME_DID_NOT,
    show_error,
    show_json,
    show_record,
    show_rows,
    unasked,
    working,
)
from comborun.errors import HostError
from comborun.monitor.screen import show_once
from comborun.monitor.table import SORTS, USUAL, Rows
from comborun.monitor.watch import Clock, Settings, until_answered
from comborun.monitor.watcher import Watcher, watch
from comborun.remote.transport import in_threads
from comborun.rules.endings.failures import Failure
from comborun.rules.results.counts import CHANGED, WROTE_NOTHING, broken, keys_of
from comborun.text import harmless
from comborun.words.times import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from comborun.api.named import Target
    from comborun.cli.options import Shown
    from comborun.monitor.status import Link, RunStatus, SessionStatus
    from comborun.monitor.watch import Watched

_MEND = "Correct `results` in the grid and give the same command again: it reads these files, and runs nothing."
_FIRST_S = 0.3
"""seconds that the first picture waits for the first look; without an answer it shows the plan"""
_SETTLED_S = 3.0
_OTHER_SCREEN, _BACK = "\x1b[?1049h\x1b[H", "\x1b[?1049l"


@click.command()
@partial(of_run, kept=True)
@click.option("--failed", is_flag=True, help="Only sessions that stall, or ended without success.")
@click.option("--sort", type=click.Choice(list(SORTS)), default="state", show_default=True, help="Order of the rows.")
@click.option("--all", "every", is_flag=True, help="All rows, however many.")
@json_option
def status(target: Target, as_json: bool, **rows: Any) -> int:
    """Show the table of a run once; in a file or a pipe all rows, and whole lines.

    \b
    combo status
    combo status --failed
    combo status --sort quiet | less
    """
    return show_status(target, as_json=as_json, rows=Rows(**rows))


def watch_until_the_end(target: Target, shown: Shown) -> int:
    """Watch a run and report at its end. Returns the exit code, which says whether all sessions succeeded."""
    from comborun.api import reports  # `combo status` needs none of these
    from comborun.api.joint_look import watched as watched_of
    from comborun.cli.report import differences, show_report

    ended, stop_early = None, None
    try:
        with working(f"reading {target.run}"):
            source = watched_of(target._replace(listener=QUIET) if shown.full else target, moves=True)
            plan = source.view.plan
        settings = Settings(shown.interval or plan.poll)
        if plan.stop_early and not target.boxes:
            stop_early = StopEarly(target)
        ended = watched(target, source, settings, shown, stop_early or (None if target.boxes else Mirroring(target)))
        # wait for a host that went away before the report
        copy = until_answered(partial(reports.brought, target), Clock(), settings, _show_lost_link)
        summary, folder = reports.make_report(target, copy)
    except KeyboardInterrupt:
        _show_way_back(target, ended)
        return INTERRUPTED
    differing = differences(ended, summary)
    if shown.as_json:
        show_record(reports.report_answer(summary, folder))
    else:
        for line in stop_early.told(ended) if stop_early else ():
            click.echo(harmless(line))
        if stop_early and stop_early.undecided:
            click.echo(f"! {harmless(stop_early.undecided)}", err=True)
        show_report(summary, folder)
        for line in differing:
            click.echo(f"! {harmless(line)}; the report explains it", err=True)
        if any(_unread(session) for session in ended.sessions):
            click.echo(_MEND, err=True)
    return SOME_DID_NOT if differing else exit_code(ended)


def watched(
    target: Target,
    source: Watched,
    settings: Settings,
    shown: Shown,
    react: Callable[[RunStatus], str] | None = None,
) -> RunStatus:
    """Show a run until it has finished, on the whole screen where there is one. Returns the last status.

    Raises KeyboardInterrupt if the user leaves before.
    """
    if not shown.full:
        return watch(source, shown.screen(), Clock(), settings, react)
    for one in target.boxes or (target,):
        in_threads(one.transport)
    begun = time.monotonic()

    def later(seen: RunStatus) -> str:
        """Copying and deciding load large libraries, so the screen comes first."""
        return react(seen) if react and (seen.finished or time.monotonic() > begun + _SETTLED_S) else ""

    with unasked():
        with working(f"looking at {target.run}"):
            watcher = Watcher(source, Clock(), settings, later)
            watcher.start()
            from comborun.monitor.fullscreen import picture  # noqa: F401  meanwhile

            first = watcher.wait(0, _FIRST_S)
        if first.status.finished:
            while not watcher.look.over:
                watcher.wait(watcher.look.number, 60.0)
            if watcher.failure:
                raise watcher.failure
            show_once(Console(highlight=False), watcher.look.status)
            return watcher.look.status
        with _first_picture(watcher):
            from comborun.cli.orders import orders
            from comborun.monitor.fullscreen.app import show_full_screen

        left, lines = show_full_screen(watcher, orders(target))
    console = Console(highlight=False)
    for line in lines:
        console.print(line, soft_wrap=True)
    if left:
        raise KeyboardInterrupt
    return watcher.look.status


@contextmanager
def _first_picture(watcher: Watcher) -> Iterator[None]:
    """The picture on the other screen of the terminal, while the rest is loaded: that takes longer than a look."""
    from comborun.monitor.fullscreen.desk import Desk
    from comborun.monitor.fullscreen.picture import picture

    desk = Desk(watcher.look, watcher.link())
    console = Console(highlight=False)
    with suppress(OSError):
        desk.width, desk.height = os.get_terminal_size(sys.stdout.fileno())
    lines = Text("\n").join(picture(desk)) if desk.width and desk.height else Text()
    sys.stdout.write(_OTHER_SCREEN)
    console.print(lines, end="", soft_wrap=True, no_wrap=True, crop=False)
    sys.stdout.flush()
    try:
        yield
    except BaseException:
        sys.stdout.write(_BACK)
        raise


def _unread(session: SessionStatus) -> bool:
    """Whether it ended well, but wrote what another line of `results` may read."""
    whole = not any(fact.code in (WROTE_NOTHING, CHANGED) for fact in session.reasons)
    readable = any((whole and not broken(fact)) or keys_of(fact) for fact in session.reasons)
    return readable and not session.done_with and session.failure in (None, Failure.NO_RESULT)


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


def show_status(target: Target, *, as_json: bool, rows: Rows = USUAL) -> int:
    seen = status_of(target)
    if as_json:
        from comborun.monitor.document import answer  # slow to import

        document = answer(seen)
        if rows.failed:  # the counts are those of all sessions
            names = {one.name for one in rows.of(seen)}
            document = replace(document, sessions=tuple(one for one in document.sessions if one.name in names))
        show_json(document)
    else:
        show_once(Console(highlight=False), seen, rows)
        if target.away and (target.away.hint or target.away.message != target.away.headline):
            show_error(target.away)  # of a changed host key both fingerprints, and what to do
    return exit_code(seen) if seen.link.reachable else HostError.exit_code


def exit_code(seen: RunStatus) -> int:
    """1 if a session of an ended run did not succeed, or the run was abandoned; else 0. Smoke tests don't count."""
    if not seen.finished:
        return SOME_DID_NOT if seen.abandoned else 0
    sessions = [*seen.proper, *([seen.after] if seen.after else [])]
    return 0 if all(session.done_with for session in sessions) else SOME_DID_NOT
