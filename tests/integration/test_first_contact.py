"""Mistakes of a new user on a host over SSH: what the first line says, and where it comes from.

`pytest -rP tests/integration/test_first_contact.py` prints each line with the seconds until it.
"""

from __future__ import annotations

import time

import pytest
from desk import Desk, desk
from sshd import Sshd
from test_host_flow import far, far_grid, far_host

__all__ = ["desk", "far", "far_host"]

MISTAKES = {
    "a wrong host": ({"host": "tsetbox"}, "tsetbox"),
    "an unknown key": ({"enviroments": "[maze]"}, "enviroments"),
    "a typo in the conda environment": ({"setup": "conda activate isaclab"}, "conda"),
    "a missing checkpoint": (
        {"policies": "{good: {checkpoint: ~/models/none.pt}}", "command": "cat {policy.checkpoint} {output_dir}"},
        "none.pt",
    ),
    "a program that is not there": ({"command": "no-such-program {output_dir}"}, "no-such-program"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_by_its_cause_before_anything_starts(far: Desk, far_host: Sshd, mistake: str) -> None:
    keys, named = MISTAKES[mistake]
    grid = far_grid(far)
    lines = [line for line in grid.read_text().splitlines() if line.partition(":")[0] not in keys]
    grid.write_text("\n".join([*lines, *(f"{key}: {value}" for key, value in keys.items())]) + "\n")
    began = time.monotonic()
    refused = far.combo("launch", grid)
    print(f"{mistake}: {time.monotonic() - began:.1f} s: {refused.stderr.strip().splitlines()[:2]}")
    assert refused.returncode in (2, 3), refused.stdout + refused.stderr
    assert named in refused.stderr
    assert not list(far_host.user.home.glob("comborun/*-*/sessions/*/attempt-1/begin"))
