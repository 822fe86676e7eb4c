"""What is known about a host when a plan is laid out for it; `remote/host.py` asks the host."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """A GPU, as nvidia-smi tells; what it does not tell is empty or None."""

    index: int
    uuid: str = ""
    name: str = ""
    total: int | None = None
    """MiB"""
    used: int | None = None
    """MiB, when the host was asked"""


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
    """secrets that were asked for and are in no environment there"""

    cards: tuple[Card, ...] = ()
    """one for each of `gpus`"""

    available: int | None = None
    """bytes of main memory that could be had when the host was asked; None: not told"""

    gpu_trouble: str = ""
    """what was wrong with nvidia-smi when the host was asked, as a clause; `gpus` may then lack some or all"""

    python: str = ""
    """the interpreter that the host program runs with"""

    @property
    def called(self) -> str:
        """The host, in a sentence."""
        return "this machine" if self.local else self.host

    @property
    def local(self) -> bool:
        return self.host == "local"
