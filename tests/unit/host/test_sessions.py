"""What the states of sessions and of model servers mean for the slots of a run, and for its end."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from comborun.host.dispatch.sessions import (
    Closing,
    Dropped,
    Ended,
    Lost,
    New,
    Orphaned,
    Queue,
    Queued,
    Running,
    Server,
    Starting,
    State,
)
from comborun.host.engines.multiplexers import MULTIPLEXERS
from comborun.rules import names

STATES: dict[str, tuple[State, bool, bool]] = {
    "new": (New(), False, False),
    "queued": (Queued(), True, False),
    "starting": (Starting((0,), 6, 0.0), True, True),
    "running": (Running((0,)), True, True),
    "orphaned": (Orphaned((0,)), True, True),
    "closing": (Closing((0,)), True, False),
    "lost": (Lost((0,), freed=False, counted=False), True, True),
    "lost after its slot was free": (Lost((0,), freed=True, counted=False), True, False),
    "ended": (Ended({}), False, False),
    "dropped": (Dropped(), False, False),
}
"""a state, whether the run goes on for it, and whether it takes a slot"""


@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("after", STATES)
def test_slots_and_what_is_left_follow_from_the_states(before: str, after: str) -> None:
    queue = Queue()
    session, other = queue.add("env_a"), queue.add("env_b")
    queue.set(other, Running(()))
    for name in (before, after):
        state, left, busy = STATES[name]
        queue.set(session, state)
        assert (queue.left, queue.busy) == (1 + left, 1 + busy), name
    assert [one.name for one, _ in queue.waiting()] == (["env_a"] if after == "queued" else [])


def test_sessions_wait_in_the_order_of_the_plan_also_when_one_comes_back() -> None:
    queue = Queue()
    for name in ("env_a", "env_b", "env_c"):
        queue.set(queue.add(name), Queued())
    first = queue["env_a"]
    queue.set(first, Running(()))
    assert [one.name for one, _ in queue.waiting()] == ["env_b", "env_c"]
    queue.set(first, Queued("crashed, after attempt 1"))
    assert [one.name for one, _ in queue.waiting()] == ["env_a", "env_b", "env_c"]


def test_a_model_server_takes_no_slot_and_no_run_waits_for_it() -> None:
    queue, server = Queue(), Server("gaits")
    queue.servers["gaits"] = server
    for state, _, _ in STATES.values():
        queue.set(server, state)
        assert (queue.left, queue.busy, list(queue)) == (0, 0, [])
    running = Running(())
    queue.set(server, running)
    assert (server.lives, server.ready, server.path) == (True, False, "servers/gaits")
    running.ready = True
    assert server.ready
    queue.set(server, Lost((), freed=False, counted=False))
    assert (server.lives, server.ready) == (True, False), "what is lost serves nobody"


def test_every_multiplexer_that_a_command_offers_has_a_class_that_tells_how_to_attach() -> None:
    assert tuple(MULTIPLEXERS) == names.MULTIPLEXER_NAMES
    for kind, engine in MULTIPLEXERS.items():
        for write in (False, True):
            words = engine.attach("address", "", local=False, write=write)
            assert kind in words
            assert any("address" in word for word in words)
        assert subprocess.run([kind, engine.version], capture_output=True, check=False).stdout


@pytest.mark.parametrize("kind", names.MULTIPLEXER_NAMES)
def test_every_multiplexer_is_installed_by_the_scripts_that_need_it(kind: str) -> None:
    checkout = Path(__file__).parents[3]
    assert f'*" --multiplexer {kind} "*' in (checkout / "scripts/run_parallel.sh").read_text()
    assert f" {kind}=" in (checkout / "tests/run.sh").read_text()
