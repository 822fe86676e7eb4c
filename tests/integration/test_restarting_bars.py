"""lerobot-eval's bar, which starts again for each task, watched batch by batch: never more than was done."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from box import until
from click.testing import CliRunner
from desk import Desk, desk_at
from test_preset_runs import furnish, launched

from comborun.cli import combo
from comborun.monitor.classify import classify
from comborun.monitor.observe import History, load_run
from comborun.monitor.status import SessionStatus
from comborun.monitor.watch import Source
from comborun.remote.transport import LocalTransport
from comborun.rules.words import Outcome

TRIALS, BATCH, TASKS = 4, 2, 2
GRID = f"""\
preset: lerobot
resources: {{gpus: 0}}
retry: none
limits: {{stagger: 0 s, parallel: 1}}
policies: {{gated: {{checkpoint: a, batch: {BATCH}, device: cpu}}}}
environments: {{libero_goal: {{trials: {TRIALS}}}}}
episodes: {TRIALS * TASKS}
poll: 0.3
variables: {{REPLICA: gated, REPLICA_GATE: "@"}}
"""


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path / "a home") as desk:
        furnish(desk.home)
        desk.environment["PATH"] = f"{desk.home}/bin:{desk.environment['PATH']}"
        yield desk


def drawn(log: Path) -> list[int]:
    """Every number of the outer bar that the replica has drawn."""
    text = log.read_text() if log.exists() else ""
    return [int(number) for number in re.findall(r"eval batches:[^\r\n]*\| (\d+)/\d+ \[", text)]


def made(log: Path) -> int:
    """Episodes that the replica has done, by the whole of its log."""
    numbers = drawn(log)
    tasks = sum(later < earlier for earlier, later in pairwise(numbers))
    return tasks * TRIALS + numbers[-1] * BATCH if numbers else 0


class Watcher:
    """Somebody with a monitor, who remembers what it has shown."""

    def __init__(self, run: Path) -> None:
        self._source = Source(LocalTransport(), load_run(LocalTransport(), str(run)))
        self._history = History()

    def look(self) -> SessionStatus:
        self._history = self._source.fold(self._history)
        (session,) = classify(self._source.view, self._history).sessions
        return session


def once(desk: Desk, run: Path) -> int:
    told = CliRunner().invoke(combo, ["status", run.name, "--json"], env=desk.environment)
    (session,) = json.loads(told.stdout)["sessions"]
    done: int = session["episodes_done"]
    return done


def test_two_tasks_are_never_shown_as_more_than_was_done(gated: Desk) -> None:
    gate = gated.home / "gate"
    gate.mkdir()
    run = launched(gated, "bars", GRID.replace("@", str(gate)))
    log = run / "sessions/libero_goal_gated/attempt-1/log"
    until(lambda: drawn(log), "the bar is drawn")
    watcher, shown = Watcher(run), []
    for batch in range(TASKS * TRIALS // BATCH):
        shown.append((made(log), watcher.look().done, once(gated, run)))
        (gate / str(batch)).touch()
        done = (batch + 1) * BATCH
        until(lambda done=done: made(log) >= done, f"{done} episodes are done")  # type: ignore[misc]
    until((run / "dispatch/done").exists, "the run has ended")
    assert [(true, live) for true, live, _ in shown] == [(0, 0), (2, 2), (4, 4), (6, 6)]
    assert all(at_once <= true for true, _, at_once in shown)
    session = watcher.look()
    assert (session.outcome, session.done, once(gated, run)) == (Outcome.SUCCEEDED, 8, 8)


def test_a_task_that_passed_before_the_first_look_counts_where_the_log_still_shows_it(gated: Desk) -> None:
    gate = gated.home / "gate"
    gate.mkdir()
    for batch in range(3):
        (gate / str(batch)).touch()
    run = launched(gated, "late", GRID.replace("@", str(gate)))
    log = run / "sessions/libero_goal_gated/attempt-1/log"
    until(lambda: made(log) == 6, "the second task is half done")
    assert (Watcher(run).look().done, once(gated, run)) == (6, 6)
    (gate / "3").touch()
    until((run / "dispatch/done").exists, "the run has ended")
