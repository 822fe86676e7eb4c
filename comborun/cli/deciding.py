"""Stopping early while a run is watched: fetch the records when there are more, decide, and tell the host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from comborun.amounts import several
from comborun.cli.where import LOCAL
from comborun.errors import HostError, UserError
from comborun.plaintext import harmless
from comborun.remote.control import tell_decided
from comborun.rules.words import Life, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.monitor.status import RunStatus
    from comborun.remote.fetch.answer import Skipped
    from comborun.reporter.comparing.stopping import Standing
    from comborun.transport import Transport


class Deciding:
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
        from comborun.reporter.comparing.deciding import decide_run

        try:
            source, skipped = self._bring()
            return undecidable(decide_run(source, dict(skipped)).standings)
        except UserError:  # a look tells what it can
            return ""

    def _decide(self, seen: RunStatus) -> None:
        from comborun.reporter.comparing.deciding import decide_run

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
        from comborun.remote.fetch.transfer import fetch, mirror_directory

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
