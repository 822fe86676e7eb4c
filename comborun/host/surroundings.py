"""What a start gives to a session's command: GPUs, cores, secrets, a port, an EGL device, and where its servers are.

All of it ends up in the environment of the command. A port is held by a lock that goes with the last process that has
it open, however that ends.
"""

from __future__ import annotations

import os
import re

from comborun.host import files
from comborun.rules import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    from comborun.rules.names import RunLayout

_PORTS = 1024
"""to choose from, below those that the kernel gives away by itself: no connection takes one meanwhile"""
_HIGH = 200
"""descriptors of ours that a command inherits begin here: low numbers are a script's own"""
_FOREIGN = ("TMUX", "TMUX_PANE", "STY", "WINDOW", "COMBORUN_PORT", "COMBORUN_DISPLAY", "COMBORUN_EGL_DEVICE")
"""of the window that it runs in, or of a session in which this run was started"""


class Missing(Exception):  # noqa: N818 - it is an answer and no error of ours
    """Something that the command needs can't be had: it is a failed launch."""


class Gpus:
    """The GPUs that an attempt was granted, as its command is told of them.

    | pin        | CUDA_VISIBLE_DEVICES | COMBORUN_GPUS                                       |
    |------------|----------------------|-----------------------------------------------------|
    | cvd        | the granted ones     | indexes of the host                                 |
    | device-arg | unset                | indexes of the host: an argument tells the command  |
    | both       | the granted ones     | 0 1 ...: places among those that it sees            |
    | none       | as it was            | indexes of the host: the program finds its own way  |
    """

    def __init__(self, pin: str, gpus: str, uuids: str) -> None:
        self.indexes = gpus if re.fullmatch("[0-9]{1,4}(,[0-9]{1,4})*", gpus) else ""
        self.pin = pin
        self.count = self.indexes.count(",") + 1 if self.indexes else 0
        known = re.fullmatch("(GPU|MIG)-[A-Za-z0-9/-]{8,80}(,(GPU|MIG)-[A-Za-z0-9/-]{8,80})*", uuids)
        whole = known and uuids.count(",") + 1 == self.count  # one that is missing would shift the others
        self.visible = uuids if whole else self.indexes
        self.uuid = uuids.partition(",")[0]

    def fill(self, environment: dict[str, str]) -> None:
        numbers = ",".join(map(str, range(self.count))) if self.pin == "both" else self.indexes
        environment["COMBORUN_GPUS"] = numbers
        environment["COMBORUN_GPU"] = numbers.partition(",")[0]
        environment["COMBORUN_GPU_COUNT"] = str(self.count)
        if not self.indexes or self.pin == "none":
            return
        environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # CUDA counts as nvidia-smi does only in this order
        if self.pin == "device-arg":
            environment.pop("CUDA_VISIBLE_DEVICES", None)  # it would give the indexes another meaning
        else:
            environment["CUDA_VISIBLE_DEVICES"] = self.visible


class Surroundings:
    """What one attempt was given. `held` are descriptors that its command inherits."""

    def __init__(self, run: RunLayout, data: Mapping[str, Any], grant: Mapping[str, str]) -> None:
        self.gpus = Gpus(data.get("pin", "cvd"), grant.get("gpus", ""), grant.get("uuids", ""))
        cores = grant.get("cores", "")
        self.cores = cores if re.fullmatch("[0-9]{1,5}(,[0-9]{1,5})*", cores) else ""
        self.port = self.egl = self.egl_told = ""
        self.held: list[int] = []
        self.environment = {key: value for key, value in os.environ.items() if key not in _FOREIGN}
        self.gpus.fill(self.environment)
        if self.cores:
            self.environment["COMBORUN_CORES"] = self.cores
        self._run = run
        self._data = data

    def open(self) -> None:
        """Find the EGL device, take a port, read the secrets. Raises Missing."""
        if self._data.get("wants_egl"):
            self.egl, self.egl_told = egl_device(self.gpus.indexes, self.gpus.uuid)
            self.environment["COMBORUN_EGL_DEVICE"] = self.egl
        if self._data.get("wants_port"):
            number, lock = take_port()
            self.port = str(number)
            self.held.append(inheritable(lock))
            self.environment["COMBORUN_PORT"] = self.port
        self.environment.update(secrets(self._run))


def inheritable(fd: int) -> int:
    """The same open file under a high number, which a command inherits."""
    import fcntl

    high = fcntl.fcntl(fd, fcntl.F_DUPFD, _HIGH)
    os.close(fd)
    return high


def secrets(run: RunLayout) -> dict[str, str]:
    """The secrets of a run by their names. Raises Missing where one is missing."""
    names = [line.partition("\t")[0] for line in files.read_text(run.wanted_secrets).splitlines()]
    if not names:
        return {}
    entries = (entry.partition("=") for entry in files.read_text(run.secrets, 1 << 24).split("\0"))
    values = {name: value for name, _, value in entries if value}
    for name in names:
        if name not in values and not os.environ.get(name):  # by hand, with the variable set
            raise Missing(f"the secret {name} is not there: combo launch sends it again")
    return {name: values[name] for name in names if name in values}


def take_port() -> tuple[int, int]:
    """A TCP port that nothing listens on and no other session of this user has, and the lock that holds it.

    Raises Missing.
    """
    folder = os.environ.get("COMBORUN_PORTS") or f"/tmp/comborun-ports-{os.getuid()}"  # noqa: S108
    try:
        if not os.path.lexists(folder):
            os.mkdir(folder, 0o700)
    except FileExistsError:
        pass  # another start's just now
    except OSError as error:
        raise Missing(f"no port can be taken: {error}") from None
    try:
        found = os.lstat(folder)
    except OSError as error:
        raise Missing(f"no port can be taken: {error}") from None
    if found.st_uid != os.getuid() or (found.st_mode & 0o170000) != 0o040000:
        raise Missing(f"no port can be taken: {folder} is not a folder of this user")
    low = records.integer({"low": files.read_line("/proc/sys/net/ipv4/ip_local_port_range").partition("\t")[0]}, "low")
    last = low - 1 if low and low > 8192 else 32767
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
    raise Missing("no port is free")


def _ports_in_use() -> set[int]:
    """Local ports of every connection that the kernel knows."""
    used = set()
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in files.read_text(path, 1 << 24).splitlines()[1:]:
            words = line.split()
            if len(words) > 1:
                used.add(int(words[1].rpartition(":")[2] or "0", 16))
    return used


def bind(cores: str) -> str:
    """Bind this process, and what it will start, to its cores; a sentence where that is not allowed."""
    if not cores:
        return ""
    try:
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    except (OSError, OverflowError, ValueError):
        return f"can not be bound to the cores {cores}; goes on unbound"
    return ""


def egl_device(gpus: str, uuid: str) -> tuple[str, str]:
    """The number that EGL has for the first GPU, which need not be CUDA's, and `asked` or `assumed`.

    A device is known by the GPU's UUID, or by CUDA's number for it.
    """
    import subprocess

    from comborun.host.egl import COMMAND

    gpu = gpus.partition(",")[0]
    if not gpu:
        return "", "assumed"
    limit = records.seconds(os.environ, "COMBORUN_EGL_S") or 10.0
    try:
        done = subprocess.run(COMMAND, stdin=-3, stdout=-1, stderr=-3, timeout=limit, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return gpu, "assumed"
    for line in done.stdout.decode("ascii", "replace").splitlines():
        index, cuda, name = [*line.split(), "", "", ""][:3]
        if name == uuid if uuid and name != "-" else cuda == gpu:
            return index, "asked"
    return gpu, "assumed"
