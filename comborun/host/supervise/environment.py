"""The environment of a session's command: GPUs, cores, secrets, a port, devices to draw on, URLs of its servers.

A port is held by a lock, which the kernel releases with the last process that has it open.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from comborun.host.record import secrets
from comborun.host.system import files, process
from comborun.host.system.files import Json
from comborun.rules import records
from comborun.rules.endings.evidence import Evidence, MissingResource
from comborun.rules.names import RunLayout

_GPUS = re.compile("[0-9]{1,4}(,[0-9]{1,4})*")
_UUIDS = re.compile("(GPU|MIG)-[A-Za-z0-9/-]{8,80}(,(GPU|MIG)-[A-Za-z0-9/-]{8,80})*")
_NUMBER = re.compile("[0-9]+")
_PORTS = 1024
"""ports to choose from, below those that the kernel assigns: no connection takes one meanwhile"""
_FOREIGN = (
    *("TMUX", "TMUX_PANE", "STY", "WINDOW", "COMBORUN_PORT", "COMBORUN_DISPLAY"),
    *("COMBORUN_EGL_DEVICE", "COMBORUN_VULKAN_DEVICE", "SHELLOPTS", "BASHOPTS"),
)
"""variables of its window, or of a session in which this run was started, and options of the caller's bash"""


class Gpus:
    """The granted GPUs, in the variables of the command.

    | pin        | CUDA_VISIBLE_DEVICES | COMBORUN_GPUS                                       |
    |------------|----------------------|-----------------------------------------------------|
    | cvd        | the granted ones     | indexes of the host                                 |
    | device-arg | unset                | indexes of the host: an argument tells the command  |
    | both       | the granted ones     | 0 1 ...: places among those that it sees            |
    | none       | as it was            | indexes of the host: the program finds its own way  |
    """

    def __init__(self, pin: str, gpus: str, uuids: str) -> None:
        self.indexes = gpus if _GPUS.fullmatch(gpus) else ""
        self.pin = pin
        self.count = self.indexes.count(",") + 1 if self.indexes else 0
        known = _UUIDS.fullmatch(uuids)
        whole = known and uuids.count(",") + 1 == self.count  # a missing one would shift the others
        self.visible = uuids if whole else self.indexes
        self.uuid = uuids.partition(",")[0]

    def fill(self, environment: dict[str, str]) -> None:
        numbers = ",".join(map(str, range(self.count))) if self.pin == "both" else self.indexes
        environment["COMBORUN_GPUS"] = numbers
        environment["COMBORUN_GPU"] = numbers.partition(",")[0]
        environment["COMBORUN_GPU_COUNT"] = str(self.count)
        if not self.indexes or self.pin == "none":
            return
        environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # only in this order CUDA counts as nvidia-smi does
        if self.pin == "device-arg":
            environment.pop("CUDA_VISIBLE_DEVICES", None)  # it would change the meaning of the indexes
        else:
            environment["CUDA_VISIBLE_DEVICES"] = self.visible


def inherited() -> dict[str, str]:
    """The environment of this process, without what belongs to its window or to another session."""
    return {key: value for key, value in os.environ.items() if key not in _FOREIGN}


class CommandEnvironment:
    """`variables`: the inherited ones."""

    def __init__(self, run: RunLayout, data: Json, grant: Mapping[str, str], variables: Mapping[str, str]) -> None:
        self.gpus = Gpus(data.get("pin", "cvd"), grant.get("gpus", ""), grant.get("uuids", ""))
        self.cores = grant["cores"] if records.integers(grant, "cores") else ""
        self.port = ""
        self.drawing: dict[str, str] = {}
        """API -> the device that it draws on, and API_told -> who says so"""
        self.held: list[int] = []
        """descriptors that its command inherits"""
        self.environment = dict(variables)
        self.gpus.fill(self.environment)
        if self.cores:
            self.environment["COMBORUN_CORES"] = self.cores
        self._run = run
        self._data = data
        on_node = _NUMBER.match(grant.get("slurm_gpus", ""))
        self._on_host = on_node[0] if on_node else self.gpus.indexes
        """its GPUs by the host's numbers: in a task of Slurm CUDA may count the task's own"""

    def open(self) -> None:
        """Find the devices to draw on, take a port, read the secrets. Raises MissingResource."""
        for api in self._data.get("draws", ()):
            self._find_device(api)
        if self._data.get("wants_port"):
            number, lock = take_port()
            self.port = str(number)
            self.held.append(files.inheritable(lock))
            self.environment["COMBORUN_PORT"] = self.port
        self.environment.update(secrets.values(self._run))

    def _find_device(self, api: str) -> None:
        from comborun.host.system import drawing

        if api == "egl":
            device, told = drawing.egl_device(self.gpus.indexes, self.gpus.uuid)
        else:
            device, told = drawing.vulkan_device(self._on_host, self.gpus.uuid)
        self.environment[f"COMBORUN_{api.upper()}_DEVICE"] = device
        self.drawing.update({api: device, f"{api}_told": told})


def take_port() -> tuple[int, int]:
    """A TCP port that is free and that no other session of this user has, and the lock that holds it.

    Raises MissingResource.
    """
    folder, flaw = files.shared_folder(files.PORTS, 0o700)
    if flaw:
        raise MissingResource(Evidence.NO_PORT, said=flaw.as_data())
    low = process.read("sys/net/ipv4/ip_local_port_range").split()[:1] or [b"0"]
    last = int(low[0]) - 1 if int(low[0]) > 8192 else 32767
    taken, first = _ports_in_use(), int.from_bytes(os.urandom(2), "big") % _PORTS
    for step in range(_PORTS):
        port = last - (first + step) % _PORTS
        if port in taken:
            continue
        try:
            lock = files.lock(f"{folder}/{port}")
        except OSError:
            continue
        if lock >= 0:
            return port, lock
    raise MissingResource(Evidence.NO_PORT)


def _ports_in_use() -> set[int]:
    """Local ports of every connection that the kernel knows."""
    lines = [line for table in ("tcp", "tcp6") for line in process.read(f"net/{table}").splitlines()[1:]]
    return {int(line.split()[1].rpartition(b":")[2], 16) for line in lines}


def bind(cores: str) -> str:
    """Bind this process and its children to its cores; a sentence if that is not allowed."""
    if not cores:
        return ""
    try:
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    except (OSError, OverflowError, ValueError):
        return f"can not be bound to the cores {cores}; goes on unbound"
    return ""
