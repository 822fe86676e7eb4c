"""What ends without anybody's word: hangs, stalls and overtime, on real processes; each with its reason on record."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from box import PYTHON, Box, Script, alive, bash, kill, make_box, python, until

HASTE = {"COMBORUN_WATCH_S": "0.1", "COMBORUN_STOP_INT_S": "1", "COMBORUN_STOP_TERM_S": "1", "COMBORUN_GRACE_S": "30"}
"""look ten times a second; step from INT to TERM to KILL after a second"""

RECORDS = """\
for ((i = 0; i < 3; i++)); do
  printf '{"episode": %d, "success": true}\\n' "$i"
done >"$COMBORUN_OUTPUT_DIR/records.jsonl"
"""
VIDEOS = """
mkdir "$COMBORUN_OUTPUT_DIR/.videos"
for i in {1..9}; do sleep 0.5; echo >"$COMBORUN_OUTPUT_DIR/.videos/$i"; done
"""
QUIET_WORK = """
import time
began = time.monotonic()
while time.monotonic() - began < 5: pass
"""
CHATTER = """
import time
for i in range(50):
    print("step", i, "of 50", flush=True)
    time.sleep(0.1)
"""
SAVING = """
import os, time
for i in range(50):
    with open(os.environ["COMBORUN_OUTPUT_DIR"] + "/records.jsonl", "a") as file:
        file.write("{}\\n")
    time.sleep(0.1)
"""
CHILDREN = """
import subprocess
for i in range(16):
    subprocess.run(["timeout", "0.3", "sh", "-c", "while :; do :; done"])
"""
RETRIES = """
import time
print("loading")
i = 0
while True:
    i += 1
    print(f"[{time.time()}] retry {i}: connection refused at {id(i):#x}", flush=True)
    time.sleep(0.01)
"""
TRACEBACKS = """
import time, traceback
while True:
    try:
        raise ConnectionError(f"no answer at {time.monotonic()}")
    except ConnectionError:
        traceback.print_exc()
        print("the step is tried again", flush=True)
    sum(range(20_000))
"""
NAVIGATION = """
import time
while True:
    print(f"{time.strftime('%H:%M:%S')} INFO step {7} of 20")
    print(f"<HTTPConnection object at {id(object()):#x}>: Max retries exceeded")
    print("retrying...", flush=True)
    time.sleep(0.02)
"""
WARNINGS = """
import time
began = time.monotonic()
while time.monotonic() - began < 9:
    print("WARNING: joint 3 is near its limit", flush=True)
    sum(range(200_000))
"""
COMPLAINS_FIRST = """
import time
for i in range(40):
    print("[Error] failed to load an extension", flush=True)
began = time.monotonic()
while time.monotonic() - began < 9: pass
"""
FAILS_ALWAYS = """
import time
for i in range(90):
    print(f"Episode {i}: failure", flush=True)
    time.sleep(0.1)
"""
TIMES_OUT_ALWAYS = """
import time
for i in range(90):
    print(f"[ {i + 1:3d}/90] stairs TIMEOUT", flush=True)
    time.sleep(0.1)
"""
MOVING = """
import os, time
from pathlib import Path
out = Path(os.environ["COMBORUN_OUTPUT_DIR"])
for i in range(45):
    (out / "draft").write_text("{}\\n")
    os.utime(out / "draft", (1e9, 1e9))
    (out / "draft").rename(out / f"{i}.jsonl")
    time.sleep(0.2)
"""
OVERTIME = """
import time
while True:
    print(time.time(), flush=True)
    time.sleep(0.1)
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
import os, pathlib, subprocess, time
x = bytearray(60 << 20)
other = subprocess.Popen(["{PYTHON}", "-c", "import time; y = bytearray(60 << 20); time.sleep(60)"])
peak, deadline = pathlib.Path(os.environ["COMBORUN_OUTPUT_DIR"]).parent / ".watch", time.monotonic() + 30
while time.monotonic() < deadline and not (peak.exists() and int(peak.read_text() or 0) > 120 << 10):
    time.sleep(0.05)
other.kill()
"""
"""ends when the watch has seen it hold more than 120 MiB in two processes"""


def records(then: str, *constants: str) -> Script:
    return bash(RECORDS + then, count=3, results=("*.jsonl",), constants=constants)


def works(text: str, count: int = 50) -> Script:
    return python(text, count=count, results=("*.jsonl",), constants=("stall_s=2",))


SESSIONS = {
    "hangs": records("sleep 60", "hang_s=1"),
    "finishes_later": records("sleep 2.5; echo finished", "hang_s=1", "evidence_line='^finished$'"),
    "makes_videos": records(VIDEOS, "hang_s=2"),
    "may_hang": records("sleep 2", "hang_s=0"),
    "hangs_talking": records("while :; do echo waiting for the simulator; sleep 0.1; done", "hang_s=1", "max_s=20"),
    "does_nothing": bash("echo loading; sleep 60", constants=("stall_s=1",)),
    "computes": works(QUIET_WORK),
    "chats": works(CHATTER),
    "saves": works(SAVING),
    "has_children": works(CHILDREN),
    "retries": python(RETRIES, constants=("stall_s=2",)),
    "tracebacks": python(TRACEBACKS, constants=("stall_s=2", "max_s=20")),
    "navigates": python(NAVIGATION, constants=("stall_s=2", "max_s=20")),
    "warns": works(WARNINGS),
    "complains_first": works(COMPLAINS_FIRST),
    "fails_always": works(FAILS_ALWAYS),
    "times_out_always": works(TIMES_OUT_ALWAYS, count=90),
    "moves_results": works(MOVING),
    "takes_long": python(OVERTIME, constants=("max_s=1",)),
    "is_stubborn": python(STUBBORN, constants=("stall_s=1",)),
    "is_polite": python(POLITE, constants=("stall_s=1",)),
    "takes_memory": python(MEMORY),
    "is_short": bash("true"),
}


WORKING = (
    *("computes", "chats", "saves", "has_children", "moves_results"),
    *("warns", "complains_first", "fails_always", "times_out_always"),
)


def start(box: Box, name: str) -> subprocess.Popen[bytes]:
    command = ["bash", str(box.directory / "sessions" / name / "session.sh"), "1"]
    return subprocess.Popen(command, env=box.environment, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def all_ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """All of SESSIONS, side by side, to their ends."""
    with make_box(tmp_path_factory.mktemp("watchdog"), "tmux") as made:
        made.environment.update(HASTE)
        made.plan(SESSIONS)
        processes = [start(made, name) for name in SESSIONS]
        assert {process.wait(60) for process in processes} == {0}
        yield made


@pytest.fixture
def alone(box: Box) -> Box:
    """A box for one session that a test does something to."""
    box.environment.update(HASTE)
    return box


def begin_alone(box: Box, script: Script) -> subprocess.Popen[bytes]:
    box.plan({"one": script})
    return start(box, "one")


def end(box: Box, name: str = "one") -> dict[str, str]:
    return box.fields(f"sessions/{name}/attempt-1/end")


@pytest.mark.parametrize("name", SESSIONS)
def test_whatever_ends_leaves_no_process_and_nothing_of_the_watch(all_ended: Box, name: str) -> None:
    assert all_ended.marked(name) == []
    left = {path.name for path in all_ended.attempt(name).iterdir()}
    assert left == {"claim", "begin", "log", "end", "out"}


@pytest.mark.parametrize("name", ["hangs", "hangs_talking"])
def test_a_program_that_hangs_after_its_work_is_ended_and_has_succeeded(all_ended: Box, name: str) -> None:
    record = end(all_ended, name)
    assert (record["cause"], record["class"], record["completeness"]) == ("hung", "", "complete")
    assert record["note"] == "it did not end within 1 s after its work was done"
    assert int(record["signal"]) == signal.SIGINT


def test_without_all_its_evidence_a_quiet_program_is_not_taken_for_done(all_ended: Box) -> None:
    record = end(all_ended, "finishes_later")
    assert (record["cause"], record["code"], record["completeness"]) == ("exited", "0", "complete")


@pytest.mark.parametrize("name", ["makes_videos", "may_hang"])
def test_a_program_that_still_writes_or_may_hang_is_let(all_ended: Box, name: str) -> None:
    assert (end(all_ended, name)["cause"], end(all_ended, name)["code"]) == ("exited", "0")


def test_a_program_that_does_nothing_is_stalled_and_ended(all_ended: Box) -> None:
    record = end(all_ended, "does_nothing")
    assert (record["cause"], record["class"], record["completeness"]) == ("stalled", "stalled", "none")
    assert re.search(r"no new result, no new line and 0 % of a core for [0-9]+ s", record["note"])


@pytest.mark.parametrize("name", WORKING)
def test_a_program_that_works_in_whatever_way_is_not_stalled(all_ended: Box, name: str) -> None:
    assert (end(all_ended, name)["cause"], end(all_ended, name)["code"]) == ("exited", "0")


@pytest.mark.parametrize("name", ["retries", "tracebacks", "navigates"])
def test_to_complain_of_the_same_again_and_again_is_no_progress_though_log_and_cpu_go_on(
    all_ended: Box, name: str
) -> None:
    record = end(all_ended, name)
    assert (record["cause"], record["class"]) == ("stalled", "stalled")
    assert "the same line at least" in record["note"]


def test_a_session_that_takes_too_long_is_timed_out(all_ended: Box) -> None:
    record = end(all_ended, "takes_long")
    assert (record["cause"], record["class"]) == ("timed_out", "timed_out")
    assert record["note"].startswith("it ran longer than 1 s")


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


PMON = """\
#!/bin/bash
asked=$(cat {asked})
echo $((asked + 1)) >{asked}
printf '# gpu         pid   type     sm    mem    enc    dec    command\\n'
printf '    0 %11s     C %6s      0      -      -    python\\n' "$(cat {pid})" "$(({busy} ? 40 : 0))"
"""


@pytest.mark.parametrize(
    ("gpus", "busy", "cause"), [("0", "asked % 3", "exited"), ("0", "0", "stalled"), ("", "1", "stalled")]
)
def test_a_gpu_that_works_for_it_now_and_then_is_progress(
    alone: Box, tmp_path: Path, gpus: str, busy: str, cause: str
) -> None:
    (tmp_path / "asked").write_text("0")
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(PMON.format(asked=tmp_path / "asked", pid=tmp_path / "pid", busy=busy))
    tool.chmod(0o755)
    alone.environment["PATH"] = f"{tool.parent}{os.pathsep}{alone.environment['PATH']}"
    alone.write("sessions/one/attempt-1/grant", f"gpus={gpus}\n")
    script = bash(f"echo $$ >{tmp_path / 'pid'}; exec sleep 9", constants=("stall_s=3",))
    assert begin_alone(alone, script).wait(60) == 0
    assert end(alone)["cause"] == cause


def test_a_program_that_somebody_stopped_is_stalled_and_its_note_says_so(alone: Box) -> None:
    process = begin_alone(alone, bash("echo ready; exec sleep 60", constants=("stall_s=2",)))
    until(lambda: "ready" in alone.log("one"), "it is ready")
    os.kill(alone.begun("one").pid, signal.SIGSTOP)
    assert process.wait(30) == 0
    assert end(alone)["cause"] == "stalled"
    assert "1 of its processes are stopped by a signal" in end(alone)["note"]


def test_without_a_limit_silence_is_told_and_forgotten_when_progress_returns(alone: Box) -> None:
    alone.environment["COMBORUN_STALLED_S"] = "1"
    go = alone.directory / "go"
    process = begin_alone(alone, bash(f"mkfifo {go}; echo one; read <{go}; echo two; exec sleep 60"))
    stalled = alone.attempt("one") / "stalled"
    until(stalled.exists, "it is told as stalled")
    fields = alone.fields("sessions/one/attempt-1/stalled")
    assert abs(time.time() - float(fields["since"])) < 20
    assert "no new result" in fields["why"]
    alone.write("dispatch/queue.tsv", "one\t0\n")
    assert f"claimed=1 stalled={fields['since']}\n" in alone.library("probe.sh").stdout
    go.write_text("\n")
    until(lambda: not stalled.exists(), "the record is gone")
    assert "claimed=1 stalled=\n" in alone.library("probe.sh").stdout
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def children_of(pid: int, program: str) -> list[int]:
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            front, _, back = file.read_text(errors="replace").rpartition(")")
            if int(back.split()[1]) == pid and front.endswith(f"({program}"):
                found.append(int(file.parent.name))
        except (OSError, IndexError):
            continue
    return found


def test_a_watch_leaves_with_its_supervisor_and_ends_nothing(alone: Box) -> None:
    process = begin_alone(alone, bash("exec sleep 60", constants=("stall_s=3",)))
    begin = alone.begun("one")
    until((alone.attempt("one") / ".watch").exists, "the watch has looked")
    watches = children_of(process.pid, "bash")
    assert watches
    process.kill()
    process.wait()
    until(lambda: not any(alive(pid) for pid in watches), "the watch is gone")
    assert alive(begin.pid)


def test_a_supervisor_that_was_stopped_goes_on_when_there_is_an_end_to_write(alone: Box) -> None:
    go = alone.directory / "go"
    process = begin_alone(alone, bash(f"mkfifo {go}; read <{go}"))
    begin = alone.begun("one")
    looked = alone.attempt("one") / ".watch"
    until(looked.exists, "there is a watch: the supervisor starts it after it has written the begin")
    os.kill(process.pid, signal.SIGSTOP)
    looked.unlink()
    until(looked.exists, "the watch has looked")
    assert alive(begin.pid)
    go.write_text("\n")
    assert process.wait(30) == 0
    assert (end(alone)["cause"], end(alone)["code"]) == ("exited", "0")


def test_an_automatic_end_that_nobody_lived_to_record_keeps_its_reason(alone: Box) -> None:
    alone.environment["COMBORUN_STOP_INT_S"] = "30"
    ignores = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(60)"
    process = begin_alone(alone, python(ignores, constants=("stall_s=1",)))
    until((alone.attempt("one") / ".verdict").exists, "the watch has judged")
    process.kill()
    process.wait()
    kill(alone.begun("one").pid, signal.SIGKILL)
    assert alone.start().returncode == 0
    alone.ended("one")
    assert (end(alone)["cause"], end(alone)["class"]) == ("stalled", "stalled")
    assert "nobody saw its end" in end(alone)["note"]
