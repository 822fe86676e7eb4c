"""Watches a run: one look, or one after the other until it has finished."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from comborun.errors import HostError, UserError
from comborun.monitor.observe import last_look
from comborun.monitor.status import UP
from comborun.monitor.watch import Clock, Settings, last_seen, missed, once
from comborun.monitor.watcher import Watcher
from comborun.rules.vocabulary import Life, Outcome
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.answers.status import Status
    from comborun.api.named import Target
    from comborun.monitor.status import RunStatus
    from comborun.reporter.comparing.stopping import ComparisonProgress, EarlyStopping

_PATIENCE_S = 3600.0
_MIRROR_S = 60.0
"""seconds between two copies of the records beside a live view"""


def status_of(target: Target) -> RunStatus:
    """The run now; if its host does not answer, as it was last seen."""
    if target.boxes:
        from comborun.api.joint_look import LOGIN_S, JointSource

        with target.listener.working(f"looking at {several(len(target.boxes), 'host')}"):
            return JointSource(target).status(LOGIN_S)
    if away := target.away:
        kept = last_look(target.transport.host, target.run, target.directory)
        if kept is None:
            raise away
        return last_seen(kept, missed(UP, away, Clock()), Clock())
    with target.listener.working(f"looking at {target.run}"):
        source = target.source()
        seen = once(source)
    if source.view.plan.stop_early and seen.recorded and not seen.finished:
        return replace(seen, undecided=StopEarly(target).decide_only())
    return seen


class Watching:
    """The looks at a run until it has finished. All who iterate over it share one watcher, which ends with the last.

    A program iterates over it. In a notebook it shows a table that updates while other cells run.
    """

    def __init__(self, target: Target, interval: float | None = None) -> None:
        from comborun.api.joint_look import watched

        self._source = watched(target)
        plan = self._source.view.plan
        self._settings = Settings(interval or plan.poll)
        self._react = StopEarly(target) if plan.stop_early else None
        self._lock, self._users = Lock(), 0
        self._watcher: Watcher | None = None
        self._shown: Thread | None = None
        """what updates the table in a notebook"""

    def __iter__(self) -> Iterator[Status]:
        """If the host does not answer, the last look comes again with `reachable` False."""
        from comborun.monitor.document import answer  # slow to import

        watcher, number = self._join(), 0
        try:
            while True:
                look = watcher.wait(number, _PATIENCE_S)
                if watcher.failure:
                    raise watcher.failure
                if look.number > number:
                    number = look.number
                    yield answer(look.status)
                if look.over:
                    return
        finally:
            self._leave()

    def wait(self) -> Status:
        """The run when it has finished; a table in a notebook then shows it."""
        *_, last = self
        if self._shown:
            self._shown.join()
        return last

    def _join(self) -> Watcher:
        with self._lock:
            if self._watcher is None:
                self._watcher = Watcher(self._source, Clock(), self._settings, self._react)
                self._watcher.start()
            self._users += 1
            return self._watcher

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._watcher and not self._users:
                self._watcher.close()
                self._watcher = None

    def _ipython_display_(self) -> None:
        """Show the run in a notebook, and go on in a thread of its own."""
        ipython: Any = import_module("IPython.display")
        looks = iter(self)
        shown = ipython.display(next(looks), display_id=True)

        def follow() -> None:
            for status in looks:
                shown.update(status)

        self._shown = Thread(target=follow, name="notebook", daemon=True)
        self._shown.start()


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
        self.undecided = ""

    def __call__(self, seen: RunStatus) -> str:
        """Returns why comparisons can't be decided, or nothing. Raises HostError if the host can't be reached."""
        if seen.recorded == self._recorded:
            return self.undecided
        try:
            decided = self._decide(whole=seen.finished)
            if decided is None:
                return self.undecided
            queued = {session.name for session in seen.proper if session.life is Life.QUEUED}
            names, lines = [name for name in decided.not_needed if name in queued], decided.lines()
            if names or lines != self._told:
                from comborun.remote.run_orders import send_decisions

                send_decisions(self._target.transport, self._target.directory, lines, names)
                self._told = lines
        except HostError:
            raise
        except UserError as error:  # without a decision the run only takes longer
            self.undecided = f"stop_early decides nothing: {error.message}"
        self._recorded = seen.recorded
        return self.undecided

    def decide_only(self) -> str:
        """The same, without sending decisions."""
        try:
            self._decide()
        except UserError:
            return ""
        return self.undecided

    def told(self, ended: RunStatus) -> Iterator[str]:
        """Sentences about the early decisions, and how many episodes they saved."""
        yield from filter(None, (_sentence(json.loads(line)) for line in self._told.splitlines()))
        if saved := sum(one.planned - one.due for one in ended.proper if one.outcome is Outcome.NOT_NEEDED):
            yield f"{saved} of {sum(one.planned for one in ended.proper)} planned episodes were not needed."

    def _decide(self, *, whole: bool = False) -> EarlyStopping | None:
        """None if not all records are here yet."""
        from comborun.reporter.comparing.stopping import decide_run

        brought = self._target.bring() if whole else self._target.bring_some()
        if not brought:
            return None
        source, skipped = brought
        decided = decide_run(source, dict(skipped))
        self.undecided = undecided_sentence(decided.standings)
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
    other, metric = b if better == a else a, decision.get("metric")
    found = f"{better} has a higher mean {metric} than {other}" if metric else f"{better} beats {other}"
    return (
        f"Decided early in {decision['environment']}: {found}, after {decision['pairs']} of {decision['n_max']} pairs."
    )
