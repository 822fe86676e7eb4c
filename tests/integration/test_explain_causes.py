"""Why a session failed: what its supervisor saw, then what the host knows, and last what its log says."""

from __future__ import annotations

import contextlib
import secrets
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from box import Box, Script, bash, make_box, python

from comborun.model.judging import EvidenceRules
from comborun.rules.results.fields import ResultRules
from comborun.words.endings import said

TWO_OF_THREE = """printf '{"episode": %d, "success": true}\\n' 0 1 >"$COMBORUN_OUTPUT_DIR/records.jsonl"; """
GREEDY = "x = []\nwhile True: x.append(bytearray(64 << 20))"


def session(text: str, setup: str = "", episode: str = "episode", **more: object) -> Script:
    return bash(text, count=3, results=ResultRules(("*.jsonl",), episode=episode), setup=setup, more=more)


def says(line: str, then: str = "exit 1", **more: object) -> Script:
    return session(f"{TWO_OF_THREE} printf '%s\\n' {shlex.quote(line)}; {then}", **more)


CASES = {
    "error": (session("echo ValueError >&2; exit 2"), "exited", "error"),
    "no_result": (session("exit 0"), "exited", "no_result"),
    "crashed": (session("kill -SEGV $$"), "signal", "crashed"),
    "killed": (session("kill -KILL $$"), "signal", "killed"),
    "no_signal": (session("exit 128"), "exited", "error"),
    "no_program": (Script(("no-such-program",)), "launch_failed", "launch_failed"),
    "no_such_setup": (session("true", setup="return 3"), "launch_failed", "launch_failed"),
    "vulkan": (says("VkResult: ERROR_DEVICE_LOST"), "gpu_fault", "gpu_fault"),
    "python_limit": (python(GREEDY, setup="ulimit -v 400000"), "host_memory", "host_memory"),
    "bar": (session("printf '10%%|#   |\\rCUDA error: out of memory\\r20%%'; exit 1"), "gpu_memory", "gpu_memory"),
    "own_pattern": (
        says("Kit: licence server busy", "exit 1", failures=(("killed", "licence server"),)),
        "exited",
        "killed",
    ),
    "no_pattern": (says("CUDA out of memory", "exit 1", failures=(("error", "("),)), "gpu_memory", "gpu_memory"),
}

RANGED = {"ranged": True, "episode": "number"}
MANY = """'{"number": %d, "success": true}\\n' """


def numbered(numbers: str, row: str = MANY) -> Script:
    """A command that takes a range, and records these episodes of 0 to 2."""
    return session(f'printf {row} {numbers} >"$COMBORUN_OUTPUT_DIR/r.jsonl"', **RANGED)


FILE = 'echo 90 >"$COMBORUN_OUTPUT_DIR/rates.jsonl"; '
TRAINING = ResultRules(("*.jsonl",), format="train-step")
"""files that must be there, and whose rows are no episodes"""


COMPLETE = 'printf \'{"episode": %d, "success": true}\\n\' 0 1 2 >"$COMBORUN_OUTPUT_DIR/records.jsonl"; '
DONE = {
    "crash_after": (session(COMPLETE + "echo 'CUDA out of memory'; kill -SEGV $$"), "signal"),
    "line": (session(COMPLETE + "echo finished", evidence=EvidenceRules(line="^fin")), "exited"),
    "its_range": (numbered("2 0 1"), "exited"),
    "a_file": (bash(FILE, count=3, results=TRAINING), "exited"),
    "only_line": (session("echo finished; exit 3", evidence=EvidenceRules(False, "finished")), "exited"),
}

UNDONE = {
    "one_twice": (
        session(
            """printf '{"number": %d, "n": %d, "success": true}\\n' 0 1 1 1 1 2 >"$COMBORUN_OUTPUT_DIR/r.jsonl\"""",
            **RANGED,
        ),
        "partial",
    ),
    "no_index": (numbered("0 1 2", row="""'{"number": [%d], "success": true}\\n' """), "none"),
    "no_file": (bash("exit 0", count=3, results=TRAINING), "none"),
    "line_without_records": (session("echo finished", evidence=EvidenceRules(line="finished")), "none"),
}


def begin(box: Box, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(box.supervisor(name), env=box.environment, stdout=subprocess.DEVNULL)


def end(box: Box, name: str) -> dict[str, str]:
    return box.fields(f"sessions/{name}/attempt-1/end")


@pytest.fixture(scope="module")
def all_ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    with make_box(tmp_path_factory.mktemp("causes"), "tmux") as made:
        sessions = {name: row[0] for rows in (CASES, DONE, UNDONE) for name, row in rows.items()}
        made.plan(sessions)
        processes = [begin(made, name) for name in sessions]
        assert {process.wait(60) for process in processes} == {0}
        yield made


@pytest.mark.parametrize("name", CASES)
def test_a_failure_has_its_cause_and_its_class(all_ended: Box, name: str) -> None:
    _, cause, class_ = CASES[name]
    record = end(all_ended, name)
    assert (record["cause"], record["class"]) == (cause, class_)


@pytest.mark.parametrize("name", DONE)
def test_what_is_complete_has_no_class_whatever_its_log_says_and_however_it_ended(all_ended: Box, name: str) -> None:
    _, cause = DONE[name]
    record = end(all_ended, name)
    assert (record["cause"], record["class"], record["completeness"]) == (cause, "", "complete")


@pytest.mark.parametrize("name", UNDONE)
def test_without_all_the_evidence_a_clean_exit_is_none(all_ended: Box, name: str) -> None:
    record = end(all_ended, name)
    assert (record["class"], record["completeness"]) == ("no_result", UNDONE[name][1])


def test_the_note_has_the_line_of_the_log_that_shows_the_cause(all_ended: Box) -> None:
    assert said(end(all_ended, "vulkan")) == "its log says: VkResult: ERROR_DEVICE_LOST"
    assert said(end(all_ended, "bar")) == "its log says: CUDA error: out of memory"
    assert said(end(all_ended, "error")) == "its log says: ValueError"
    assert end(all_ended, "one_twice")["records"] == "2"
    assert "number" in end(all_ended, "no_index")["facts"][0].fields["why"]["field"]


@contextlib.contextmanager
def memory_group(limit: int) -> Iterator[Path]:
    """A control group with so many bytes of memory, of whichever version there is."""
    old = Path("/sys/fs/cgroup/memory")
    parent, key = (old, "memory.limit_in_bytes") if old.is_dir() else (old.parent, "memory.max")
    group = parent / f"combo-{secrets.token_hex(4)}"
    try:
        group.mkdir()
        (group / key).write_text(str(limit))
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        pytest.skip(f"no control group can be made here: {error}")
    try:
        yield group
    finally:
        deadline = time.monotonic() + 20
        while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.02)
        group.rmdir()


def test_a_program_that_the_kernel_kills_for_memory_is_told_as_that(box: Box) -> None:
    box.plan({"one": python(GREEDY)})
    with memory_group(100 << 20) as group:
        enter = f"echo $$ >{group}/cgroup.procs && exec {shlex.join(box.supervisor('one'))}"
        subprocess.run(["bash", "-c", enter], env=box.environment, stdout=subprocess.DEVNULL, check=True, timeout=60)
    record = end(box, "one")
    assert (record["cause"], record["class"], record["signal"]) == ("host_memory", "host_memory", "9")
    assert "processes killed for memory in its control group since it began: 1" in said(record)
