"""What must hold after a round: the report against the plan and against the program's own ledger."""

from __future__ import annotations

import csv
import io
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from bed import Bed
from evaluator import succeeds
from scene import Scene

from comborun.reporter.collect import collect_run
from comborun.reporter.pages.data import episodes_csv
from comborun.reporter.summary import Report, summarize

Key = tuple[str, str, int]
"""policy, environment, episode"""


@dataclass(frozen=True)
class Found:
    planned: frozenset[Key]
    computed: Counter[Key]
    """episode -> how often the program has recorded it, by its ledger"""
    told: Counter[Key]
    """episode -> its rows in the report's episodes.csv"""
    missing: frozenset[Key]
    """what the report names as missing"""
    wrong: frozenset[Key]
    """rows whose outcome is not what the program computes"""

    @property
    def lost(self) -> set[Key]:
        """Recorded by the program, planned, and not in the report."""
        return {key for key in self.computed if key in self.planned and not self.told[key]}

    @property
    def repeated(self) -> int:
        """How often an episode was computed that had been."""
        return sum(times - 1 for times in self.computed.values())

    def flaws(self) -> Iterator[str]:
        doubled = {key for key, rows in self.told.items() if rows > 1}
        unnamed = {key for key in self.planned if not self.told[key]} - self.missing
        false = {key for key in self.missing if self.told[key]}
        for what, keys in (
            ("lost: computed, and not in the report", self.lost),
            ("more than once in the report", doubled),
            ("neither in the report nor named as missing", unnamed),
            ("named as missing, and in the report", false),
            ("in the report, and never planned", set(self.told) - self.planned),
            ("with an outcome that the program does not compute", set(self.wrong)),
        ):
            if keys:
                yield f"{len(keys)} episodes {what}: {sorted(keys)[:5]}"


def found(bed: Bed, scene: Scene) -> Found:
    """Reads the run as `combo report` does."""
    assert bed.run
    report = summarize(collect_run(bed.run))
    rows = list(csv.DictReader(io.StringIO("".join(episodes_csv(report.episodes)))))
    outcomes = {(row["policy"], row["environment"], int(row["episode"])): row["success"] for row in rows}
    return Found(
        planned=frozenset((*combo, episode) for combo in scene.combos for episode in range(scene.episodes)),
        computed=Counter(_ledger(bed)),
        told=Counter((row["policy"], row["environment"], int(row["episode"])) for row in rows),
        missing=frozenset(_missing(report)),
        wrong=frozenset(key for key, told in outcomes.items() if told != str(succeeds(*key)).lower()),
    )


def _ledger(bed: Bed) -> Iterator[Key]:
    text = bed.ledger.read_text() if bed.ledger.exists() else ""
    for line in text.splitlines():
        policy, environment, episode = line.split("\t")
        yield policy, environment, int(episode)


def _missing(report: Report) -> Iterator[Key]:
    for combo in report.summary.combos:
        for span in combo.counts.missing_episodes if combo.counts else ():
            yield from ((combo.policy, combo.environment, episode) for episode in span)


def survivors(bed: Bed, seconds: float = 10.0) -> Iterator[str]:
    """Processes that a run which has ended should not have; a supervisor is given a moment to leave."""
    deadline = time.monotonic() + seconds
    while True:
        dispatcher = bed.dispatcher
        left = [*bed.marked(), *([dispatcher] if dispatcher.lives else [])]
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    if left:
        yield f"alive after the end: {', '.join(str(process.pid) for process in left)}"
