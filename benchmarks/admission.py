"""What the answers to a GPU that ran out of memory are worth: the dispatcher's own admission, in simulated time.

    python benchmarks/admission.py      some seconds; no GPU is needed, and none is looked at

60 sessions say that they take 2 GiB, and take up to seven times as much after a minute. 16 run at once on two GPUs of
24 GiB. When a GPU is full, one of those that still grow there ends with an out-of-memory, and starts again at most
three times. Each row is the median of five seeds.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from comborun.host.admission.admission import Admission, Shortages
from comborun.host.admission.leasebook import Measured
from comborun.host.record.events import Events
from comborun.rules.names import RunLayout
from comborun.rules.room.capacity import Card, Request

GPUS, TOTAL, SAID = 2, 24576, 2048
"""how many, and MiB"""
SESSIONS, SLOTS, STARTS = 60, 16, 4
GROWS_S, MEASURED_S, LONGEST_S = 60, 5, 40_000
OUT_OF_MEMORY = "gpu_memory"


class Outcome(NamedTuple):
    seconds: float
    ran_out: int
    failed: int
    """after four starts"""


@dataclass
class Session:
    need: int
    """MiB"""
    seconds: float
    ready: float = 0.0
    """seconds of simulated time"""
    attempt: int = 0
    started: float = 0.0
    gpu: int | None = None
    ended: bool = False


@dataclass
class Box:
    """The machine, and the sessions in the order of the plan."""

    folder: Path
    seed: int
    factor: int
    """how many times what it says a session takes"""
    now: float = 1000.0
    measurements: int = 0
    ran_out: int = 0
    failed: int = 0
    sessions: dict[str, Session] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chance = random.Random(self.seed)
        for number in range(SESSIONS):
            need = int(self.factor * SAID * chance.uniform(0.9, 1.1))
            self.sessions[f"session_{number}"] = Session(need, chance.uniform(200, 400))
        self.chance = chance
        (self.folder / "dispatch").mkdir(parents=True)
        (self.folder / "id").write_text("run\n")
        self.admission = Admission(str(self.folder), "run", Events(RunLayout(str(self.folder))), lambda *_: None)
        self.admission.configure({"gpus": ",".join(map(str, range(GPUS)))})
        for name in self.sessions:
            self.admission.register(name, Request(gpus=1, gpu_memory=SAID), "program")
        self.admission.open()

    def run(self) -> Outcome:
        begun = self.now
        while not all(one.ended for one in self.sessions.values()) and self.now < begun + LONGEST_S:
            if (self.now - begun) % MEASURED_S == 0:
                self.measure()
            self.run_out()
            self.finish()
            self.start()
            self.now += 1
        return Outcome(self.now - begun, self.ran_out, self.failed)

    def on(self, gpu: int) -> dict[str, Session]:
        return {name: one for name, one in self.sessions.items() if one.gpu == gpu}

    def use(self, session: Session) -> int:
        return int(session.need * min(1.0, 0.2 + 0.8 * (self.now - session.started) / GROWS_S))

    def at(self, name: str) -> str:
        return str(self.folder / f"sessions/{name}/attempt-{self.sessions[name].attempt}")

    def measure(self) -> None:
        self.measurements += 1
        measured = Measured(self.measurements)
        measured.at = self.now
        for gpu in range(GPUS):
            held = {name: self.use(one) for name, one in self.on(gpu).items()}
            measured.cards[gpu] = Card(gpu, f"GPU-{gpu}", "", TOTAL, sum(held.values()), bus=f"b{gpu}")
            measured.listed.add(gpu)
            measured.held.update(
                {(f"run/{name}/{self.sessions[name].attempt}", gpu): mib for name, mib in held.items()}
            )
        self.admission.book.take_in(measured)

    def run_out(self) -> None:
        for gpu in range(GPUS):
            while sum(map(self.use, (there := self.on(gpu)).values())) > TOTAL:
                growing = [name for name, one in there.items() if self.now - one.started < GROWS_S]
                self.end(self.chance.choice(growing or list(there)), OUT_OF_MEMORY)

    def finish(self) -> None:
        for name, one in self.sessions.items():
            if one.gpu is not None and self.now - one.started >= one.seconds:
                self.end(name, "")

    def end(self, name: str, failure: str) -> None:
        one, at = self.sessions[name], self.at(name)
        gpu, one.gpu = one.gpu or 0, None
        self.admission.give_back(name)
        self.admission.ended(name, (gpu,), at, failure)
        self.ran_out += bool(failure)
        if failure and one.attempt < STARTS:
            self.admission.again(name, alone=one.attempt > 1)
            one.ready = self.now + 60 * 2 ** (one.attempt - 1)
        else:
            one.ended = True
            self.failed += bool(failure)

    def start(self) -> None:
        self.admission.round()
        while len([one for one in self.sessions.values() if one.gpu is not None]) < SLOTS:
            queue = [
                name
                for name, one in self.sessions.items()
                if one.gpu is None and not one.ended and one.ready <= self.now
            ]
            pick = self.admission.pick(queue, self.at)
            if pick is None:
                return
            one = self.sessions[pick.name]
            one.attempt, one.started, one.gpu = one.attempt + 1, self.now, pick.gpus[0]
            Path(self.at(pick.name)).mkdir(parents=True)
            self.admission.begun(pick.name, pick.gpus)


def simulate(factor: int, seed: int) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COMBORUN_LEASES"] = f"{folder}/leases"
        box = Box(Path(folder) / "run", seed, factor)
        real, time.monotonic = time.monotonic, lambda: box.now
        try:
            return box.run()
        finally:
            time.monotonic = real


def as_many(_shortages: Shortages, _gpu: int, there: int, _name: str) -> bool:
    """Stands in the place of Shortages._reduce: as many as before go on running there."""
    return there > 1


def as_before(_admission: Admission, _name: str, *, alone: bool) -> None:
    """Stands in the place of Admission.again: the next attempt asks for what the grid says."""
    del alone


def main() -> None:
    print(f"{'needs, times what is said':28}{'answer':16}{'seconds':>9}{'ran out':>9}{'failed':>8}")
    fewer, again = Shortages._reduce, Admission.again  # noqa: SLF001 (the answers that are taken away in turn)
    answers = {
        "both": (fewer, again),
        "fewer at once": (fewer, as_before),
        "then alone": (as_many, again),
        "none": (as_many, as_before),
    }
    for factor in (1, 2, 4, 7):
        for answer, methods in answers.items():
            Shortages._reduce, Admission.again = methods  # type: ignore[method-assign, assignment]  # noqa: SLF001
            rows = [simulate(factor, seed) for seed in range(5)]
            seconds, ran_out, failed = (statistics.median(column) for column in zip(*rows, strict=True))
            print(f"{factor:<28}{answer:16}{seconds:9.0f}{ran_out:9.0f}{failed:8.0f}")


if __name__ == "__main__":
    main()
