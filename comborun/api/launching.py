"""Starts a grid's sessions, and waits for the first one and for a smoke test."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from comborun.amendment.resumption import smoke_sessions
from comborun.answers import orders
from comborun.api.named import Target
from comborun.errors import UserError
from comborun.monitor.beginning import await_beginning, await_smoke, failed_at_once, lacking, recorded
from comborun.monitor.watch import once
from comborun.remote.launches import Launch, remember
from comborun.remote.launching import Launched, publish_run, start
from comborun.remote.preparing import LaunchRequest, Prepared, prepare
from comborun.rules.facts import Fact
from comborun.rules.vocabulary import Life
from comborun.words import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.api.named import GridChoice, HostChoice
    from comborun.monitor.status import SessionStatus
    from comborun.remote.publish import Publication

_CHANGED = "With n they keep their old settings and records. Use the new grid?"
_HOW = (
    "--changed rerun uses the new grid for these combos, and their old records no longer count; --changed keep keeps"
    " their old settings and records; --new starts another run. None of them stops a session"
)


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
    tried: tuple[SessionStatus, ...] | None = field(default=None)
    """the sessions of the smoke test when it is over; None without one"""

    @property
    def changes(self) -> tuple[str, ...]:
        launched = self.launched
        if not launched.running:
            return launched.changes
        target = self.target
        stop = f"{target.listener.program} stop {target.run} {' '.join(launched.running)}{target.options}"
        note = f"still running, but their records no longer count: {', '.join(launched.running)}. To stop them: {stop}"
        return (*launched.changes, note)

    @property
    def passed(self) -> bool:
        """Whether each session of the smoke test has left a record; True without one."""
        return all(map(recorded, self.tried or ()))

    @property
    def all_failed(self) -> bool:
        """Whether every session has failed at once, and none starts again."""
        failed = [one for one in self.failed if one.life is Life.ENDED]
        return bool(failed) and len(failed) == len(self.launched.plan.current)

    @property
    def answer(self) -> orders.Launch:
        launched, publication, waits = self.launched, self.launched.publication, self.waits
        return orders.Launch(
            run=publication.run,
            host=self.target.transport.host,
            directory=publication.directory,
            state=publication.state,
            hold=orders.LaunchHold(*launched.hold) if launched.hold else None,
            sessions=tuple(session.name for session in launched.plan.current),
            shipped=launched.shipped,
            replaced=launched.replaced,
            waits=say(waits) if waits else None,
            fact=waits,
            engine=launched.plan.engine,
            submitted=launched.submitted,
            changes=self.changes,
            lacks=self.lacks or None,
            failed=tuple(one.name for one in self.failed),
            smoke=None if self.tried is None else self.passed,
        )


def start_run(chosen: GridChoice, where: HostChoice, request: LaunchRequest) -> Started:
    """Check, publish and start a grid. This is safe to repeat, so an interruption loses nothing."""
    run, listener = "", where.listener

    def follows(changes: str) -> bool:
        return listener.confirm(_CHANGED, UserError(changes, _HOW, code="changed_grid"))

    try:
        grid = chosen.read()
        listener.warn(*map(str, grid.warnings))
        with listener.working("looking at the host"):
            prepared = prepare(request, grid, where.connect)
        listener.warn(*prepared.warnings)
        transport = prepared.transport
        with listener.working(f"bringing the run to {transport.host}"):
            launched = publish_run(prepared, follows, listener.tell)
        publication, run = launched.publication, launched.publication.run
        again = chosen.options + (where.options(where.host) if where.host else "") + " --slurm" * request.slurm
        target = remembered_target(chosen, prepared, publication, where, options=again)
        doing = f"sending {prepared.sends} to" if prepared.sends else "starting on"
        with listener.working(f"{doing} {transport.host}"):
            launched = start(prepared, launched)
        with listener.working("waiting for the first session"):
            waits = await_beginning(*target.place, target.options) if launched.begins else None
        lacks = lacking(once(target.source())) if publication.state == "finished" else ""
        return Started(target, launched, waits, lacks)
    except KeyboardInterrupt:
        listener.tell(f"\nInterrupted. {_rest(where, request, run)}.")
        raise


def remembered_target(
    chosen: GridChoice, prepared: Prepared, publication: Publication, where: HostChoice, **known: Any
) -> Target:
    """The run on its host, which this machine remembers from now on. `known`: more fields of the launch."""
    transport, grid = prepared.transport, prepared.grid
    places = (publication.run, transport.host, publication.root, publication.directory)
    digest = sha256(grid.text.encode()).hexdigest()
    way, file = where.way(transport.host), str(chosen.path.resolve())
    remember(Launch(*places, grid.name, way, file, digest, **known))
    options = replace(where, root=grid.root).options(transport.host)
    return Target(transport, publication.run, publication.directory, options, listener=where.listener)


def _rest(where: HostChoice, request: LaunchRequest, run: str) -> str:
    """How to do the rest of an interrupted launch: with --new the same command would make another run."""
    if not request.new:
        return "Started sessions go on; the same command again does the rest"
    rest = "the same command without --new does the rest"
    if run:
        return f"The run {run} exists, and started sessions go on; {rest}"
    return f"If `{where.listener.program} runs` shows a new run, {rest}; else nothing was started"


def with_failures(started: Started) -> Started:
    """With the sessions that fail within the first seconds."""
    if not started.launched.begins or started.waits:
        return started
    return replace(started, failed=failed_at_once(started.target.source()))


def with_smoke_test(started: Started, progress: Callable[[int, int], None] = lambda *_: None) -> Started:
    """Wait until the run's smoke sessions have ended. `progress` gets how many combos have a record, of how many.

    The dispatcher holds the other sessions back and halts the run, so the user may stop waiting.
    """
    if started.launched.hold or not smoke_sessions(started.launched.plan):
        return replace(started, tried=())
    return replace(started, tried=await_smoke(started.target.source(), progress))
