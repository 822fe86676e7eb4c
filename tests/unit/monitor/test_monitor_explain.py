"""Why a session is not running, what it is doing, how it ended: from what one probe says. Times of day are UTC."""

from __future__ import annotations

from dataclasses import replace

import pytest
from monitor_stage import NOW, Seen, a_plan, a_session, a_view, an_answer, look_at

from comborun.model.judging import EvidenceRules, RetryRule, WatchRules
from comborun.model.plan import Plan
from comborun.model.servers import ModelServer
from comborun.monitor.classify import classify
from comborun.monitor.explain import Explanation, explain, explain_server, server_names, to_document
from comborun.rules.endings.failures import Failure

PLAN = replace(
    a_plan([a_session("act", name) for name in ("grass", "stairs", "maze")], parallel=2, after=True),
    limits=replace(a_plan([], parallel=2).limits, attempts=3),
    retry=(RetryRule(Failure.GPU_MEMORY, 2, 60.0), RetryRule(Failure.ERROR, 0, 0.0)),
)
GRASS = Seen("grass_act", started=NOW - 600, counts=(60, 50), changed=NOW - 4)
STAIRS = Seen("stairs_act", started=NOW - 300, counts=(20, 20))
MAZE = Seen("maze_act", started=NOW - 300)
HALTED = "hold kind=halted since=1 why=three in a row"


def told(name: str, *seen: Seen, plan: Plan = PLAN, header: tuple[str, ...] = (), **fields: object) -> Explanation:
    answer = an_answer(*seen, host=("load=1 cpus=2", *header), **{"slots": 2, **fields})  # type: ignore[arg-type]
    view, history = a_view(plan), look_at(answer)
    return explain(view, history, classify(view, history), name)


def words(one: Explanation) -> list[str]:
    return [command.words.replace("walkers-20260729T101500Z-ab12", "RUN") for command in one.commands]


def wait(reason: str, until: float | str = "", detail: str = "") -> str:
    return f"waiting session=maze_act reason={reason} until={until} detail={detail}"


def with_first(**fields: object) -> Plan:
    """The plan, its first session changed."""
    return replace(PLAN, sessions=(replace(PLAN.sessions[0], **fields), *PLAN.sessions[1:]))  # type: ignore[arg-type]


def test_its_turn_is_told_in_numbers_with_who_is_expected_to_end_first() -> None:
    maze = told("maze_act", GRASS, STAIRS)
    assert maze.state == "queued"
    assert maze.reasons == (
        "2 of 2 slots busy",
        "the next to end is grass_act, about 10:36 (in 6 min)",
        "it is expected to end at 10:55 (in 25 min)",
    )
    assert words(maze) == ["slots 3 --run RUN"]


@pytest.mark.parametrize("cause", ["not_needed", "stopped"])
def test_what_never_began_has_no_log_and_took_no_time(cause: str) -> None:
    maze = told("maze_act", replace(MAZE, started=None).ended(cause, "none"))
    assert maze.reasons[0].startswith("attempt 1 was called off at 10:29:59 and never began")
    assert not any(word.startswith("logs") for word in words(maze))
    begun = told("maze_act", MAZE.ended(cause, "none"))
    assert any(word.startswith("logs") for word in words(begun))


@pytest.mark.parametrize(
    ("header", "fields", "reason"),
    [
        ((), {"stopped": True, "dispatcher": None}, "stopped: nothing new starts"),
        ((), {"dispatcher": None}, "the dispatcher is gone, nothing new starts"),
        ((f"hold kind=paused since={NOW - 120} why=the box is full",), {}, "paused: the box is full"),
        ((f"hold kind=paused since={NOW - 120} why=mine",), {"dispatcher": None}, "paused: mine"),
        (("disk_kib=1000 disk_available_kib=0",), {}, "the disk of the run is full"),
    ],
)
def test_what_holds_the_whole_run_comes_first(header: tuple[str, ...], fields: dict[str, object], reason: str) -> None:
    maze = told("maze_act", GRASS, STAIRS, header=header, **fields)
    assert maze.reasons[0].startswith(reason)
    assert not any("the next to end" in one for one in maze.reasons)
    if "paused" in reason:
        assert maze.reasons[1].startswith("nothing new starts since 10:28 (2 min ago), until `combo resume ")
        assert max(map(len, maze.reasons)) < 100, "short lines, with the command apart from the reason"
        assert not [one for one in maze.reasons if "dispatcher" in one], "it is not said to be lost"
    if "disk" not in reason:
        assert words(maze)[0] == "resume RUN"


def test_what_a_halt_keeps_from_starting_again_says_so() -> None:
    first = GRASS.ended("gpu_memory", "none", code=1)
    grass = told("grass_act", first, header=(HALTED,), dispatcher=None)
    assert any("2 more starts may follow when the run goes on" in reason for reason in grass.reasons)
    stairs = told("stairs_act", first, header=(HALTED,), dispatcher=None)
    assert not any("dispatcher" in reason for reason in stairs.reasons), "it left because the run is halted"
    assert words(stairs) == ["resume RUN"]


TWO_GPUS = replace(PLAN, sessions=(*PLAN.sessions[:2], replace(PLAN.sessions[2], gpus=1)), gpus=(0, 1))
ON_0 = replace(GRASS, gpus="0"), replace(STAIRS, gpus="0")


def test_gpus_say_who_holds_them_and_which_are_under_quarantine() -> None:
    header = ("quarantine gpu=1 failure=gpu_fault since=5", wait("gpu", detail="GPU 0 is full"))
    assert told("maze_act", *ON_0, plan=TWO_GPUS, header=header).reasons[:4] == (
        "it waits for a GPU: GPU 0 is full",
        "it needs 1 GPU of 0, 1, at most 2 sessions on each",
        "GPU 1 gets no more sessions (GPU fault again and again)",
        "GPU 0 is held by grass_act, stairs_act",
    )
    only_slots_lack = told("maze_act", *ON_0, plan=TWO_GPUS).reasons
    assert not [one for one in only_slots_lack if "held by" in one]


FAILED = MAZE.ended("gpu_memory", "none", code=1)
AGAIN = "its attempt 1 failed; again in 40 s: out of GPU memory, attempt 2 of 3"


@pytest.mark.parametrize(
    ("seen", "header", "reasons", "retry"),
    [
        (FAILED, wait("retry", NOW + 40), (AGAIN, "2 sessions"), True),
        # what only says again how it failed is left out
        (FAILED, wait("retry", NOW + 40, "gpu_memory, after attempt 1"), (AGAIN, "2 sessions"), True),
        (FAILED, wait("retry", NOW + 40, "asked for after attempt 1"), (AGAIN, "asked for after attempt 1"), True),
        # which another retry would not change
        (
            MAZE.ended("stopped", "none"),
            wait("retry", detail="asked for after attempt 1"),
            ("its attempt 1 was stopped; again as soon as a slot is free: asked for after attempt 1", "2 sessions"),
            False,
        ),
    ],
)
def test_a_retry_says_when_which_attempt_and_what_happened(
    seen: Seen, header: str, reasons: tuple[str, str], retry: bool
) -> None:
    maze = told("maze_act", seen, header=(header,))
    assert maze.reasons[0] == reasons[0]
    assert maze.reasons[1].startswith(reasons[1])
    assert ("retry maze_act --run RUN" in words(maze)) is retry


def test_what_runs_says_how_far_it_is_and_what_would_end_it() -> None:
    grass = told("grass_act", ON_0[0], STAIRS, plan=with_first(watch=WatchRules(1200, 7200)))
    assert grass.reasons == (
        "attempt 1 has been running for 10 min 00 s on GPU 0",
        "60 of 100 episodes done, 50 of 60 successful",
        "its log last grew 4 s ago",
        "it is ended when it shows no progress for 20 min 00 s",
        "it is ended when it has run for 2 h 00 min, in 1.8 h",
        "ends 10:34–10:38 (in 4–8 min)",
    )
    assert words(grass) == ["logs -f grass_act --run RUN", "attach grass_act --run RUN", "stop grass_act --run RUN"]


def test_a_stalled_one_says_since_when_and_whether_anything_ends_it_and_an_orphan_what_judges_it() -> None:
    grass = told("grass_act", replace(GRASS, stalled=NOW - 1500))
    assert grass.state == "stalled"
    assert "no progress since 10:05:00 (25 min)" in grass.reasons
    assert "this does not end it: the grid sets no `limits: {stall_after: ...}`" in grass.reasons
    orphan = told("grass_act", replace(GRASS, life="orphaned"))
    assert any("its supervisor is gone, but the command goes on" in reason for reason in orphan.reasons)


def test_what_has_failed_says_how_what_was_wanted_and_that_no_retry_is_left() -> None:
    ended = GRASS.ended("exited", "partial", code=3, records=37, successes=4, peak_memory_kib=3 << 20)
    grass = told("grass_act", ended, plan=with_first(evidence=EvidenceRules(line="^done$", files=("all.json",))))
    assert grass.reasons == (
        "attempt 1 ended at 10:29:59 after 9 min 59 s: exit code 3",
        "37 of 100 episodes done, 4 of 37 successful",
        "to be complete, it needs 100 records in *.jsonl and a log line that matches ^done$ and a file all.json",
        "its processes held 3.00 GiB of memory at most, by samples",
        "its failure counts as `error`, which is not retried (1 of 3 starts used)",
    )
    assert words(grass) == ["logs grass_act --run RUN", "retry grass_act --run RUN"]


def test_what_may_be_started_again_says_how_often_and_what_went_before() -> None:
    attempts = [replace(GRASS, attempt=number).ended("gpu_memory", "none", code=1) for number in (1, 2, 3)]
    said = ("2 more starts may follow (1 of 3", "1 more start may follow (2 of 3", "no start is left (3 of 3")
    for count, words_of_it in enumerate(said, 1):
        reasons = told("grass_act", *attempts[:count]).reasons
        assert any(words_of_it in reason for reason in reasons)
    assert reasons[-1] == "attempt 2 before it: out of GPU memory, 0 episodes"


def test_a_start_that_was_asked_for_follows_whatever_the_grid_allows() -> None:
    failed = [replace(GRASS, attempt=number).ended("exited", "none", code=1) for number in (1, 2)]
    asked = told("grass_act", *failed, header=("again grass_act=2",))
    assert any("asked for after attempt 2" in reason for reason in asked.reasons)
    assert "retry grass_act --run RUN" not in words(asked), "it was asked for"
    before = told("grass_act", *failed, header=("again grass_act=1",))
    assert any("1 of 3 starts used since" in reason for reason in before.reasons), "budgets begin anew"


def test_what_was_amended_away_says_so_and_the_last_command_waits_for_all_the_others() -> None:
    grass = told("grass_act", GRASS.ended(records=100, successes=90), plan=with_first(flag="dropped"))
    assert grass.reasons[0].startswith("the grid has changed")
    after = told("after", GRASS, STAIRS)
    assert after.reasons == ("the grid's last command runs once all sessions have ended: 3 have not",)


def test_programs_get_the_same_and_the_log_without_what_acts_on_a_terminal() -> None:
    log = b"\x1b[31mloading\x1b[0m\r\n\n" + b"".join(b"line %d\n" % number for number in range(12))
    data = to_document(told("grass_act", GRASS).with_log(log))
    assert list(data["last_lines"]) == [f"line {number}" for number in range(2, 12)]
    assert data["commands"][0]["command"].startswith("combo logs -f grass_act")
    assert set(data) == {
        *("run", "session", "policy", "environment", "state", "outcome", "attempt"),
        *("reasons", "last_lines", "commands"),
    }


def test_a_server_explains_itself() -> None:
    asking = replace(a_session("flat", "grass"), servers=(("vlm", "d1"),))
    plan = replace(a_plan([asking]), servers=(ModelServer("vlm", ("serve",), "", None, ()),))
    ended = f"servers name=vlm attempt=2 state=ended since={NOW - 20} gpus= port= cause=timed_out why=not ready in 3 s"
    view, history = a_view(plan), look_at(an_answer(host=(HALTED, ended), dispatcher=None))
    one = explain_server(view, classify(view, history), "vlm")
    assert (server_names(plan), one.state, one.attempt) == (("vlm",), "ended", 2)
    assert one.reasons[0].startswith("halted: ")
    assert one.reasons[1] == "it has ended 20 s ago (timed_out: not ready in 3 s)"
    assert "1 session of the run uses it" in one.reasons
    assert [one.words.split()[0] for one in one.commands] == ["resume", "logs"]
    over = look_at(an_answer(host=(ended,), dispatcher=None, done={"at": NOW, "succeeded": 1}))
    (first, *_) = explain_server(view, classify(view, over), "vlm").reasons
    assert first.startswith("it has ended"), "nothing is left that a resume would start"
