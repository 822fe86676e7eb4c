"""Waiting for a smoke test: whether a few episodes of every combo leave a record, before the rest begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from comborun.again.smoke import smoke_sessions
from comborun.cli.terminal import program, tell
from comborun.monitor.observe import load_run
from comborun.monitor.status import SMOKE
from comborun.monitor.watch import Settings, Source, SystemClock, once, until_answered
from comborun.monitor.wording import remark
from comborun.rules.words import Life, Outcome
from comborun.text import harmless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.cli.starting import Launched
    from comborun.monitor.status import RunStatus, SessionStatus

_INTERVAL_S = 2.0


def smoke_test(launched: Launched, *, quiet: bool = False) -> bool:
    """Wait until the run's smoke sessions have ended; whether each has shown that its combo can be recorded.

    The dispatcher itself holds the rest back and halts the run: whoever waits here can leave.
    """
    if not smoke_sessions(launched.plan):
        return True
    try:
        seen = _await(launched, quiet=quiet)
    except KeyboardInterrupt:
        click.echo("\nNo longer waiting. The smoke test goes on, and the rest follows if it passes.", err=True)
        tell(_commands(launched, "watch"), lambda line: click.echo(line, err=True))
        raise
    tried = _tried(seen)
    passed = all(map(_recorded, tried))
    if not quiet:
        Console(highlight=False).print(table(tried))
        if not passed:
            click.echo("The rest was not started: mend what is wrong, and launch again.")
            tell(_commands(launched, "explain", tried) | _commands(launched, "resume"))
    return passed


def _await(launched: Launched, *, quiet: bool) -> RunStatus:
    """The run when its smoke test is over, or when nothing goes on with it."""
    source = Source(launched.transport, load_run(launched.transport, launched.publication.directory))
    clock, told = SystemClock(), ""
    settings = Settings(min(launched.plan.poll, _INTERVAL_S))
    while True:
        seen = until_answered(lambda: once(source), clock, settings, lambda _: None)
        tried = _tried(seen)
        line = f"smoke test: {sum(map(_recorded, tried))} of {len(tried)} combos have left a record"
        if line != told and not quiet:
            click.echo(line)
            told = line
        stuck = seen.stopped or seen.hold is not None or seen.dispatcher is None
        if all(one.life is Life.ENDED for one in tried) or (stuck and not any(one.alive for one in tried)):
            return seen
        clock.sleep(settings.interval)


def _tried(seen: RunStatus) -> list[SessionStatus]:
    return [session for session in seen.sessions if session.part == SMOKE]


def _recorded(session: SessionStatus) -> bool:
    return bool(session.recorded) or session.outcome is Outcome.SUCCEEDED


def table(tried: Sequence[SessionStatus]) -> Table:
    """Each combo that was tried, those without a record first."""
    drawn = Table(box=None, pad_edge=False)
    for name in ("", "policy", "environment", "verdicts", "ended", "last line of its log"):
        drawn.add_column(name, header_style="dim")
    for one in sorted(tried, key=_recorded):
        good = _recorded(one)
        records = "-" if one.recorded is None else f"{one.recorded} of {one.planned}"
        how = str(one.outcome or one.life) + (f" ({told})" if (told := remark(one)) else "")
        line = "" if good else harmless(one.last_line)
        mark = Text("✓", "green") if good else Text("✗", "red")
        drawn.add_row(mark, *map(Text, (one.policy, one.environment, records, how, line)))
    return drawn


def _commands(launched: Launched, verb: str, tried: Sequence[SessionStatus] = ()) -> dict[str, str]:
    run, options = launched.publication.run, launched.options
    failed = next((one.name for one in tried if not _recorded(one)), None)
    if verb == "explain":
        return {"why": f"{program()} logs {failed} --run {run}{options}"}
    return {verb: f"{program()} {'monitor' if verb == 'watch' else verb} {run}{options}"}
