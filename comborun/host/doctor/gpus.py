"""GPUs: the driver, who uses which, and what simulators may lack: ray tracing, EGL by CUDA's numbers, Vulkan."""

from __future__ import annotations

import os
import re

from comborun.host.doctor.machine import Box, hangs, integer
from comborun.host.system.drawing import ASSUMED, EGL_COMMAND, egl_number, vulkan_device
from comborun.host.system.driver import CARDS, TABLE, cards
from comborun.host.system.process import owner
from comborun.rules.findings import Finding, Level, error, fine, graded, note, warning
from comborun.rules.room.capacity import Card
from comborun.rules.vocabulary import amount, several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Sequence

_USERS = (TABLE, "--query-compute-apps=gpu_uuid,pid,used_memory,process_name")
_WITHOUT_RAY_TRACING = re.compile(r"\b(P100|V100|A100|A30|A800|H100|H200|H800|H20|GH200|B100|B200|GB200|B300|GB300)\b")
_GONE = ("a GPU has fallen off its bus", "what ran on it is gone", "sudo reboot")
FAULTS = {
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
"""text of nvidia-smi in lower case -> finding, cost, fix"""
HANGS = error(
    "driver",
    "nvidia-smi hangs",
    "sessions that ask for GPUs wait for ever; programs that use one may hang too",
    "sudo dmesg | grep -i xid; sudo reboot",
)
_BUSY_MIB = 600
"""MiB that a desktop may hold"""


def driver(box: Box) -> Iterator[Finding]:
    loaded = re.search(r"\s([0-9]+\.[0-9.]+)", box.read("/proc/driver/nvidia/version").partition("\n")[0])
    if not box.has("nvidia-smi"):
        if loaded or box.find("/proc/driver/nvidia/gpus/*/"):
            found = "there is an NVIDIA driver, but no nvidia-smi on the PATH"
            cost = "GPUs can't be shared out among sessions"
            yield error("driver", found, cost, "sudo apt-get install nvidia-utils")
        else:
            yield fine("driver", "no NVIDIA GPU here")
        return
    code, said = box.ask("nvidia-smi", *CARDS, slow=True)
    if code:
        yield HANGS if hangs(code) else _fault(said[:120], code)
    else:
        gpus, users = cards(said.splitlines()), _users(box)
        version = loaded[1] if loaded else gpus[0].driver if gpus else "?"
        yield fine("driver", f"{version}, {several(len(gpus), 'GPU')}")
        for gpu in gpus:
            yield from usage(gpu, users.get(gpu.uuid, []))


def _fault(said: str, code: int) -> Finding:
    for sign, (found, cost, fix) in FAULTS.items():
        if sign in said.lower():
            return error("driver", f"{found}: {said}", cost, fix)
    found = f"nvidia-smi ends with code {code}: {said or 'it says nothing'}"
    return error("driver", found, "sessions that ask for GPUs can't start", "nvidia-smi")


def _users(box: Box) -> dict[str, list[str]]:
    """GPU -> `owner: program (pid, memory)` for each process that the driver names, without graphics."""
    code, said = box.ask("nvidia-smi", *_USERS, slow=True)
    found: dict[str, list[str]] = {}
    for line in said.splitlines() if code == 0 else ():
        uuid, pid, used, name = ([field.strip() for field in line.split(",", 3)] + [""] * 3)[:4]
        if uuid.startswith("GPU-") and pid.isdecimal():
            mib = integer(used)
            held = "" if mib is None else f", {amount(mib << 20)}"
            found.setdefault(uuid, []).append(
                f"{owner(f'/proc/{pid}')}: {name.rpartition('/')[2] or name} ({pid}{held})"
            )
    return found


def usage(gpu: Card, users: Sequence[str]) -> Iterator[Finding]:
    check = f"GPU {gpu.index}"
    if gpu.used is None or not gpu.total:
        yield warning(check, f"{gpu.name} does not tell how full it is", "it can't be shared safely", "nvidia-smi")
        return
    free = gpu.total - gpu.used
    text = f"{gpu.name}, {amount(free << 20)} of {amount(gpu.total << 20)} free"
    if gpu.used > _BUSY_MIB:
        text += f", used by {', '.join(users[:3]) or 'programs that cannot be named'}"
    level = Level.WARNING if free < 0.1 * gpu.total else Level.NOTE if gpu.used > _BUSY_MIB else Level.OK
    cost = "simulators that want more than what is free end with out of memory"
    yield graded(check, level, text, cost, f"use_gpus in the grid, without {gpu.index}")
    if _WITHOUT_RAY_TRACING.search(gpu.name):
        cost = "Isaac Sim's cameras and other ray tracing don't start here; headless without cameras does"
        yield note(check, f"{gpu.name} has no ray tracing cores", cost)


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
                cost = "{vulkan_device} is a guess: drawing may land on another GPU"
                return note("Vulkan", "it can't be asked which GPU it takes", cost, "vulkaninfo --summary")
        except LookupError as error:
            cost = "programs that draw through Vulkan may all draw on the first GPU"
            return note("Vulkan", f"GPU {gpus[-1].index}: {error}", cost, "sudo apt-get install mesa-vulkan-drivers")
        return fine("Vulkan", f"its loader finds {there[0]}")
    cost = "Isaac Sim, SAPIEN and AI2-THOR don't start, or draw on the CPU"
    fix = "libnvidia-gl of the driver; or unset VK_DRIVER_FILES and VK_ICD_FILENAMES"
    return note("Vulkan", f"its loader finds no NVIDIA driver: there is no {' or '.join(places)}", cost, fix)


def numbers(gpus: Sequence[Card], said: str) -> Finding:
    """Compares the numbers. `said`: the output of EGL_COMMAND."""
    found = {gpu.index: integer(egl_number(said, str(gpu.index), gpu.uuid)) for gpu in gpus}
    other = [f"GPU {gpu} is EGL device {device}" for gpu, device in found.items() if device not in (None, gpu)]
    if all(device is None for device in found.values()):
        why = "EGL has no device for any GPU" if said else "EGL can't be asked how it numbers the GPUs"
        cost = "{egl_device} is taken to be the GPU's index; rendering may land on another GPU, or fail"
        return note("EGL", why, cost, "python3 with ctypes, and libEGL of the driver (libnvidia-gl)")
    if other:
        cost = "programs that take CUDA's number for EGL's render on another GPU"
        return note("EGL", ", ".join(other), cost, 'variables: {MUJOCO_EGL_DEVICE_ID: "{egl_device}"}')
    return fine("EGL", "numbers the GPUs as nvidia-smi does")
