"""Sessions whose names begin alike: what is done to one is done to no other, however hard it is to end."""

from __future__ import annotations

from accounts import accounted_for, planned
from box import alive, carrying, until
from ground import Ground
from matrix import faults

POLICIES = ("family-1", "family-10", "family-100")
CHILDREN = 3


@faults("names")
def test_stopping_a_session_ends_its_escaped_children_and_no_session_whose_name_begins_alike(ground: Ground) -> None:
    grid = ground.grid(*POLICIES)
    ground.launch(grid)
    begins = {policy: ground.begun(f"maze_{policy}") for policy in POLICIES}
    for policy in POLICIES:
        until(lambda one=policy: len(members(ground, one)) > CHILDREN, f"{policy} has children everywhere")
    ground.combo("stop", *ground.of_run(), "--run", ground.run.id, "maze_family-1")
    assert members(ground, POLICIES[0]) == []
    assert not alive(begins[POLICIES[0]].supervisor)
    for policy in POLICIES[1:]:
        assert alive(begins[policy].pid)
        assert alive(begins[policy].supervisor)
        assert len(members(ground, policy)) > CHILDREN
    ground.open_gates()
    assert ground.await_done()["cancelled"] == "1", ground.story
    accounted_for(ground, planned(*POLICIES), {("family-1", "maze", 3)})

    ground.launch(grid)
    assert ground.await_done()["succeeded"] == "3", ground.story
    accounted_for(ground, planned(*POLICIES))


@faults("names", turn=1)
def test_stopping_a_run_ends_programs_that_are_deaf_to_signals_and_children_that_escaped(ground: Ground) -> None:
    grid = ground.grid("deaf", "family")
    ground.launch(grid)
    ground.begun("maze_family")
    begin = ground.begun_at("maze_deaf", 1)
    ground.combo("stop", *ground.of_run(), ground.run.id)
    assert ground.marked() == []
    assert not alive(begin.pid)
    assert ground.end("maze_deaf")["signal"] == "9"
    accounted_for(
        ground, planned("deaf", "family"), {*planned("deaf") - planned("deaf", episodes=2), ("family", "maze", 3)}
    )

    ground.launch(grid)
    ground.open_gates()
    assert ground.await_done()["succeeded"] == "2", ground.story
    accounted_for(ground, planned("deaf", "family"))


def members(ground: Ground, policy: str) -> list[int]:
    return carrying(f"COMBORUN_SESSION={ground.run.id}/maze_{policy}/")
