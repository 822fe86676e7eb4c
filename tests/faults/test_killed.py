"""Something of a run is killed or frozen while its sessions work: what was computed stays, and the rest gets done."""

from __future__ import annotations

import signal
from collections.abc import Callable

from accounts import accounted_for, planned
from box import alive, kill, until
from ground import Ground
from matrix import faults

SESSIONS = ("maze_policy1", "maze_policy10")
VICTIM = SESSIONS[0]


def kill_command(ground: Ground) -> None:
    kill(ground.begun(VICTIM).pid, signal.SIGKILL)
    assert ground.end(VICTIM)["class"] == "killed"


def kill_supervisor(ground: Ground) -> None:
    begin = ground.begun(VICTIM)
    kill(begin.supervisor, signal.SIGKILL)
    until(lambda: not alive(begin.supervisor), "the supervisor is dead")
    assert alive(begin.pid), "its command works on"


def kill_dispatcher(ground: Ground) -> None:
    kill(ground.dispatcher, signal.SIGKILL)
    until(lambda: not alive(ground.dispatcher), "the dispatcher is dead")


def kill_windows(ground: Ground) -> None:
    before = [ground.begun(session).pid for session in SESSIONS]
    for pid in ground.windows():
        kill(pid, signal.SIGKILL)
    until(lambda: not ground.windows(), "no window is left")
    assert all(map(alive, before)), "the sessions work on without windows"


def kill_all(ground: Ground) -> None:
    ground.kill_everything()
    assert not ground.everything()


def freeze_command(ground: Ground) -> None:
    kill(ground.begun(VICTIM).pid, signal.SIGSTOP)
    ground.open_gates()  # who waits there would stall, too: its next attempt, and the other session
    assert ground.end(VICTIM)["class"] == "stalled"


def freeze_supervisor(ground: Ground) -> None:
    kill(ground.begun(VICTIM).supervisor, signal.SIGSTOP)


FAULTS: dict[str, Callable[[Ground], None]] = {
    "the command is killed": kill_command,
    "session.sh is killed": kill_supervisor,
    "the dispatcher is killed": kill_dispatcher,
    "tmux or screen is killed": kill_windows,
    "all are killed at once": kill_all,
    "the command is frozen": freeze_command,
    "session.sh is frozen": freeze_supervisor,
}
STARTS = {"the command is killed": 3, "all are killed at once": 4, "the command is frozen": 3}
"""how many attempts there are in the end, where it is not one for each session"""


@faults("killed", list(FAULTS))
def test_the_same_command_again_brings_a_run_to_its_end_when(ground: Ground, fault: str) -> None:
    limits = "{parallel: 2, attempts: 4, stall_after: " + ("4 s" if "command is frozen" in fault else "5 min") + "}"
    grid = ground.grid("policy1", "policy10", limits=limits)
    ground.launch(grid)
    for session in SESSIONS:
        ground.begun(session)
    FAULTS[fault](ground)
    ground.launch(grid)
    ground.open_gates()
    done = ground.await_done()
    assert done["succeeded"] == "2", ground.story
    assert len(ground.run.begins) == STARTS.get(fault, 2)
    accounted_for(ground, planned("policy1", "policy10"))
