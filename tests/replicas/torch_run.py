"""Stands in for `python -m torch.distributed.run` where torch is not installed: ranks, their logs, and its exit code.

A rank that fails ends the others, and the launcher with 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for flag in ("standalone", "no_python"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--nproc_per_node", type=int, required=True)
    parser.add_argument("--tee", choices=["3"], required=True)
    parser.add_argument("--log_dir", type=Path, required=True)
    parser.add_argument("-m", dest="module", action="store_true")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    told = parser.parse_args()
    assert told.standalone, "it would compete for port 29500"
    words = [*([] if told.no_python else [sys.executable, "-u"]), *(["-m"] if told.module else []), *told.program]
    logs = told.log_dir / "stand-in_0000" / "attempt_0"
    ranks = [start(words, rank, told.nproc_per_node, logs / str(rank)) for rank in range(told.nproc_per_node)]
    return attend(ranks)


def start(words: list[str], rank: int, ranks: int, folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True)
    told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_PORT": 40000}
    environment = {**os.environ, **{name: str(value) for name, value in told.items()}}
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for stream, name in ((process.stdout, "stdout"), (process.stderr, "stderr")):
        assert stream
        threading.Thread(target=tee, args=(stream, folder / f"{name}.log", f"[default{rank}]:".encode())).start()
    return process


def tee(stream: IO[bytes], log: Path, mark: bytes) -> None:
    with log.open("wb", buffering=0) as file:
        for line in stream:
            file.write(line)
            os.write(1, mark + line)


def attend(ranks: list[subprocess.Popen[bytes]]) -> int:
    left = list(ranks)
    while left:
        for process in list(left):
            try:
                code = process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            left.remove(process)
            if code:
                for other in left:
                    other.terminate()
                rank = ranks.index(process)
                print("torch.distributed.elastic.multiprocessing.errors.ChildFailedError", file=sys.stderr)
                print(
                    f"Root Cause (first observed failure):\n[0]:\n  rank      : {rank} (local_rank: {rank})",
                    file=sys.stderr,
                )
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
