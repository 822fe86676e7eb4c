"""How full the host is: what the probe says, and what is shown of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from monitor_stage import a_busy_run, a_host, an_answer

from comborun.monitor.answer import parse_snapshot
from comborun.monitor.classify import classify
from comborun.monitor.document import document
from comborun.monitor.lines import host_facts, host_lines
from comborun.monitor.observe import History, fold
from comborun.monitor.snapshot import Gpu, HostUse, Room
from comborun.monitor.wording import sizes

MIB, GIB, TIB = 1 << 20, 1 << 30, 1 << 40
H100 = Gpu(0, 42188 * MIB, 81559 * MIB, 97)
BOX = HostUse(41.3, 64, Room(252 * GIB, 133 * GIB), Room(3577 * GIB, 812 * GIB), (H100,))


def use(*lines: str) -> HostUse:
    return parse_snapshot(an_answer(host=lines)).use


def test_what_the_probe_says_is_understood() -> None:
    assert use(*a_host("42188 81559 97")) == BOX


@pytest.mark.parametrize(
    ("line", "gpu"),
    [
        ("gpu index=3 used_mib= total_mib= utilization=", Gpu(3, None, None, None)),
        ("gpu index=0 used_mib=2 total_mib=81559 utilization=", Gpu(0, 2 * MIB, 81559 * MIB, None)),
        ("gpu index=0 used_mib=[N/A] total_mib=nan utilization=-", Gpu(0, None, None, None)),
        ("gpu index=1", Gpu(1, None, None, None)),
    ],
)
def test_what_a_gpu_does_not_tell_is_unknown_and_never_nothing(line: str, gpu: Gpu) -> None:
    assert use(line).gpus == (gpu,)


def test_a_host_that_tells_nothing_is_unknown() -> None:
    assert use() == HostUse()
    assert use("memory_kib= memory_available_kib=", "disk_kib=5 disk_available_kib=") == HostUse()
    assert host_facts(HostUse()) == []
    assert host_lines(HostUse(), 80, None) == []


def test_a_log_gets_a_fact_each() -> None:
    assert host_facts(BOX) == [
        "gpu 0 41.2/79.6 GiB, 97 % busy",
        "load 41.3 on 64 cpus",
        "memory 133/252 GiB free",
        "disk 0.79/3.49 TiB free",
    ]


def lines(host: HostUse, width: int, height: int | None = None) -> list[str]:
    return [line.plain for line in host_lines(host, width, height)]


def test_a_narrow_terminal_has_one_line_and_what_matters_most_stays() -> None:
    assert lines(BOX, 60) == ["gpu 0 41.2/79.6 GiB, 97 % busy   load 41.3 on 64 cpus"]
    assert lines(BOX, 40) == ["gpu 0 41.2/79.6 GiB, 97 % busy"]
    assert lines(BOX, 20) == []


def test_what_gets_scarce_stays_before_what_does_not() -> None:
    full = HostUse(41.3, 64, BOX.memory, Room(100 * GIB, 2 * GIB))
    assert lines(full, 50) == ["load 41.3 on 64 cpus   disk 2.00/100 GiB free"]
    assert lines(full, 30) == ["disk 2.00/100 GiB free"]
    assert "yellow" in {str(span.style) for line in host_lines(full, 30, None) for span in line.spans}


def test_many_gpus_are_summed_where_there_is_no_place_for_each() -> None:
    gpus = tuple(Gpu(index, index * 10 * GIB, 80 * GIB, 10 * index) for index in range(7))
    box = HostUse(gpus=(*gpus, Gpu(7, None, None, None)))
    assert lines(box, 80) == ["8 gpus 210/560 GiB, 30 % busy, 1 unknown"]
    assert len(lines(box, 200)) == 2
    assert lines(HostUse(gpus=(box.gpus[7],) * 8), 30) == ["8 gpus unknown"]


def test_a_low_terminal_keeps_its_lines_for_the_sessions() -> None:
    assert lines(BOX, 80, height=11) == []
    assert len(lines(BOX, 80, height=19)) == 1
    assert len(lines(BOX, 80, height=20)) == 2


@given(st.integers(1, 250), st.integers(0, 16), st.one_of(st.none(), st.integers(1, 60)))
def test_no_line_is_wider_than_the_terminal_and_there_are_two_at_most(
    width: int, count: int, height: int | None
) -> None:
    gpus = tuple(Gpu(index, index * GIB, 80 * GIB, None if index % 3 else 7) for index in range(count))
    shown = lines(HostUse(1.0, 2, BOX.memory, BOX.disk, gpus), width, height)
    assert len(shown) <= 2
    assert all(len(line) <= width for line in shown)


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 80 * GIB, "0/80.0 GiB"),
        (2 * MIB, 80 * GIB, "2.00 MiB/80.0 GiB"),
        (8 * GIB, 80 * GIB, "8.00/80.0 GiB"),
        (31 * GIB, 4 * TIB, "31.0 GiB/4.00 TiB"),
        (999 * GIB, 1023 * GIB, "999/1023 GiB"),
    ],
)
def test_sizes_are_short_and_say_something(part: int, whole: int, text: str) -> None:
    assert sizes(part, whole) == text


def test_programs_get_all_of_it_in_bytes() -> None:
    view, answer = a_busy_run(a_host("42188 81559 97", "  "))
    shown = json.loads(json.dumps(document(classify(view, fold(History(), parse_snapshot(answer))))))
    assert (shown["load"], shown["cpus"]) == (41.3, 64)
    assert shown["memory"] == {"total": 252 * GIB, "free": 133 * GIB}
    assert shown["disk"] == {"total": 3577 * GIB, "free": 812 * GIB}
    assert shown["gpus"] == [
        {"index": 0, "memory_used": 42188 * MIB, "memory_total": 81559 * MIB, "utilization_percent": 97},
        {"index": 1, "memory_used": None, "memory_total": None, "utilization_percent": None},
    ]
