"""What `combo stop` and `combo resume` would do with a run, in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.model.work import describe, size
from comborun.rules.facts import Fact
from comborun.rules.vocabulary import Life
from comborun.words import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.amendment.resumption import Futile, Rejected, Resumption
    from comborun.answers import orders
    from comborun.model.plan import Session
    from comborun.monitor.observe import RunView
    from comborun.monitor.status import RunStatus, SessionStatus


@dataclass(frozen=True)
class PlannedStop:
    """What `combo stop` would end."""

    run: str
    host: str
    names: tuple[str, ...]
    """empty: the whole run"""
    running: tuple[SessionStatus, ...] = ()
    queued: int = 0
    repeated: tuple[SessionStatus, ...] = ()
    """sessions whose recorded episodes a later `combo resume` has to run again"""
    unseen: str = ""
    """why the fields above are unknown: an older comborun made the run, or its records can't be read"""
    others: tuple[str, ...] = ()
    """if nothing runs: the other runs of its grid that go on"""

    def facts(self) -> Iterator[Fact]:
        run = {"run": self.run, "host": self.host}
        if self.unseen:
            yield Fact("stop_unseen", **run)
            return
        yield Fact("stop_ends", **run, sessions=[one.name for one in self.running])
        if self.queued:
            yield Fact("stop_keeps_queued", count=self.queued)
        if self.repeated:
            names, count = [one.name for one in self.repeated], sum(one.recorded or 0 for one in self.repeated)
            yield Fact("resume_repeats", episodes=count, sessions=names)
        if self.others:
            yield Fact("other_runs_go_on", runs=list(self.others))

    def lines(self) -> Iterator[str]:
        return (f"{say(fact)}: {self.unseen}" if self.unseen else say(fact) for fact in self.facts())

    @classmethod
    def of(cls, view: RunView, seen: RunStatus, names: tuple[str, ...]) -> PlannedStop:
        meant = [one for one in seen.every if not names or one.name in names]
        running = tuple(one for one in meant if one.alive)
        planned = {one.name: one for one in view.plan.sessions}
        redone = tuple(one for one in running if one.name in planned and _runs_again(planned[one.name], one))
        queued = sum(one.life is Life.QUEUED for one in meant)
        hosts = dict.fromkeys(one.host for one in running if one.host)
        return cls(view.id, ", ".join(hosts) or seen.host, names, running, queued, redone)

    @property
    def answer(self) -> orders.PlannedStop:
        from comborun.answers import orders  # slow to import, and only JSON needs it

        return orders.PlannedStop(
            self.run, self.host, self.names, tuple(one.name for one in self.running), self.queued, self.others,
            tuple(self.lines()), tuple(self.facts()), self.unseen or None,
        )  # fmt: skip


def _runs_again(planned: Session, now: SessionStatus) -> bool:
    """Whether a resume after a stop now runs recorded episodes again: it is not complete, and takes no range."""
    complete = 0 < now.planned <= (now.recorded or 0) and not planned.evidence.beside_records
    return bool(now.recorded) and not planned.ranged and not complete


@dataclass(frozen=True)
class PlannedResume:
    """What `combo resume` would do with a run."""

    view: RunView
    seen: RunStatus
    what: Resumption
    coming: tuple[str, ...]
    """sessions that are queued, or run"""

    @property
    def held(self) -> bool:
        return bool(self.seen.hold or self.seen.quarantine or self.seen.closed or self.seen.stopped)

    @property
    def kept(self) -> int:
        """Number of tasks that Slurm holds."""
        return sum(task.held for task in self.seen.tasks)

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to resume."""
        return self.what.nothing and not self.held and not self.kept and not self.idle

    @property
    def environment(self) -> Fact | None:
        """How the variables of sessions that start now differ from those of the first launch."""
        return self.seen.environment if self.seen.dispatcher is None or self.seen.scheduler else None

    @property
    def idle(self) -> bool:
        """Whether its dispatcher is gone before the end."""
        return self.seen.dispatcher is None and not self.seen.finished


def resume_facts(going: PlannedResume) -> Iterator[Fact]:
    """What a resume does; the first fact is about the run as a whole."""
    what, seen = going.what, going.seen
    if going.nothing:
        yield Fact("nothing_to_resume", run=going.view.id, coming=len(going.coming), futile=bool(what.futile))
        if seen.slurm and going.coming:
            yield seen.slurm
        yield from map(_futile, what.futile)
        return
    yield Fact("resumes", run=going.view.id)
    yield from filter(None, [going.environment])
    if seen.hold:
        yield Fact("no_longer_held", hold=seen.hold.kind, **seen.hold.because)
    if seen.stopped:
        yield Fact("no_longer_stopped")
    yield from (Fact("gpu_used_again", gpu=one.gpu, failure=one.failure) for one in seen.quarantine)
    yield from (Fact("environment_used_again", environment=one.environment, failure=one.failure) for one in seen.closed)
    if going.kept and not seen.hold and not seen.stopped:
        yield Fact("tasks_released", tasks=going.kept)
    ranged = {one.name for one in going.view.plan.sessions if one.ranged}
    for one in what.again:
        lacking = {"count": size(one.lacking), "episodes": describe(one.lacking)}
        repeated = {"repeated": one.repeated, "ranged": one.name in ranged}
        yield Fact("another_attempt", session=one.name, **lacking, **repeated)
    for session in what.added:
        span = (range(session.first, session.first + session.count),)
        combo = {"policy": session.policy, "environment": session.environment}
        yield Fact("new_session", session=session.name, **combo, count=size(span), episodes=describe(span))
    yield from map(_futile, what.futile)
    if going.coming:
        yield Fact("sessions_coming", count=len(going.coming), stopped=seen.stopped)
    if not (going.coming or going.held or what.again or what.added):
        yield Fact("dispatcher_ends_run")


def resume_lines(going: PlannedResume) -> Iterator[str]:
    first, *others = map(say, resume_facts(going))
    yield first
    yield from (f"  {line}" for line in others)


def _futile(one: Futile) -> Fact:
    return Fact(
        "futile_to_repeat", session=one.name, count=size(one.lacking), episodes=describe(one.lacking),
        reason=_why(one.rejected).as_data(),
    )  # fmt: skip


def _why(rejected: Rejected | None) -> Fact:
    if rejected is None:
        return Fact("complete_without_records")
    return Fact("records_are_rejected", said=rejected.reason, place=rejected.place)


def resume_answer(going: PlannedResume, *, done: bool) -> orders.Resumed:
    from comborun.answers import orders  # slow to import, and only JSON needs it

    what = going.what
    return orders.Resumed(
        run=going.view.id,
        done=done,
        lifted=going.held or bool(going.kept),
        environment=going.environment,
        again=tuple(one.name for one in what.again),
        repeated={one.name: one.repeated for one in what.again if one.repeated},
        added=tuple(
            orders.AddedSession(one.policy, one.environment, one.first, one.count, one.name) for one in what.added
        ),
        futile=tuple(
            orders.Futile(one.name, describe(one.lacking), say(why), why)
            for one in what.futile
            for why in [_why(one.rejected)]
        ),
        going_on=going.coming,
    )


def joint_answer(run: str, parts: Sequence[orders.Resumed]) -> orders.Resumed:
    """The answers of all hosts of a run as one."""
    from comborun.answers import orders

    return orders.Resumed(
        run=run,
        done=any(one.done for one in parts),
        lifted=any(one.lifted for one in parts),
        environment=next((one.environment for one in parts if one.environment), None),
        again=tuple(name for one in parts for name in one.again),
        repeated={name: count for one in parts for name, count in one.repeated.items()},
        added=tuple(session for one in parts for session in one.added),
        futile=tuple(session for one in parts for session in one.futile),
        going_on=tuple(name for one in parts for name in one.going_on),
    )
