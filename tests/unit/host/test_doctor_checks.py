"""What the doctor makes of a machine: every bad case, and what only looks bad."""

from __future__ import annotations

import os
import resource
import threading
from pathlib import Path

import pytest

from comborun.host import doctor
from comborun.host.doctor import Box, gpus, machine, sessions
from comborun.host.system.driver import cards
from comborun.host.verbs import publish
from comborun.rules.findings import Finding, Found, Level
from comborun.rules.room.capacity import Card
from comborun.words.doctor import told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Answers = Mapping[str, tuple[int, str]]
    Fields = Mapping[str, object]

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


def bad(
    found: Iterable[Finding] | Finding,
    level: Level,
    check: str,
    code: Found | None,
    **fields: object,
) -> None:
    """Exactly this problem is found, with these fields, its cost and what to do; with level OK, none."""
    if level is Level.OK:
        fine(found)
        return
    findings = [found] if isinstance(found, Finding) else found
    (one,) = (finding for finding in findings if finding.level is not Level.OK)
    assert (one.level, one.check) == (level, check), one
    assert (one.fact.code, {key: one.fact.fields.get(key) for key in fields}) == (code, fields)
    _, cost, fix = told(one)
    assert cost
    assert fix or code == Found.NO_RAY_TRACING


def fine(found: Iterable[Finding] | Finding) -> None:
    findings = [found] if isinstance(found, Finding) else found
    assert [finding for finding in findings if finding.level is not Level.OK] == []


# Folders, memory, limits


@pytest.mark.parametrize(
    ("disk", "level", "check", "fields"),
    [
        ((900 * GIB, GIB // 2, 6000, 5900), Level.ERROR, "disk", {"free_bytes": 512 << 20, "total_bytes": 900 << 30}),
        ((100 * GIB, 5 * GIB, 6000, 5900), Level.WARNING, "disk", {"free_bytes": 5 << 30, "folder": "/r"}),
        ((900 * GIB, 500 * GIB, 60000000, 1999), Level.ERROR, "inodes", {"free": 1999, "total": 60000000}),
        ((900 * GIB, 500 * GIB, 60000000, 90000), Level.WARNING, "inodes", {"free": 90000, "folder": "/r"}),
    ],
)
def test_a_disk_that_is_nearly_full_is_found(disk: Sequence[int], level: Level, check: str, fields: Fields) -> None:
    code = Found.ROOM if check == "disk" else Found.INODES
    bad(machine.room("/r", [*map(str, disk), "ext4", "/"]), level, check, code, **fields)


def test_a_disk_that_nobody_knows_and_one_with_room_are_fine_and_a_root_that_others_see_late_is_told() -> None:
    fine(machine.room("/r", ["-", "-", "-", "-", "unknown", ""]))
    fine(machine.room("/r", [str(900 * GIB), str(500 * GIB), "0", "0", "btrfs", "/"]))
    fine(machine.file_system("/r", "ext4"))
    for kind, code in (
        ("nfs4", Found.FAR_DISK), ("fuse.sshfs", Found.FAR_DISK), ("tmpfs", Found.DISK_IN_MEMORY),
    ):  # fmt: skip
        bad(machine.file_system("/r", kind), Level.WARNING, "filesystem", code, kind=kind)


def meminfo(free: int = 100 * GIB) -> str:
    rows = {"MemTotal": 128 * GIB, "MemAvailable": free}
    return "".join(f"{key}:   {kib} kB\n" for key, kib in rows.items())


GROUP = {"proc/self/cgroup": "0::/user.slice/a\n"}


@pytest.mark.parametrize(
    ("files", "level", "fields"),
    [
        ({"proc/meminfo": meminfo(GIB // 2)}, Level.ERROR, {"free_bytes": 512 << 20}),
        ({"proc/meminfo": meminfo(3 * GIB)}, Level.WARNING, {"free_bytes": 3 << 30, "total_bytes": 128 << 30}),
        (
            {"proc/meminfo": meminfo(), **GROUP, "sys/fs/cgroup/user.slice/a/memory.max": f"{2 << 30}\n"},
            *(Level.WARNING, {"allowed_bytes": 2 << 30}),
        ),
    ],
)
def test_little_memory_is_found(files: Mapping[str, str], level: Level, fields: Fields, tmp_path: Path) -> None:
    bad(machine.memory(Pretended(tmp_path, files, {})), level, "memory", Found.MEMORY, **fields)


def test_a_limit_of_memory_that_is_none_is_fine(tmp_path: Path) -> None:
    files = {"proc/meminfo": meminfo(), "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}
    (found,) = machine.memory(Pretended(tmp_path, files, {}))
    assert (found.level, "allowed_bytes" in found.fact.fields) == (Level.OK, False)


def test_load_open_files_and_processes_are_held_against_what_sessions_need(tmp_path: Path) -> None:
    fine(machine.load(Pretended(tmp_path, {"proc/loadavg": "0.01 0 0"}, {})))
    busy = Pretended(tmp_path, {"proc/loadavg": "8000.5 0 0"}, {})
    bad(machine.load(busy), Level.WARNING, "load", Found.LOAD, load=8000.5)
    fine(machine.open_files(resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    files, unlimited = Found.OPEN_FILES, resource.RLIM_INFINITY
    bad(machine.open_files(512, 4096), Level.WARNING, "open files", files, most=512, hard=4096)
    bad(machine.open_files(64, unlimited), Level.ERROR, "open files", files, most=64, hard=None)
    fine(machine.processes(412, None))
    used = Found.PROCESSES
    bad(machine.processes(412, 1024), Level.WARNING, "processes", used, used=412, allowed=1024)
    bad(machine.processes(412, 500), Level.ERROR, "processes", used, used=412, allowed=500)


# tmux and screen


def test_what_keeps_tmux_from_opening_sessions_is_found() -> None:
    unsafe = "error creating /tmp/tmux-0/comborun (directory has unsafe permissions)"
    bad(sessions.server(1, unsafe, 0), Level.ERROR, "tmux", Found.TMUX_FAILS, said=unsafe)
    pid = os.getpid()
    bad(sessions.server(124, "", pid), Level.ERROR, "tmux", Found.SERVER_SILENT, pid=pid)
    bad(sessions.server(124, "", 0), Level.ERROR, "tmux", Found.TMUX_HANGS)
    bad(sessions.server(1, "", pid), Level.WARNING, "tmux", Found.SERVER_WITHOUT_SOCKET, pid=pid)
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
    ("files", "answers", "level", "code"),
    [
        (SYSTEMD, {**systemd(), **KILLS}, Level.ERROR, Found.KILL_USER_PROCESSES),
        (BELOW, systemd(), Level.ERROR, Found.NO_LINGERING),
        (SYSTEMD, {"systemctl": (124, "")}, Level.WARNING, Found.SYSTEMD_HANGS),
        ({"proc/1/comm": "bash\n"}, {}, Level.OK, None),
        (SYSTEMD, systemd(), Level.OK, None),
        (SYSTEMD, {**systemd(), **logind("KillExcludeUsers=root ada")}, Level.OK, None),
        (SYSTEMD, {**systemd(), **logind("KillOnlyUsers=bob eve")}, Level.OK, None),
        (BELOW, {**systemd(), **LINGERS}, Level.OK, None),
    ],
)
def test_what_ends_sessions_at_a_log_out_is_found_and_what_only_looks_so_is_fine(
    files: Mapping[str, str], answers: Answers, level: Level, code: Found | None, tmp_path: Path
) -> None:
    bad(sessions.logout(Pretended(tmp_path, files, answers)), level, "logout", code)


# GPUs

QUERY = "nvidia-smi --format=csv,noheader,nounits --query-gpu"
LOADED = {"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun\n"}
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch NVML library version: 535.183"
BOB = {"owner": "bob", "program": "python3", "pid": 77, "bytes": None}
SILENT = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure ..."
LOST = "Unable to determine the device handle for GPU0000:65:00.0: GPU is lost.  Reboot the system"


@pytest.mark.parametrize(
    ("files", "answers", "level", "code"),
    [
        ({}, {QUERY: (124, "")}, Level.ERROR, Found.DRIVER_HANGS),
        ({}, {QUERY: (18, MISMATCH)}, Level.ERROR, Found.DRIVER_REPLACED),
        ({}, {QUERY: (9, SILENT)}, Level.ERROR, Found.DRIVER_NOT_LOADED),
        ({}, {QUERY: (15, LOST)}, Level.ERROR, Found.GPU_OFF_BUS),
        ({}, {QUERY: (6, "No devices were found")}, Level.ERROR, Found.DRIVER_WITHOUT_GPU),
        ({}, {QUERY: (77, "")}, Level.ERROR, Found.DRIVER_FAILS),
        (LOADED, {}, Level.ERROR, Found.NO_NVIDIA_SMI),
        ({}, {}, Level.OK, None),
    ],
)
def test_a_driver_that_does_not_work_is_found(
    files: Mapping[str, str], answers: Answers, level: Level, code: Found | None, tmp_path: Path
) -> None:
    bad(gpus.driver(Pretended(tmp_path, files, answers)), level, "driver", code)


@pytest.mark.parametrize(
    ("row", "users", "level", "code", "fields"),
    [
        ("23564, 24564, 5, 535, RTX 4090", [], Level.WARNING, Found.GPU_ROOM, {"free_bytes": 1000 << 20, "users": []}),
        ("9000, 24564, 5, 535, RTX 4090", [BOB], Level.NOTE, Found.GPU_ROOM, {"users": [BOB]}),
        ("[N/A], 24564, 5, 535, RTX 4090", [], Level.WARNING, Found.GPU_SAYS_NOTHING, {"name": "RTX 4090"}),
        ("4, 81559, 5, 535, NVIDIA H100 80GB HBM3", [], Level.NOTE, Found.NO_RAY_TRACING, {"gpu": 0}),
    ],
)
def test_how_full_a_gpu_is_and_by_whom_is_told(
    row: str, users: Sequence[Fields], level: Level, code: Found, fields: Fields
) -> None:
    (gpu,) = cards([f"0, GPU-a, 00:01, {row}"])
    bad(gpus.usage(gpu, users), level, "GPU 0", code, **fields)


TWO = [Card(0, "GPU-aaaa"), Card(1, "GPU-bbbb")]


def test_egl_that_numbers_gpus_in_another_way_is_told(tmp_path: Path) -> None:
    fine(list(gpus.egl(Pretended(tmp_path, {}, {}))))
    fine(gpus.numbers(TWO, "0 0 -\n1 1 -\n2 - -\n"))
    bad(gpus.numbers(TWO, ""), Level.NOTE, "EGL", Found.EGL_SILENT)
    bad(gpus.numbers(TWO, "0 - -\n"), Level.NOTE, "EGL", Found.EGL_WITHOUT_GPU)
    for said in ("0 1 -\n1 0 -\n", "0 0 GPU-bbbb\n1 1 GPU-aaaa\n"):
        bad(gpus.numbers(TWO, said), Level.NOTE, "EGL", Found.EGL_DIFFERS, devices=[[0, 1], [1, 0]])


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
    nowhere, code = Pretended(tmp_path, {}, {}), Found.VULKAN_WITHOUT_DRIVER
    usual = [f"{folder}/vulkan/icd.d/nvidia*" for folder in ("/etc", "/usr/share")]
    bad(gpus.vulkan(nowhere, TWO), Level.NOTE, "Vulkan", code, paths=usual)
    fine(gpus.vulkan(Pretended(tmp_path, {VULKAN: "{}"}, {}), TWO[:1]))
    bad(gpus.vulkan(Pretended(tmp_path, {VULKAN: "{}"}, {}), TWO), Level.NOTE, "Vulkan", Found.VULKAN_SILENT)
    monkeypatch.setenv("VK_ICD_FILENAMES", "/opt/gone.json")
    bad(gpus.vulkan(nowhere, TWO), Level.NOTE, "Vulkan", code, paths=["/opt/gone.json"])
