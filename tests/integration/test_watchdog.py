"""What ends without anybody's word: hangs, stalls and overtime, on real processes; each with its reason on record."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from box import PYTHON, Box, bash, make_box, python, until

from comborun.model.judging import WatchRules
from comborun.rules.endings.evidence import Evidence
from comborun.rules.room.capacity import Request
from comborun.words.endings import said

HASTE = {"COMBORUN_WATCH_S": "0.1", "COMBORUN_STOP_INT_S": "1", "COMBORUN_STOP_TERM_S": "1", "COMBORUN_GRACE_S": "30"}
"""look ten times a second; step from INT to TERM to KILL after a second"""


RECORDS = """\
for ((i = 0; i < 3; i++)); do
  printf '{"episode": %d, "success": true}\\n' "$i"
done >"$COMBORUN_OUTPUT_DIR/records.jsonl"
"""
STUBBORN = """
import signal, subprocess, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
subprocess.Popen(["setsid", "sleep", "60"])
subprocess.Popen(["nohup", "sleep", "60"])
time.sleep(60)
"""
POLITE = """
import time
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("saved")
"""
MEMORY = f"""
import subprocess, time
x = bytearray(60 << 20)
other = subprocess.Popen(["{PYTHON}", "-c", "import time; y = bytearray(60 << 20); print(flush=True); time.sleep(60)"],
                         stdout=subprocess.PIPE)
other.stdout.readline()
time.sleep(4)
other.kill()
"""
"""holds more than 120 MiB in two processes for forty looks of the watch"""


def memory(limit: int) -> dict[str, object]:
    """For a session that is ended when it holds more than this; 0: no limit. It asks for none."""
    return {"watch": WatchRules(memory=limit > 0), "request": Request(memory=limit)}


SESSIONS = {
    "hangs": bash(RECORDS + "sleep 60", count=3, results=("*.jsonl",), more={"watch": WatchRules(hang_s=1)}),
    "is_stubborn": python(STUBBORN, more={"watch": WatchRules(1)}),
    "is_polite": python(POLITE, more={"watch": WatchRules(1)}),
    "takes_memory": python(MEMORY),
    "is_short": bash("true"),
}


def start(box: Box, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(box.supervisor(name), env=box.environment, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def all_ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """All of SESSIONS, side by side, to their ends."""
    with make_box(tmp_path_factory.mktemp("watchdog"), "tmux") as made:
        made.environment.update(HASTE)
        made.plan(SESSIONS)
        processes = [start(made, name) for name in SESSIONS]
        assert {process.wait(60) for process in processes} == {0}
        yield made


def end(box: Box, name: str = "one") -> dict[str, str]:
    return box.fields(f"sessions/{name}/attempt-1/end")


def test_whatever_ends_leaves_no_process_and_nothing_of_the_watch(all_ended: Box) -> None:
    assert all_ended.marked() == []
    left = {name: sorted(path.name for path in all_ended.attempt(name).iterdir()) for name in SESSIONS}
    assert left == {name: ["begin", "claim", "end", "log", "out"] for name in SESSIONS}


def test_a_program_that_hangs_after_its_work_is_ended_and_has_succeeded(all_ended: Box) -> None:
    record = end(all_ended, "hangs")
    assert (record["cause"], record["class"], record["completeness"]) == ("hung", "", "complete")
    assert said(record) == "it did not end within 1 s after its work was done"
    assert int(record["signal"]) == signal.SIGINT


def test_what_ignores_every_signal_that_can_be_is_killed_and_its_daemons_with_it(all_ended: Box) -> None:
    record = end(all_ended, "is_stubborn")
    assert (record["cause"], int(record["signal"])) == ("stalled", signal.SIGKILL)


def test_a_program_that_saves_when_interrupted_may(all_ended: Box) -> None:
    record = end(all_ended, "is_polite")
    assert (record["cause"], record["code"], record["completeness"]) == ("stalled", "0", "none")
    assert all_ended.log("is_polite") == "saved\n"


def test_the_memory_of_all_its_processes_is_on_record(all_ended: Box) -> None:
    assert end(all_ended, "is_short")["peak_memory_kib"] == ""
    assert 120 << 10 < int(end(all_ended, "takes_memory")["peak_memory_kib"]) < 400 << 10


HOLDING = """
import mmap, os, time
held = bytearray(os.urandom(1 << 20) * {own})
shared = mmap.mmap(-1, {shared} << 20)
shared.write(bytes({shared} << 20))
if os.fork() == 0: held = bytearray(os.urandom(1 << 20) * {own})
time.sleep({seconds})
"""


@pytest.mark.parametrize(("own", "shared", "seconds", "cause"), [(80, 1, 60, "host_memory"), (10, 200, 2, "exited")])
def test_who_holds_more_memory_than_its_limit_is_ended_and_what_is_shared_does_not_count(
    box: Box, own: int, shared: int, seconds: int, cause: str
) -> None:
    program = python(HOLDING.format(own=own, shared=shared, seconds=seconds), more=memory(150))
    box.environment["COMBORUN_WATCH_S"] = "0.2"
    box.run({"env_one": program})
    assert box.ended("env_one").cause == cause
    if cause == "host_memory":
        assert "150" in box.ended("env_one").note


LEAKS = """
import os, time

held = []
while True:
    held.append(os.urandom(4 << 20))
    time.sleep({pause})
"""


@pytest.fixture
def little_memory() -> Iterator[Callable[[], contextlib.AbstractContextManager[None]]]:
    """What starts in it has 300 MiB, all together; then the kernel kills one of its processes."""
    above = Path("/sys/fs/cgroup/memory/cgroup.procs")
    group = above.with_name(f"combo-{secrets.token_hex(4)}")

    @contextlib.contextmanager
    def entered() -> Iterator[None]:
        before = re.search(r":memory:(.*)", Path("/proc/self/cgroup").read_text())
        if os.geteuid() or not above.exists() or not before:
            pytest.skip("only root can limit the memory of a group of processes, with control groups of version 1")
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(300 << 20))
        (group / above.name).write_text(str(os.getpid()))
        yield
        (above.parent / before[1].strip("/") / above.name).write_text(str(os.getpid()))

    yield entered
    if group.exists():
        until(lambda: not (group / above.name).read_text(), "what started in it has ended")
        group.rmdir()


BESIDE = """
until [ "$(cat /proc/$$/oom_score_adj)" -gt "$(cat /proc/$PPID/oom_score_adj)" ]; do sleep 0.1; done
echo "the kernel takes a command first"
until [ -e go ]; do sleep 0.1; done
"""
"""a command inherits what its supervisor sets for a moment"""


@pytest.mark.parametrize("limit", [150, 0], ids=["enforced", "by the kernel"])
def test_a_leak_takes_neither_its_siblings_nor_a_supervisor(
    little_memory: Callable[[], contextlib.AbstractContextManager[None]], box: Box, limit: int
) -> None:
    box.environment["COMBORUN_WATCH_S"] = "0.2"
    beside = bash(BESIDE, workdir=str(box.directory))
    leaks = python(LEAKS.format(pause=0.05 if limit else 0), more=memory(limit))
    box.plan({"env_one": beside, "env_leaks": leaks, "env_two": beside}, parallel=3)
    with contextlib.nullcontext() if limit else little_memory():
        box.start()
    ended = box.ended("env_leaks")
    over = Evidence.HELD_MEMORY in [one.code for one in ended.facts]
    assert (ended.cause, ended.failure, over) == ("host_memory", "host_memory", bool(limit)), ended
    until(lambda: "first" in box.log("env_one"), "the kernel takes a command first")
    box.write("go", "")
    done = box.await_done()
    assert (done["succeeded"], done["failed"], done["lost"]) == ("2", "1", "0")
