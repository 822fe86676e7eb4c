"""Why a session is not running, what it is doing, how it ended: from what one probe says. Times of day are UTC."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from monitor_stage import (
    HOST,
    NO_DISK,
    NOW,
    Seen,
    StagedHost,
    a_hold,
    a_plan,
    a_quarantine,
    a_session,
    a_view,
    a_wait,
    an_answer,
    look_at,
)

from comborun.answers import to_json
from comborun.api.looking import explanations
from comborun.model.judging import EvidenceRules, RetryRule, WatchRules
from comborun.model.plan import Plan
from comborun.model.resources import ModelServer
from comborun.monitor.classify import classify
from comborun.monitor.explain import Explanation, explain, explain_server, server_names
from comborun.monitor.watch import Source
from comborun.rules import events
from comborun.rules.endings.evidence import Evidence
from comborun.rules.endings.failures import Failure
from comborun.rules.facts import Fact, facts_of
from comborun.rules.machines import Elsewhere
from comborun.rules.room.waits import Wait
from comborun.words import say

PLAN = replace(
    a_plan([a_session("act", name) for name in ("grass", "stairs", "maze")], parallel=2, after=True),
    limits=replace(a_plan([], parallel=2).limits, attempts=3),
    retry=(RetryRule(Failure.GPU_MEMORY, 2, 60.0), RetryRule(Failure.ERROR, 0, 0.0)),
)
GRASS = Seen("grass_act", started=NOW - 600, counts=(60, 50), changed=NOW - 4)
STAIRS = Seen("stairs_act", started=NOW - 300, counts=(20, 20))
MAZE = Seen("maze_act", started=NOW - 300)
HALTED = a_hold("halted", "three in a row")
Header = tuple[dict[str, Any], ...]


def told(name: str, *seen: Seen, plan: Plan = PLAN, header: Header = (), **fields: object) -> Explanation:
    answer = an_answer(*seen, host=(*HOST, *header), **{"slots": 2, **fields})  # type: ignore[arg-type]
    view, history = a_view(plan), look_at(answer)
    return explain(view, history, classify(view, history), name)


def words(one: Explanation) -> list[str]:
    return [command.words.replace("walkers-20260729T101500Z-ab12", "RUN") for command in one.commands]


def codes(one: Explanation) -> list[str]:
    return [reason.code for reason in one.reasons]


def reason(one: Explanation, code: str) -> Fact:
    """The only reason with this code."""
    (found,) = [fact for fact in one.reasons if fact.code == code]
    return found


def with_first(**fields: object) -> Plan:
    """The plan, its first session changed."""
    return replace(PLAN, sessions=(replace(PLAN.sessions[0], **fields), *PLAN.sessions[1:]))  # type: ignore[arg-type]


def test_its_turn_is_told_in_numbers_with_who_is_expected_to_end_first() -> None:
    maze = told("maze_act", GRASS, STAIRS)
    assert maze.state == "queued"
    assert codes(maze) == ["slots_busy", "next_to_end", "expected_to_end"]
    assert maze.reasons[0] == Fact("slots_busy", busy=2, slots=2)
    assert maze.reasons[1].text("session") == "grass_act"
    assert maze.reasons[1].count("in_s") // 60 == 6
    assert words(maze) == ["slots 3 --run RUN"]


@pytest.mark.parametrize("cause", ["not_needed", "stopped"])
def test_what_never_began_has_no_log_and_took_no_time(cause: str) -> None:
    maze = told("maze_act", replace(MAZE, started=None).ended(cause, "none"))
    assert (maze.reasons[0].code, maze.reasons[0].number("at")) == ("attempt_was_called_off", NOW - 1)
    assert not any(word.startswith("logs") for word in words(maze))
    begun = told("maze_act", MAZE.ended(cause, "none"))
    assert any(word.startswith("logs") for word in words(begun))


@pytest.mark.parametrize(
    ("header", "fields", "code"),
    [
        ((), {"stopped": True, "dispatcher": None}, "run_is_being_stopped"),
        ((), {"dispatcher": None}, "dispatcher_gone"),
        ((a_hold("paused", "the box is full", NOW - 120),), {}, "held"),
        ((a_hold("paused", "mine", NOW - 120),), {"dispatcher": None}, "held"),
        ((NO_DISK,), {}, "run_disk_full"),
    ],
)
def test_what_holds_the_whole_run_comes_first(header: Header, fields: dict[str, object], code: str) -> None:
    maze = told("maze_act", GRASS, STAIRS, header=header, **fields)
    assert codes(maze)[0] == code
    assert "next_to_end" not in codes(maze)
    if code == "held":
        assert maze.reasons[1].code == "nothing_starts_until_resume"
        assert maze.reasons[1].number("in_s") == -120
        assert "dispatcher_gone" not in codes(maze), "it is not said to be lost"
    if code != "run_disk_full":
        assert words(maze)[0] == "resume RUN"


def test_of_a_run_on_another_machine_no_command_is_named_that_is_refused_here() -> None:
    view, history = a_view(PLAN), look_at(an_answer(GRASS, host=HOST, slots=2, dispatcher=None))
    fact = Fact(Elsewhere.MACHINE, host="box")
    status = replace(classify(view, history), elsewhere=fact, advice=fact)
    grass = explain(view, history, status, "grass_act")
    assert codes(grass)[0] == Elsewhere.MACHINE
    assert [one.partition(" --run")[0] for one in words(grass)] == ["logs -f grass_act"]
    maze = explain(view, history, status, "maze_act")
    assert not maze.commands
    assert codes(maze).count(Elsewhere.MACHINE) == 1


def test_what_a_halt_keeps_from_starting_again_says_so() -> None:
    first = GRASS.ended("gpu_memory", "none", code=1)
    grass = told("grass_act", first, header=(HALTED,), dispatcher=None)
    assert reason(grass, "starts_left").fields.items() >= {"left": 2, "held": True}.items()
    stairs = told("stairs_act", first, header=(HALTED,), dispatcher=None)
    assert "dispatcher_gone" not in codes(stairs), "it left because the run is halted"
    assert words(stairs) == ["resume RUN"]


TWO_GPUS = replace(PLAN, sessions=(*PLAN.sessions[:2], replace(PLAN.sessions[2], gpus=1)), gpus=(0, 1))
ON_0 = replace(GRASS, gpus="0"), replace(STAIRS, gpus="0")
FULL = Fact(Wait.GPU_FULL, gpu=0, sessions=2, per_gpu=2)


def test_gpus_say_who_holds_them_and_which_are_under_quarantine() -> None:
    header = (a_quarantine(1, "gpu_fault"), a_wait("maze_act", FULL))
    assert told("maze_act", *ON_0, plan=TWO_GPUS, header=header).reasons[:4] == (
        Fact("waits", waits_for="gpu", reason=FULL.as_data()),
        Fact("needs_gpus", gpus=1, of=[0, 1], memory_mib=0, per_gpu=2),
        Fact("gpus_in_quarantine", gpus=[1], failures=["gpu_fault"]),
        Fact("gpu_is_held", gpu=0, servers=[], sessions=["grass_act", "stairs_act"], count=2),
    )
    assert "gpu_is_held" not in codes(told("maze_act", *ON_0, plan=TWO_GPUS)), "only slots lack"


def test_what_a_running_process_comes_to_later_waits_for_no_slot() -> None:
    later = Fact(Wait.LATER_IN_PROCESS, process="together_act")
    found = told("maze_act", *ON_0, plan=TWO_GPUS, header=(a_wait("maze_act", later), {"slots": 2}))
    assert found.reasons == (later,)
    assert not [one for one in found.commands if "slots" in one.words]


FAILED = MAZE.ended("gpu_memory", "none", code=1)
AFTER_1, ASKED_1 = Fact(Wait.RETRY_AFTER, failure="gpu_memory", attempt=1), Fact(Wait.RETRY_ASKED, attempt=1)


@pytest.mark.parametrize(
    ("seen", "header", "stopped", "start", "second", "retry"),
    [
        (
            FAILED,
            a_wait("maze_act", AFTER_1, NOW + 40),
            False,
            {"in_s": 40, "attempt": 2, "of": 3},
            "sessions_before_it",
            True,
        ),
        (
            FAILED,
            a_wait("maze_act", ASKED_1, NOW + 40),
            False,
            {"in_s": 40, "attempt": 2, "of": 3},
            "retry_asked",
            True,
        ),
        # which another retry would not change
        (
            MAZE.ended("stopped", "none"),
            a_wait("maze_act", ASKED_1),
            True,
            {"reason": ASKED_1.as_data()},
            "sessions_before_it",
            False,
        ),
    ],
)
def test_a_retry_says_when_which_attempt_and_what_happened(
    seen: Seen, header: dict[str, Any], stopped: bool, start: dict[str, object], second: str, retry: bool
) -> None:
    maze = told("maze_act", seen, header=(header,))
    again = maze.reasons[0]
    assert (again.code, again.count("attempt"), again.fields["stopped"]) == ("waits_for_next_start", 1, stopped)
    assert start.items() <= again.fields["start"].items()
    assert codes(maze)[1] == second
    assert ("retry maze_act --run RUN" in words(maze)) is retry


def test_what_runs_says_how_far_it_is_and_what_would_end_it() -> None:
    grass = told("grass_act", ON_0[0], STAIRS, plan=with_first(watch=WatchRules(1200, 7200)))
    assert grass.reasons[:5] == (
        Fact("attempt_runs", attempt=1, gpus=[0], node="", task="", seconds=600),
        Fact("work_done", done=60, planned=100, unit="episode", successes=50, recorded=60),
        Fact("log_grew", ago_s=4),
        Fact("stall_limit", seconds=1200),
        Fact("time_limit", seconds=7200, in_s=6600),
    )
    assert codes(grass)[5:] == ["ends_about"]
    assert words(grass) == ["logs -f grass_act --run RUN", "attach grass_act --run RUN", "stop grass_act --run RUN"]


def test_a_stalled_one_says_since_when_and_whether_anything_ends_it_and_an_orphan_what_judges_it() -> None:
    grass = told("grass_act", replace(GRASS, stalled=NOW - 1500))
    assert grass.state == "stalled"
    assert Fact("no_progress_since", at=NOW - 1500, seconds=1500) in grass.reasons
    assert "no_stall_limit" in codes(grass)
    orphan = told("grass_act", replace(GRASS, life="orphaned"))
    assert "supervisor_is_gone" in codes(orphan)


def test_what_has_failed_says_how_what_was_wanted_and_that_no_retry_is_left() -> None:
    ended = GRASS.ended("exited", "partial", code=3, records=37, successes=4, peak_memory_kib=3 << 20)
    grass = told("grass_act", ended, plan=with_first(evidence=EvidenceRules(line="^done$", files=("all.json",))))
    assert codes(grass) == ["attempt_ended", "work_done", "evidence_needed", "peak_memory", "no_start_left"]
    assert grass.reasons[0].fields.items() >= {"attempt": 1, "at": NOW - 1, "seconds": 599}.items()
    assert grass.reasons[2:4] == (
        Fact("evidence_needed", records=100, record_files=["*.jsonl"], line="^done$", files=["all.json"]),
        Fact("peak_memory", bytes=3 << 30),
    )
    left = {"failure": "error", "made": 1, "most": 3, "renewed": False, "retries": 0}
    assert grass.reasons[4] == Fact("no_start_left", **left)
    assert words(grass) == ["logs grass_act --run RUN", "retry grass_act --run RUN"]


def test_what_may_be_started_again_says_how_often_and_what_went_before() -> None:
    attempts = [replace(GRASS, attempt=number).ended("gpu_memory", "none", code=1) for number in (1, 2, 3)]
    for count, left in ((1, 2), (2, 1)):
        assert reason(told("grass_act", *attempts[:count]), "starts_left").fields.items() >= {
            "left": left, "made": count
        }.items()  # fmt: skip
    last = told("grass_act", *attempts)
    assert reason(last, "no_start_left").fields.items() >= {"made": 3, "retries": 2}.items()
    assert (last.reasons[-1].code, last.reasons[-1].count("attempt")) == ("earlier_attempt", 2)


def test_a_start_that_was_asked_for_follows_whatever_the_grid_allows() -> None:
    failed = [replace(GRASS, attempt=number).ended("exited", "none", code=1) for number in (1, 2)]
    asked = told("grass_act", *failed, header=({"again": [["grass_act", 2]]},))
    assert reason(asked, "waits_for_next_start")
    assert "retry grass_act --run RUN" not in words(asked), "it was asked for"
    before = told("grass_act", *failed, header=({"again": [["grass_act", 1]]},))
    assert reason(before, "no_start_left").fields["renewed"], "budgets begin anew"


def test_what_was_amended_away_says_so_and_the_last_command_waits_for_all_the_others() -> None:
    grass = told("grass_act", GRASS.ended(records=100, successes=90), plan=with_first(flag="dropped"))
    assert codes(grass)[0] == "session_is_dropped"
    assert told("after", GRASS, STAIRS).reasons == (Fact("after_waits", sessions=3),)


def test_programs_get_the_same_and_the_log_without_what_acts_on_a_terminal() -> None:
    log = b"\x1b[31mloading\x1b[0m\r\n\n" + b"".join(b"line %d\n" % number for number in range(12))
    grass = told("grass_act", GRASS).with_log(log)
    data = json.loads(to_json(grass.answer))
    assert data["last_lines"] == [f"line {number}" for number in range(2, 12)]
    assert data["commands"][0]["command"].startswith("combo logs -f grass_act")
    assert data["reasons"] == list(map(say, grass.reasons))
    assert facts_of(data["facts"]) == grass.reasons
    assert set(data) == {
        *("untrusted", "run", "session", "policy", "environment", "state", "outcome", "attempt"),
        *("reasons", "facts", "last_lines", "commands"),
    }


def test_a_server_explains_itself() -> None:
    asking = replace(a_session("flat", "grass"), servers=(("vlm", "d1"),))
    plan = replace(a_plan([asking]), servers=(ModelServer("vlm", ("serve",), "", None, ()),))
    why = Fact(Evidence.RAN_TOO_LONG, limit_s=3).as_data()
    server = {"name": "vlm", "attempt": 2, "state": "ended", "since": NOW - 20, "cause": "timed_out", "ending": [why]}
    ended = {"servers": [server]}
    view, history = a_view(plan), look_at(an_answer(host=(HALTED, ended), dispatcher=None))
    one = explain_server(view, classify(view, history), "vlm")
    assert (server_names(plan), one.state, one.attempt) == (("vlm",), "ended", 2)
    assert codes(one) == ["run_held", "server_is", "server_is_used", "server_start"]
    state = Fact("server_state", state="ended", since_s=20, cause="timed_out", ending=[why])
    assert reason(one, "server_is").fields["server"] == state.as_data()
    assert reason(one, "server_is_used").count("sessions") == 1
    assert [one.words.split()[0] for one in one.commands] == ["resume", "logs"]
    over = look_at(an_answer(host=(ended,), dispatcher=None, done={"at": NOW, "succeeded": 1}))
    (first, *_) = explain_server(view, classify(view, over), "vlm").reasons
    assert first.code == "server_is", "nothing is left that a resume would start"


@pytest.mark.parametrize(
    ("order", "known"),
    [
        ({"names": ["grass_act"], "sessions": 1}, True),
        ({}, True),
        ({"names": ["maze_act"], "sessions": 1}, False),
        ({"names": ["maze_act"], "sessions": 40}, True),
        ({"at": NOW - 900}, False),
        ({"at": NOW - 10}, False),
        ({"order": "pause"}, False),
    ],
    ids=["it", "all", "another", "many", "before it began", "after its end", "no stop"],
)
def test_a_stopped_session_says_who_stopped_it(order: dict[str, Any], known: bool) -> None:
    row = {"at": NOW - 60, "kind": "ordered", "order": "stop", **order}
    happened = events.parse(json.dumps(row) + "\n")
    found = events.named(happened, json.dumps({"at": row["at"], "user": "ann", "from": "10.0.0.7"}))
    answer = an_answer(Seen("grass_act", started=NOW - 600).ended("stopped", "none", ended=NOW - 50), host=HOST)
    view, history = a_view(PLAN), look_at(answer)
    told_by = [say(one) for one in explain(view, history, classify(view, history), "grass_act", found).reasons]
    assert any(line.startswith("stopped by ann from 10.0.0.7") for line in told_by) == known


@pytest.mark.parametrize(("ahead", "notes"), [(18000.0, 1), (0.0, 0)])
def test_a_host_whose_clock_is_wrong_is_told_before_its_times(
    ahead: float, notes: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("comborun.monitor.watch.time.time", lambda: NOW - ahead)
    noted = list[str]()
    view = a_view(PLAN)
    target = SimpleNamespace(
        source=lambda: Source(StagedHost([an_answer(GRASS, slots=2)]), view),
        directory=view.directory,
        listener=SimpleNamespace(note=noted.append),
        transport=None,
        boxes=(),
    )
    explanations(cast("Any", target), ["stairs_act"])
    assert len(noted) == notes
