"""What `combo stop` and `combo resume` would do with a run, in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.model.work import describe, size
from comborun.monitor.slurm import summary as tasks_line
from comborun.rules.vocabulary import Life
from comborun.text import first_of, several

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.amendment.resumption import Futile, Rejected, Resumption
    from comborun.model.work import Spans
    from comborun.monitor.observe import RunView
    from comborun.monitor.status import RunStatus, SessionStatus


_MOST_NAMED = 8


@dataclass(frozen=True)
class Stopping:
    """What `combo stop` would end."""

    run: str
    host: str
    names: tuple[str, ...]
    """empty: the whole run"""
    running: tuple[SessionStatus, ...] = ()
    queued: int = 0
    repeated: tuple[str, ...] = ()
    """what a later `combo resume` has to run again, a sentence each"""
    unseen: str = ""
    """why the fields above are unknown: an older comborun made the run, or its records can't be read"""
    others: tuple[str, ...] = ()
    """if nothing runs: the other runs of its grid that go on"""

    def lines(self) -> Iterator[str]:
        run = f"{self.run} on {self.host}"
        if self.unseen:
            yield f"{run}: what runs is not known: {self.unseen}"
            return
        names = [one.name for one in self.running]
        ends = f"ends {several(len(names), 'running session')}: {first_of(names, _MOST_NAMED, 'session')}"
        yield f"{run}: {ends if names else 'no session is running'}"
        if self.queued:
            yield f"{several(self.queued, 'queued session')} will not start"
        yield from self.repeated
        if self.others:
            yield f"other runs of this grid go on; name one to end it: {', '.join(self.others)}"

    @classmethod
    def of(cls, view: RunView, seen: RunStatus, names: tuple[str, ...]) -> Stopping:
        meant = [one for one in seen.every if not names or one.name in names]
        running = tuple(one for one in meant if one.alive)
        ranged = {one.name for one in view.plan.sessions if one.ranged}
        redone = [one for one in running if one.recorded and one.name not in ranged]
        queued = sum(one.life is Life.QUEUED for one in meant)
        return cls(view.id, view.host, names, running, queued, tuple(_repeated(redone)))

    def to_document(self) -> dict[str, object]:
        return {
            "run": self.run, "host": self.host, "sessions": list(self.names),
            "running": [one.name for one in self.running], "queued": self.queued, "others": list(self.others),
            "lines": list(self.lines()),
        }  # fmt: skip


def _repeated(sessions: list[SessionStatus]) -> Iterator[str]:
    if sessions:
        count = several(sum(one.recorded or 0 for one in sessions), "recorded episode")
        which = first_of((one.name for one in sessions), _MOST_NAMED)
        yield f"a later resume runs {count} again, because the command takes no range of episodes: {which}"


@dataclass(frozen=True)
class Resuming:
    """What `combo resume` would do with a run."""

    view: RunView
    seen: RunStatus
    what: Resumption
    coming: tuple[str, ...]
    """sessions that are queued, or run"""

    @property
    def held(self) -> bool:
        return bool(self.seen.hold or self.seen.quarantine or self.seen.stopped)

    @property
    def kept(self) -> int:
        """Number of tasks that Slurm holds."""
        return sum(task.held for task in self.seen.tasks)

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to resume."""
        return self.what.nothing and not self.held and not self.kept and not self.idle

    @property
    def idle(self) -> bool:
        """Whether its dispatcher is gone before the end."""
        return self.seen.dispatcher is None and not self.seen.finished


def resume_lines(going: Resuming) -> Iterator[str]:
    what, seen = going.what, going.seen
    ranged = {one.name for one in going.view.plan.sessions if one.ranged}
    if going.nothing:
        left = "some episodes have no record" if what.futile else "nothing is missing"
        runs = f"{several(len(going.coming), 'session')} queued or running" if going.coming else left
        yield f"{going.view.id}: {runs}; there is nothing to resume"
        if seen.scheduler and going.coming and seen.now is not None:
            yield f"  {tasks_line(seen.scheduler, seen.tasks, seen.now)}"
        yield from map(_futile, what.futile)
        return
    yield f"{going.view.id}:"
    yield from _ended_holds(seen)
    if going.kept and not seen.hold and not seen.stopped:
        yield f"  {going.kept} tasks that Slurm holds are released"
    for one in what.again:
        verb = "has" if size(one.lacking) == 1 else "have"
        lacking = f", for the {_episodes(one.lacking)} that {verb} no record" if one.lacking else ""
        yield f"  {one.name}: another attempt{lacking}"
        if one.repeated:
            repeated = several(one.repeated, "recorded episode")
            why = "what is missing is not only at the end" if one.name in ranged else "this command takes no range"
            yield f"    {repeated} run{'s' * (one.repeated == 1)} again: {why}"
    for session in what.added:
        span = _episodes((range(session.first, session.first + session.count),))
        yield f"  {session.name}: a new session for {session.policy} in {session.environment}, {span}"
    yield from map(_futile, what.futile)
    if going.coming:
        begun = "queued, and not started yet" if seen.stopped else "queued or running already"
        yield f"  {several(len(going.coming), 'session')} {begun}"
    if not (going.coming or going.held or what.again or what.added):
        yield "  its dispatcher is gone: a new one ends the run"


def _ended_holds(seen: RunStatus) -> Iterator[str]:
    """The holds that a resume ends."""
    if seen.hold:
        why = f": {seen.hold.why}" if seen.hold.why else ""
        yield f"  no longer {seen.hold.kind}{why}"
    if seen.stopped:
        yield "  no longer stopped"
    yield from (f"  GPU {one.gpu} is used again (it was in quarantine: {one.failure})" for one in seen.quarantine)


def _futile(one: Futile) -> str:
    why = _why(one.rejected)
    return f"  {one.name}, {_episodes(one.lacking)}: {why}, so running it again would not help"


def _episodes(which: Spans) -> str:
    """`episode 5`, `episodes 3-5, 7`."""
    return f"episode{'s' if size(which) > 1 else ''} {describe(which)}"


def _why(rejected: Rejected | None) -> str:
    if rejected is None:
        return "the session counts as complete but recorded none of these"
    return f"its records are rejected by the report ({rejected.reason}, {rejected.place})"


def resume_document(going: Resuming, *, done: bool) -> dict[str, object]:
    return {
        "run": going.view.id,
        "done": done,
        "lifted": going.held or bool(going.kept),
        "again": [one.name for one in going.what.again],
        "repeated": {one.name: one.repeated for one in going.what.again if one.repeated},
        "added": [
            {"session": one.name, "policy": one.policy, "environment": one.environment, "first": one.first,
             "count": one.count}
            for one in going.what.added
        ],
        "futile": [
            {"session": one.name, "episodes": describe(one.lacking), "why": _why(one.rejected)}
            for one in going.what.futile
        ],
        "going_on": list(going.coming),
    }  # fmt: skip
