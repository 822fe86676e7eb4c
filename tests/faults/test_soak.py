"""A short soak: random faults from a fixed seed against real runs, and no episode is lost (benchmarks/soak)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from box import carrying

CHECKOUT = Path(__file__).parents[2]
ROUNDS = 3


@pytest.mark.timeout(400)
def test_random_faults_lose_no_episode_and_leave_no_process(tmp_path: Path) -> None:
    words = ["--json", "--rounds", str(ROUNDS), "--seed", "20", "--jobs", "4"]
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "benchmarks/soak"), *words],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    total = json.loads(done.stdout)
    assert total["rounds"] == ROUNDS
    assert sum(total["faults"].values()) >= ROUNDS
    assert total["computed"] <= total["reported"]  # a program may be killed before it has told its ledger
    assert total["reported"] == total["planned"] > 8 * ROUNDS
    assert (total["lost"], total["missing"], total["flawed"]) == (0, 0, [])
    assert list(tmp_path.iterdir()) == []
    assert carrying(f"HOME={tmp_path}/") == []
