"""The engine of a run. Here and not in `__init__.py`: what a package imports travels with each of its modules."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.host.engines.slurm import Slurm
    from comborun.host.record.run_directory import RunDirectory


def slurm_of(attempts: RunDirectory) -> Slurm | None:
    """Slurm's view of a run, now or a moment ago; None if a dispatcher starts the sessions."""
    if not os.path.exists(attempts.layout.engine):
        return None
    from comborun.host.engines.slurm import Slurm

    attempts.backend = slurm = Slurm(attempts.layout)
    slurm.refresh()
    return slurm
