"""Whatever happens to tasks, nodes and the controller, in any order: each episode counts once, and none is missing."""

from __future__ import annotations

import collections
import json
import random
import signal
import time

import pytest
from box import bash, kill
from rounds import only_slow
from slurm_box import SlurmBox

EPISODES = 6
SLOWLY = """for i in $(seq "$COMBORUN_FIRST_EPISODE" "$COMBORUN_LAST_EPISODE"); do sleep 0.4
printf '{"episode": %d, "attempt": %d, "success": true}\\n' $i $COMBORUN_ATTEMPT >>"$COMBORUN_OUTPUT_DIR/records.jsonl"
done"""


class Storm:
    """Faults of all kinds; what a person or Slurm would do about them afterwards is `let_go`."""

    def __init__(self, box: SlurmBox) -> None:
        self.box, self.slurm = box, box.slurm
        self.seed = random.SystemRandom().randrange(10**6)
        self.chance = random.Random(self.seed)

    def fault(self) -> None:
        self.chance.choice([self.requeue, self.supervisor, self.node, self.controller])()

    def requeue(self) -> None:
        running = [task.id for task in self.slurm.tasks() if task.state == "RUNNING" and "_" in task.id]
        for task in running[:2]:
            self.slurm.command("scontrol", "requeue", task)

    def supervisor(self) -> None:
        begun = [begin for begin in (self.box.begin(*where) for where in live(self.box)) if begin]
        for begin in self.chance.sample(begun, min(2, len(begun))):
            kill(begin.supervisor, signal.SIGKILL)

    def node(self) -> None:
        victim = self.chance.choice(["n1", "n2"])
        self.slurm.kill(f"slurmd-{victim}")
        self.slurm.command("scontrol", "update", f"node={victim}", "state=down", "reason=test")
        time.sleep(self.chance.random() * 2)
        self.slurm.start(f"slurmd-{victim}")

    def controller(self) -> None:
        self.slurm.kill("slurmctld")
        time.sleep(self.chance.random())
        self.slurm.start("slurmctld")

    def let_go(self) -> None:
        for task in self.slurm.tasks():
            if task.state == "PENDING" and task.reason == "BeginTime":
                self.slurm.at_once(task.id)
        for name in ("n1", "n2"):
            self.slurm.command("scontrol", "update", f"node={name}", "state=resume")

    @property
    def is_over(self) -> bool:
        """Whether the run is done, and nothing of it is left: a controller that was killed restores what had ended."""
        return bool(self.box.done) and not self.slurm.tasks() and not self.box.marked()


@only_slow
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("seconds", "sessions"), [(15, 10), (240, 100)])
def test_random_faults_on_slurm_lose_no_episode_and_count_none_twice(
    slurm_box: SlurmBox, seconds: float, sessions: int
) -> None:
    box, storm = slurm_box, Storm(slurm_box)
    names = [f"env_{number}" for number in range(sessions)]
    script = bash(SLOWLY, count=EPISODES, results=("*.jsonl",), more={"ranged": True})
    policy = {"retry_lost": 1000, "retry_killed": 1000, "breaker": 0}
    box.lay_out(dict.fromkeys(names, script), attempts=1000, policy=policy)
    box.submit("--parallel", "4")
    until = time.monotonic() + seconds
    while time.monotonic() < until and not box.done:
        storm.fault()
        time.sleep(0.5 + storm.chance.random())
        storm.let_go()
    deadline = time.monotonic() + 90
    while not storm.is_over and time.monotonic() < deadline:  # as a person who watches would
        storm.let_go()
        box.program("start")
        time.sleep(1)
    assert storm.is_over, f"seed {storm.seed}\n{box.story()}"
    for name in names:
        check(box, name, f"seed {storm.seed}, {name}")


def live(box: SlurmBox) -> list[tuple[str, int]]:
    """Session and number of the attempts that have begun and not ended."""
    begun = box.directory.glob("sessions/*/attempt-*/begin")
    return [
        (file.parts[-3], int(file.parts[-2].removeprefix("attempt-")))
        for file in begun
        if not (file.parent / "end").exists()
    ]


def check(box: SlurmBox, name: str, where: str) -> None:
    """Each episode is there; none twice in an attempt; nobody wrote into another attempt's folder."""
    seen: collections.Counter[int] = collections.Counter()
    for attempt in (box.directory / "sessions" / name).glob("attempt-[0-9]*"):
        number = int(attempt.name.removeprefix("attempt-"))
        assert (attempt / "end").exists(), f"{where}: {attempt.name} has no end\n{box.story()}"
        file = attempt / "out/records.jsonl"
        records = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        assert {record["attempt"] for record in records} <= {number}, where
        own = collections.Counter(record["episode"] for record in records)
        assert all(count == 1 for count in own.values()), (where, own)
        assert len(records) == int(box.field(str((attempt / "end").relative_to(box.directory)), "records")), where
        seen.update(own.keys())
    assert set(seen) == set(range(EPISODES)), f"{where}: {seen}\n{box.story()}"
