"""A run from `combo launch` to its dispatcher's last record, timed: what a benchmark holds other ways against."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

LONGEST_S = 1800.0
LOOK_S = 0.02


def seconds_to_the_end(launch: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> float:
    """Run the command `launch` in `folder`, which answers in JSON, and wait until its run has ended."""
    before = time.monotonic()
    launched = subprocess.run(launch, cwd=folder, env=environment, check=True, capture_output=True)
    done = Path(json.loads(launched.stdout)["directory"], "dispatch", "done")
    while not done.exists():
        if time.monotonic() - before > LONGEST_S:
            sys.exit("the run did not end within half an hour")
        time.sleep(LOOK_S)
    return time.monotonic() - before
