"""Programs whose exit codes lie, that hang, crash, leave children or garble results: each is told as it really was."""

from __future__ import annotations

from accounts import accounted_for, planned
from ground import Ground
from matrix import faults

ENDS = {
    "steady": [("complete", "exited", "")],
    "silent": [("none", "exited", "no_result")],
    "segfaults": [("complete", "signal", "")],
    "lies": [("complete", "exited", "")],
    "lingers": [("complete", "hung", "")],
    "hangs": [("partial", "stalled", "stalled"), ("complete", "exited", "")],
    "deaf": [("partial", "stalled", "stalled"), ("complete", "exited", "")],
    "family": [("complete", "exited", "")],
    "greedy": [("partial", "host_memory", "host_memory"), ("complete", "exited", "")],
    "torn": [("partial", "signal", "killed"), ("complete", "exited", "")],
    "garbled": [("complete", "exited", "")],
    "crashes": [("partial", "signal", "crashed"), ("complete", "exited", "")],
    "appends": [("partial", "signal", "crashed"), ("complete", "exited", "")],
    "smears": [("partial", "signal", "crashed"), ("complete", "exited", "")],
}
"""manner -> completeness, cause and class of its attempts, in a run that knows when to call a program stalled"""


@faults("programs")
def test_what_a_program_computed_is_told_once_and_how_it_ended_is_told_as_it_was(ground: Ground) -> None:
    ground.launch(ground.grid(*ENDS, episodes=6, limits="{parallel: 6, attempts: 4, stall_after: 3 s, breaker: 0}"))
    ground.open_gates()
    done = ground.await_done()
    counted = done["succeeded"], done["partial"], done["failed"]
    assert counted == (str(len(ENDS) - 1), "0", "1"), ground.story
    assert {manner: ends(ground, manner) for manner in ENDS} == ENDS
    silent = planned("silent", episodes=6)
    document = accounted_for(ground, planned(*ENDS, episodes=6), silent)
    warned = {combo["policy"] for combo in document["combos"] if combo["warnings"]}
    assert {"segfaults", "lies", "lingers"} <= warned

    ground.combo("resume", *ground.of_run(), ground.run.id)
    ground.open_gates()
    ground.await_done()
    accounted_for(ground, planned(*ENDS, episodes=6), silent)


def ends(ground: Ground, manner: str) -> list[tuple[str, str, str]]:
    attempts = sorted(ground.run.directory.glob(f"sessions/maze_{manner}/attempt-*/end"))
    told = [ground.end(f"maze_{manner}", number) for number in range(1, len(attempts) + 1)]
    return [(end["completeness"], end["cause"], end["class"]) for end in told]
