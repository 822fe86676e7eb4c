"""Seconds until a command shows its first words on a terminal, and until the full screen takes keys.

    python benchmarks/starts.py monitor RUN
    python benchmarks/starts.py monitor RUN --other /path/to/another/checkout

With `--other` two versions take turns, so that their ratio holds on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import select
import statistics
import subprocess
import sys
import termios
import time
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
_ESCAPES = re.compile(rb"\x1b[^A-Za-z]*[A-Za-z]|\s")
_KEYS_ON = b"\x1b[?1000h"
"""the full screen asks the terminal for the mouse"""
_LONGEST_S = 20.0


def start(words: list[str], checkout: Path) -> tuple[float, float]:
    """Seconds until the first words, and until the keys work (or until the command has ended)."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    environment = {**os.environ, "PYTHONPATH": str(checkout), "TERM": "xterm-256color"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as for a user: all but the first start find compiled modules
    environment["PYTHONPYCACHEPREFIX"] = f"/tmp/comborun-starts-{os.getuid()}"
    begun, first, shown = time.monotonic(), 0.0, b""
    command = [sys.executable, "-P", "-m", "comborun", *words]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        while time.monotonic() < begun + _LONGEST_S and _KEYS_ON not in shown:
            if not select.select([ours], [], [], 0.05)[0]:
                continue
            try:
                shown += os.read(ours, 65536)
            except OSError:  # the command has ended
                break
            if not first and _ESCAPES.sub(b"", shown):
                first = time.monotonic() - begun
        keys = time.monotonic() - begun
        process.kill()
    os.close(ours)
    return first, keys


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="+", help="the command's words, without `combo`")
    parser.add_argument("--other", type=Path, help="another checkout, measured in turn")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    checkouts = [CHECKOUT, *([given.other] if given.other else [])]
    found: dict[Path, list[tuple[float, float]]] = {one: [] for one in checkouts}
    for count in range(given.rounds + 1):
        for one in checkouts:
            seconds = start(given.words, one)
            if count:  # the first start compiles
                found[one].append(seconds)
    for one in checkouts:
        first, keys = (statistics.median(column) for column in zip(*found[one], strict=True))
        print(f"{one}: first words {first:.2f} s, keys or end {keys:.2f} s")


if __name__ == "__main__":
    main()
