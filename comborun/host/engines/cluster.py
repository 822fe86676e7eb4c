"""Slurm's view of a run, where Slurm runs it. Apart from `slurm`, which is slow to import."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.host.engines.slurm import Slurm
    from comborun.host.record.attempts import RunDirectory


def slurm_of(run: RunDirectory) -> Slurm | None:
    """What Slurm says now, or said a moment ago; None if a dispatcher starts the sessions."""
    if not os.path.exists(run.layout.engine):
        return None
    from comborun.host.engines.slurm import Slurm

    run.slurm = cluster = Slurm(run.layout)
    cluster.refresh()
    return cluster
