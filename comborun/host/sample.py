"""`sample RUN`: what the sessions of a run hold at this moment, for `combo calibrate`. Changes nothing.

One JSON document: `hertz`, and by session and attempt `kib` (main memory that nobody else has), `ticks` (CPU time so
far, 1/hertz s) and `gpus` (index -> MiB, as the driver names its processes).
"""

from __future__ import annotations

import json
import os
import shutil
import sys

from comborun.host import driver, files, process
from comborun.rules.names import RunLayout


class Use:
    """What the processes of one attempt hold together."""

    def __init__(self) -> None:
        self.kib = self.ticks = 0
        self.gpus: dict[str, int] = {}

    def add(self, pid: int) -> None:
        try:
            with open(f"/proc/{pid}/statm") as file:
                resident, shared = map(int, file.read().split()[1:3])
        except (OSError, ValueError):
            return
        self.kib += (resident - shared) * os.sysconf("SC_PAGE_SIZE") // 1024
        self.ticks += _ticks(pid)


def uses(run_id: str) -> dict[str, Use]:
    """By `name/attempt`, what each of a run's attempts holds."""
    found: dict[str, Use] = {}
    whose: dict[int, str] = {}
    for pid in process.marked(f"{run_id}/"):
        if marker := _marker(pid, run_id):
            whose[pid] = marker
            found.setdefault(marker, Use()).add(pid)
    for index, pid, mib in _on_gpus() if found else ():
        if pid in whose:
            held = found[whose[pid]].gpus
            held[index] = held.get(index, 0) + mib
    return found


def main(arguments: list[str]) -> int:
    run_id = files.read_line(RunLayout(arguments[0] if arguments else ".").id)
    if not run_id:
        return 66
    told = {marker: {"kib": one.kib, "ticks": one.ticks, "gpus": one.gpus} for marker, one in uses(run_id).items()}
    json.dump({"hertz": os.sysconf("SC_CLK_TCK"), "uses": told}, sys.stdout)
    return 0


def _marker(pid: int, run_id: str) -> str:
    """`name/attempt`, of the session that a process is of."""
    wanted = f"COMBORUN_SESSION={run_id}/".encode()
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return ""
    return next((os.fsdecode(entry[len(wanted) :]) for entry in entries if entry.startswith(wanted)), "")


def _ticks(pid: int) -> int:
    """CPU time of a process and of the children that it has waited for."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return sum(map(int, file.read().rpartition(b") ")[2].split()[11:15]))
    except OSError:
        return 0


def _on_gpus() -> list[tuple[str, int, int]]:
    """Index, pid and MiB of each process on a GPU, as far as the driver tells."""
    if not shutil.which("nvidia-smi"):
        return []
    processes = driver.Processes(driver.hear(driver.Question(driver.PROCESSES)))
    index_of = {card.bus: str(card.index) for card in driver.cards(driver.hear(driver.Question(driver.CARDS)))}
    return [(index_of[bus], pid, mib) for bus, pid, mib in processes.held if bus in index_of]
