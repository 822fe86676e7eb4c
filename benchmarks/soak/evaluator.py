"""The soak's evaluation program: outcomes that anybody can know beforehand, bad manners, and a ledger.

The ledger lies outside the run directory. A line is added to it, and synced, once the program has written the whole
record of an episode: what it names was computed, and must be in the report.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

IDLE = ["sleep", "300"]


def succeeds(policy: str, environment: str, episode: int) -> bool:
    return crc32(f"{policy} {environment} {episode}".encode()) % 10 < 6


class Book:
    """The result file and the ledger, each line in one write."""

    def __init__(self, options: argparse.Namespace) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._options = options
        self._results = os.open(options.output_dir / "episodes.jsonl", flags, 0o644)
        self._ledger = os.open(options.ledger, flags, 0o644)

    def record(self, episodes: list[int], pause: float = 0.0) -> None:
        """Write the records of some episodes; with a `pause` each in two halves, and it passes in between."""
        for line in map(self._line, episodes):
            half = len(line) // 2 if pause else len(line)
            self._write(self._results, line[:half])
            time.sleep(pause)
            self._write(self._results, line[half:])
        keys = (self._options.policy, self._options.env)
        for episode in episodes:
            self._write(self._ledger, "\t".join((*keys, str(episode))) + "\n")
        os.fsync(self._ledger)

    def _line(self, episode: int) -> str:
        policy, environment = self._options.policy, self._options.env
        success = str(succeeds(policy, environment, episode)).lower()
        return (
            f'{{"policy": "{policy}", "environment": "{environment}", "episode": {episode}, "seed": {episode}, '
            f'"success": {success}}}\n'
        )

    @staticmethod
    def _write(descriptor: int, text: str) -> None:
        data = text.encode()
        if os.write(descriptor, data) < len(data):
            raise OSError("a short write: the disk is full")


def main() -> None:
    options = parsed()
    if options.trait == "stubborn":
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    if options.trait == "family":
        leave_children()
    episodes = range(options.first_episode, options.first_episode + options.episodes)
    book, pending = Book(options), list[int]()
    for episode in work(options, episodes):
        pending.append(episode)
        if options.trait != "late" or len(pending) == 4 or episode == episodes[-1]:
            book.record(pending, options.pace / 2 if options.trait == "halves" else 0.0)
            pending.clear()
        print(f"episode {episode}", flush=True)
    leave(options.trait)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--policy", required=True)
    parser.add_argument("--env", required=True)
    parser.add_argument("--trait", required=True)
    parser.add_argument("--episodes", type=int, required=True)
    parser.add_argument("--first-episode", type=int, default=0)
    parser.add_argument("--attempt", type=int, required=True)
    parser.add_argument("--pace", type=float, required=True)
    parser.add_argument("--output-dir", type=Path, required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    return parser.parse_args()


def work(options: argparse.Namespace, episodes: range) -> Iterator[int]:
    """An episode after the other; some programs break off in the middle of their first attempt."""
    middle = episodes[len(episodes) // 2]
    for episode in episodes:
        if episode == middle and options.attempt == 1 and options.trait == "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        if episode == middle and options.attempt == 1 and options.trait == "sticks":
            time.sleep(300)
        time.sleep(options.pace)
        yield episode


def leave_children() -> None:
    """One in a session of its own, one deaf to HUP, one whose parent is gone."""
    for command in (["setsid", *IDLE], ["nohup", *IDLE], ["bash", "-c", '"$@" & disown', "bash", "setsid", *IDLE]):
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def leave(trait: str) -> None:
    """What follows the last record."""
    if trait == "faults":
        os.kill(os.getpid(), signal.SIGSEGV)
    if trait == "lingers":
        time.sleep(300)
    sys.exit(3 if trait == "lies" else 0)


if __name__ == "__main__":
    main()
