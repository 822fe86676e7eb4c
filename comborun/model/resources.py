"""What a session requests from its host, what surrounds its command, and facts about the host. Memory is in MiB."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NewType

from comborun.rules.facts import Fact
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
DEFAULT_GEOMETRY = "1280x1024x24"


@dataclass(frozen=True)
class Display:
    """The X display of a session: its own, an existing one, or one for each GPU."""

    server: str = ""
    """`xvfb`, or the number of an existing X server; empty with `by_gpu`"""
    by_gpu: tuple[tuple[int, int], ...] = ()
    """index of a GPU, number of its X server"""
    geometry: str = DEFAULT_GEOMETRY
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

    @property
    def whole_node(self) -> bool:
        return any(option.partition("=")[0] == "--exclusive" for option in self.options)


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
    gpu_trouble: str = ""
    """the problem with nvidia-smi, as a clause; then `gpus` may lack some or all"""
    gpu_fix: str = ""
    """a command on that host that solves it, if known"""
    python: str = ""
    """the interpreter of the host program"""

    @property
    def called(self) -> str:
        """The host, in a sentence."""
        return "this machine" if self.local else self.host

    @property
    def local(self) -> bool:
        return self.host == "local"
