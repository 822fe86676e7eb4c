"""An evaluation program with a bad manner, which is the name of its policy; what is behind a dash tells two apart.

An episode after the other gets its record, flushed. The last one waits for a gate: a file that the test makes when it
has seen enough. What goes wrong in the middle goes wrong in the first attempt only.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from types import SimpleNamespace
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
    results = f"{options.output_dir}/episodes.jsonl"
    if manner in {"appends", "smears"}:  # a file of its own place, which all its attempts add to
        os.symlink(f"{options.gates}/{options.env}_{options.policy}.jsonl", results)  # noqa: PTH211
    episodes = range(options.first_episode, options.first_episode + options.episodes)
    with open(results, "a", buffering=1) as file:  # noqa: PTH123
        for episode in episodes:
            line = f'{{"policy": "{options.policy}", "environment": "{options.env}", "episode": {episode}, "seed": '
            if episode == episodes[len(episodes) // 2] and options.attempt == 1 and len(episodes) > 1:
                go_wrong(manner, file, line)
            await_gate(options, last=episode == episodes[-1])
            padding = ' "note": "' + 5000 * "." + '",' if manner == "bulky" else ""
            file.write(f'{line}{episode},{padding} "success": {str(episode % 3 == 0).lower()}}}\n')
            print(f"episode {episode}", flush=True)
    leave(manner, options)


def parsed() -> SimpleNamespace:
    """The options, each with its value; without argparse, whose import takes longer than all of the work."""
    told = {
        name.removeprefix("--").replace("-", "_"): word
        for name, word in zip(sys.argv[1::2], sys.argv[2::2], strict=True)
    }
    return SimpleNamespace(**{name: int(word) if word.isdecimal() else word for name, word in told.items()})


def await_gate(options: SimpleNamespace, *, last: bool) -> None:
    while last and not os.path.exists(f"{options.gates}/{options.env}_{options.policy}"):  # noqa: PTH110
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
    import subprocess  # which few of them need

    for command in (["setsid", *IDLE], ["nohup", *IDLE], ["bash", "-c", 'setsid "$@" & disown', "bash", *IDLE]):
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def leave(manner: str, options: SimpleNamespace) -> None:
    """What follows the last record."""
    if manner == "segfaults":
        os.kill(os.getpid(), signal.SIGSEGV)
    if manner == "lingers":
        time.sleep(300)
    if manner == "waits":  # for a second gate, so that its records are there and its end is not
        while not os.path.exists(f"{options.gates}/{options.env}_{options.policy}.end"):  # noqa: PTH110
            time.sleep(0.02)
    sys.exit(3 if manner == "lies" else 0)


if __name__ == "__main__":
    main()
