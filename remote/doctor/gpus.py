"""GPUs: the driver, who uses which, what a simulator may not find there, and EGL's numbers for them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from comborun.remote.doctor.finding import Facts, Finding, Level, error, fine, graded, integer, note, size, warning
from comborun.remote.doctor.machine import hangs
from comborun.text import several

_WITHOUT_RAY_TRACING = re.compile(r"\b(P100|V100|A100|A30|A800|H100|H200|H800|H20|GH200|B100|B200|GB200|B300|GB300)\b")
_GONE = ("a GPU has fallen off its bus", "what ran on it is gone", "sudo reboot")
_FAULTS = {
    "driver/library version mismatch": (
        "the driver was upgraded while its kernel module stayed loaded",
        "programs that use a GPU already go on, new ones can't start",
        "sudo reboot",
    ),
    "couldn't communicate with the nvidia driver": (
        "the driver's kernel module is not loaded",
        "nothing can use a GPU",
        "sudo modprobe nvidia",
    ),
    "gpu is lost": _GONE,
    "unable to determine the device handle": _GONE,
    "no devices were found": ("the driver sees no GPU", "nothing can use a GPU", "lspci | grep -i nvidia"),
}
"""what nvidia-smi says, in lower case -> what is so, what it costs, the fix"""
_BUSY_MIB = 600
"""memory that a desktop may hold"""


@dataclass(frozen=True)
class Gpu:
    """A row of nvidia-smi. Memory is in MiB; `used` is None when the driver does not tell."""

    index: int
    uuid: str
    total: int
    used: int | None
    driver: str
    name: str


def parse_gpu(line: str) -> Gpu | None:
    """A line of `nvidia-smi --query-gpu`; None when it can't be read."""
    fields = [field.strip() for field in line.split(",", 6)]
    if len(fields) != 7 or (index := integer(fields[0])) is None:
        return None
    return Gpu(index, fields[1], integer(fields[2]) or 0, integer(fields[3]), fields[5], fields[6])


def _gpus(facts: Facts) -> list[Gpu]:
    return [gpu for line in facts.all("gpu") if (gpu := parse_gpu(line))]


def driver(facts: Facts) -> Iterator[Finding]:
    code = facts.number("nvidia_code")
    if facts.late("gpus") or hangs(code):
        cost = "sessions that ask for GPUs wait for ever; programs that use one may hang too"
        yield error("driver", "nvidia-smi hangs", cost, "sudo dmesg | grep -i xid; sudo reboot")
    elif code:
        yield _fault(facts.one("nvidia_said")[:120], code)
    elif code == 0:
        yield _versions(facts)
    elif facts.one("driver_loaded") or facts.all("gpu_device"):
        found, cost = (
            "there is an NVIDIA driver, but no nvidia-smi on the PATH",
            "GPUs can't be shared out among sessions",
        )
        yield error("driver", found, cost, "sudo apt-get install nvidia-utils")
    else:
        yield fine("driver", "no NVIDIA GPU here")
    if faults := facts.all("xid"):
        found = f"the kernel log has {several(len(faults), 'fault')} of a GPU, the last: {faults[-1][-150:]}"
        yield warning("xid", found, "what ran on it then was lost, and may be again", "sudo dmesg | grep -i xid")


def _fault(said: str, code: int) -> Finding:
    for sign, (found, cost, fix) in _FAULTS.items():
        if sign in said.lower():
            return error("driver", f"{found}: {said}", cost, fix)
    found = f"nvidia-smi ends with code {code}: {said or 'it says nothing'}"
    return error("driver", found, "sessions that ask for GPUs can't start", "nvidia-smi")


def _versions(facts: Facts) -> Finding:
    loaded, installed, gpus = facts.one("driver_loaded"), facts.one("driver_installed"), _gpus(facts)
    if loaded and installed and loaded != installed:
        cost = 'after the next reload: "Driver/library version mismatch" for every new program'
        found = f"driver {loaded} is loaded, and {installed} is installed"
        return warning("driver", found, cost, "sudo reboot  # when nothing runs")
    return fine("driver", f"{loaded or (gpus[0].driver if gpus else '?')}, {several(len(gpus), 'GPU')}")


def memory(facts: Facts) -> Iterator[Finding]:
    """How full each GPU is, and by whom."""
    if facts.number("nvidia_code") != 0:
        return
    users = _users(facts)
    for gpu in _gpus(facts):
        yield from _gpu(gpu, users.get(gpu.uuid, []))


def _users(facts: Facts) -> dict[str, list[str]]:
    """GPU -> `owner: program (pid, memory)`, for each process that the driver tells of; graphics are not among them."""
    found: dict[str, list[str]] = {}
    for line in facts.all("gpu_process"):
        owner, _, rest = line.partition(" ")
        fields = [field.strip() for field in rest.split(",", 3)]
        if len(fields) == 4:
            uuid, pid, used, name = fields
            mib = integer(used)
            held = "" if mib is None else f", {size(mib * 1024)}"
            found.setdefault(uuid, []).append(f"{owner}: {name.rpartition('/')[2] or name} ({pid}{held})")
    return found


def _gpu(gpu: Gpu, users: list[str]) -> Iterator[Finding]:
    check = f"GPU {gpu.index}"
    if gpu.used is None or not gpu.total:
        yield warning(check, f"{gpu.name} does not tell how full it is", "it can't be shared safely", "nvidia-smi")
        return
    free = gpu.total - gpu.used
    text = f"{gpu.name}, {size(free * 1024)} of {size(gpu.total * 1024)} free"
    if gpu.used > _BUSY_MIB:
        text += f", used by {', '.join(users[:3]) or 'programs that cannot be named'}"
    level = Level.WARNING if free < 0.1 * gpu.total else Level.NOTE if gpu.used > _BUSY_MIB else Level.OK
    cost = "simulators that want more than what is free end with out of memory"
    yield graded(check, level, text, cost, f"use_gpus in the grid, without {gpu.index}")
    if _WITHOUT_RAY_TRACING.search(gpu.name):
        cost = "Isaac Sim's cameras and other ray tracing don't start here; headless without cameras does"
        yield note(check, f"{gpu.name} has no ray tracing cores", cost)


def egl(facts: Facts) -> Iterator[Finding]:
    """Whether EGL numbers the GPUs as nvidia-smi does; only looked at where there are GPUs."""
    gpus = _gpus(facts)
    if not gpus or facts.number("nvidia_code") != 0:
        return
    devices = [fields for line in facts.all("egl") if len(fields := line.split()) == 3]
    numbers = {gpu.index: _device(gpu, devices) for gpu in gpus}
    other = [f"GPU {gpu} is EGL device {device}" for gpu, device in numbers.items() if device not in (None, gpu)]
    if all(device is None for device in numbers.values()):
        found = "EGL has no device for any GPU" if devices else "EGL can't be asked how it numbers the GPUs"
        cost = "{egl_device} is taken to be the GPU's index; rendering may land on another GPU, or fail"
        yield note("EGL", found, cost, "python3 with ctypes, and libEGL of the driver (libnvidia-gl)")
    elif other:
        cost = "programs that take CUDA's number for EGL's render on another GPU"
        yield note("EGL", ", ".join(other), cost, 'variables: {MUJOCO_EGL_DEVICE_ID: "{egl_device}"}')
    else:
        yield fine("EGL", "numbers the GPUs as nvidia-smi does")


def _device(gpu: Gpu, devices: list[list[str]]) -> int | None:
    """As the host program finds it (host/egl.py): by UUID, else by CUDA's number."""
    named = (row[0] for row in devices if (row[2] == gpu.uuid if row[2] != "-" else integer(row[1]) == gpu.index))
    return integer(next(named, ""))
