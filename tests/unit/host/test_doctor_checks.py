"""What the doctor makes of a machine: every bad case, and what only looks bad."""

from __future__ import annotations

import os
import re
import resource
import threading
from pathlib import Path

import pytest

from comborun.host import doctor
from comborun.host.doctor import Box, gpus, machine, sessions
from comborun.host.system.driver import cards
from comborun.host.verbs import publish
from comborun.rules.findings import Finding, Level
from comborun.rules.room.capacity import Card

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Answers = Mapping[str, tuple[int, str]]

GIB = 1 << 20


class Pretended(Box):
    """A machine with these files, whose programs answer so; the longest beginning of a command counts."""

    def __init__(self, system: Path, files: Mapping[str, str], answers: Answers) -> None:
        super().__init__("/home/ada/comborun")
        self._system = str(system)
        self.user, self.uid = "ada", 1000
        self.answers = answers
        for path, text in files.items():
            (system / path).parent.mkdir(parents=True, exist_ok=True)
            (system / path).write_text(text)

    def ask(self, *command: str, slow: bool = False) -> tuple[int, str]:
        said = " ".join(command)
        known = [beginning for beginning in self.answers if said.startswith(beginning)]
        return self.answers[max(known, key=len)] if known else (1, "")

    def has(self, program: str) -> bool:
        return any(command.split()[0] == program for command in self.answers)


def bad(found: Iterator[Finding] | Sequence[Finding] | Finding, level: Level, check: str, words: str) -> None:
    """Exactly this problem is found, with its cost and what to do; with level OK, none."""
    if level is Level.OK:
        fine(found)
        return
    told = [found] if isinstance(found, Finding) else list(found)
    (one,) = (finding for finding in told if finding.level is not Level.OK)
    assert (one.level, one.check) == (level, check), one
    assert re.search(words, one.found), one.found
    assert one.cost
    assert one.fix or level is Level.NOTE or check == "runs"


def fine(found: Iterator[Finding] | Sequence[Finding] | Finding) -> None:
    told = [found] if isinstance(found, Finding) else list(found)
    assert [finding for finding in told if finding.level is not Level.OK] == []


# Folders, memory, limits


@pytest.mark.parametrize(
    ("disk", "level", "check", "words"),
    [
        ((900 * GIB, GIB // 2, 6000, 5900), Level.ERROR, "disk", "512 MiB of 900 GiB free at /r"),
        ((100 * GIB, 5 * GIB, 6000, 5900), Level.WARNING, "disk", "5.00 GiB of 100 GiB"),
        ((900 * GIB, 500 * GIB, 60000000, 1999), Level.ERROR, "inodes", "1999 of 60000000"),
        ((900 * GIB, 500 * GIB, 60000000, 90000), Level.WARNING, "inodes", "90000"),
    ],
)
def test_a_disk_that_is_nearly_full_is_found(disk: Sequence[int], level: Level, check: str, words: str) -> None:
    bad(machine.room("/r", [*map(str, disk), "ext4", "/"]), level, check, words)


def test_a_disk_that_nobody_knows_and_one_with_room_are_fine_and_a_root_that_others_see_late_is_told() -> None:
    fine(machine.room("/r", ["-", "-", "-", "-", "unknown", ""]))
    fine(machine.room("/r", [str(900 * GIB), str(500 * GIB), "0", "0", "btrfs", "/"]))
    fine(machine.file_system("/r", "ext4"))
    for kind in ("nfs4", "fuse.sshfs", "tmpfs"):
        bad(machine.file_system("/r", kind), Level.WARNING, "filesystem", kind)


def meminfo(free: int = 100 * GIB) -> str:
    rows = {"MemTotal": 128 * GIB, "MemAvailable": free}
    return "".join(f"{key}:   {kib} kB\n" for key, kib in rows.items())


GROUP = {"proc/self/cgroup": "0::/user.slice/a\n"}


@pytest.mark.parametrize(
    ("files", "level", "check", "words"),
    [
        ({"proc/meminfo": meminfo(GIB // 2)}, Level.ERROR, "memory", "512 MiB"),
        ({"proc/meminfo": meminfo(3 * GIB)}, Level.WARNING, "memory", "3.00 GiB of 128 GiB"),
        (
            {"proc/meminfo": meminfo(), **GROUP, "sys/fs/cgroup/user.slice/a/memory.max": f"{2 << 30}\n"},
            *(Level.WARNING, "memory", "allows this user 2.00 GiB"),
        ),
    ],
)
def test_little_memory_is_found(files: Mapping[str, str], level: Level, check: str, words: str, tmp_path: Path) -> None:
    bad(machine.memory(Pretended(tmp_path, files, {})), level, check, words)


def test_a_limit_of_memory_that_is_none_is_fine(tmp_path: Path) -> None:
    files = {"proc/meminfo": meminfo(), "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}
    (told,) = machine.memory(Pretended(tmp_path, files, {}))
    assert (told.level, "control group" in told.found) == (Level.OK, False)


def test_load_open_files_and_processes_are_held_against_what_sessions_need(tmp_path: Path) -> None:
    fine(machine.load(Pretended(tmp_path, {"proc/loadavg": "0.01 0 0"}, {})))
    bad(machine.load(Pretended(tmp_path, {"proc/loadavg": "8000.5 0 0"}, {})), Level.WARNING, "load", "load 8000.5 on")
    fine(machine.open_files(resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    bad(machine.open_files(512, 4096), Level.WARNING, "open files", "512 at most, hard limit 4096")
    bad(machine.open_files(64, resource.RLIM_INFINITY), Level.ERROR, "open files", "64")
    fine(machine.processes(412, None))
    bad(machine.processes(412, 1024), Level.WARNING, "processes", "412 of 1024")
    bad(machine.processes(412, 500), Level.ERROR, "processes", "412 of 500")


# tmux and screen


def test_what_keeps_tmux_from_opening_sessions_is_found() -> None:
    unsafe = "error creating /tmp/tmux-0/comborun (directory has unsafe permissions)"
    bad(sessions.server(1, unsafe, 0), Level.ERROR, "tmux", "unsafe permissions")
    bad(sessions.server(124, "", os.getpid()), Level.ERROR, "tmux", f"{os.getpid()} does not answer")
    bad(sessions.server(1, "", os.getpid()), Level.WARNING, "tmux", "its socket is gone")
    fine(sessions.server(1, "no server running on /tmp/tmux-0/comborun", 0))


# Logging out

USER_SLICE = "0::/user.slice/user-1000.slice/user@1000.service/tmux.scope\n"
SYSTEMD = {"run/systemd/system/x": "", "proc/self/cgroup": "0::/user.slice/user-1000.slice/session-7.scope\n"}
BELOW = {**SYSTEMD, "proc/self/cgroup": USER_SLICE}
KILLS = {"loginctl show-session": (0, "KillUserProcesses=yes")}
LINGERS = {"loginctl show-user 1000": (0, "UID=1000\nLinger=yes")}


def systemd(version: str = "252 (252.31-1~deb12u1)", **answers: tuple[int, str]) -> Answers:
    return {"systemctl --version": (0, f"systemd {version}"), **answers}


def logind(text: str) -> Answers:
    return {"loginctl show-session": (0, f"KillUserProcesses=yes\n{text}\n")}


@pytest.mark.parametrize(
    ("files", "answers", "level", "check", "words"),
    [
        (SYSTEMD, {**systemd(), **KILLS}, Level.ERROR, "logout", "KillUserProcesses=yes"),
        (BELOW, systemd(), Level.ERROR, "logout", "lingering is off"),
        (SYSTEMD, {"systemctl": (124, "")}, Level.WARNING, "logout", "systemd does not answer"),
        ({"proc/1/comm": "bash\n"}, {}, Level.OK, "", ""),
        (SYSTEMD, systemd(), Level.OK, "", ""),
        (SYSTEMD, {**systemd(), **logind("KillExcludeUsers=root ada")}, Level.OK, "", ""),
        (SYSTEMD, {**systemd(), **logind("KillOnlyUsers=bob eve")}, Level.OK, "", ""),
        (BELOW, {**systemd(), **LINGERS}, Level.OK, "", ""),
    ],
)
def test_what_ends_sessions_at_a_log_out_is_found_and_what_only_looks_so_is_fine(
    files: Mapping[str, str], answers: Answers, level: Level, check: str, words: str, tmp_path: Path
) -> None:
    bad(sessions.logout(Pretended(tmp_path, files, answers)), level, check, words)


# GPUs

QUERY = "nvidia-smi --format=csv,noheader,nounits --query-gpu"
LOADED = {"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun\n"}
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch NVML library version: 535.183"
SILENT = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure ..."
LOST = "Unable to determine the device handle for GPU0000:65:00.0: GPU is lost.  Reboot the system"


@pytest.mark.parametrize(
    ("files", "answers", "level", "check", "words"),
    [
        ({}, {QUERY: (124, "")}, Level.ERROR, "driver", "hangs"),
        ({}, {QUERY: (18, MISMATCH)}, Level.ERROR, "driver", "upgraded"),
        ({}, {QUERY: (9, SILENT)}, Level.ERROR, "driver", "not loaded"),
        ({}, {QUERY: (15, LOST)}, Level.ERROR, "driver", "fallen off"),
        ({}, {QUERY: (6, "No devices were found")}, Level.ERROR, "driver", "sees no GPU"),
        ({}, {QUERY: (77, "")}, Level.ERROR, "driver", "code 77: it says nothing"),
        (LOADED, {}, Level.ERROR, "driver", "no nvidia-smi"),
        ({}, {}, Level.OK, "", ""),
    ],
)
def test_a_driver_that_does_not_work_is_found(
    files: Mapping[str, str], answers: Answers, level: Level, check: str, words: str, tmp_path: Path
) -> None:
    bad(gpus.driver(Pretended(tmp_path, files, answers)), level, check, words)


@pytest.mark.parametrize(
    ("row", "users", "level", "words"),
    [
        (
            "0, GPU-a, 00:01, 23564, 24564, 5, 535, RTX 4090",
            [],
            Level.WARNING,
            "1000 MiB of 24.0 GiB free, used by pro",
        ),
        (
            "0, GPU-a, 00:01, 9000, 24564, 5, 535, RTX 4090",
            ["bob: python3 (77)"],
            Level.NOTE,
            r"used by bob: python3 \(77\)",
        ),
        ("0, GPU-a, 00:01, [N/A], 24564, 5, 535, RTX 4090", [], Level.WARNING, "does not tell"),
        ("0, GPU-a, 00:01, 4, 81559, 5, 535, NVIDIA H100 80GB HBM3", [], Level.NOTE, "no ray tracing"),
    ],
)
def test_how_full_a_gpu_is_and_by_whom_is_told(row: str, users: Sequence[str], level: Level, words: str) -> None:
    (gpu,) = cards([row])
    bad(gpus.usage(gpu, users), level, "GPU 0", words)


TWO = [Card(0, "GPU-aaaa"), Card(1, "GPU-bbbb")]


def test_egl_that_numbers_gpus_in_another_way_is_told(tmp_path: Path) -> None:
    fine(list(gpus.egl(Pretended(tmp_path, {}, {}))))
    fine(gpus.numbers(TWO, "0 0 -\n1 1 -\n2 - -\n"))
    bad(gpus.numbers(TWO, ""), Level.NOTE, "EGL", "can't be asked")
    bad(gpus.numbers(TWO, "0 - -\n"), Level.NOTE, "EGL", "no device for any GPU")
    bad(gpus.numbers(TWO, "0 1 -\n1 0 -\n"), Level.NOTE, "EGL", "GPU 0 is EGL device 1, GPU 1 is EGL device 0")
    bad(gpus.numbers(TWO, "0 0 GPU-bbbb\n1 1 GPU-aaaa\n"), Level.NOTE, "EGL", "GPU 0 is EGL device 1")


def test_where_no_thread_can_start_all_is_looked_at_and_everything_reaches_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    synced: list[str] = []
    monkeypatch.setattr(publish.files, "sync", synced.append)
    publish.to_disk(iter(("a", "b")))
    assert synced == ["a", "b"]
    assert {one.check for one in doctor.examine(Pretended(tmp_path, {}, {}))} >= {"programs", "driver", "processes"}


VULKAN = "usr/share/vulkan/icd.d/nvidia_icd.json"


def test_a_driver_that_vulkan_does_not_find_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad(gpus.vulkan(Pretended(tmp_path, {}, {}), TWO), Level.NOTE, "Vulkan", "there is no /etc/vulkan/icd.d/nvidia")
    fine(gpus.vulkan(Pretended(tmp_path, {VULKAN: "{}"}, {}), TWO[:1]))
    bad(gpus.vulkan(Pretended(tmp_path, {VULKAN: "{}"}, {}), TWO), Level.NOTE, "Vulkan", "can't be asked")
    monkeypatch.setenv("VK_ICD_FILENAMES", "/opt/gone.json")
    bad(gpus.vulkan(Pretended(tmp_path, {VULKAN: "{}"}, {}), TWO), Level.NOTE, "Vulkan", "there is no /opt/gone.json")
