"""probe: one look at a whole run, in the protocol of docs/architecture.md."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import time
from pathlib import Path

import pytest
from box import Box, alive, bash, frozen, kill, until
from nvidia import Gpus
from recorded import record
from test_notices import RECORDS
from test_retries import HOLD

from comborun.host.record.events import PEOPLE_MOST
from comborun.monitor.snapshot import Snapshot, parse_snapshot
from comborun.rules import counting
from comborun.rules.facts import Fact
from comborun.rules.room.capacity import Card
from comborun.rules.room.waits import Wait
from comborun.rules.vocabulary import Outcome


def answer(box: Box, known: str = "", tail: int = 400) -> bytes:
    done = subprocess.run(
        box.command("probe", known, str(tail)), env=box.environment, capture_output=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def probe(box: Box, known: str = "", tail: int = 400) -> Snapshot:
    return parse_snapshot(answer(box, known, tail))


def test_before_the_start_there_is_a_header_and_what_the_machine_has(box: Box) -> None:
    box.plan({"env_one": bash("true")})
    seen = probe(box)
    assert (seen.run, seen.dispatcher, seen.slots, seen.stopped, seen.done) == (box.id, None, None, False, False)
    assert seen.attempts == ()
    assert seen.boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert seen.use.load is not None
    assert seen.use.cpus == len(os.sched_getaffinity(0))
    memory = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    disk = os.statvfs(box.directory)
    assert seen.use.memory
    assert seen.use.disk
    assert seen.use.memory.total == int(memory["MemTotal"].split()[0]) * 1024
    assert 0 < seen.use.memory.free <= seen.use.memory.total
    assert abs(seen.use.disk.total - disk.f_blocks * disk.f_frsize) < 1 << 20
    assert abs(seen.use.disk.free - disk.f_bavail * disk.f_frsize) < 1 << 30


def test_a_running_session_is_told_with_its_counts_and_the_end_of_its_log(usual_box: Box) -> None:
    usual_box.plan(
        {"env_one": bash("echo first; " + RECORDS + "echo last; " + HOLD, count=5, results=("*.jsonl",))}, parallel=3
    )
    usual_box.start()
    until(lambda: "last" in usual_box.log("env_one"), "it has written")
    usual_box.begun("env_one")
    seen = probe(usual_box, tail=5)
    (one,) = seen.attempts
    assert (seen.dispatcher, seen.slots, seen.multiplexer) == (usual_box.dispatcher, 3, usual_box.multiplexer)
    assert (one.session, one.number, one.end) == ("env_one", 1, None)
    assert one.begin == usual_box.begin("env_one")
    assert one.life == "running"
    assert (one.counts.records, one.counts.successes) == (2, 1)
    assert (one.log_size, one.tail) == (11, b"last\n")
    assert one.log_changed
    assert abs(one.log_changed - seen.now) < 30


def test_what_runs_tells_when_it_last_wrote_though_its_log_is_silent(box: Box) -> None:
    write = 'mkdir -p "$COMBORUN_OUTPUT_DIR/videos"; touch "$COMBORUN_OUTPUT_DIR/videos/7.mp4"; echo done; '
    box.plan({"env_one": bash(write + HOLD)})
    box.start()
    box.begun("env_one")
    until(lambda: "done" in box.log("env_one"), "it has written")
    os.utime(box.attempt("env_one") / "log", (1.0, 1.0))
    (one,) = probe(box).attempts
    assert (one.log_changed, one.last_sign) == (1, one.written)
    assert one.written
    assert abs(one.written - (box.attempt("env_one") / "out" / "videos" / "7.mp4").stat().st_mtime) < 2


def test_a_command_that_has_ended_before_its_end_is_on_record_is_told(box: Box) -> None:
    box.plan({"env_one": bash("true; " + HOLD)})
    box.start()
    begin = box.begun("env_one")
    assert not probe(box).attempts[0].closing
    with frozen(begin.supervisor):
        kill(begin.pid, signal.SIGKILL)
        until(lambda: not alive(begin.pid), "the command is gone")
        assert probe(box).attempts[0].closing


def test_a_dispatcher_that_a_signal_holds_is_told_and_a_start_lets_it_go_on(box: Box) -> None:
    box.plan({"env_one": bash(HOLD)})
    box.start()
    box.begun("env_one")
    os.kill(box.dispatcher, signal.SIGSTOP)
    until(lambda: probe(box).dispatcher_held, "it is held")
    assert str(box.dispatcher) in box.start().stdout
    until(lambda: not probe(box).dispatcher_held, "it goes on")


def test_who_has_stopped_a_run_is_told_and_the_list_of_people_is_bounded(box: Box) -> None:
    box.plan({"env_one": bash(HOLD)})
    box.start()
    box.begun("env_one")
    assert probe(box).ordered is None
    people, row = box.directory / "dispatch/people.jsonl", '{"at": 1.5, "user": "someone", "from": "10.0.0.9"}\n'
    people.write_text(row * (PEOPLE_MOST // len(row)))
    box.environment["SSH_CONNECTION"] = "10.0.0.7 50000 10.0.0.1 22"
    box.program("control", "pause")
    held = probe(box).ordered
    assert held
    assert (held.order, held.origin) == ("pause", "10.0.0.7")
    assert len(people.read_text()) <= PEOPLE_MOST
    box.stop()
    stopped = probe(box).ordered
    assert stopped
    assert (stopped.order, stopped.user) == ("stop", pwd.getpwuid(os.getuid()).pw_name)


def test_what_the_asker_knows_is_not_told_again_and_the_last_words_come_once_with_the_end(box: Box) -> None:
    fails = bash("echo setting up; echo 'KeyError: cup' >&2; exit 3")
    box.run({"env_one": bash("true"), "env_two": fails, "after": bash("true")})
    first = probe(box)
    assert [(one.session, one.number) for one in first.attempts] == [("env_one", 1), ("env_two", 1), ("after", 1)]
    assert [one.end and one.end.outcome for one in first.attempts] == [
        Outcome.SUCCEEDED,
        Outcome.FAILED,
        Outcome.SUCCEEDED,
    ]
    assert [(one.tail, one.log_size) for one in first.attempts[:2]] == [(b"", 0), (b"setting up\nKeyError: cup\n", 25)]
    assert first.done
    assert first.dispatcher is None
    assert [one.session for one in probe(box, "1,0,1").attempts] == ["env_two"]
    assert probe(box, "1,1,1").attempts == ()
    assert b"KeyError" not in answer(box, "1,1,1")


def test_a_session_that_was_granted_and_has_not_begun_is_told_without_a_begin(box: Box) -> None:
    box.plan({"env_one": bash("true"), "env_two": bash("true")})
    box.write("sessions/env_two/attempt-1/grant", '{"gpus": "0"}\n')
    (one,) = probe(box).attempts
    assert (one.session, one.begin, one.end, one.alive) == ("env_two", None, None, False)


def test_an_orphan_works_without_a_supervisor_as_its_child_that_holds_the_lock_does_and_a_lost_one_has_none(
    box: Box,
) -> None:
    box.plan({"env_one": bash("setsid sleep 60 & echo ready; sleep 60")})
    box.start()
    until(lambda: "ready" in box.log("env_one"), "its child is there")
    box.kill_dispatcher()
    begin = box.orphan("env_one")
    until(lambda: probe(box).attempts[0].life == "orphaned", "its supervisor is gone")
    os.killpg(begin.pid, signal.SIGKILL)
    until(lambda: not alive(begin.pid), "the command is gone")
    assert probe(box).attempts[0].life == "orphaned"
    for pid in box.marked("env_one"):
        kill(pid, signal.SIGKILL)
    until(lambda: probe(box).attempts[0].life == "lost", "the child is gone")


def test_what_keeps_sessions_from_starting_is_told(box: Box) -> None:
    policy = {"retry_killed": 1, "wait_killed_ms": 600000}
    box.plan({"env_one": bash("kill -KILL $$"), "env_two": bash(HOLD)}, policy=policy)
    box.write("plan-1.json", "{}")
    box.write("plan-2.json", "{}")
    box.start()
    until((box.directory / "dispatch/waiting").exists, "it waits")
    box.program("control", "pause", "for lunch")
    box.write("dispatch/quarantine", "3\tcrashed\t12.5\n")
    seen = probe(box)
    assert seen.plan == 2
    assert seen.hold
    assert (seen.hold.kind, seen.hold.words) == ("paused", "for lunch")
    (shut,) = seen.quarantine
    assert (shut.gpu, shut.failure, shut.since) == (3, "crashed", 12.5)
    (wait,) = seen.waiting
    assert (wait.session, wait.fact) == ("env_one", Fact(Wait.RETRY_AFTER, failure="killed", attempt=1))
    assert wait.until
    box.write("go", "")


def test_what_is_no_run_directory_is_refused(tmp_path: Path, box: Box) -> None:
    command = box.command("probe")
    refused = subprocess.run([*command[:-1], str(tmp_path)], capture_output=True, text=True, timeout=30, check=False)
    assert refused.returncode == 66
    assert "is not a run directory" in refused.stderr


def identity(**more: object) -> str:
    """A begin record of this process, which lives."""
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    own = {"supervisor": os.getpid(), "supervisor_start": start, "pid": os.getpid(), "pid_start": start, "boot": boot}
    return record(**{**own, **more})


# What it tells about the host, and how many bytes it costs

END = {"attempt": 1, "started": 1, "ended": 2, "code": 0, "cause": "exited", "completeness": "complete", "records": 0}
UNKNOWN = (None, None, None)
SEEN = {
    "": [(0, 42188, 81559, 5), (1, 0, 81559, 5)],
    "missing": [(0, 42188, 81559, 5), (1, *UNKNOWN)],
    "lost": [(0, *UNKNOWN), (1, *UNKNOWN)],
    "garbage": [(0, *UNKNOWN), (1, *UNKNOWN)],
}
"""fault of nvidia-smi -> index, used and total MiB, and utilization of each GPU"""


@pytest.fixture
def gpus(box: Box, tmp_path: Path) -> Gpus:
    found = Gpus(box, tmp_path / "bin")
    found.cards(81559, 81559)
    found.taken(42188, 0)
    return found


def test_each_gpu_is_told_or_unknown_and_never_empty_because_nobody_answered(box: Box, gpus: Gpus) -> None:
    box.plan({"env_one": bash("true")}, gpus="0,1")
    for fault, seen in SEEN.items():
        gpus.fault(fault)  # type: ignore[arg-type]
        assert [(one.index, one.used, one.total, one.utilization) for one in probe(box).use.gpus] == seen, fault


def test_gpus_that_hang_are_unknown_soon_and_all_else_is_told(box: Box, gpus: Gpus) -> None:
    box.plan({"env_one": bash("true")}, gpus="0")
    box.environment["COMBORUN_GPU_S"] = "1"
    gpus.fault("hang")
    begun = time.monotonic()
    seen = probe(box)
    assert time.monotonic() - begun < 5
    assert seen.use.gpus == (Card(0),)
    assert seen.use.load is not None


def test_a_run_that_uses_no_gpus_asks_for_none(box: Box, gpus: Gpus) -> None:
    box.plan({"env_one": bash("true")})
    box.write("sessions/env_one/attempt-1/grant", '{"gpus": ""}\n')
    box.write("sessions/env_one/attempt-1/log", "")
    assert probe(box).use.gpus == ()
    assert gpus.asked == 0


def test_a_look_at_a_large_run_costs_few_bytes(box: Box) -> None:
    running, ended, all_of_them = 32, 4, 500
    names = [f"environment-{i % 25:02}_policy-{i:03}" for i in range(all_of_them)]
    rows = "".join(f'{{"episode": {i}, "success": true}}\n' for i in range(40))
    box.plan({name: bash("true", results=("*.jsonl",)) for name in names})
    for i, name in enumerate(names[: running + ended]):
        box.write(f"sessions/{name}/attempt-1/claim", '{"count": 100, "files": ["*.jsonl"]}\n')
        told = {"attempt": 1, "started": time.time(), "host": "gpu-box-with-a-name", "multiplexer": "tmux"}
        told |= {"address": f"{name}_ab12", "gpus": "0", "first": 0, "count": 100}
        box.write(f"sessions/{name}/attempt-1/begin", identity(**told))
        box.write(f"sessions/{name}/attempt-1/out/r.jsonl", rows)
        log = box.write(f"sessions/{name}/attempt-1/log", "")
        lines = b"".join(b"  step %d/30000 of episode %d\n" % (step, i) for step in range(400))
        with log.open("wb") as file:  # 10 MB, of which the end is written
            file.seek(10_000_000 - len(lines))
            file.write(lines)
        if i >= running:
            box.write(f"sessions/{name}/attempt-1/end", record(**END))
    for i, name in enumerate(names[running + ended :]):
        if i % 2:
            box.write(f"sessions/{name}/attempt-1/claim", "")
            box.write(f"sessions/{name}/attempt-1/end", record(**END))
    known = ",".join("1" if i >= running + ended and (i - running - ended) % 2 else "0" for i in range(all_of_them))
    begun = time.monotonic()
    told = answer(box, known, tail=4096)
    assert time.monotonic() - begun < 5
    assert len(told) < 128_000
    seen = probe(box, known, tail=4096)
    assert len(seen.attempts) == running + ended
    for one in seen.attempts:
        assert one.log_size == 10_000_000
        assert 2000 < len(one.tail) <= 4096
        assert list(counting.lines(one.tail, cut=True))[-2].startswith("  step 399/30000 of episode ")


def test_the_first_look_at_a_run_that_is_over_brings_a_line_of_each_log(box: Box) -> None:
    names = [f"env_p{i}" for i in range(300)]
    box.plan({name: bash("true") for name in names})
    for name in names:
        box.write(f"sessions/{name}/attempt-1/end", record(**END))
        box.write(f"sessions/{name}/attempt-1/log", "x" * 5000 + f"\nlast words of {name}\n")
    seen = probe(box, tail=4096)
    assert len(seen.attempts) == 300
    assert all(one.tail.endswith(f"\nlast words of {one.session}\n".encode()) for one in seen.attempts)
    assert {len(one.tail) for one in seen.attempts} == {160}
