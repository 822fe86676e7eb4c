"""The doctor on what sessions draw with: an X server of their own, and EGL's numbers for the GPUs. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from comborun.remote.doctor.finding import Facts, Finding, Level, integer
from comborun.remote.doctor.gpus import Gpu, parse_gpu

XVFB = "Xvfb"


def displays(facts: Facts) -> Iterator[Finding]:
    """Xvfb, where the grid asks for it."""
    if XVFB in facts.all("missing"):
        found = "there is no Xvfb, and the grid says `display: xvfb`"
        cost = "its sessions fail before their command starts"
        yield Finding("display", Level.ERROR, found, cost, "sudo apt-get install xvfb")


def egl(facts: Facts) -> Iterator[Finding]:
    """Whether EGL numbers the GPUs as nvidia-smi does; only looked at where there are GPUs."""
    cards = [card for line in facts.all("gpu") if (card := parse_gpu(line))]
    if not cards or facts.number("nvidia_code") != 0:
        return
    devices = [line.split() for line in facts.all("egl")]
    numbers = {card.index: _device(card, devices) for card in cards}
    if all(device is None for device in numbers.values()):
        found = "EGL can't be asked how it numbers the GPUs" if not devices else "EGL has no device for any GPU"
        cost = "{egl_device} is taken to be the GPU's index; rendering may land on another GPU, or fail"
        yield Finding("EGL", Level.NOTE, found, cost, "python3 with ctypes, and libEGL of the driver (libnvidia-gl)")
    elif other := [f"GPU {gpu} is EGL device {device}" for gpu, device in numbers.items() if device not in (None, gpu)]:
        cost = "programs that take CUDA's number for EGL's render on another GPU"
        yield Finding("EGL", Level.NOTE, ", ".join(other), cost, 'variables: {MUJOCO_EGL_DEVICE_ID: "{egl_device}"}')
    else:
        yield Finding("EGL", Level.OK, "numbers the GPUs as nvidia-smi does")


def _device(card: Gpu, devices: list[list[str]]) -> int | None:
    """As the host program finds it (host/egl.py): by UUID, else by CUDA's number."""
    for fields in devices:
        if len(fields) != 3:
            continue
        index, cuda, uuid = fields
        if uuid == card.uuid if uuid != "-" else integer(cuda) == card.index:
            return integer(index)
    return None
