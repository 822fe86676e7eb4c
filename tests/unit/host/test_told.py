"""Ends and failures of servers are told once, whatever happens to the events and to the dispatcher."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import record

from comborun.host.dispatch.run_policy import END, RunPolicy, Told
from comborun.host.dispatch.run_state import RunState
from comborun.host.dispatch.sessions import Ended, Queue
from comborun.host.record.run_directory import RunDirectory
from comborun.rules.facts import Fact
from comborun.rules.holds import Notice

NAMES = ("env_one", "env_two")


class Run:
    """Two sessions that crashed while no process watched the run. Each call of `watch` is a new dispatcher."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.told: list[tuple[str, str]] = []
        self.dies_at = ""
        """the session at whose notice the dispatcher is killed"""
        (directory / "dispatch").mkdir()
        (directory / "id").write_text("run-1\n")
        (directory / "dispatch/policy.json").write_text(record(breaker=5))
        for number, name in enumerate(NAMES):
            at = directory / "sessions" / name / "attempt-1"
            at.mkdir(parents=True)
            (at / "claim").write_text(record(supervisor=1))
            (at / "end").write_text(record(cause="signal", class_="crashed", completeness="none", ended=number + 1))

    def watch(self) -> RunPolicy:
        attempts = RunDirectory(str(self.directory))
        run = RunState(attempts)
        run.notices.tell = self._tell  # type: ignore[method-assign]
        policy = RunPolicy(run)
        policy.read()
        queue = Queue()
        for session in map(queue.add, NAMES):
            session.attempt = 1
            queue.set(session, Ended(attempts.end(session.name, 1)))
        policy.report_new_ends(list(queue))
        return policy

    def _tell(self, kind: str, who: str, note: str) -> None:
        if who and who == self.dies_at:
            self.dies_at = ""
            raise SystemExit
        self.told.append((kind, who))


def test_a_failure_of_a_server_is_told_once_whoever_watches(run: Run) -> None:
    for attempt in (1, 1, 2):
        for _ in range(2):
            run.watch().report_server("servers/vlm", attempt, Fact(Notice.SERVER_SILENT, server="vlm"))
    assert run.told.count(("host", "")) == 2


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def lose_the_events(run: Run) -> None:
    (run.directory / "dispatch/events.jsonl").unlink()


def test_ends_are_told_and_counted_once_though_the_events_are_lost(run: Run) -> None:
    assert run.watch().breaker.counts == {"host": ("crashed", 2)}
    lose_the_events(run)
    assert run.watch().breaker.counts == {"host": ("crashed", 2)}
    assert run.told == [("failed", name) for name in NAMES]


def test_a_dispatcher_that_is_killed_while_it_tells_leaves_nothing_to_be_told_or_counted_twice(run: Run) -> None:
    run.dies_at = "env_one"
    with pytest.raises(SystemExit):
        run.watch()
    lose_the_events(run)
    run.watch()
    assert run.watch().breaker.counts == {"host": ("crashed", 2)}
    assert run.told == [("failed", "env_two")]


def test_a_stall_is_told_once_though_the_dispatcher_starts_again(run: Run) -> None:
    for _ in range(2):
        run.watch().report_stall("env_one", 1, {"note": "no new line"})
    assert run.told.count(("stalled", "env_one")) == 1


def test_what_a_full_disk_kept_from_the_record_is_written_with_the_next_end(run: Run) -> None:
    layout = RunDirectory(str(run.directory)).layout
    told, path = Told(layout), Path(layout.told)
    path.mkdir()
    assert told.first(END, "env_one", 1)
    assert not told.first(END, "env_one", 1)
    path.rmdir()
    path.write_text('{"what": "end", "sess')
    assert told.first(END, "env_two", 1)
    assert all(Told(layout).knows(END, name, 1) for name in NAMES)
