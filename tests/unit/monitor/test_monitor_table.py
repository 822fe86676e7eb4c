"""The table, as whole pictures: tests/golden/monitor. Times of day are UTC."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from monitor_stage import (
    HOST,
    NOW,
    Seen,
    a_busy_run,
    a_host,
    a_plan,
    a_session,
    a_view,
    a_wait,
    an_answer,
    picture,
    status_of,
)
from rich.console import Console
from rich.text import Text
from structure import CHECKOUT

from comborun.model.judging import RetryRule
from comborun.model.plan import Limits
from comborun.monitor import columns
from comborun.monitor.columns import COLUMNS, Column, Setting, bar, grid_lines
from comborun.monitor.screen import show_once
from comborun.monitor.snapshot import HostUse, Space
from comborun.monitor.status import Link, Outage, RunStatus, SessionStatus
from comborun.monitor.table import Rows, host_lines
from comborun.monitor.wording import MARKS
from comborun.rules.endings.failures import Failure
from comborun.rules.facts import Fact
from comborun.rules.holds import HoldReason
from comborun.rules.room.capacity import Card
from comborun.rules.room.waits import Wait
from comborun.rules.vocabulary import Life, Outcome
from comborun.text import GIB
from comborun.words.times import brief, clock, clocks, duration

GOLDEN = Path(__file__).parents[2] / "golden" / "monitor"


def busy(host: Sequence[Mapping[str, Any]] = HOST) -> RunStatus:
    view, answer = a_busy_run(host)
    return status_of(view, answer)


def many(count: int) -> RunStatus:
    plan = a_plan([a_session("act", f"scene {number:03}") for number in range(count)])
    ended = [Seen(session.name).ended(records=100, successes=50) for session in plan.sessions[: count // 2]]
    return status_of(a_view(plan), an_answer(*ended))


def away() -> RunStatus:
    link = Link(False, since=NOW + 40, lasting=40, last_seen=52, failures=3, complaint="timed out after 10 s")
    return replace(busy(), link=link)


def troubled() -> RunStatus:
    """A smoke test that is over, a stall, a retry that waits, a failure and a halt, all at once."""
    names = ("grass", "stairs", "maze", "field")
    smoke = [replace(a_session("act", name, 2), name=f"{name}_act_smoke", flag="smoke") for name in names[:2]]
    plan = replace(
        a_plan([*smoke, *(a_session("act", name) for name in names)]),
        retry=(RetryRule(Failure.GPU_MEMORY, 2, 60.0),),
        limits=Limits(parallel=3, per_gpu=3, stagger=0.0, attempts=3),
    )
    seen = (
        Seen("grass_act_smoke").ended(records=2, successes=2),
        Seen("stairs_act_smoke").ended("exited", "partial", code=1, records=1, log=b"IndexError: 7\n"),
        Seen("grass_act", started=NOW - 3000, counts=(40, 31), stalled=NOW - 1500),
        Seen("stairs_act").ended("exited", "none", code=1, **{"class": "gpu_memory"}),
        Seen("maze_act", started=NOW - 900).ended("exited", "none", code=2, log=b"ValueError: no such scene\n"),
    )
    fault = Fact(HoldReason.FAILURES_IN_A_ROW, failure="GPU fault", times=3)
    header = (
        {"hold": {"kind": "halted", "since": NOW - 60, "reason": fault.as_data()}},
        a_wait("stairs_act", Fact(Wait.RETRY_AFTER, failure="gpu_memory", attempt=1), NOW + 40),
    )
    return status_of(a_view(plan), an_answer(*seen, host=(*HOST, *header)))


def long_names() -> RunStatus:
    plan = a_plan([a_session("a policy of many words", f"a scene with a long name {number}") for number in range(3)])
    seen = Seen(plan.sessions[1].name, counts=(62, 55), log=b"episode 61\n")
    return status_of(a_view(plan), an_answer(seen))


def granted(each: str) -> RunStatus:
    """A busy box whose sessions hold a GPU each."""
    status = busy(FOUR_GPUS)
    gpus = [tuple(map(int, word.split("+"))) if word else () for word in each.split(" ")]
    sessions = tuple(one._replace(gpus=held) for one, held in zip(status.sessions, gpus, strict=True))
    return replace(status, sessions=sessions)


FOUR_GPUS = a_host((30105, 32607, 100), (2, 32607, 0), (17001, 32607, 61), (None, None, None))
SCENES = {
    "busy-40": lambda: picture(busy(), 40),
    "busy-80": lambda: picture(busy(), 80),
    "busy-120-colour": lambda: picture(busy(), 120, colour=True),
    "many-80": lambda: picture(many(130), 80),
    "unreachable-100-colour": lambda: picture(away(), 100, colour=True),
    "long-names-40": lambda: picture(long_names(), 40),
    "gpus-120": lambda: picture(busy(FOUR_GPUS), 120),
    "granted-80": lambda: picture(granted("0 1 2 3 0 1 2 "), 80),
    "troubled-160": lambda: picture(troubled(), 160),
}


@pytest.mark.parametrize("scene", SCENES)
def test_the_picture_is_the_golden_one(scene: str) -> None:
    assert SCENES[scene]() == (GOLDEN / f"{scene}.txt").read_text()


@pytest.mark.parametrize("status", [many(160), busy()], ids=["many", "busy"])
def test_no_table_is_wider_than_the_terminal_and_every_session_is_in_it(status: RunStatus) -> None:
    for width in (*range(40, 120, 7), *range(120, 201, 20)):
        lines = picture(status, width).splitlines()
        assert max(map(len, lines)) <= width
        shown = sum("/100" in line for line in lines)
        left_out = [int(line.split()[1]) for line in lines if line.startswith("and ")]
        assert shown + sum(left_out) == len(status.sessions)


def test_no_rate_is_shown_only_counts() -> None:
    for width in (40, 80, 120, 200):
        without_log_lines = picture(busy(), width).replace("checkpoint:  85%", "")
        assert "%" not in without_log_lines


def test_names_and_log_lines_are_never_markup_or_control() -> None:
    plan = a_plan([a_session("[red]act", "\x1b[31mgrass\u202e")])
    seen = Seen(plan.sessions[0].name, log=b"[bold]x[/bold]\x1b]0;title\x07 [link=http://e]y")
    status = status_of(a_view(plan), an_answer(seen))
    shown = picture(status, 140)
    assert "[bold]x[/bold] [link=http://e]y" in shown
    assert not re.search("[\x1b\u202e\x07]", shown)


def test_every_state_has_a_symbol_of_its_own() -> None:
    shown = {*Life, *Outcome} - {Life.ENDED, Life.SENT, Life.GONE, Life.STRAY}
    assert set(map(str, MARKS)) == set(map(str, shown))
    assert len({mark.symbol for mark in MARKS.values()}) == len(MARKS)


@given(st.integers(0, 300), st.integers(0, 200), st.integers(0, 60))
def test_a_bar_has_its_width_and_is_full_only_when_all_is_done(done: int, planned: int, width: int) -> None:
    drawn = bar(done, planned, width, "cyan").plain
    assert len(drawn) == width
    if width and planned:
        assert (drawn == "━" * width) == (done >= planned)


@pytest.mark.parametrize(
    ("seconds", "short", "long"),
    [
        (-3, "0 s", "0 s"),
        (59.4, "59 s", "59 s"),
        (60, "1 min", "1 min 00 s"),
        (725, "12 min", "12 min 05 s"),
        (3599.6, "1.0 h", "1 h 00 min"),
        (11_100, "3.1 h", "3 h 05 min"),
        (97_200, "27.0 h", "27 h 00 min"),
        (1e15, "999 d", "11574074074 d 01 h"),
    ],
)
def test_durations_are_short_and_exact_enough(seconds: float, short: str, long: str) -> None:
    assert brief(seconds) == short
    assert duration(seconds) == long
    assert len(short) <= 6


def test_a_time_on_another_day_carries_its_weekday() -> None:
    assert clock(NOW) == "10:30:00"
    assert clock(NOW + 3600, near=NOW) == "11:30"
    assert clock(NOW + 86_400, near=NOW) == "Thu 10:30"
    assert clock(1e17) == "?"


ENDED = {"name": "pi-gpu1", "attempt": 3, "state": "ended", "since": NOW - 20, "cause": "signal", "why": "Killed"}
SERVERS = (
    {"servers": [{"name": "vlm", "attempt": 1, "state": "loading", "since": NOW - 180, "gpus": [0, 1], "port": 31337}]},
    {"servers": [{"name": "pi-gpu0", "attempt": 2, "state": "ready", "since": NOW - 60, "gpus": [2], "port": 31338}]},
    {"servers": [ENDED]},
    a_wait("pi-gpu1", Fact(Wait.SLOTS_TAKEN)),
)


def test_there_is_a_line_for_each_server_and_one_that_halted_the_run_stays() -> None:
    assert [line for line in picture(busy(SERVERS), 130).splitlines() if line.startswith("server")] == [
        "server  ○ vlm is loading for 3 min  GPU 0,1",
        "server  ● pi-gpu0 is ready for 1 min on port 31338  GPU 2  start 2",
        "server  ! pi-gpu1 has ended 20 s ago (signal: Killed)  start 3  waits: no slot is free",
    ]
    hold = {"hold": {"kind": "halted", "reason": Fact(HoldReason.SERVER_ENDS, server="vlm", times=2).as_data()}}
    halted = status_of(a_view(a_plan([a_session("act", "grass")])), an_answer(host=(hold, SERVERS[2]), dispatcher=None))
    assert halted.finished
    assert "server  ! pi-gpu1 has ended" in picture(halted, 110)


def test_what_happened_to_the_host_stands_above_the_rows() -> None:
    shown = picture(replace(busy(), outage=Outage("restarted", NOW - 60, ("a", "b"))), 100)
    told = "! gpu-box rebooted after 10:29:00: 2 sessions that ran before are lost"
    assert shown.index(told) < shown.index("session  ")


# How full the host is

H100 = Card(0, used=42188, total=81559, utilization=97)
BOX = HostUse(41.3, 64, Space(252 * GIB, 133 * GIB), Space(3577 * GIB, 812 * GIB), (H100,))


def lines(host: HostUse, width: int) -> list[str]:
    return [line.plain for line in host_lines(host, width)]


def test_a_narrow_terminal_has_one_line_of_what_matters_most() -> None:
    assert lines(BOX, 60) == ["gpu 0 41.2/79.6 GiB, 97 % busy   load 41.3 on 64 cpus"]
    assert lines(BOX, 40) == ["gpu 0 41.2/79.6 GiB, 97 % busy"]
    assert lines(BOX, 20) == []
    assert len(lines(BOX, 80)) == 2


def test_a_table_in_a_file_has_all_rows_and_cuts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LINES", raising=False)  # it would be a page of `watch`
    name = "a line that is much longer than any terminal is wide " * 5
    plan = a_plan([a_session("act", f"scene {number:03}") for number in range(130)])
    failed = Seen(plan.sessions[0].name).ended("launch_failed", "none", note=name.strip())
    file = io.StringIO()
    show_once(Console(file=file), status_of(a_view(plan), an_answer(failed)))
    lines = file.getvalue().splitlines()
    assert any(name.strip() in line for line in lines)
    assert sum("scene_" in line for line in lines) == 130
    assert not any(line.endswith(" ") for line in lines[4:])


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (Rows(failed=True), ["boulder_pi0_5__flow_", "boulder_act"]),
        (Rows(sort="quiet"), ["friction_act", "stairs_pi0_5__flow_", "grass_act"]),
        (Rows(sort="success"), ["boulder_pi0_5__flow_", "grass_pi0_5__flow_"]),
    ],
)
def test_rows_are_chosen_and_sorted(rows: Rows, names: list[str]) -> None:
    found = [one.name for one in rows.of(busy())]
    assert found[: len(names)] == names
    assert rows.failed == (len(found) == len(names))


def test_a_table_of_what_went_wrong_says_that_nothing_did() -> None:
    plan = a_plan([a_session("act", "maze")])
    file = io.StringIO()
    show_once(Console(file=file), status_of(a_view(plan), an_answer()), Rows(failed=True))
    assert file.getvalue().splitlines()[-1] == "no session has gone wrong"


def test_every_column_has_its_line_in_the_documents() -> None:
    lines = (CHECKOUT / "docs/grid.md").read_text().splitlines()
    assert [line for line in grid_lines() if line not in lines] == []


def test_one_row_makes_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    def cell(session: SessionStatus, _: Setting) -> Text:
        return Text(str(session.latest.log_size or ""))

    row = Column("log", "the size of its log", cell, lambda one: one.latest.log_size, 15)
    monkeypatch.setattr(columns, "COLUMNS", (*COLUMNS[:-1], row, COLUMNS[-1]))
    status = busy()
    assert ["log" in picture(status, width).split() for width in (200, 40)] == [True, False]
    assert str(status.sessions[0].latest.log_size) in picture(status, 200)


def test_a_column_that_no_session_uses_takes_nothing_away(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {width: [one.title for one in columns.columns(busy(), width)] for width in range(20, 160)}
    unused = Column("unused", "", lambda _session, _setting: Text("x"), lambda _session: False, priority=1)
    monkeypatch.setattr(columns, "COLUMNS", (unused, *COLUMNS))
    assert {width: [one.title for one in columns.columns(busy(), width)] for width in before} == before


@pytest.mark.parametrize(("terminal", "height", "first"), [(True, 24, False), (True, 60, True), (False, 24, True)])
def test_a_narrow_table_has_each_cause_of_failures_once_where_it_is_seen(
    terminal: bool, height: int, first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of what scrolls; above the rows of what is cut, as by `watch`."""
    monkeypatch.setenv("LINES", str(height))
    monkeypatch.setenv("COLUMNS", "80")
    plan = a_plan([a_session("act", f"scene {number:03}") for number in range(40)])
    line = "ModuleNotFoundError: No module named 'isaacsim'"
    says = [{"code": "log_says", "said": line}]
    failed = [
        Seen(one.name).ended("exited", "none", code=1, ending=says, **{"class": "error"}) for one in plan.sessions[5:8]
    ]
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, color_system=None, width=80, height=height)
    show_once(console, status_of(a_view(plan), an_answer(*failed)))
    lines = file.getvalue().splitlines()
    place = lines.index(f"✗ scene_005_act (3 alike): {line}")
    assert place < 12 if first else place > 40


@pytest.mark.parametrize(
    ("first", "last", "shown"),
    [
        ((16, 28), (16, 28), "16:28"),
        ((16, 28), (17, 10), "16:28–17:10"),
        ((23, 50), (25, 20), "23:50–Sun 01:20"),
        ((38, 28), (39, 10), "Sun 14:28–15:10"),
        ((38, 28), (14 + 8 * 24, 10), "Sun 14:28–Sun 14:10"),
    ],
)
def test_a_range_of_times_names_a_day_once(first: tuple[int, int], last: tuple[int, int], shown: str) -> None:
    midnight = time.mktime((2026, 11, 28, 0, 0, 0, 0, 0, -1))
    low, high = (midnight + 3600 * hours + 60 * minutes for hours, minutes in (first, last))
    assert clocks(low, high, midnight + 3600 * 14) == shown
