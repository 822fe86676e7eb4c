"""An evaluation program with a bad manner, which is the name of its policy; what is behind a dash tells two apart.

An episode after the other gets its record, flushed. The last one waits for a gate: a file that the test makes when it
has seen enough. What goes wrong in the middle goes wrong in the first attempt only.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TextIO

IDLE = ["sleep", "300"]
MEMORY = 256 << 20


def main() -> None:
    options = parsed()
    manner = options.policy.partition("-")[0]
    if manner == "silent":
        return
    if manner == "deaf":
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    if manner == "family":
        leave_children()
    results = options.output_dir / "episodes.jsonl"
    if manner in {"appends", "smears"}:  # a file of its own place, which all its attempts add to
        results.symlink_to(options.gates / f"{options.env}_{options.policy}.jsonl")
    episodes = range(options.first_episode, options.first_episode + options.episodes)
    with results.open("a", buffering=1) as file:
        for episode in episodes:
            line = f'{{"policy": "{options.policy}", "environment": "{options.env}", "episode": {episode}, "seed": '
            if episode == episodes[len(episodes) // 2] and options.attempt == 1 and len(episodes) > 1:
                go_wrong(manner, file, line)
            await_gate(options, last=episode == episodes[-1])
            padding = ' "note": "' + 5000 * "." + '",' if manner == "bulky" else ""
            file.write(f'{line}{episode},{padding} "success": {str(episode % 3 == 0).lower()}}}\n')
            print(f"episode {episode}", flush=True)
    leave(manner, options)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--policy", required=True)
    parser.add_argument("--env", required=True)
    parser.add_argument("--episodes", type=int, required=True)
    parser.add_argument("--first-episode", type=int, default=0)
    parser.add_argument("--attempt", type=int, required=True)
    parser.add_argument("--output-dir", type=Path, required=True)
    parser.add_argument("--gates", type=Path, required=True)
    return parser.parse_args()


def await_gate(options: argparse.Namespace, *, last: bool) -> None:
    gate = options.gates / f"{options.env}_{options.policy}"
    while last and not gate.exists():
        time.sleep(0.02)


def go_wrong(manner: str, file: TextIO, line: str) -> None:
    """In the middle of an episode, with the first half of its line at hand."""
    if manner in {"hangs", "deaf"}:
        time.sleep(300)
    elif manner in {"crashes", "appends", "smears", "torn"}:
        file.write("" if manner == "appends" else line)
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL if manner == "torn" else signal.SIGSEGV)
    elif manner == "garbled":
        file.write(line + "\n")
    elif manner == "greedy":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        taken = []
        while True:
            taken.append(bytearray(16 << 20))


def leave_children() -> None:
    """One in a session of its own, one deaf to HUP, one whose parent is gone, in a session of its own too."""
    for command in (["setsid", *IDLE], ["nohup", *IDLE], ["bash", "-c", 'setsid "$@" & disown', "bash", *IDLE]):
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def leave(manner: str, options: argparse.Namespace) -> None:
    """What follows the last record."""
    if manner == "segfaults":
        os.kill(os.getpid(), signal.SIGSEGV)
    if manner == "lingers":
        time.sleep(300)
    if manner == "waits":  # for a second gate, so that its records are there and its end is not
        while not (options.gates / f"{options.env}_{options.policy}.end").exists():
            time.sleep(0.02)
    sys.exit(3 if manner == "lies" else 0)


if __name__ == "__main__":
    main()
