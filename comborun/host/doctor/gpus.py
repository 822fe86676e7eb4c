"""GPUs: the driver, who uses which, and what simulators may lack: ray tracing, EGL by CUDA's numbers, Vulkan."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from comborun.host.doctor.machine import Box, hangs, integer
from comborun.host.system.drawing import ASSUMED, EGL_COMMAND, egl_number, vulkan_device
from comborun.host.system.driver import CARDS, TABLE, cards
from comborun.host.system.process import owner
from comborun.rules.endings.evidence import MissingResource
from comborun.rules.facts import Fact
from comborun.rules.findings import Finding, Found, Level, error, fine, note, warning
from comborun.rules.room.capacity import Card

_USERS = (TABLE, "--query-compute-apps=gpu_uuid,pid,used_memory,process_name")
_WITHOUT_RAY_TRACING = re.compile(r"\b(P100|V100|A100|A30|A800|H100|H200|H800|H20|GH200|B100|B200|GB200|B300|GB300)\b")
_FAULTS = {
    "driver/library version mismatch": Found.DRIVER_REPLACED,
    "couldn't communicate with the nvidia driver": Found.DRIVER_NOT_LOADED,
    "gpu is lost": Found.GPU_OFF_BUS,
    "unable to determine the device handle": Found.GPU_OFF_BUS,
    "no devices were found": Found.DRIVER_WITHOUT_GPU,
}
"""text of nvidia-smi in lower case -> what it means"""
_BUSY_MIB = 600
"""MiB that a desktop may hold"""
_USERS_MOST = 3


def driver(box: Box) -> Iterator[Finding]:
    loaded = re.search(r"\s([0-9]+\.[0-9.]+)", box.read("/proc/driver/nvidia/version").partition("\n")[0])
    if not box.has("nvidia-smi"):
        if loaded or box.find("/proc/driver/nvidia/gpus/*/"):
            yield error("driver", Found.NO_NVIDIA_SMI)
        else:
            yield fine("driver", Found.NO_GPU_HERE)
        return
    code, said = box.ask("nvidia-smi", *CARDS, slow=True)
    if code:
        yield Finding("driver", Level.ERROR, fault(code, said[:120]))
    else:
        gpus, users = cards(said.splitlines()), _users(box)
        version = loaded[1] if loaded else gpus[0].driver if gpus else "?"
        yield fine("driver", Found.DRIVER, version=version, gpus=len(gpus))
        for gpu in gpus:
            yield from usage(gpu, users.get(gpu.uuid, []))


def fault(code: int, said: str) -> Fact:
    """What it means that nvidia-smi ends with this code, other than 0, and these words."""
    if hangs(code):
        return Fact(Found.DRIVER_HANGS)
    for sign, found in _FAULTS.items():
        if sign in said.lower():
            return Fact(found, said=said)
    return Fact(Found.DRIVER_FAILS, exit=code, said=said)


def _users(box: Box) -> dict[str, list[dict[str, object]]]:
    """GPU -> owner, program, pid and bytes (or None) of each process that the driver names, without graphics."""
    code, said = box.ask("nvidia-smi", *_USERS, slow=True)
    found: dict[str, list[dict[str, object]]] = {}
    for line in said.splitlines() if code == 0 else ():
        uuid, pid, used, name = ([field.strip() for field in line.split(",", 3)] + [""] * 3)[:4]
        if uuid.startswith("GPU-") and pid.isdecimal():
            mib, program = integer(used), name.rpartition("/")[2] or name
            held = None if mib is None else mib << 20
            user = {"owner": owner(f"/proc/{pid}"), "program": program, "pid": int(pid), "bytes": held}
            found.setdefault(uuid, []).append(user)
    return found


def usage(gpu: Card, users: Sequence[Mapping[str, object]]) -> Iterator[Finding]:
    check, named = f"GPU {gpu.index}", {"gpu": gpu.index, "name": gpu.name}
    if gpu.used is None or not gpu.total:
        yield warning(check, Found.GPU_SAYS_NOTHING, **named)
        return
    free = gpu.total - gpu.used
    fact = Fact(Found.GPU_ROOM, **named, free_bytes=free << 20, total_bytes=gpu.total << 20)
    if gpu.used > _BUSY_MIB:
        fact.fields["users"] = list(users[:_USERS_MOST])
    level = Level.WARNING if free < 0.1 * gpu.total else Level.NOTE if gpu.used > _BUSY_MIB else Level.OK
    yield Finding(check, level, fact)
    if _WITHOUT_RAY_TRACING.search(gpu.name):
        yield note(check, Found.NO_RAY_TRACING, **named)


def egl(box: Box) -> Iterator[Finding]:
    """Whether EGL numbers the GPUs as nvidia-smi does; checked only if there are GPUs."""
    if not box.has("nvidia-smi"):
        return
    code, rows = box.ask("nvidia-smi", *CARDS, slow=True)
    if code == 0 and (gpus := cards(rows.splitlines())):
        code, said = box.ask(*EGL_COMMAND, slow=True)
        yield numbers(gpus, said if code == 0 else "")
        yield vulkan(box, gpus)


def vulkan(box: Box, gpus: Sequence[Card]) -> Finding:
    """Whether the driver's entry for the Vulkan loader exists, and a session can choose among several GPUs."""
    named = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES") or ""
    places = named.split(":") if named else [f"{folder}/vulkan/icd.d/nvidia*" for folder in ("/etc", "/usr/share")]
    there = [path for place in places for path in box.find(place) if "nvidia" in path]
    if there:
        try:
            if len(gpus) > 1 and vulkan_device(str(gpus[-1].index), gpus[-1].uuid)[1] == ASSUMED:
                return note("Vulkan", Found.VULKAN_SILENT)
        except MissingResource as missing:
            return note("Vulkan", Found.VULKAN_CANNOT_CHOOSE, gpu=gpus[-1].index, reason=missing.reason.as_data())
        return fine("Vulkan", Found.VULKAN, path=there[0])
    return note("Vulkan", Found.VULKAN_WITHOUT_DRIVER, paths=places)


def numbers(gpus: Sequence[Card], said: str) -> Finding:
    """Compares the numbers. `said`: the output of EGL_COMMAND."""
    found = {gpu.index: integer(egl_number(said, str(gpu.index), gpu.uuid)) for gpu in gpus}
    other = [[gpu, device] for gpu, device in found.items() if device not in (None, gpu)]
    if all(device is None for device in found.values()):
        return note("EGL", Found.EGL_WITHOUT_GPU if said else Found.EGL_SILENT)
    return note("EGL", Found.EGL_DIFFERS, devices=other) if other else fine("EGL", Found.EGL)
