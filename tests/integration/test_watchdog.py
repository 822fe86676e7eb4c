"""What ends without anybody's word: hangs, stalls and overtime, on real processes; each with its reason on record."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator

import pytest
from box import Box, bash, make_box, python
from watched import SESSIONS

HASTE = {"COMBORUN_WATCH_S": "0.1", "COMBORUN_STOP_INT_S": "1", "COMBORUN_STOP_TERM_S": "1", "COMBORUN_GRACE_S": "30"}
"""look ten times a second; step from INT to TERM to KILL after a second"""


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


@pytest.mark.parametrize("name", SESSIONS)
def test_whatever_ends_leaves_no_process_and_nothing_of_the_watch(all_ended: Box, name: str) -> None:
    assert all_ended.marked(name) == []
    left = {path.name for path in all_ended.attempt(name).iterdir()}
    assert left == {"claim", "begin", "log", "end", "out"}


def test_a_program_that_hangs_after_its_work_is_ended_and_has_succeeded(all_ended: Box) -> None:
    record = end(all_ended, "hangs")
    assert (record["cause"], record["class"], record["completeness"]) == ("hung", "", "complete")
    assert record["note"] == "it did not end within 1 s after its work was done"
    assert int(record["signal"]) == signal.SIGINT


def test_a_program_that_does_nothing_is_stalled_and_ended(all_ended: Box) -> None:
    record = end(all_ended, "does_nothing")
    assert (record["cause"], record["class"], record["completeness"]) == ("stalled", "stalled", "none")
    assert re.search(r"no new result, no new line and 0 % of a core for [0-9]+ s", record["note"])


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
    program = python(HOLDING.format(own=own, shared=shared, seconds=seconds), constants=("memory_mib=150",))
    box.environment["COMBORUN_WATCH_S"] = "0.2"
    box.run({"env_one": program})
    assert box.ended("env_one").cause == cause
    if cause == "host_memory":
        assert "150" in box.ended("env_one").note


def test_a_kernel_without_memory_ends_a_command_before_its_supervisor(box: Box) -> None:
    box.run({"env_one": bash("cat /proc/$$/oom_score_adj /proc/$PPID/oom_score_adj")})
    command, supervisor = map(int, (box.attempt("env_one") / "log").read_text().split())
    assert command > supervisor
