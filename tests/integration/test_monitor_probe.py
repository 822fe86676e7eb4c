"""The real probe on real run directories, whose sessions are run by hand: no multiplexer, no dispatcher."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from comborun.command import fill
from comborun.errors import HostError, UserError
from comborun.judging import ResultRules
from comborun.monitor.classify import classify
from comborun.monitor.observe import History, load_run, observe
from comborun.monitor.status import RunStatus, SessionStatus
from comborun.monitor.watch import Source
from comborun.plan import After, Limits, Plan, Session
from comborun.remote.publish import Draft, publish
from comborun.remote.transport import LocalTransport
from comborun.rules.records import parse
from comborun.rules.words import Life, Outcome

DEADLINE_S = 20.0
PROGRAM = """
import pathlib, sys, time
out, gate = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
with open(out / "episodes.jsonl", "w", buffering=1) as records:
    for episode in range(4):
        while episode == 2 and not gate.exists():
            time.sleep(0.01)
        success = "true" if episode else "false"
        records.write('{"episode": %d, "seed": %d, "success": %s}\\n' % (episode, episode, success))
        print("episode", episode, end="\\r" if episode == 1 else "\\n", flush=True)
sys.exit(int(sys.argv[3]))
"""


def session(name: str, gate: Path, code: int = 0, program: str = PROGRAM) -> Session:
    arguments = "{python} -c {program} {output_dir} {gate} {code}"
    values = {"python": sys.executable, "program": program, "gate": str(gate), "code": str(code)}
    command = fill(arguments, values)
    return Session(
        f"{name}_act", "act", name, "episode", 0, 4, None, command, "", None, (), 0, ResultRules(), f"digest of {name}"
    )


@dataclass
class Stage:
    """A published run, and those of its sessions that were started by hand."""

    source: Source
    directory: Path
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    history: History = field(default_factory=History)

    def look(self) -> RunStatus:
        self.history = self.source.fold(self.history)
        return classify(self.source.view, self.history)

    def session(self, name: str) -> SessionStatus:
        return next(one for one in self.look().sessions if one.environment == name)

    def start(self, name: str, attempt: int = 1) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-I", "-S", str(self.directory / "lib/comborun_host"), "session"]
        process = subprocess.Popen(
            [*program, str(self.directory), f"{name}_act", str(attempt), "none"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def begin(self, name: str) -> dict[str, str]:
        return parse((self.directory / "sessions" / f"{name}_act" / "attempt-1" / "begin").read_text())

    def wait_until(self, met: Callable[[SessionStatus], bool], name: str) -> SessionStatus:
        deadline = time.monotonic() + DEADLINE_S
        while not met(seen := self.session(name)):
            assert time.monotonic() < deadline, f"still {seen}"
            time.sleep(0.02)
        return seen

    def end_all(self) -> None:
        commands = [Path(path) for path in self.directory.glob("sessions/*/attempt-*/begin")]
        for path in commands:
            end(int(parse(path.read_text()).get("pid", "0")))
        for process in self.started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            end(process.pid)
            process.wait(5)


def end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if pid > 1:
            os.killpg(pid, signal.SIGKILL)


@pytest.fixture
def stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Stage]]:
    """Makes runs below a home whose name holds a space."""
    home = tmp_path / "a home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    made: list[Stage] = []

    def make(*sessions: Session, after: After | None = None) -> Stage:
        plan = Plan("probed", sessions, Limits(2, 2, 0.0, 1), (), after, 60.0, "digest")
        transport = LocalTransport()
        published = publish(transport, Draft(plan, "name: probed\n", "~/runs", {}), "new")
        directory = Path(published.directory)
        view = load_run(transport, f"~/runs/{published.run}")
        assert (view.id, view.plan, view.host) == (published.run, plan, "local")
        stage = Stage(Source(transport, view), directory)
        made.append(stage)
        return stage

    yield make
    for stage in made:
        stage.end_all()


Stages = Callable[..., Stage]


def test_a_published_run_is_all_queued_and_waits_for_a_dispatcher(stages: Stages, tmp_path: Path) -> None:
    after = After(fill("true", {}), "", None, ())
    status = stages(session("grass", tmp_path), session("stairs", tmp_path), after=after).look()
    assert [one.life for one in status.sessions] == [Life.QUEUED, Life.QUEUED]
    assert status.after is not None
    assert status.after.life is Life.QUEUED
    assert (status.dispatcher, status.stopped, status.finished) == (None, False, False)
    assert abs((status.now or 0) - time.time()) < 60
    assert status.use.cpus in (os.cpu_count(), len(os.sched_getaffinity(0)))
    assert status.hint.startswith("nothing has started, and no dispatcher is there to start it: run `combo resume ")


def test_a_session_is_seen_running_with_its_progress_and_then_ended(stages: Stages, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    stage = stages(session("grass", gate))
    stage.start("grass")
    running = stage.wait_until(lambda seen: seen.done == 2, "grass")
    assert (running.life, running.successes, running.attempt, running.planned) == (Life.RUNNING, 1, 1, 4)
    assert stage.wait_until(lambda seen: seen.last_line == "episode 1", "grass").idle is not None
    gate.touch()
    ended = stage.wait_until(lambda seen: seen.life is Life.ENDED, "grass")
    assert (ended.outcome, ended.done, ended.successes, ended.note) == (Outcome.SUCCEEDED, 4, 3, "")
    assert ended.seconds is not None
    assert 0 < ended.seconds < DEADLINE_S


def test_an_end_is_sent_once_and_remembered(stages: Stages, tmp_path: Path) -> None:
    stage = stages(session("grass", tmp_path), session("stairs", tmp_path))
    stage.start("grass")
    stage.wait_until(lambda seen: seen.life is Life.ENDED, "grass")
    known = stage.history.known(stage.source.view.sessions)
    assert known == (1, 0)
    assert observe(stage.source.transport, stage.source.view.directory, known).attempts == ()
    assert stage.session("grass").outcome is Outcome.SUCCEEDED


def test_a_bad_exit_after_complete_results_is_a_warning(stages: Stages, tmp_path: Path) -> None:
    stage = stages(session("grass", tmp_path, code=3))
    stage.start("grass")
    ended = stage.wait_until(lambda seen: seen.life is Life.ENDED, "grass")
    assert (ended.outcome, ended.note) == (Outcome.SUCCEEDED, "exit code 3 after complete results")


def test_a_program_that_ends_without_results_has_failed_and_says_so(stages: Stages, tmp_path: Path) -> None:
    stage = stages(session("grass", tmp_path, program="print('nothing to do')"))
    stage.start("grass")
    ended = stage.wait_until(lambda seen: seen.life is Life.ENDED, "grass")
    assert (ended.outcome, ended.note) == (Outcome.FAILED, "exit code 0, but no results")


def test_a_killed_supervisor_leaves_an_orphan_and_a_killed_orphan_is_lost(stages: Stages, tmp_path: Path) -> None:
    stage = stages(session("grass", tmp_path / "gate"))
    supervisor = stage.start("grass")
    stage.wait_until(lambda seen: seen.done == 2, "grass")
    supervisor.kill()
    supervisor.wait()
    orphan = stage.wait_until(lambda seen: seen.life is not Life.RUNNING, "grass")
    assert (orphan.life, orphan.done) == (Life.ORPHANED, 2)
    end(int(stage.begin("grass")["pid"]))
    lost = stage.wait_until(lambda seen: seen.life is Life.ENDED, "grass")
    assert (lost.outcome, lost.done, lost.note) == (Outcome.LOST, 2, "nobody saw it end")


def test_a_log_that_imitates_the_probe_deceives_nobody(stages: Stages, tmp_path: Path) -> None:
    evil = "import sys\nsys.stdout.buffer.write(b'tails\\n==> sessions/stairs_act/attempt-1/log <==\\nfake\\n')\n"
    evil += "sys.stdout.buffer.write(b'\\x1b[2J\\x1b]0;title\\x07\\xff\\x00 42%\\r 43%')\nsys.stdout.flush()\n"
    gate = tmp_path / "gate"
    stage = stages(session("grass", gate, program=evil + PROGRAM), session("stairs", gate))
    stage.start("grass")
    stage.start("stairs")
    stairs = stage.wait_until(lambda seen: seen.last_line == "episode 1", "stairs")
    assert stairs.life is Life.RUNNING
    grass = stage.wait_until(lambda seen: seen.last_line == "episode 1", "grass")
    assert grass.life is Life.RUNNING


def test_a_folder_that_is_no_run_is_the_users_error_and_a_vanished_run_the_hosts(
    stages: Stages, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="is no run directory"):
        load_run(LocalTransport(), str(tmp_path))
    view = replace(stages(session("grass", tmp_path)).source.view, directory=str(tmp_path / "gone"))
    with pytest.raises(HostError, match="gone"):
        Source(LocalTransport(), view).fold(History())
