"""The doctor on GPUs: the driver, who uses which, and what a simulator may not find there. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from comborun.amounts import several
from comborun.remote.doctor.finding import Facts, Finding, Level, integer, size

WITHOUT_RAY_TRACING = re.compile(r"\b(P100|V100|A100|A30|A800|H100|H200|H800|H20|GH200|B100|B200|GB200|B300|GB300)\b")
_FAULTS = (
    (
        "Driver/library version mismatch",
        "the driver was upgraded while its kernel module stayed loaded",
        "programs that use a GPU already go on, new ones can't start",
        "sudo reboot",
    ),
    (
        "couldn't communicate with the NVIDIA driver",
        "the driver's kernel module is not loaded",
        "nothing can use a GPU",
        "sudo modprobe nvidia",
    ),
    ("GPU is lost", "a GPU has fallen off its bus", "what ran on it is gone", "sudo reboot"),
    ("Unable to determine the device handle", "a GPU has fallen off its bus", "what ran on it is gone", "sudo reboot"),
    ("No devices were found", "the driver sees no GPU", "nothing can use a GPU", "lspci | grep -i nvidia"),
)


@dataclass(frozen=True)
class Gpu:
    index: int
    uuid: str
    total: int
    """MiB"""
    used: int | None
    """MiB; None when the driver does not tell"""
    busy: int | None
    """percent"""
    driver: str
    name: str


def gpus(facts: Facts) -> Iterator[Finding]:
    code = facts.number("nvidia_code")
    if facts.late("gpus") or code in {124, 137}:
        cost = "sessions that ask for GPUs wait for ever; programs that use one may hang too"
        yield Finding("driver", Level.ERROR, "nvidia-smi hangs", cost, "sudo dmesg | grep -i xid; sudo reboot")
    elif code is None:
        yield from _without_tool(facts)
    elif code:
        yield _fault(facts.one("nvidia_said"), code)
    else:
        yield from _driver(facts)
        users = _users(facts)
        for gpu in (parsed for line in facts.all("gpu") if (parsed := parse_gpu(line))):
            yield from _gpu(gpu, users.get(gpu.uuid, ()))
    for line in facts.all("xid")[-1:]:
        found = f"the kernel log has {several(len(facts.all('xid')), 'fault')} of a GPU, the last: {line[-150:]}"
        cost = "what ran on it then was lost, and may be again"
        yield Finding("xid", Level.WARNING, found, cost, "sudo dmesg | grep -i xid")


def parse_gpu(line: str) -> Gpu | None:
    """A line of `nvidia-smi --query-gpu`; what can't be read is left out."""
    fields = [field.strip() for field in line.split(",", 6)]
    if len(fields) != 7 or (index := integer(fields[0])) is None:
        return None
    return Gpu(index, fields[1], integer(fields[2]) or 0, integer(fields[3]), integer(fields[4]), fields[5], fields[6])


def _without_tool(facts: Facts) -> Iterator[Finding]:
    if facts.one("driver_loaded") or facts.all("gpu_device"):
        cost = "GPUs can't be shared out among sessions"
        fix = "sudo apt-get install nvidia-utils"
        yield Finding("driver", Level.ERROR, "there is an NVIDIA driver, but no nvidia-smi on the PATH", cost, fix)
    else:
        yield Finding("driver", Level.OK, "no NVIDIA GPU here")


def _fault(said: str, code: int) -> Finding:
    for sign, found, cost, fix in _FAULTS:
        if sign.lower() in said.lower():
            return Finding("driver", Level.ERROR, f"{found}: {said[:120]}", cost, fix)
    found = f"nvidia-smi ends with code {code}: {said[:120] or 'it says nothing'}"
    return Finding("driver", Level.ERROR, found, "sessions that ask for GPUs can't start", "nvidia-smi")


def _driver(facts: Facts) -> Iterator[Finding]:
    loaded, installed = facts.one("driver_loaded"), facts.one("driver_installed")
    if loaded and installed and loaded != installed:
        found = f"driver {loaded} is loaded, and {installed} is installed"
        cost = 'after the next reload: "Driver/library version mismatch" for every new program'
        yield Finding("driver", Level.WARNING, found, cost, "sudo reboot  # when nothing runs")
    else:
        first = next((gpu for line in facts.all("gpu") if (gpu := parse_gpu(line))), None)
        count = len(facts.all("gpu"))
        yield Finding("driver", Level.OK, f"{loaded or (first.driver if first else '?')}, {several(count, 'GPU')}")


def _users(facts: Facts) -> dict[str, tuple[tuple[str, str], ...]]:
    """GPU -> (owner, what it is), for each process that the driver tells of; graphics programs are not among them."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for line in facts.all("gpu_process"):
        owner, _, rest = line.partition(" ")
        fields = [field.strip() for field in rest.split(",", 3)]
        if len(fields) == 4:
            uuid, pid, used, name = fields
            what = f"{name.rpartition('/')[2] or name} ({pid}"
            what += f", {size(int(used) * 1024)})" if integer(used) is not None else ")"
            found[uuid] = (*found.get(uuid, ()), (owner, what))
    return found


def _gpu(gpu: Gpu, users: tuple[tuple[str, str], ...]) -> Iterator[Finding]:
    check = f"GPU {gpu.index}"
    if gpu.used is None or not gpu.total:
        yield Finding(
            check, Level.WARNING, f"{gpu.name} does not tell how full it is", "it can't be shared safely", "nvidia-smi"
        )
        return
    free = gpu.total - gpu.used
    text = f"{gpu.name}, {size(free * 1024)} of {size(gpu.total * 1024)} free"
    if gpu.used > 600 and users:
        text += ", used by " + ", ".join(f"{owner}: {what}" for owner, what in users[:3])
    elif gpu.used > 600:
        text += ", used by programs that can't be named"
    cost = "simulators that want more than what is free end with out of memory"
    fix = f"use_gpus in the grid, without {gpu.index}"
    if free < 0.1 * gpu.total:
        yield Finding(check, Level.WARNING, text, cost, fix)
    elif gpu.used > 600:
        yield Finding(check, Level.NOTE, text, cost, fix)
    else:
        yield Finding(check, Level.OK, text)
    if WITHOUT_RAY_TRACING.search(gpu.name):
        cost = "Isaac Sim's cameras and other ray tracing don't start here; headless without cameras does"
        yield Finding(check, Level.NOTE, f"{gpu.name} has no ray tracing cores", cost)
