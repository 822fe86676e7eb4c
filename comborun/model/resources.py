"""What sessions and model servers request from a host, what surrounds their commands, and facts about the host.

Memory is in MiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, NewType

from comborun.rules.facts import Fact
from comborun.rules.names import SERVER_FIELDS, server_variable
from comborun.rules.room.capacity import Card, Request
from comborun.text import MIB

BashWord = NewType("BashWord", str)
"""Text that bash reads as exactly one word: quoted literals and "$COMBORUN_..." (see command.py)."""


PinMode = Literal["cvd", "device-arg", "both", "none"]
"""how a session finds its GPUs: by CUDA_VISIBLE_DEVICES, an argument of its command, both, or by itself"""


NOTHING = Request()


@dataclass(frozen=True)
class Reserve:
    """What stays free for others, such as a training job, whether they use it or not."""

    gpu_memory: int = 0
    """of each GPU"""
    cpus: int = 0
    memory: int = 0


NO_RESERVE = Reserve()


def mebibytes(size: int) -> int:
    """MiB that hold `size` bytes."""
    return -(-size // MIB)


XVFB = "xvfb"


@dataclass(frozen=True)
class Display:
    """The X display of a session: its own, an existing one, or one for each GPU."""

    server: str = ""
    """`xvfb`, or the number of an existing X server; empty with `by_gpu`"""
    by_gpu: tuple[tuple[int, int], ...] = ()
    """index of a GPU, number of its X server"""
    geometry: str = "1280x1024x24"
    """width x height x depth of its own display"""

    @property
    def own(self) -> bool:
        return self.server == XVFB

    @property
    def token(self) -> str:
        """The name under which only one session at a time may have an existing X server; else empty."""
        return f"display-{self.server}" if self.server and not self.own else ""

    def word(self) -> str:
        """How session.json has it."""
        if self.by_gpu:
            return " ".join(f"{gpu}=:{number}" for gpu, number in self.by_gpu)
        return self.server if self.own else f":{self.server}"


Runtime = Literal["docker", "podman", "apptainer"]
OCI_RUNTIMES: tuple[Runtime, ...] = ("docker", "podman")
"""those whose command line is docker's"""


@dataclass(frozen=True)
class LinkedFolder:
    """A folder; each attempt gets its own folder with links to the entries of this one."""

    source: str
    """a bash word"""
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class Container:
    image: str
    runtime: Runtime = "docker"
    mounts: tuple[str, ...] = ()
    """bash words: HOST:INSIDE or HOST:INSIDE:ro"""
    options: tuple[str, ...] = ()
    """bash words: more options of the runtime"""


@dataclass(frozen=True)
class ExecEnvironment:
    files: tuple[tuple[str, str], ...] = ()
    """name and text (a bash word) of each file that is written before the command starts"""
    links: LinkedFolder | None = None
    ranks: int = 0
    """processes that a launcher starts; 0: no launcher"""
    container: Container | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """All bash words that may hold start-time values."""
        box = (self.container.image, *self.container.mounts, *self.container.options) if self.container else ()
        return (*(text for _, text in self.files), *box)


BARE = ExecEnvironment()


Engine = Literal["local", "slurm"]
"""who starts sessions: the run's dispatcher on its host, or Slurm on the nodes of a cluster"""


@dataclass(frozen=True)
class SlurmOptions:
    """The grid's `slurm` block."""

    options: tuple[str, ...] = ()
    """long options of sbatch, each one word: `--partition=gpu`"""
    settle_options: tuple[str, ...] = ()
    """the same for the small job that settles the run"""
    gpu_type: str = ""
    """the type in `--gres=gpu:TYPE:N`; empty: any"""
    minutes: int = 0
    """most minutes of a task; 0: the cluster decides, as for the limits below"""
    parallel: int = 0
    """most tasks of the run at once"""
    array: int = 0
    """most tasks of one array"""


NO_SLURM = SlurmOptions()


@dataclass(frozen=True)
class HostFacts:
    host: str
    """the name that the user gave; `local` for this machine"""
    hostname: str
    cpus: int
    """logical CPUs that this user may use"""
    memory: int
    """bytes of main memory"""
    gpus: tuple[int, ...]
    """indexes in PCI bus order; empty if nvidia-smi is absent or does not answer"""
    bash: str
    multiplexers: Mapping[str, str]
    """the version of each, or empty; as that of bash"""
    missing: tuple[str, ...]
    """missing programs that comborun needs there"""
    lacking: tuple[str, ...] = ()
    """required secrets that no environment there has"""
    absent: tuple[Fact, ...] = ()
    """other things that the grid names and the host lacks: codes of `Lack`"""
    origins: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """for the manifest: the policies' files, and the commits of the folders in which commands run"""
    cards: tuple[Card, ...] = ()
    """one for each of `gpus`"""
    available: int | None = None
    """available bytes of main memory; None: unknown"""
    gpu_trouble: Fact | None = None
    """the problem with nvidia-smi; then `gpus` may lack some or all"""
    python: str = ""
    """the interpreter of the host program"""

    @property
    def called(self) -> str:
        """The host, in a sentence."""
        return "this machine" if self.local else self.host

    @property
    def local(self) -> bool:
        return self.host == "local"


ASKED = re.compile(r"\{server\.(?P<name>[a-z][a-z0-9-]*)\.(?P<field>url|host|port)\}")
DEFAULT_HEALTH_S = 10
DEFAULT_MISSES = 6
"""more than one, because a busy server may miss a check"""
DEFAULT_RESTARTS = 3


@dataclass(frozen=True)
class ModelServer:
    name: str
    command: tuple[BashWord, ...]
    setup: str
    workdir: BashWord | None
    variables: tuple[tuple[str, BashWord], ...]
    gpus: int = 0
    each_gpu: bool = False
    """one for each GPU of `request.only`, or else of the plan; each serves the sessions of its GPU"""
    request: Request = NOTHING
    pin: PinMode = "cvd"
    ready: tuple[str, ...] = ("tcp",)
    """checks for comborun/host/supervise/health.py, which must all hold"""
    ready_within_s: int = 0
    """0: no limit"""
    warm_up: tuple[str, str, str, int, str] | None = None
    """a request before the first client's: method, path, media type, seconds that it may take, body"""
    health_s: int = DEFAULT_HEALTH_S
    """seconds between two checks of its health; 0: no checks"""
    misses: int = DEFAULT_MISSES
    """failed checks in a row after which it is ended"""
    restarts: int = DEFAULT_RESTARTS
    """most restarts in a row"""
    digest: str = ""
    """of its command: a part of the work of each session that uses it"""

    @property
    def resources(self) -> Request:
        return replace(self.request, gpus=self.gpus)

    def instances(self, gpus: Sequence[int]) -> tuple[ServerInstance, ...]:
        """Its processes on a host whose sessions may be granted `gpus`."""
        if not self.each_gpu:
            return (ServerInstance(self.name, None, self),)
        return tuple(ServerInstance(f"{self.name}-gpu{gpu}", gpu, self) for gpu in self.request.only or gpus)


def asked_by(texts: Iterable[str], servers: Sequence[ModelServer]) -> tuple[ModelServer, ...]:
    commands = list(texts)
    names = {one: [server_variable(one.name, field) for field in SERVER_FIELDS] for one in servers}
    return tuple(one for one in servers if any(name in text for name in names[one] for text in commands))


class ServerInstance(NamedTuple):
    """One process of a server on the host."""

    name: str
    gpu: int | None
    """the GPU whose sessions it serves; None: it serves all"""
    server: ModelServer

    @property
    def request(self) -> Request:
        asked = self.server.resources
        return asked if self.gpu is None else replace(asked, only=(self.gpu,))
