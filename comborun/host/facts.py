"""What this machine is, for a plan: `facts SECRET...` answers with one JSON document."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from comborun.host import secrets
from comborun.host.incoming import answered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NEEDED = ("bash", "env", "flock", "setsid", "grep", "mkfifo", "mktemp", "mv", "sha256sum", "stat", "tail", "timeout")
"""what scripts on a host call; and one of tmux and screen"""
_NVIDIA_S = 10
_GPU_COLUMNS = "index,uuid,memory.total,memory.used,name"


def main(arguments: list[str]) -> int:
    """The program's verb."""
    return answered("facts", lambda: facts(arguments))


def facts(wanted: list[str]) -> dict[str, Any]:
    """`lacking` names the secrets that are set nowhere here."""
    there = secrets.of_host(wanted) if wanted else {}
    return {
        "python": os.path.realpath(sys.executable),
        "hostname": os.uname().nodename,
        "bash": said("bash", "--noprofile", "--norc", "-c", 'printf %s "$BASH_VERSION"'),
        "tmux": said("tmux", "-V"),
        "screen": said("screen", "-v"),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_kib": memory().get("MemTotal", 0),
        "available_kib": memory().get("MemAvailable"),
        "missing": [flaw for name in NEEDED if (flaw := lack(name))],
        "lacking": [name for name in wanted if name not in there],
        "gpus": gpus(),
    }


def said(*command: str) -> str:
    """The first line that a program prints; nothing where there is none. Some end with 1 although all is well."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_NVIDIA_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").partition("\n")[0].strip()


def lack(name: str) -> str:
    """What is wrong with a program that is needed; empty when it will do."""
    found = shutil.which(name)
    if not found:
        return name
    real = os.path.basename(os.path.realpath(found))
    return f"GNU's {name} (this one is {real}'s)" if real.startswith(("busybox", "toybox")) else ""


def memory() -> dict[str, int]:
    """KiB, by the kernel's words."""
    with open("/proc/meminfo") as file:
        rows = (line.split() for line in file)
        return {row[0][:-1]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def gpus() -> dict[str, Any]:
    """What nvidia-smi tells; a code of 124 means that it did not answer in time. Empty where it is not there."""
    if not shutil.which("nvidia-smi"):
        return {}
    command = ["nvidia-smi", "--format=csv,noheader,nounits", f"--query-gpu={_GPU_COLUMNS}"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        output, _ = process.communicate(timeout=_NVIDIA_S)
    except subprocess.TimeoutExpired:
        process.kill()  # and not waited for: in the kernel nothing ends it
        return {"code": 124, "rows": []}
    return {"code": process.returncode, "rows": output.decode("utf-8", "replace").splitlines()}
