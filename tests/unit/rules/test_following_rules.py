"""What a training's record says, and what the plan becomes by it."""

from __future__ import annotations

import json

import pytest

from comborun.rules import records
from comborun.rules.facts import Fact
from comborun.rules.following import (
    PATH,
    POLICY,
    SAFE,
    WRITTEN_OVER,
    Decision,
    Evidence,
    Record,
    Why,
    plan_text,
    queue_text,
    step_of,
    with_checkpoints,
)
from comborun.words import say

TEMPLATE = {
    "name": f"maze_{POLICY}",
    "policy": POLICY,
    "environment": "maze",
    "command": ["eval", f"'{PATH}'"],
    "digest": "d1",
    "flag": "dropped",
}
PLAN = {"grid": "g", "sessions": [TEMPLATE, {"name": f"field_{POLICY}", "environment": "field", "digest": "d2"}]}
ROWS = "".join(json.dumps({"name": name, "flag": "dropped"}) + "\n" for name in (f"maze_{POLICY}", f"field_{POLICY}"))


def row(decision: Decision, **fields: object) -> dict[str, object]:
    return records.parse(records.render({"decision": decision, **fields}.items()))


def held(step: int, digest: str = "aaaa1", **fields: object) -> dict[str, object]:
    own = {"policy": f"step_{step}", "step": step, "digest": digest, "link": f"/a run/step_{step}/x.pt", "path": "/x"}
    return row(Decision.HELD, **{**own, "mark": f"1-2-{step}-1", "evidence": Evidence.RENAMED, **fields})


@pytest.mark.parametrize(
    ("matched", "step"),
    [("1000", 1000), ("epoch=3-step=1000", 1000), ("0050", 50), ("last", None), ("1000.tmp-17", None), ("", None)],
)
def test_the_step_is_the_only_number_or_the_one_behind_its_word(matched: str, step: int | None) -> None:
    assert step_of(matched) == step


def test_the_sessions_of_a_checkpoint_are_copies_of_the_template_with_its_name_and_path() -> None:
    checkpoint = held(1000)
    plan = with_checkpoints(PLAN, [checkpoint], ())
    maze, field = plan["sessions"][2:]
    assert (maze["name"], maze["policy"], maze["flag"]) == ("maze_step_1000", "step_1000", "")
    assert (field["name"], field["command"]) == ("field_step_1000", ["eval", "'/a run/step_1000/x.pt'"])
    assert [one["flag"] for one in plan["sessions"][:2]] == ["dropped", "dropped"], "the template never starts"
    assert plan["steps"] == [["step_1000", 1000.0]]
    assert with_checkpoints(plan, [checkpoint], ()) == plan, "what is there is not added again"
    assert json.loads(plan_text(plan)) == plan


def test_another_content_is_other_work() -> None:
    one, other = (with_checkpoints(PLAN, [held(1, digest)], ())["sessions"][2] for digest in ("a", "b"))
    assert one["digest"] != other["digest"]


def test_a_changed_checkpoint_is_dropped_from_plan_and_queue() -> None:
    taken = [held(1), held(2)]
    plan = with_checkpoints(PLAN, taken, {"step_1"})
    flags = {one["name"]: one["flag"] for one in plan["sessions"]}
    assert flags == {
        f"maze_{POLICY}": "dropped",
        f"field_{POLICY}": "dropped",
        "maze_step_1": "dropped",
        "field_step_1": "dropped",
        "maze_step_2": "",
        "field_step_2": "",
    }
    policies = {one["name"]: one["policy"] for one in plan["sessions"]}
    queue = [json.loads(line) for line in queue_text(ROWS, taken, {"step_1"}, policies).splitlines()]
    assert {one["name"]: one.get("flag", "") for one in queue} == flags


def test_a_process_of_several_environments_gets_its_row_without_dropped_ones() -> None:
    members = [f"maze_{POLICY}", f"field_{POLICY}"]
    shared = {"name": f"together_{POLICY}", "flag": "dropped", "together": members, "dropped": members}
    (_, own) = queue_text(json.dumps(shared) + "\n", [held(1)], (), {}).splitlines()
    assert json.loads(own) == {"name": "together_step_1", "together": ["maze_step_1", "field_step_1"]}


def test_rows_of_a_checkpoint_are_one_and_the_newest_decision_counts() -> None:
    record = Record(
        [held(1), row(Decision.TAKEN, policy="step_1"), row(Decision.VERIFIED, policy="step_1", attempts=2)]
    )
    (one,) = record.having(Decision.VERIFIED)
    assert (one["step"], one["attempts"], record.having(Decision.TAKEN)) == ("1", "2", [])
    assert ("/x", "1-2-1-1") in record.decided


def test_a_step_that_is_written_again_has_a_name_of_its_own() -> None:
    record = Record([held(1)])
    assert record.policy(2, "bbbb2") == ("step_2", False)
    assert record.policy(1, "bbbb2") == ("step_1_bbbb", True)
    record.add(held(1, "bbbb2", policy="step_1_bbbb"))
    assert record.policy(1, "bbbb31") == ("step_1_bbbb3", True), "a second rollback with the same first letters"
    record = Record([held(1)])
    assert record.same(1, "aaaa1") == "step_1"
    assert record.same(1, "bbbb2") == record.same(2, "aaaa1") == ""


def test_what_nobody_saw_is_as_the_others_only_while_none_was_written_in_place() -> None:
    in_place = row(Decision.REFUSED, path="/y", mark="1", reason=Fact(Why.IN_PLACE, name="y"))
    assert not Record().renames
    assert Record([held(1)]).renames
    assert not Record([held(1), in_place]).renames
    assert not Record([held(1, evidence=Evidence.MARKER)]).renames


def test_remarks_name_what_does_not_count() -> None:
    rows = [held(step, digest=str(step)) for step in (1, 2, 3)]
    rows += [row(Decision.TAKEN, policy="step_1"), row(Decision.CHANGED, policy="step_2")]
    rows += [row(Decision.VERIFIED, policy="step_3", attempts=1)]
    rows += [row(Decision.REFUSED, path="/y", mark="1", reason=Fact(Why.EMPTY))]
    said = {one.code: one.fields for one in Record(rows).remarks()}
    assert said["checkpoints_pending"] == {"policies": ["step_1"]}
    assert said["checkpoints_changed"] == {"policies": ["step_2"]}
    assert (said["checkpoints_passed"]["evaluated"], said["checkpoints_passed"]["refused"]) == (1, 1)


@pytest.mark.parametrize(
    ("later", "over"),
    [
        (row(Decision.REFUSED, path="/x1", mark="1-9-9-1", reason=Fact(Why.IN_PLACE, name="x1")), ["step_1"]),
        (row(Decision.SKIPPED, path="/x1", mark="7-2-9-1", reason=Fact(Why.NOT_DUE, every=2)), ["step_1"]),
        (held(1, "bbbb2", policy="step_1_bbbb", path="/x1", mark="7-2-9-1"), ["step_1"]),
        (row(Decision.SKIPPED, path="/x1", mark="7-2-9-1", reason=Fact(Why.KNOWN, policy="step_1")), []),
        (row(Decision.REFUSED, path="/x1", mark="gone", reason=Fact(Why.GONE)), []),
        (row(Decision.SKIPPED, path="/x2", mark="7-2-9-1", reason=Fact(Why.NOT_DUE, every=2)), []),
    ],
)
def test_a_step_that_was_written_again_is_told_whether_that_was_taken_or_not(
    later: dict[str, object], over: list[str]
) -> None:
    record = Record([held(1, path="/x1"), row(Decision.VERIFIED, policy="step_1", attempts=1), later])
    assert record.written_over == over
    assert (WRITTEN_OVER in {one.code for one in record.remarks()}) is bool(over)
    status = record.summary(over=False, alive=None)
    assert status.fields.get("written_over", []) == over
    assert status.count("refused") == (later["decision"] == Decision.REFUSED and not over), "it is told once"


def test_every_reason_of_a_refusal_is_told_with_names_and_a_changed_checkpoint_is_not_refused_as_well() -> None:
    rows = [held(3, path="/c/3.pt"), row(Decision.CHANGED, policy="step_3")]
    rows += [row(Decision.REFUSED, path="/c/3.pt", mark="9", reason=Fact(Why.IN_PLACE, name="3.pt"))]
    rows += [row(Decision.REFUSED, path=f"/c/{step}.pt", mark="1", reason=Fact(Why.EMPTY)) for step in range(4, 9)]
    rows += [row(Decision.REFUSED, path="/c/9.pt", mark="1", reason=Fact(Why.FOREIGN, owner="ann"))]
    for fact in (Record(rows).remarks()[-1], Record(rows).summary(over=True, alive=None)):
        said = say(fact)
        assert "6 refused: 6.pt, 7.pt, 8.pt and 2 more (it is empty)" in said
        assert "9.pt (it belongs to ann" in said
        assert "3.pt" not in said


@pytest.mark.parametrize("path", ["/a'b", '/a"b', "/a\\b", "/a\nb", "/a\udcffb"])
def test_a_path_that_ends_a_quote_is_not_safe(path: str) -> None:
    assert not SAFE.fullmatch(path)
    assert SAFE.fullmatch("/home/a user/$x/*(1)/é.pt")
