"""The watch over real processes, called as a supervisor calls it."""

from __future__ import annotations

import math
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from watched import Watched

from comborun.host.record.judging import Rules
from comborun.host.supervise import watch
from comborun.host.supervise.watch import Activity, Watch
from comborun.host.system import files, process
from comborun.rules import globs
from comborun.rules.endings.evidence import Evidence
from comborun.rules.names import AttemptLayout
from comborun.rules.results.result_files import Folder

RECORD = """out = open(os.environ['OUT'] + '/records.jsonl', 'a')
for i in range({}): out.write('{{"episode": %d, "success": true}}\\n' % i); out.flush(); time.sleep({})
"""

MOVES = """for i in range(40):
    draft = os.environ['OUT'] + f'/{i}'
    open(draft, 'w').close()
    os.utime(draft, (1e9, 1e9))
    os.rename(draft, draft + '.jsonl')
    time.sleep(0.1)
"""


class Session(Watched):
    """A session of three episodes."""

    def __init__(self, folder, program, count=3, grant=None, **data):
        judging = {"results": {"files": ["*.jsonl"]}}
        run = f"grid-{secrets.token_hex(4)}"  # others may run this test now: no process is theirs
        words = ["-S", "-c", "import os, sys, time\n" + program]
        fields = {"data": {"judging": judging, **data}, "rules": Rules(judging, 0, count)}
        super().__init__(folder, run, "env_one", Watch, words, count=count, grant=grant or {}, **fields)

    def verdict(self, seconds=20):
        """Why it is to be ended; None when it came to its own end first."""
        return self.until(lambda: self.child.poll() is not None, seconds)


@pytest.fixture
def supervise(tmp_path, monkeypatch):
    started = []

    def start(program, environment=(), **data):
        for name, value in {"COMBORUN_WATCH_S": "0.05", **dict(environment)}.items():
            monkeypatch.setenv(name, value)
        started.append(Session(tmp_path / "run", program, **data))
        return started[-1]

    yield start
    for one in started:
        one.end()


def test_a_program_that_does_nothing_or_that_a_signal_holds_is_stalled_and_it_is_on_record(supervise):
    one = supervise("print('loading')\ntime.sleep(60)", stall_s=1)
    one.until(lambda: Path(one.at.log).stat().st_size)
    os.kill(one.child.pid, signal.SIGSTOP)
    cause, reason = one.verdict()
    assert (cause, reason.code, reason.count("stopped")) == ("stalled", Evidence.STALLED, 1)
    assert reason.text("line") == ""
    assert files.read(one.at.verdict) == {"cause": "stalled", "reason": reason}
    assert files.read(one.at.stalled)["reason"] == reason
    assert one.watch.look() is None, "it is told once"
    assert one.watch.due() == math.inf


@pytest.mark.parametrize(
    "program",
    [
        "end = time.monotonic() + 4\nwhile time.monotonic() < end: pass",
        RECORD.format(40, 0.1),
        MOVES,
        "for i in range(8): os.spawnl(os.P_WAIT, '/bin/sh', 'sh', '-c', 'timeout 0.5 sh -c \"while :; do :; done\"')",
    ],
    ids=["computes", "saves", "moves its results into place", "has children that compute"],
)
def test_a_program_that_works_in_whatever_way_is_not_stalled(supervise, program):
    assert supervise(program, stall_s=3).verdict(60) is None


def test_to_complain_again_and_again_is_no_progress_though_log_and_cpu_go_on(supervise):
    one = supervise("i = 0\nwhile True: i += 1; print(f'retry {i}: connection refused')", stall_s=2)
    cause, reason = one.verdict()
    assert (cause, "connection refused" in reason.text("line")) == ("stalled", True)
    assert reason.count("times") > 2


def test_what_still_writes_anything_is_not_done(supervise):
    videos = (
        "os.mkdir(os.environ['OUT'] + '/.v')\n"
        "for i in range(12): open(os.environ['OUT'] + f'/.v/{i}', 'w'); time.sleep(0.25)"
    )
    assert supervise(RECORD.format(3, 0) + videos, hang_s=1).verdict() is None


def test_of_a_huge_output_a_look_compares_a_part_and_the_verdict_says_so(supervise, monkeypatch):
    monkeypatch.setattr(watch, "LOOKED_AT_MOST", 5)
    many = "os.mkdir(os.environ['OUT'] + '/v')\nfor i in range(30): open(os.environ['OUT'] + f'/v/{i}', 'w')\n"
    cause, reason = supervise(f"{many}{RECORD.format(3, 0)}time.sleep(60)", hang_s=1).verdict()
    assert (cause, reason.count("files")) == ("hung", 5)


def test_a_look_at_a_huge_output_ends_and_a_new_file_in_a_folder_that_it_knows_is_a_change(tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "LOOKED_AT_MOST", 5)
    at = AttemptLayout(str(tmp_path))
    Path(at.output, "v").mkdir(parents=True)
    for number in range(30):
        Path(at.output, "v", str(number)).touch()
    found = iter([at.output] * 30)
    changes = watch._Changes(at, None)
    assert [changes.of_output(), changes.of_output(), changes.looked_at] == [True, False, 5]
    Path(at.output, "v", "more").touch()
    assert changes.of_output()
    monkeypatch.setattr(globs, "below", lambda _: found)
    changes.of_output()
    assert len([*found]) == 25


def test_silence_without_a_limit_is_told_and_forgotten_when_progress_returns(supervise, tmp_path):
    go = tmp_path / "go"
    waits = f"print('one')\nwhile not os.path.exists({str(go)!r}): time.sleep(0.05)\nprint('two')\ntime.sleep(60)"
    one = supervise(waits, {"COMBORUN_STALLED_S": "1"})
    assert one.until(lambda: Path(one.at.stalled).exists()) is None
    go.touch()
    assert one.until(lambda: not Path(one.at.stalled).exists()) is None


def test_the_first_sign_of_progress_is_told_once_to_who_waits_for_it(supervise):
    one = supervise(
        "print('loading')\ntime.sleep(0.5)\nprint('[  1/20] stairs')\ntime.sleep(60)", grant={"await": "1"}, count=20
    )
    one.until(lambda: one.said)
    assert Path(one.at.progressed).exists()
    assert one.said == ["progressed"]


def test_a_running_session_costs_a_thousandth_of_a_core_at_most(supervise):
    one = supervise("i = 0\nwhile True: i += 1; print(f'{time.time()} step {i} of an episode'); time.sleep(0.01)")
    one.until(lambda: Path(one.at.log).stat().st_size > 10_000)
    began, looks = time.process_time(), 20
    for _ in range(looks):
        one.watch.next = 0.0
        one.watch.look()
        time.sleep(0.02)
    assert (time.process_time() - began) / looks < 0.005, "a look every 5 s may take 5 ms"


def test_who_waits_for_a_core_works(tmp_path):
    """Two programs on one core: both together want twice what they get."""
    core = min(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, {{{core}}})\nprint('on it', flush=True)\nwhile True: pass"
    marker = f"grid-{secrets.token_hex(4)}/env_one/1"
    environment = {**os.environ, "COMBORUN_SESSION": marker}
    words = [sys.executable, "-S", "-c", spin]
    children = [subprocess.Popen(words, env=environment, stdout=subprocess.PIPE) for _ in range(2)]

    def got():
        return sum(process.look(child.pid).cpu for child in children) / os.sysconf("SC_CLK_TCK")

    try:
        assert {child.stdout.readline() for child in children} == {b"on it\n"}
        seen = Activity(SimpleNamespace(marker=marker, roots=[]))
        seen.find(now=True)
        seen.look()
        before, wanted, deadline = got(), 0.0, time.monotonic() + 30
        while wanted < 3.0:
            assert time.monotonic() < deadline
            time.sleep(0.05)
            wanted += seen.look()
        assert wanted > 1.5 * (got() - before)
    finally:
        for child in children:
            child.kill()
            child.communicate()


def test_what_another_attempt_runs_below_this_process_is_not_counted():
    with subprocess.Popen(["sleep", "60"], env={"COMBORUN_SESSION": "other/session/1"}) as other:
        while process.marker_of(other.pid) != "other/session/1":  # at first it has no environment
            pass
        seen = Activity(SimpleNamespace(marker="run/session/1"))
        for _ in range(2):  # a search, and a look between two searches
            seen.find()
            assert other.pid not in seen.pids
        other.kill()


def test_the_first_reading_which_loads_the_reader_does_not_delay_the_next_ones(supervise, monkeypatch):
    read, slow = Folder.read, [0.05]

    def read_slowly(self, over=True):
        found, begun = read(self, over), time.process_time()
        busy = slow.pop() if found.rows and slow else 0.0
        while time.process_time() - begun < busy:
            pass
        return found

    monkeypatch.setattr(Folder, "read", read_slowly)
    session = supervise(RECORD.format(3, 0.5) + "time.sleep(60)")
    session.until(lambda: int(files.read(session.at.counts).get("records", 0)) == 3, 10)
