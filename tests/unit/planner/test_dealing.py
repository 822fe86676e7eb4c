"""Sessions are dealt to several hosts by what each can hold and how fast it is, and combos are cut for all of them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import gridtext
import pytest

from comborun.errors import UserError
from comborun.model.work import combo_of, grouped
from comborun.planner.dealing import (
    Candidate,
    Room,
    cut_of,
    cut_together,
    deal,
    ends,
    least,
    recut,
    rooms_of,
    same_work,
    tapered,
)
from comborun.planner.knowledge import NOTHING_KNOWN, Knowledge, Pace, pace_key
from comborun.planner.laying import Drafts, lay_out
from comborun.planner.scheduling import Uncut

GRID = """\
policies: [a, b]
environments: [x, y]
command: run {policy} {environment} --first {first_episode} --episodes {episodes}
workdir: ~/
episodes: 100
resources: {gpus: 1, gpu_memory: 2 GiB}
hosts: [fast, {host: slow, use_gpus: [1], limits: {parallel: 2}, reserve: {cpus: 3}}]
"""


def candidate(name: str, text: str = GRID, known: Knowledge = NOTHING_KNOWN, gpus: int = 2, cpus: int = 8) -> Candidate:
    grid = gridtext.grid(text)
    facts = replace(gridtext.host(gpus, 24_000, cpus), host=name)
    entry = next((one for one in grid.hosts if one.host == name), None)
    return Candidate(name, lay_out(grid.on(entry) if entry else grid, facts, known=known), facts, known)


def lengths(dealt: dict[str, str], rooms: dict[str, Room]) -> float:
    """When the last host is done, if each starts its sessions longest first."""
    ends = []
    for host, room in rooms.items():
        free = [0.0] * room.slots
        for length in sorted((room.lengths[name] for name, at in dealt.items() if at == host), reverse=True):
            free.sort()
            free[0] += length
        ends.append(max(free))
    return max(ends)


def test_a_host_gets_as_much_as_its_slots_and_its_speed_are_worth() -> None:
    names = [f"s{number}" for number in range(60)]
    rooms = {
        "four": Room(4, dict.fromkeys(names, 10.0)),
        "two": Room(2, dict.fromkeys(names, 10.0)),
        "slow": Room(4, dict.fromkeys(names, 40.0)),
    }
    dealt = deal(names, rooms)
    counts = {host: list(dealt.values()).count(host) for host in rooms}
    assert counts["four"] > counts["two"] > counts["slow"]
    assert lengths(dealt, rooms) <= 1.15 * 60 / (4 / 10 + 2 / 10 + 4 / 40), "close to the best that there is"


def test_the_end_is_close_to_the_best_for_sessions_of_many_lengths() -> None:
    chance = random.Random(3)
    names = [f"s{number}" for number in range(60)]
    long = {name: chance.uniform(10, 120) for name in names}
    rooms = {host: Room(slots, long) for host, slots in (("a", 3), ("b", 2), ("c", 4))}
    assert lengths(deal(names, rooms), rooms) <= 1.05 * sum(long.values()) / 9


def test_a_session_goes_where_it_can_run_and_to_none_otherwise() -> None:
    rooms = {"big": Room(1, {"wide": 1.0, "thin": 1.0}), "small": Room(8, {"thin": 1.0})}
    assert deal(["wide", "thin"], rooms) == {"wide": "big", "thin": "small"}
    with pytest.raises(UserError, match="no host can ever start huge"):
        deal(["huge"], rooms)


def test_what_a_host_has_already_counts() -> None:
    rooms = {"idle": Room(1, {"s": 1.0}), "busy": Room(1, {"s": 1.0}, busy=(5.0,))}
    assert deal(["s"], rooms) == {"s": "idle"}


def test_a_process_that_several_combos_share_is_dealt_once() -> None:
    rooms = {host: Room(1, {"p": 1.0, "q": 1.0, "r": 1.0}) for host in "xyz"}
    assert deal([*"pppqqqrrr"], rooms) == {"p": "x", "q": "y", "r": "z"}


def test_each_host_has_its_own_limits_and_runs_the_same_work() -> None:
    both = [candidate("fast"), candidate("slow")]
    same_work(both)
    slow = both[1].plan
    assert (slow.gpus, slow.limits.parallel, slow.cpus) == ((1,), 2, 5)
    assert both[0].plan.gpus == (0, 1)
    assert rooms_of(both)["slow"].slots == 2
    other = candidate("other", GRID.replace("--episodes", "--number"))
    with pytest.raises(UserError, match="would not run the same work"):
        same_work([both[0], other])


def test_ranges_become_smaller_and_none_is_shorter_than_ten_starts() -> None:
    pace = Pace(seconds=2.0, start_up=5.0)
    (found,) = tapered([Uncut(1000, pace)], 6)
    sizes = [len(one) for one in found]
    assert sum(sizes) == 1000
    assert [one.start for one in found[1:]] == [one.stop for one in found[:-1]]
    assert sizes[0] == max(sizes) == 84, "a twelfth"
    assert sizes[:8] == sorted(sizes[:8], reverse=True)
    assert sizes[-1] < sizes[0] / 2
    assert min(sizes) >= 25


def test_combos_are_cut_for_all_hosts_and_keep_their_episodes() -> None:
    text = GRID.replace("episodes: 100", "episodes: 100\nshards: auto")
    one = candidate("fast", text)
    known = Knowledge("a test", {pace_key(session): Pace(1.0, 1.0) for session in one.plan.sessions})
    both = [candidate("fast", text, known), candidate("slow", text, known)]
    cut = cut_together(gridtext.grid(text), both)
    plans = [recut(each.plan, cut) for each in both]
    assert {session.name for session in plans[0].sessions} == {session.name for session in plans[1].sessions}
    assert plans[0].digest == both[0].plan.digest, "another cut is the same work"
    for sessions in grouped(plans[0].sessions, combo_of).values():
        assert sorted(index for session in sessions for index in session.episodes) == list(range(100))
    assert len({session.count for session in plans[0].sessions}) > 3
    assert recut(both[1].plan, cut_of(plans[0])).sessions == plans[1].sessions, "a later launch cuts alike"


def test_without_known_times_the_ranges_fill_the_slots_of_all_hosts() -> None:
    text = GRID.replace("episodes: 100", "episodes: 100\nshards: auto")
    both = [candidate("fast", text), candidate("slow", text)]
    plan = recut(both[0].plan, cut_together(gridtext.grid(text), both))
    assert len(plan.sessions) == 10, "8 and 2 slots"


@pytest.mark.parametrize(
    ("added", "place", "words"),
    [
        ("host: z\n", "1:1", "`host` and `hosts`"),
        ("after: echo\n", "1:1", "`after` with several hosts"),
        ("limits: {fail_fast: 2}\n", "1:10", "`fail_fast` with several hosts"),
        ("notify: ./n.sh\n", "1:1", "`notify` with several hosts"),
        ("stop_early: all\n", "1:1", "`stop_early` with several hosts"),
    ],
)
def test_what_several_hosts_cannot_do_together_is_refused_with_its_place(added: str, place: str, words: str) -> None:
    said = gridtext.mistakes(added + GRID)
    assert f"grid.yaml:{place}: {words}" in said
    assert "hint: " in said


def test_notices_of_single_sessions_are_allowed_and_hosts_must_differ() -> None:
    assert gridtext.grid(GRID + "notify: {command: ./n.sh, on: [failed, host]}\n").notify
    assert "names a 2 times" in gridtext.mistakes(GRID.replace("[fast,", "[a, a,"))
    assert "`hosts` has one entry" in gridtext.mistakes(GRID.replace("hosts: [", "hosts: [a]\n# ["))


def test_each_host_is_said_to_end_when_its_sessions_have_ended_and_no_deal_ends_before_the_least() -> None:
    long = {"a": 10.0, "b": 6.0, "c": 4.0, "d": 4.0}
    rooms = {"two": Room(2, long), "one": Room(1, long), "idle": Room(1, long)}
    dealt = {"a": "two", "b": "two", "c": "two", "d": "one"}
    assert ends(dealt, rooms) == {"two": 10.0, "one": 4.0, "idle": 0.0}
    assert ends(dealt, {**rooms, "one": Room(1, long, busy=(3.0,))})["one"] == 7.0
    assert least(dealt, rooms) == 10.0, "the longest session alone"
    assert least(dealt, {"one": Room(1, long)}) == 24.0, "all work in one slot"


@pytest.mark.parametrize(
    ("text", "first", "second", "drafts"),
    [
        (GRID, ("fast", {}), ("fast", {"available": 1 << 30}), 1),
        (GRID, ("fast", {}), ("slow", {}), 2),
        (GRID.replace(", limits: {parallel: 2}, reserve: {cpus: 3}", ""), ("fast", {}), ("slow", {}), 2),
        (GRID, ("fast", {}), ("fast", {"cpus": 4}), 2),
        (GRID, ("fast", {}), ("fast", {"gpus": (0, 1, 2)}), 2),
        (GRID + "shards: auto\n", ("fast", {}), ("fast", {}), 0),
    ],
    ids=[
        "less is free",
        "another entry in `hosts`",
        "other GPUs to use",
        "other cores",
        "other GPUs",
        "automatic shards",
    ],
)
def test_hosts_of_one_shape_share_a_plan_and_each_gets_what_it_would_get_alone(
    text: str, first: tuple[str, dict[str, Any]], second: tuple[str, dict[str, Any]], drafts: int
) -> None:
    grid, made = gridtext.grid(text), Drafts()
    for name, changes in (first, second):
        entry = next(one for one in grid.hosts if one.host == name)
        facts = replace(gridtext.host(2, 24_000, 8), host=name, **changes)
        assert lay_out(grid.on(entry), facts, drafts=made) == lay_out(grid.on(entry), facts)
    assert len(made._made) == 2 * drafts, "each without and with the threads of its sessions"
