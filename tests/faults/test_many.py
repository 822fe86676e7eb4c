"""Very many sessions, and the dispatcher is killed in the middle."""

from __future__ import annotations

import signal

import pytest
from accounts import accounted_for, planned
from box import alive, kill, until
from ground import Ground
from happened import events
from matrix import FULL, faults

SESSIONS = 500 if FULL else 60
ROW = '{"policy": "%s", "environment": "%s", "episode": 0, "success": true}\\n'
WRITES = 'sleep 0.5; printf "$0" "$1" "$2" >"$3/episodes.jsonl"'
COMMAND = f"bash -c '{WRITES}' '{ROW}' {{policy}} {{environment}} {{output_dir}}"


@pytest.mark.timeout(240)
@faults("many")
def test_very_many_sessions_outlive_a_dispatcher_that_is_killed_among_them(ground: Ground) -> None:
    places = [f"place{number}" for number in range(SESSIONS // 2)]
    grid = ground.grid(
        "policy1",
        "policy10",
        environments=f"[{', '.join(places)}]",
        episodes=1,
        command=COMMAND,
        limits="{parallel: 8, attempts: 4}",
    )
    ground.launch(grid)
    until(lambda: ended(ground) > SESSIONS // 3, "a third has ended", 120)
    kill(ground.dispatcher, signal.SIGKILL)
    until(lambda: not alive(ground.dispatcher), "the dispatcher is dead")
    assert ended(ground) < SESSIONS
    ground.launch(grid)
    until(lambda: ground.record("dispatch/done"), "the run is done", 120)
    assert ground.record("dispatch/done")["succeeded"] == str(SESSIONS)
    assert len(ground.run.begins) == SESSIONS, "what ran meanwhile was adopted, and no session started twice"
    accounted_for(ground, planned("policy1", "policy10", environments=places, episodes=1))


def ended(ground: Ground) -> int:
    return len(events(ground.run.directory, "ended"))
