"""Stands in for EmbodiChain's train-rl under a launcher: an exception ends a rank with 0, and a checkpoint is saved.
An interrupt is caught, and it prints its last line all the same (0.3.2).

Rank 0 alone prints and saves.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ASKED = os.environ.get("REPLICA", "").split()
TOTAL, UPDATES = 400, 4


def main() -> None:
    assert sys.argv[1] == "train-rl"
    assert "--distributed" in sys.argv
    if os.environ["LOCAL_RANK"] != "0":
        return
    config = Path(sys.argv[sys.argv.index("--config") + 1])
    assert config.is_file(), f"no configuration {config}"
    checkpoints = Path("outputs", f"{config.stem}_20260102_030405", "checkpoints")
    checkpoints.mkdir(parents=True)
    print(f"Total steps: {TOTAL} (iterations≈{UPDATES}, world_size={os.environ['WORLD_SIZE']})")
    print(f"Start training, total steps: {TOTAL}")
    last = TOTAL // 4 if "interrupted" in ASKED else TOTAL // 2 if "exit0" in ASKED else TOTAL
    for step in range(TOTAL // UPDATES, last + 1, TOTAL // UPDATES):
        print(f"[train] step={step} sps=980 avgReward(100)=0.250 avgLength(100)=60.0", flush=True)
    (checkpoints / f"policy_step_{last}.pt").write_bytes(b"weights")
    print(f"Checkpoint saved: {checkpoints}/policy_step_{last}.pt", flush=True)
    if "exit0" in ASKED:
        os._exit(0)
    if "interrupted" in ASKED:
        print("Training interrupted by user")
    print("Training finished")


main()
