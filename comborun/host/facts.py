"""What this machine is, for a plan: `facts SECRET...` answers with one JSON document.

Standard input has what the grid names, or nothing: then nothing is looked for (preflight.py).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

from comborun.host import machine, preflight, process, secrets
from comborun.host.incoming import answered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NEEDED = ("bash", "env", "flock", "setsid", "grep", "mkfifo", "mktemp", "mv", "sha256sum", "stat", "tail", "timeout")
"""what scripts on a host call; and one of tmux and screen"""
GPU_TABLE = ("nvidia-smi", "--format=csv,noheader,nounits")
_PATIENCE_S = 10
_MOST = 16384
"""bytes that are kept of what a program says"""
_ASKED: set[int] = set()
"""pids of the programs that have not answered yet"""
_ASKING = threading.Lock()
_OVER = threading.Event()
"""this process leaves: no further program is started"""


def main(arguments: list[str]) -> int:
    """The program's verb."""
    return answered("facts", lambda: facts(arguments))


def facts(wanted: list[str]) -> dict[str, Any]:
    """`lacking` names the secrets that are set nowhere here."""
    there = secrets.of_host(wanted) if wanted else {}
    named = sys.stdin.read()
    memory, available = machine.memory_kib()
    return {
        "python": os.path.realpath(sys.executable),
        "hostname": os.uname().nodename,
        "bash": bash(),
        "tmux": said("tmux", "-V"),
        "screen": said("screen", "-v"),
        "cpus": len(machine.cores()),
        "memory_kib": memory or 0,
        "available_kib": available,
        "missing": [flaw for name in NEEDED if (flaw := lack(name))],
        "lacking": [name for name in wanted if name not in there],
        "gpus": gpus(),
        "absent": preflight.lacks(json.loads(named)) if named else [],
    }


def ask(seconds: float, *command: str, errors: bool = False) -> tuple[int, str]:
    """Exit code and the end of what a program says, with `errors` on both streams; 124: it did not answer in time.

    Output goes to a file: what outlives the program could hold a pipe open for ever.
    """
    with tempfile.TemporaryFile(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as output:  # noqa: S108
        try:
            with _ASKING:
                if _OVER.is_set():
                    return 124, ""
                child = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT if errors else subprocess.DEVNULL,
                    start_new_session=True,
                )
                _ASKED.add(child.pid)
        except OSError as error:
            return 127, str(error)
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:  # not waited for: in the kernel nothing ends it
            code = 124
            process.send_group(child.pid, signal.SIGKILL)
        _ASKED.discard(child.pid)
        output.seek(max(0, output.seek(0, os.SEEK_END) - _MOST))
        return code, output.read().decode("utf-8", "replace").strip()


def end_asked() -> None:
    """End the programs that have not answered yet; for a process that leaves before its threads do."""
    _OVER.set()
    held = _ASKING.acquire(timeout=1.0)  # a program that a dead file system holds may never have been started
    for pid in tuple(_ASKED):
        process.send_group(pid, signal.SIGKILL)
    if held:
        _ASKING.release()


def said(*command: str) -> str:
    """The first line that a program prints; nothing where there is none. Some end with 1 although all is well."""
    return ask(_PATIENCE_S, *command)[1].partition("\n")[0].strip() if shutil.which(command[0]) else ""


def bash() -> str:
    """Its version."""
    return said("bash", "--noprofile", "--norc", "-c", 'printf %s "$BASH_VERSION"')


def lack(name: str) -> str:
    """What is wrong with a program that is needed; empty when it will do."""
    found = shutil.which(name)
    if not found:
        return name
    real = os.path.basename(os.path.realpath(found))
    return f"GNU's {name} (this one is {real}'s)" if real.startswith(("busybox", "toybox")) else ""


def gpus() -> dict[str, Any]:
    """What nvidia-smi tells; empty where it is not there."""
    if not shutil.which("nvidia-smi"):
        return {}
    code, output = ask(_PATIENCE_S, *GPU_TABLE, "--query-gpu=index,uuid,memory.total,memory.used,name")
    return {"code": code, "rows": output.splitlines()}
