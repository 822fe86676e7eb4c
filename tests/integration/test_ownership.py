"""Programs that overwrite their environment, as setproctitle does: their processes are still known."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from box import Box, alive, bash, kill, python, until

from comborun.host.system import ownership, process
from comborun.host.system.ownership import Owners, Root, members
from comborun.model.judging import WatchRules
from comborun.model.resources import Request

OVERWRITE = """
import os, sys, time
def overwrite():
    fields = open("/proc/self/stat", "rb").read().rpartition(b") ")[2].split()
    start, end = int(fields[47]), int(fields[48])
    memory = os.open("/proc/self/mem", os.O_RDWR)
    os.pwrite(memory, b"\\0" * (end - start), start)
    assert b"COMBORUN_SESSION" not in open("/proc/self/environ", "rb").read()
overwrite()
"""
BUSY = OVERWRITE + "end = time.time() + {seconds}\nwhile time.time() < end: pass\n"
CHILDREN = {
    "itself": "print('ready', flush=True); time.sleep(60)",
    "a child": "if os.fork(): print('ready', flush=True)\ntime.sleep(60)",
    "a daemon": "if os.fork() == 0:\n os.setsid()\n if os.fork(): os._exit(0)\n time.sleep(60)\n"
    "time.sleep(0.3); print('ready', flush=True); time.sleep(60)",
    "another title": "import ctypes; ctypes.pythonapi.prctl(15, b'vllm', 0, 0, 0)\n"
    "print('ready', flush=True); time.sleep(60)",
}


@pytest.fixture
def program(tmp_path):
    """Runs a program in a process session of its own; returns its pid."""
    running = []

    def started(text, marker="grid-1/env_one/1"):
        words = [sys.executable, "-c", OVERWRITE + text]
        environment = {**os.environ, "COMBORUN_SESSION": marker}
        child = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, start_new_session=True)
        running.append(child)
        assert child.stdout.readline() == b"ready\n"
        return child.pid

    yield started
    for child in running:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()


@pytest.mark.parametrize("name", CHILDREN)
def test_an_overwritten_environment_changes_no_owner(program, name):
    if name == "a daemon":
        pytest.skip("it leaves its process session: only its supervisor, a subreaper, finds it")
    pid = program(CHILDREN[name])
    assert process.marker_of(pid) == ""
    known = [Root(pid, process.look(pid).start, "grid-1/env_one/1", leads=True)]
    assert pid in members("grid-1/env_one/1", known)
    assert pid in members("grid-1/", known)
    assert pid not in members("grid-1/env_two/1", known)
    assert len(members("grid-1/env_one/1", known)) == (2 if name == "a child" else 1)
    reused = [Root(pid, "1", "grid-1/env_one/1", leads=True)]
    assert members("grid-1/env_one/1", reused) == [], "another process has its number now"


def test_a_busy_program_without_a_marker_is_not_stalled(box: Box) -> None:
    box.environment["COMBORUN_WATCH_S"] = "0.3"
    box.plan({"env_one": python(BUSY.format(seconds=4), more={"watch": WatchRules(stall_s=2)})})
    box.start()
    assert box.ended("env_one").clean


def test_the_memory_of_a_program_without_a_marker_is_limited(box: Box) -> None:
    box.environment["COMBORUN_WATCH_S"] = "0.3"
    holds = "\nheld = bytearray(300 << 20)\nheld[::4096] = b'x' * len(held[::4096])\ntime.sleep(60)"
    more = {"watch": WatchRules(memory=True)}
    box.plan({"env_one": python(OVERWRITE + holds, request=Request(memory=100), more=more)})
    box.start()
    assert str(box.ended("env_one").cause) == "host_memory"


@pytest.mark.parametrize("name", CHILDREN)
def test_whoever_asks_finds_it_through_its_supervisor(box: Box, name: str) -> None:
    box.plan({"env_one": python(OVERWRITE + CHILDREN[name])})
    box.start()
    begin = box.begun("env_one")
    until(lambda: "ready" in box.log("env_one"), "it is ready")
    mine = {pid for pid in process.table() if descends(pid, begin.pid, begin.supervisor)}
    assert len(mine) > 1 or name in {"itself", "another title"}
    assert {Owners().of(pid) for pid in mine} == {f"{box.id}/env_one/1"}
    assert set(ownership.uses()[f"{box.id}/env_one/1"].pids) == mine


@pytest.mark.parametrize("name", CHILDREN)
@pytest.mark.parametrize("supervised", [True, False])
def test_a_stop_ends_what_has_no_marker(box: Box, name: str, supervised: bool) -> None:
    if name == "a daemon" and not supervised:
        pytest.skip("nothing is left that knows it")
    box.plan({"env_one": python(OVERWRITE + CHILDREN[name])})
    box.start()
    begin = box.begun("env_one")
    until(lambda: "ready" in box.log("env_one"), "it is ready")
    mine = [pid for pid in process.table() if descends(pid, begin.pid, begin.supervisor)]
    assert begin.pid in mine
    if not supervised:
        kill(begin.supervisor, signal.SIGKILL)
    stopped = box.stop()
    assert stopped.returncode == 0, stopped.stderr
    assert [pid for pid in mine if alive(pid)] == []


def descends(pid: int, *ancestors: int) -> bool:
    while pid > 1:
        if pid in ancestors[:1]:
            return True
        seen = process.look(pid)
        if seen and seen.parent in ancestors:
            return True
        pid = seen.parent if seen else 0
    return False


def test_sessions_ask_setproctitle_to_leave_their_environment_alone(box: Box) -> None:
    box.run(
        {"env_one": bash("echo told $SPT_NOENV"), "env_two": bash("echo told $SPT_NOENV", variables=("SPT_NOENV=''",))}
    )
    assert (box.log("env_one"), box.log("env_two")) == ("told 1\n", "told\n")
