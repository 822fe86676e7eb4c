"""The watch over real processes, called as a supervisor calls it."""

from __future__ import annotations

import math
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from comborun.host import files, process
from comborun.host.activity import Activity
from comborun.host.judging import Rules
from comborun.host.watch import Job, Watch, limits, works

RECORD = "open(os.environ['OUT'] + '/records.jsonl', 'a').write('{}\\n')\n"


class Evidence:
    """Result files of which it is known how many lines make it complete."""

    def __init__(self, out, whole):
        self.rules = Rules()
        self.rules.files = ["*.jsonl"]
        self.looks = 0
        self._file = Path(out, "records.jsonl")
        self._whole = whole

    def look(self):
        self.looks += 1

    def complete(self):
        return self._file.exists() and len(self._file.read_text().splitlines()) >= self._whole


class Supervisor:
    """Starts a program of Python, and asks a watch about it until one of them is at its end."""

    def __init__(self, run, program, **changes):
        self.said = []
        self.job = job = Job(str(run), "grid-1", "sessions", "env_one", 1)
        Path(job.at.output).mkdir(parents=True)
        job.judging = Evidence(job.at.output, 3)
        job.tell = self.said.append
        for name, value in changes.items():
            setattr(job, name, value)
        environment = {**os.environ, "COMBORUN_SESSION": job.marker, "OUT": job.at.output, "PYTHONUNBUFFERED": "1"}
        with Path(job.at.log).open("wb") as log:
            self.child = subprocess.Popen(
                [sys.executable, "-S", "-c", "import os, sys, time\n" + program],
                env=environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        job.pid, job.start = self.child.pid, process.look(self.child.pid).start
        self.watch = Watch(job)

    def until(self, happened, seconds=20):
        """The first verdict, or None once something has happened."""
        deadline = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < deadline, "it did not happen"
            pause = max(0.0, min(self.watch.due(), deadline) - time.monotonic())
            readable = select.select(self.watch.descriptors(), [], [], min(pause, 0.05))[0]
            if not readable and time.monotonic() < self.watch.due():
                continue
            verdict = self.watch.look()
            if verdict:
                return verdict
        return None

    def verdict(self, seconds=20):
        """Why it is to be ended; None when it came to its own end first."""
        return self.until(lambda: self.child.poll() is not None, seconds)

    def end(self):
        self.watch.close()
        self.child.kill()
        self.child.wait()


@pytest.fixture
def supervise(tmp_path, monkeypatch):
    started = []

    def start(program, environment=(), **changes):
        for name, value in {"COMBORUN_WATCH_S": "0.05", **dict(environment)}.items():
            monkeypatch.setenv(name, value)
        if "limits" in changes:
            changes["limits"] = limits(**changes["limits"])
        started.append(Supervisor(tmp_path / "run", program, **changes))
        return started[-1]

    yield start
    for one in started:
        one.end()


def test_a_program_that_does_nothing_is_stalled_and_it_is_on_record(supervise):
    one = supervise("print('loading')\ntime.sleep(60)", limits={"stall": 1})
    verdict = one.verdict()
    assert verdict.cause == "stalled"
    assert re.fullmatch(r"no new result, no new line and [0-9]+ % of a core for 1 s", verdict.note)
    assert Path(one.job.at.verdict).read_text() == f'{{"cause": "stalled", "note": "{verdict.note}"}}\n'
    assert '"why": "no new result' in Path(one.job.at.stalled).read_text()
    assert one.watch.look() is None, "it is told once"
    assert one.watch.due() == math.inf
    one.job.clear()
    assert not Path(one.job.at.stalled).exists()


@pytest.mark.parametrize(
    "program",
    [
        "end = time.monotonic() + 5\nwhile time.monotonic() < end: pass",
        "for i in range(50): print('step', i, 'of 50'); time.sleep(0.1)",
        "for i in range(50): " + RECORD.replace("\n", "; ") + "time.sleep(0.1)",
        "for i in range(10): os.spawnl(os.P_WAIT, '/bin/sh', 'sh', '-c', 'timeout 0.5 sh -c \"while :; do :; done\"')",
    ],
    ids=["computes", "chats", "saves", "has children that compute"],
)
def test_a_program_that_works_in_whatever_way_is_not_stalled(supervise, program):
    assert supervise(program, limits={"stall": 3}).verdict(60) is None


def test_to_complain_again_and_again_is_no_progress_though_log_and_cpu_go_on(supervise):
    one = supervise("i = 0\nwhile True: i += 1; print(f'retry {i}: connection refused')", limits={"stall": 2})
    verdict = one.verdict()
    assert verdict.cause == "stalled"
    assert "the same line at least" in verdict.note


def test_a_program_that_hangs_after_its_work_is_ended(supervise):
    one = supervise(RECORD * 3 + "while True: print('waiting for the simulator'); time.sleep(0.1)", limits={"hang": 1})
    verdict = one.verdict()
    assert (verdict.cause, verdict.note) == ("hung", "it did not end within 1 s after its work was done")
    assert one.job.judging.looks == 1, "the counts of a run that is looked at are kept when results have changed"


def test_without_all_its_evidence_a_quiet_program_is_not_taken_for_done(supervise):
    assert supervise(RECORD * 2 + "time.sleep(3)", limits={"hang": 1}).verdict() is None


def test_what_still_writes_anything_is_not_done(supervise):
    videos = (
        "os.mkdir(os.environ['OUT'] + '/.v')\n"
        "for i in range(12): open(os.environ['OUT'] + f'/.v/{i}', 'w'); time.sleep(0.25)"
    )
    assert supervise(RECORD * 3 + videos, limits={"hang": 1}).verdict() is None


def test_a_program_that_takes_too_long_is_timed_out(supervise):
    one = supervise("while True: print(time.time()); time.sleep(0.1)", limits={"most": 1})
    assert (one.verdict().cause, files.read(one.job.at.verdict)["cause"]) == ("timed_out", "timed_out")


def test_silence_without_a_limit_is_told_and_forgotten_when_progress_returns(supervise, tmp_path):
    go = tmp_path / "go"
    waits = f"print('one')\nwhile not os.path.exists({str(go)!r}): time.sleep(0.05)\nprint('two')\ntime.sleep(60)"
    one = supervise(waits, {"COMBORUN_STALLED_S": "1"}, limits={})
    assert one.until(lambda: Path(one.job.at.stalled).exists()) is None
    go.touch()
    assert one.until(lambda: not Path(one.job.at.stalled).exists()) is None


def test_a_clock_that_was_set_or_a_machine_that_slept_is_no_silence(supervise, monkeypatch):
    one = supervise("time.sleep(60)", limits={"stall": 30, "most": 30})
    one.until(lambda: Path(one.job.at.watch).exists())
    now = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: now() + 3600)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert one.watch.look() is None
    assert one.watch.look() is None


def test_what_a_signal_holds_is_stalled_and_said_to_be(supervise):
    one = supervise("print('ready')\ntime.sleep(60)", limits={"stall": 1})
    one.until(lambda: Path(one.job.at.log).stat().st_size)
    os.kill(one.child.pid, signal.SIGSTOP)
    assert "; 1 of its processes are stopped by a signal" in one.verdict().note


def test_the_most_memory_that_all_its_processes_held_is_kept(supervise):
    held = "x = bytearray(60 << 20)\nif os.fork(): time.sleep(60)\nelse: y = bytearray(60 << 20); time.sleep(60)"
    one = supervise(held)
    one.until(lambda: one.watch.peak_kib > 120 << 10)
    assert int(Path(one.job.at.watch).read_text()) > 120 << 10
    os.killpg(one.child.pid, signal.SIGKILL)


def test_the_first_sign_of_progress_is_told_once_to_who_waits_for_it(supervise):
    one = supervise(
        "print('loading')\ntime.sleep(0.5)\nprint('[  1/20] stairs')\ntime.sleep(60)", awaits=True, count=20
    )
    one.until(lambda: one.said)
    assert Path(one.job.at.progressed).exists()
    assert one.said == ["progressed"]


PMON = """#!/bin/sh
read -r asked <{folder}/asked
echo $((asked + 1)) >{folder}/asked
{then}
echo '# gpu         pid   type     sm    mem    enc    dec    command'
printf '    0 %11s     C     {busy}      0      -      -    python\\n' "$(cat {folder}/pid)"
"""


@pytest.fixture
def pmon(tmp_path, monkeypatch):
    """A stand-in for nvidia-smi that tells how busy a process keeps its GPU."""

    def make(busy, then=""):
        tool = tmp_path / "bin" / "nvidia-smi"
        tool.parent.mkdir()
        tool.write_text(PMON.format(folder=tmp_path, busy=busy, then=then))
        tool.chmod(0o755)
        (tmp_path / "asked").write_text("0\n")
        (tmp_path / "pid").write_text("1\n")
        monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
        return tmp_path

    return make


def test_a_gpu_that_works_for_a_silent_program_is_progress(supervise, pmon):
    folder = pmon(40)
    one = supervise("time.sleep(4)", gpus=("0",), limits={"stall": 1})
    (folder / "pid").write_text(f"{one.child.pid}\n")
    assert one.verdict() is None


def test_a_gpu_that_does_nothing_saves_nobody_and_is_asked_before_the_end(supervise, pmon):
    folder = pmon(0)
    one = supervise("time.sleep(60)", gpus=("0",), limits={"stall": 1})
    (folder / "pid").write_text(f"{one.child.pid}\n")
    assert one.verdict().cause == "stalled"
    assert int((folder / "asked").read_text()) >= 1


def test_an_nvidia_smi_that_hangs_holds_nobody_up(supervise, pmon):
    pmon(40, then="exec sleep 60")
    one = supervise("time.sleep(60)", {"COMBORUN_GPU_S": "1"}, gpus=("0",), limits={"stall": 1})
    began, longest = time.monotonic(), 0.0
    while one.watch.due() != math.inf:
        before = time.monotonic()
        one.watch.look()
        longest = max(longest, time.monotonic() - before)
        assert before - began < 15
        time.sleep(0.02)
    assert longest < 0.5
    assert '"cause": "stalled"' in Path(one.job.at.verdict).read_text()


def test_whose_gpu_works_is_read_off_the_rows_of_pmon():
    rows = ["# gpu pid type sm mem", "    0          17     C      3      0", "    1           8     C      -      -"]
    assert works(rows, [17])
    assert not works(rows, [8, 99])
    assert not works(["    0          17     C      2      0"], [17])


def test_a_running_session_costs_a_thousandth_of_a_core_at_most(supervise):
    one = supervise("i = 0\nwhile True: i += 1; print(f'{time.time()} step {i} of an episode'); time.sleep(0.01)")
    one.until(lambda: Path(one.job.at.log).stat().st_size > 10_000)
    began, looks = time.process_time(), 20
    for _ in range(looks):
        one.watch._clock.due = 0.0
        one.watch.look()
        time.sleep(0.02)
    assert (time.process_time() - began) / looks < 0.005, "a look every 5 s may take 5 ms"


def test_who_waits_for_a_core_works(tmp_path):
    """Two programs on one core: both together want twice what there is."""
    core = min(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    environment = {**os.environ, "COMBORUN_SESSION": "grid-1/env_one/1"}
    children = [subprocess.Popen([sys.executable, "-S", "-c", spin], env=environment) for _ in range(2)]
    try:
        seen = Activity("grid-1/env_one/1")
        seen.find(now=True)
        seen.look()
        began, wanted = time.monotonic(), 0.0
        while wanted < 3.0:
            assert time.monotonic() - began < 30
            time.sleep(0.05)
            wanted += seen.look()
        assert wanted > 1.5 * (time.monotonic() - began)
    finally:
        for child in children:
            child.kill()
            child.wait()
