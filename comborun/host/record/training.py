"""The training that a run follows: which process it is, and what was decided of its checkpoints."""

from __future__ import annotations

import os
from collections.abc import Mapping

from comborun.host.system import files, process
from comborun.rules import records
from comborun.rules.facts import Fact
from comborun.rules.following import Record
from comborun.rules.names import RunLayout


def of_run(layout: RunLayout) -> dict[str, str]:
    """Its process; without a pid if nobody named one. Empty for a run that follows no training."""
    return files.read(layout.training)


def named(training: Mapping[str, str]) -> str:
    return " ".join(training.get(key, "") for key in ("pid", "start", "boot"))


def lives(training: Mapping[str, str]) -> bool:
    return not training.get("pid") or process.named(training)


def record(layout: RunLayout) -> Record:
    return Record(files.read_rows(layout.checkpoints))


def is_over(layout: RunLayout) -> bool:
    """Whether the run follows no training, or its training has ended. A later one may have been named since."""
    if not os.path.exists(layout.training):
        return True
    ended = record(layout).ended
    return ended is not None and ended.get("training") == named(of_run(layout))


def summary(layout: RunLayout) -> Fact | None:
    """What is known of it; None if the run follows none."""
    training = of_run(layout)
    if not training:
        return None
    follower = files.read(layout.follower)
    sees = records.facts(follower) if process.named(follower) else ()
    alive = lives(training) if training.get("pid") else None
    return record(layout).summary(over=is_over(layout), alive=alive, sees=sees)
