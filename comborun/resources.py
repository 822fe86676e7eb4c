"""What a session requests from its host, what surrounds its command, and the facts about the host.

Memory is in MiB, as nvidia-smi counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NewType, get_args

from comborun.rules.placement import Card, Request
from comborun.text import MIB

BashWord = NewType("BashWord", str)
"""Text that bash reads as exactly one word: quoted literals and "$COMBORUN_..." (see command.py)."""


PinMode = Literal["cvd", "device-arg", "both", "none"]
"""how a session finds its GPUs: CUDA_VISIBLE_DEVICES, an argument of its command, both, or in its own way"""
PIN_MODES: tuple[PinMode, ...] = get_args(PinMode)


NOTHING = Request()
"""beside the number of GPUs, which changes the work"""


@dataclass(frozen=True)
class Reserve:
    """What stays free for others, such as a training job, whether they use it or not. In MiB and cores."""

    gpu_memory: int = 0
    """on each GPU"""
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
    """`xvfb`, or the number of an existing X server; empty if `by_gpu` says it"""
    by_gpu: tuple[tuple[int, int], ...] = ()
    """index of a GPU -> number of the X server that is bound to it"""
    geometry: str = DEFAULT_GEOMETRY
    """width x height x depth, of an own one"""

    @property
    def own(self) -> bool:
        return self.server == XVFB

    @property
    def token(self) -> str:
        """Of the X server that only one session may have at a time; empty where it need not be alone."""
        return f"display-{self.server}" if self.server and not self.own else ""

    def word(self) -> str:
        """As the session's script has it."""
        if self.by_gpu:
            return " ".join(f"{gpu}=:{number}" for gpu, number in self.by_gpu)
        return self.server if self.own else f":{self.server}"


Runtime = Literal["docker", "apptainer"]
RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)


@dataclass(frozen=True)
class Links:
    """A folder; each attempt gets a folder of its own with links to the entries of this one."""

    source: str
    """a bash word"""
    exclude: tuple[str, ...] = ()
    """patterns of entries that get no link"""


@dataclass(frozen=True)
class Container:
    image: str
    runtime: Runtime = "docker"
    mounts: tuple[str, ...] = ()
    """bash words: HOST:INSIDE or HOST:INSIDE:ro"""
    options: tuple[str, ...] = ()
    """bash words, handed to the runtime in front of the image"""


@dataclass(frozen=True)
class Around:
    files: tuple[tuple[str, str], ...] = ()
    """name and text, a bash word, of each file that is written before the command starts"""
    links: Links | None = None
    ranks: int = 0
    """processes that a launcher starts for the command; 0: it starts by itself"""
    container: Container | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """All that may wait for the start of a session."""
        box = (self.container.image, *self.container.mounts, *self.container.options) if self.container else ()
        return (*(text for _, text in self.files), *box)


BARE = Around()


Engine = Literal["local", "slurm"]
"""who starts sessions: the dispatcher of the run, on its host; or Slurm, on the nodes of a cluster"""


@dataclass(frozen=True)
class Slurm:
    """The grid's `slurm` block."""

    options: tuple[str, ...] = ()
    """long options of sbatch, each one clean word: `--partition=gpu`"""
    settle_options: tuple[str, ...] = ()
    """the same for the small job that settles the run"""
    gpu_type: str = ""
    """the type in `--gres=gpu:TYPE:N`; empty: any"""
    minutes: int = 0
    """that a task may take at most; 0: not said"""
    parallel: int = 0
    """tasks of the run that run at once, at most; 0: as many as Slurm starts"""
    array: int = 0
    """tasks of one array, at most; 0: as many as the cluster takes"""

    @property
    def whole_node(self) -> bool:
        """Whether no task shares its node with another."""
        return any(option.partition("=")[0] == "--exclusive" for option in self.options)


NO_SLURM = Slurm()


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
    """indexes in PCI bus order; empty where nvidia-smi is absent or does not answer"""
    bash: str
    tmux: str
    """version, empty where there is none"""
    screen: str
    missing: tuple[str, ...]
    """programs that the box half needs and that are not there"""
    lacking: tuple[str, ...] = ()
    """required secrets that are in no environment there"""
    absent: tuple[str, ...] = ()
    """what else the grid names and is not there, a line each"""

    origins: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """for the manifest: what the policies' files are, and the commit of the folders that commands run in"""

    cards: tuple[Card, ...] = ()
    """one for each of `gpus`"""

    available: int | None = None
    """available bytes of main memory at that time; None: unknown"""

    gpu_trouble: str = ""
    """the problem with nvidia-smi, as a clause; `gpus` may then lack some or all"""
    gpu_fix: str = ""
    """a command on that host that mends it, if one is known"""

    python: str = ""
    """the interpreter that the host program runs with"""

    @property
    def called(self) -> str:
        """The host, in a sentence."""
        return "this machine" if self.local else self.host

    @property
    def local(self) -> bool:
        return self.host == "local"
