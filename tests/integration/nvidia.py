"""A stand-in for nvidia-smi and for what takes memory of a GPU, for machines without one. It counts what real processes
hold: each says how much, as it takes it, and its memory is free again when it is gone, however it went.

    gpus = Gpus(box, tmp_path / "bin")     # on the PATH of the box: nvidia-smi and hold-gpu; no GPU answers yet
    gpus.cards(81559, 81559)               # two of so many MiB each, free; `used` is the same with 80000 MiB each
    gpus.taken(39000, 0)                   # MiB that nobody who can be named holds (a container's, the driver's)
    gpus.fault("hang")                     # one of FAULTS, from now on; gpus.fault("") ends it
    gpus.used_now(0), gpus.peak(0)         # MiB now, and the most at any moment
    gpus.asked                             # how often it was asked for memory
    uuid(0)                                # what it calls that GPU

A session (or any process of a test) takes memory with the program

    hold-gpu MIB [--steps N] [--every S] [--for S] [--until FILE] [--gpu LIST]

on every GPU of --gpu, else of CUDA_VISIBLE_DEVICES (indexes or UUIDs), else of COMBORUN_GPUS: in N steps, S seconds
apart, and holds it for so long, until there is such a file, or until it is killed. A step that no longer fits fails as
torch does: a line with `CUDA out of memory` and code 1.

It answers --query-gpu, --query-compute-apps and -q -d PIDS, as driver 550 does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from box import Box

Fault = Literal["", "fail", "mismatch", "hang", "garbage", "na", "lost", "missing"]
"""fails; fails after a driver upgrade; never answers, not even to TERM; prints what is no table; doesn't know how much
memory there is; a GPU fell off the bus; the last GPU has no row"""

PROGRAMS = {"nvidia-smi": "nvidia_smi.sh", "hold-gpu": "hold_gpu.sh", "nvidia_cards.sh": "nvidia_cards.sh"}


def uuid(index: int) -> str:
    """What the stand-in calls a GPU."""
    return f"GPU-{index + 1:08x}-5eed-4a11-b0a7-{index + 1:012x}"


class Gpus:
    """None until `cards` or `used` says how many; without that nvidia-smi fails."""

    def __init__(self, box: Box, folder: Path) -> None:
        self.folder = folder
        self.totals: Sequence[int] = ()
        (folder / "held").mkdir(parents=True, exist_ok=True)
        for name, source in PROGRAMS.items():
            program = folder / name
            program.write_text((Path(__file__).parents[1] / "testbed" / source).read_text())
            program.chmod(0o755)
        box.environment |= {"PATH": f"{folder}:{box.environment['PATH']}", "COMBORUN_MEMORY_ASK_MS": "200"}

    def cards(self, *total: int) -> None:
        """How many MiB each of them has."""
        self.totals = total
        self.taken(*(0 for _ in total))

    def taken(self, *mib: int) -> None:
        """How many MiB of each are held by nobody who can be named."""
        rows = enumerate(zip(self.totals, mib, strict=True))
        self._answer("cards", [f"{index} {total} {other} 5" for index, (total, other) in rows])

    def used(self, *mib: int) -> None:
        """GPUs of 80000 MiB each, of which so many are taken."""
        self.totals = [80000] * len(mib)
        self.taken(*mib)

    def processes(self, *rows: str) -> None:
        """What compute-apps tells from now on, whatever is held: `pid, MiB`."""
        self._answer("apps", list(rows))

    def fault(self, fault: Fault) -> None:
        self._answer("fault", [fault])

    @property
    def asked(self) -> int:
        file = self.folder / "asked"
        return len(file.read_text()) if file.exists() else 0

    def used_now(self, index: int) -> int:
        """MiB, as a process that allocates counts them."""
        rows = (self.folder / "cards").read_text().splitlines()
        other = next(int(row.split()[2]) for row in rows if row.split()[0] == str(index))
        return other + sum(_held(file) for file in (self.folder / "held").glob(f"*-{index}"))

    def peak(self, index: int) -> int:
        """The most MiB that were used at any moment, as the processes counted that took them."""
        file = self.folder / f"peak-{index}"
        return int(file.read_text()) if file.exists() else 0

    def _answer(self, name: str, lines: list[str]) -> None:
        draft = self.folder / f".{name}"
        draft.write_text("".join(f"{line}\n" for line in lines))
        draft.rename(self.folder / name)


def _held(file: Path) -> int:
    """MiB that the process of that file holds, if it lives."""
    try:
        head, *steps = file.read_text().splitlines()
        fields = Path(f"/proc/{file.name.partition('-')[0]}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return 0
    return sum(map(int, steps)) if fields[19] == head.split()[0] and fields[0] not in "ZX" else 0
