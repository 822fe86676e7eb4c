"""A host loses its power in the middle of a run and comes back: other boot id, same disk, nobody logged in.

What was written stays written here: a page cache that a real power loss would empty is not part of the test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from accounts import planned
from box import until
from desk import Desk
from hosts import Site
from laptop import FarRun, Laptop, Watcher, episodes, only_run

EPISODES = 12
ENDED, RUNNING, QUEUED = "maze_good", ("field_good", "maze_poor"), "field_poor"
"""where each session is when the power goes; two run at once"""


@pytest.fixture
def laptop(desk: Desk, near_site: Site) -> Iterator[Laptop]:
    desk.environment["COMBORUN_SSH_CONFIG"] = str(near_site.host.config)
    made = Laptop(desk, near_site.host.home, tuple(near_site.network.client.inside()))
    yield made
    made.close()


def test_a_power_loss_is_one_host_event_and_the_same_launch_finishes_the_rest(laptop: Laptop, near_site: Site) -> None:
    grid = laptop.grid(pace=0.1, episodes=EPISODES, limits="{parallel: 2, attempts: 1}")
    laptop.launch(grid)
    run = only_run(laptop.far_home)
    laptop.open_gates(ENDED)
    until(lambda: len(run.begins) == 3 and run.ends == [f"{ENDED}/attempt-1"], "one has ended, two run", 40)
    monitors = [laptop.watch(shape, patience=3) for shape in ("--plain", "--json")]
    plain, in_json = monitors
    until(lambda: in_json.documents and "1 succeeded" in plain.text, f"they see it; one says\n{plain.text}")

    lose_power(near_site, monitors)
    boots = near_site.host.boots
    assert boots[0] != boots[1]
    told_as_one_event(plain, in_json)

    assert laptop.launch(grid)["state"] == "resumed"
    laptop.open_gates()
    assert [monitor.await_exit() for monitor in monitors] == [0, 0]
    assert run.launches == dict.fromkeys(starts(), 1), "what had ended does not run again, what was lost does, once"
    assert dict(episodes(plain.report)) == dict.fromkeys(
        planned("good", "poor", environments=("maze", "field"), episodes=EPISODES), 1
    )
    assert {session["outcome"] for session in in_json.documents[-1]["sessions"]} == {"succeeded"}
    assert machines(run) == {"attempt-1": {boots[0], boots[1]}, "attempt-2": {boots[1]}}


def lose_power(site: Site, monitors: list[Watcher]) -> None:
    """Off, noticed, and on again. Packets go nowhere meanwhile: a host without power refuses nobody."""
    site.network.link.cut()
    site.host.lose_power()
    for monitor in monitors:
        until(lambda one=monitor: "unreachable_since" in one.text or "! unreachable" in one.text, "it is noticed", 60)
    until(lambda: not monitors[1].documents[-1]["reachable"], "it is noticed", 60)
    site.host.power_on()
    site.network.link.mend()


def told_as_one_event(plain: Watcher, in_json: Watcher) -> None:
    until(lambda: "reachable again" in plain.text, f"the host is found again; it says\n{plain.text}", 60)
    until(lambda: in_json.documents[-1]["reachable"], "the host is found again", 60)
    document = in_json.documents[-1]
    assert document["counts"] == {"queued": 1, "succeeded": 1, "lost": 2}
    event = document["host_event"]
    assert event["kind"] == "restarted"
    assert sorted(event["sessions"]) == sorted(RUNNING)
    after = plain.text.partition("reachable again")[2]
    assert len(re.findall(r"testbox rebooted", after)) == 1
    assert not re.findall(r"lost,|nobody saw", after), "no line for each session besides"
    assert "combo resume" in after


def starts() -> list[str]:
    return [*(f"{name}/attempt-1" for name in (ENDED, *RUNNING, QUEUED)), *(f"{name}/attempt-2" for name in RUNNING)]


def machines(run: FarRun) -> dict[str, set[str]]:
    """The boots under which first and second attempts were made."""
    found: dict[str, set[str]] = {}
    for name, begin in run.begins.items():
        found.setdefault(name.partition("/")[2], set()).add(begin.boot)
    return found
