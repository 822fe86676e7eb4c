"""combo resume: continue a run, for exactly the episodes that have no record yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from comborun.again.resumption import resumption, still_to_come
from comborun.cli.options import Target, json_option, of_run
from comborun.cli.report import collected
from comborun.cli.terminal import answer, repeatable
from comborun.errors import HostError
from comborun.monitor.slurm import summary as tasks_line
from comborun.monitor.watch import once
from comborun.remote.control import restart_dispatcher, steer
from comborun.remote.publish import add_sessions
from comborun.rules.words import Life
from comborun.text import harmless, several
from comborun.work import describe, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.again.resumption import Futile, Rejected, Resumption
    from comborun.monitor.observe import RunView
    from comborun.monitor.status import RunStatus
    from comborun.work import Spans


@dataclass(frozen=True)
class _Going:
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
        """How many tasks Slurm holds, though the run may go on."""
        return sum(task.held for task in self.seen.tasks)

    @property
    def nothing(self) -> bool:
        """Whether all that is missing is under way, or nothing is."""
        idle = self.seen.dispatcher is None and bool(self.coming)
        return self.what.nothing and not self.held and not self.kept and not idle


@click.command()
@repeatable()
@of_run
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@json_option
def resume(target: Target, dry_run: bool, as_json: bool) -> None:
    """Continue a run: run what is missing. No episode with a record runs again, if the command takes a range.

    Lifts a hold. Sessions that ended without all of their records get another attempt. If episodes in the middle are
    missing and the command takes a range, sessions for exactly these episodes are added.

    \b
    combo resume                the newest run
    combo resume --dry-run      what it would do
    """
    going = _look(target)
    act = not dry_run and not going.nothing
    if as_json:
        answer(_record(going, done=act))
    else:
        click.echo("\n".join(map(harmless, _lines(going))))
    said = _go_on(target, going) if act else ""
    if said and not as_json:
        click.echo(harmless(said))


def _look(target: Target) -> _Going:
    from comborun.reporter.merge import missing, rejected

    source = target.source()
    view, seen = source.view, once(source)
    records, _ = collected(target)
    ended = [one for one in seen.sessions if one.life is Life.ENDED and one.attempt]
    outcomes = {one.name: one.outcome for one in ended if one.outcome}
    what = resumption(view.plan, outcomes, missing(records), rejected(records))
    return _Going(view, seen, what, tuple(still_to_come(view.plan, outcomes)))


def _go_on(target: Target, going: _Going) -> str:
    """Safe to repeat: gaps first, then the hold, then new attempts, then the dispatcher; what was said of that."""
    transport, view, what = target.transport, going.view, going.what
    if what.added and not add_sessions(transport, view.directory, (view.plan, view.number), what.added):
        raise HostError(f"{view.id} was changed by a launch just now", "the same command again looks anew")
    if going.held or going.kept:
        steer(transport, view.directory, "resume")
    if what.again:
        steer(transport, view.directory, "retry", *(one.name for one in what.again))
    return restart_dispatcher(transport, view.directory, view.plan)


def _lines(going: _Going) -> Iterator[str]:
    what, seen = going.what, going.seen
    if going.nothing:
        left = "some episodes have no record" if what.futile else "nothing is missing"
        runs = f"{several(len(going.coming), 'session')} queued or running" if going.coming else left
        yield f"{going.view.id}: {runs}; there is nothing to resume"
        if seen.scheduler and going.coming and seen.now is not None:
            yield f"  {tasks_line(seen.scheduler, seen.tasks, seen.now)}"
        yield from map(_futile, what.futile)
        return
    yield f"{going.view.id}:"
    if seen.hold:
        yield f"  no longer {seen.hold.kind}" + (f": {seen.hold.why}" if seen.hold.why else "")
    if seen.stopped:
        yield "  no longer stopped"
    if going.kept and not seen.hold and not seen.stopped:
        yield f"  {going.kept} tasks that Slurm holds are let go"
    yield from (f"  GPU {one.gpu} is used again (it was in quarantine: {one.failure})" for one in seen.quarantine)
    for one in what.again:
        verb = "has" if size(one.lacking) == 1 else "have"
        lacking = f", for the {_episodes(one.lacking)} that {verb} no record" if one.lacking else ""
        yield f"  {one.name}: another attempt{lacking}"
        if one.repeated:
            repeated = several(one.repeated, "recorded episode")
            yield f"    {repeated} run{'s' * (one.repeated == 1)} again: {_why_again(going.view, one.name)}"
    for session in what.added:
        span = _episodes((range(session.first, session.first + session.count),))
        yield f"  {session.name}: a new session for {session.policy} in {session.environment}, {span}"
    yield from map(_futile, what.futile)
    if going.coming:
        yield f"  {several(len(going.coming), 'session')} queued or running already"


def _why_again(view: RunView, name: str) -> str:
    ranged = any(one.ranged for one in view.plan.sessions if one.name == name)
    return "what is missing is not only at the end" if ranged else "this command takes no range"


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


def _record(going: _Going, *, done: bool) -> dict[str, object]:
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
