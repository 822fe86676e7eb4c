"""Failures with the same cause are one cause, with one next step."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from monitor_stage import HOST, NOW, Seen, a_hold, a_plan, a_session, a_view, a_wait, an_answer, picture, status_of

from comborun.monitor.causes import RunCauses, SharedCause, shared_causes
from comborun.monitor.status import RunStatus
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.endings.failures import Failure
from comborun.rules.facts import Fact, data_of
from comborun.rules.room.waits import Wait

TASKS = ("lift", "stack", "pour", "wipe")
PLAN = a_plan([a_session(policy, task) for policy in ("act", "pi0") for task in TASKS], parallel=8)


def failing(task: str, policy: str = "act", *, failure: str = "error", line: str = "", cause: str = "exited") -> Seen:
    ended = Seen(f"{task}_{policy}").ended(cause, "none", code=1, **{"class": failure})
    facts = [fact(Evidence.LOG_SAYS, said=line)] if line else []
    return Seen(**{**ended.__dict__, "end": {**(ended.end or {}), "ending": data_of(facts)}})


def causes(*seen: Seen, header: tuple[dict[str, Any], ...] = (), **fields: Any) -> tuple[SharedCause, ...]:
    return shared_causes(status_of(a_view(PLAN), an_answer(*seen, host=(*HOST, *header), **fields)))


def test_sessions_that_ended_by_the_same_line_share_a_cause_though_names_and_numbers_differ() -> None:
    found = causes(
        failing("lift", line="KeyError: 'lift'"),
        failing("stack", line="KeyError: 'stack'"),
        failing("pour", line="ModuleNotFoundError: No module named 'isaacsim'"),
        failing("wipe", "pi0", line="KeyError: 'wipe'"),
        Seen("wipe_act"),
    )
    assert [one.names for one in found] == [("lift_act", "stack_act", "wipe_pi0"), ("pour_act",)]
    assert found[0].words == "KeyError: 'lift'"
    assert RunCauses("run", (), found).summary.fields == {"causes": 2, "sessions": 4}


def failed_alike(policies: Sequence[str], tasks: Sequence[str], line: str) -> RunStatus:
    """Each session ended by a line with its names."""
    plan = a_plan([a_session(policy, task) for policy in policies for task in tasks])
    lines = {one.name: line.format(one=one) for one in plan.sessions}
    return status_of(a_view(plan), an_answer(*(replace(failing("", line=lines[name]), session=name) for name in lines)))


@pytest.mark.parametrize(
    "tasks", [("open-drawer", "open", "open-drawer.v2"), ("lift", "lift2", "lift(a)"), ("a bee", "bee")]
)
@pytest.mark.parametrize("line", ["{one.environment}", "no task {one.environment}, {one.policy}", "x={one.name}/3"])
def test_a_name_is_found_whole_whatever_is_in_it(tasks: tuple[str, ...], line: str) -> None:
    status = failed_alike(("pi0", "pi0-fast"), tasks, f"KeyError: '{line}' at 0x7f2")
    assert len(shared_causes(status)) == 1


def test_ten_times_the_sessions_take_about_ten_times_as_long() -> None:
    def seconds(count: int) -> float:
        tasks = [f"task{place}" for place in range(count)]
        status = failed_alike(["pi0"], tasks, f"RuntimeError: {'of the thing ' * 20}")
        began = time.process_time()
        shared_causes(status)
        return time.process_time() - began

    assert min(seconds(3000) for _ in range(3)) < 30 * min(seconds(300) for _ in range(3))


def test_out_of_memory_is_one_cause_whatever_each_library_says() -> None:
    lines = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "CUDA_ERROR_OUT_OF_MEMORY")
    (one,) = causes(*(failing(task, failure="gpu_memory", line=line) for task, line in zip(TASKS, lines, strict=False)))
    assert one.failure is Failure.GPU_MEMORY
    assert len(one.sessions) == 2


def test_a_cause_says_what_to_do_and_nothing_while_a_retry_comes() -> None:
    failed = failing("lift", failure="gpu_memory", line="CUDA out of memory")
    (over,) = causes(failed)
    assert over.step == Fact("mend_failure", failure="gpu_memory")
    assert [one.words.split()[0] for one in over.commands] == ["explain", "retry"]
    coming = a_wait("lift_act", Fact(Wait.RETRY_AFTER, failure="gpu_memory"), NOW + 60)
    (waiting,) = causes(failed, header=(coming,))
    assert waiting.step.code == "retry_will_come"
    assert [one.words.split()[0] for one in waiting.commands] == ["explain"]
    (held,) = causes(failed, header=(a_hold("halted", "three in a row"),))
    assert [one.words.split()[0] for one in held.commands] == ["explain", "resume"]


def test_what_a_person_stopped_is_no_failure_and_comes_last() -> None:
    stopped = [Seen(f"{task}_act").ended("stopped", "none") for task in TASKS[:3]]
    found = causes(*stopped, failing("wipe"), stopped=True, dispatcher=None)
    assert [one.failure for one in found] == [Failure.ERROR, None]
    assert len(found[1].sessions) == 3


def test_a_session_that_stalls_now_is_a_cause_and_one_that_goes_well_is_not() -> None:
    (one,) = causes(Seen("lift_act", stalled=NOW - 300), Seen("stack_act"), Seen("pour_act").ended(records=100))
    assert one.names == ("lift_act",)
    assert one.step.code == "look_at_stalled"
    assert RunCauses("run", (), (one,)).answer.causes[0].commands[1].command.startswith("combo attach lift_act")


@pytest.mark.parametrize("more", ["", "\u202e" + "x" * 500])
def test_a_line_of_the_log_that_the_note_quotes_is_shown_once(more: str) -> None:
    line = f"KeyError: 'lift'{more}"
    said = f"{line[:199]}…" if more else line  # as the host cuts it
    seen = Seen(**{**failing("lift", line=said).__dict__, "log": line.encode()})
    status = status_of(a_view(PLAN), an_answer(seen))
    for width in (80, 160, 1500):
        assert picture(status, width).count("KeyError") == 1
