#!/usr/bin/env python3
"""A stand-in for `docker`, where there is none: `info`, and `run` and `rm` of one container, with the habits of docker.

A container is a process of this machine that is no child of the client: a daemon's, with the environment of its `--env`
options alone. The client shows its output, hands INT and TERM on, and its own death ends nothing. Nothing is isolated.
The image `absent` can't be found; DOCKER_STAND_IN is the folder with the state. A file `unmarked` there hides the
containers from searches by their environment, as another user's are.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

HOME = Path(os.environ["DOCKER_STAND_IN"])
PATH = "/usr/local/bin:/usr/bin:/bin"


def run(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="docker run", allow_abbrev=False)
    for flag in ("rm", "init"):
        parser.add_argument(f"--{flag}", action="store_true")
    for one in ("name", "label", "network", "user", "gpus", "workdir", "ipc"):
        parser.add_argument(f"--{one}")
    for many in ("volume", "env"):
        parser.add_argument(f"--{many}", action="append", default=[])
    parser.add_argument("image")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    told = parser.parse_args(words)
    if told.image == "absent":
        print("Unable to find image 'absent:latest' locally\ndocker: Error response from daemon: pull access denied")
        return 125
    folder = HOME / told.name
    try:
        folder.mkdir()
    except FileExistsError:
        print(f'docker: Error response from daemon: Conflict. The container name "/{told.name}" is already in use')
        return 125
    if not shutil.which(told.command[0], path=PATH):
        print(f'docker: Error response from daemon: exec: "{told.command[0]}": executable file not found in $PATH')
        shutil.rmtree(folder)
        return 127
    create(folder, told)
    code = attend(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return code


def create(folder: Path, told: argparse.Namespace) -> None:
    """Hand the container to a daemon: a process that is nobody's child and has nothing of ours."""
    pairs = [(*entry.split("=", 1), None)[:2] for entry in told.env]
    environment = {name: os.environ.get(name) if value is None else value for name, value in pairs}
    environment = {
        "PATH": PATH,
        "HOME": "/",
        **{name: value for name, value in environment.items() if value is not None},
    }
    if (HOME / "unmarked").exists():
        environment.pop("COMBORUN_SESSION", None)
    (folder / "asked.json").write_text(json.dumps({**vars(told), "environment": environment}))
    if os.fork():
        os.wait()
        return
    os.setsid()
    if not os.fork():
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        os.closerange(3, 100)
        os.execve(sys.executable, [sys.executable, __file__, "daemon", str(folder)], {"DOCKER_STAND_IN": str(HOME)})
    os._exit(0)


def daemon(folder: Path) -> int:
    asked = json.loads((folder / "asked.json").read_text())
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen(
            asked["command"],
            env=asked["environment"],
            cwd=asked["workdir"] or "/",
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        (folder / "pid").write_text(str(process.pid))
        code = process.wait()
    with suppress(FileNotFoundError):
        (folder / "code.part").write_text(str(code if code >= 0 else 128 - code))
        (folder / "code.part").rename(folder / "code")
    return 0


def attend(folder: Path) -> int:
    """Show what it prints until it has ended; signals are handed on."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _: send(folder, got))
    shown = 0
    while True:
        ended = (folder / "code").exists()
        with suppress(FileNotFoundError):
            fresh = (folder / "out").read_bytes()[shown:]
            shown += len(fresh)
            sys.stdout.buffer.write(fresh)
            sys.stdout.buffer.flush()
        if ended:
            return int((folder / "code").read_text())
        if not folder.exists():
            return 137
        time.sleep(0.02)


def send(folder: Path, number: int) -> None:
    with suppress(FileNotFoundError, ProcessLookupError, ValueError):
        os.killpg(int((folder / "pid").read_text()), number)


def remove(name: str) -> int:
    folder = HOME / name
    with (HOME / "removed").open("a") as file:
        file.write(f"{name}\n")
    send(folder, signal.SIGKILL)
    gone = HOME / f".removed-{name}-{os.getpid()}"
    try:
        folder.rename(gone)  # at once: its daemon may write its code just now, and that would keep the folder there
    except FileNotFoundError:
        print(f"Error response from daemon: No such container: {name}", file=sys.stderr)
        return 1
    shutil.rmtree(gone, ignore_errors=True)
    return 0


def main() -> int:
    match sys.argv[1:]:
        case ["run", *words]:
            return run(words)
        case ["info"]:
            print("Server:\n Security Options:\n  seccomp")
            return 0
        case ["daemon", folder]:
            return daemon(Path(folder))
        case ["rm", "--force", name]:
            return remove(name)
        case other:
            print(f"docker stand-in: what is {other}?", file=sys.stderr)
            return 64


sys.exit(main())
