"""What the doctor makes of facts: every bad case, as facts that a host would give."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comborun.cli.doctor import document, lines
from comborun.grid import parse_grid
from comborun.remote.doctor.examine import Examination, judge, wanted_by
from comborun.remote.doctor.finding import Facts, Finding, Level, size
from comborun.remote.doctor.gpus import parse_gpu

CHECKOUT = Path(__file__).parents[3]
GOLDEN = CHECKOUT / "tests/golden/doctor"

GIB = 1 << 20
HEALTHY = f"""\
asked=1000.4
answered=1001.1
now_start=1000.5
bash=5.2.15(1)-release
hostname=box
uid=1000
user=ada
root=/home/ada/comborun
tmpdir=/tmp
runtime_dir=/run/user/1000
runtime_usable=1
os=Ubuntu 24.04.1 LTS
cpus=32
load=3.2
MemTotal={128 * GIB}
MemAvailable={100 * GIB}
SwapTotal={8 * GIB}
SwapFree={8 * GIB}
files_soft=65536
files_hard=1048576
processes_soft=513000
threads=412
cgroup=/user.slice/user-1000.slice/session-7.scope
pid1=systemd
environ=readable
disk_root={900 * GIB} {500 * GIB} 60000000 59000000 ext4 /home
disk_tmp={100 * GIB} {50 * GIB} 6000000 5900000 ext4 /
root_exists=1
root_writable=1
tmp_writable=1
flock=works
tmux=tmux 3.4
tmux_socket=/tmp/tmux-1000/comborun
tmux_folder=1000 700
tmux_code=0
tmux_server=4242 S
tmux_cgroup=/user.slice/user-1000.slice/session-3.scope
screen=Screen version 4.09.01 (GNU) 20-Aug-23
screen_said=No Sockets found in /run/screen/S-ada.
systemd=1
systemd_version=252.31-1~deb12u1
kill_now=no
linger=no
shell_login=0 30
shell_interactive=0 40
shell_ssh=0 20
nvidia_code=0
driver_loaded=535.183.01
driver_installed=535.183.01
gpu=0, GPU-aaaa, 24564, 12, 0, 535.183.01, NVIDIA GeForce RTX 4090
gpu=1, GPU-bbbb, 24564, 12, 0, 535.183.01, NVIDIA GeForce RTX 4090
egl=0 0 -
egl=1 1 -
egl=2 - -
now_end=1001.0
end=1
"""


def facts(*changes: str) -> Facts:
    """The facts of a healthy host with some lines replaced: `key=` takes a key away, `+key=value` adds one more."""
    rows = HEALTHY.splitlines()
    for change in changes:
        key, _, value = change.partition("=")
        if not key.startswith("+"):
            rows = [row for row in rows if not row.startswith(f"{key}=")]
        if value:
            rows.append(change.removeprefix("+"))
    return Facts.parse("\n".join(rows))


def problems(*changes: str) -> list[Finding]:
    return [finding for finding in judge(facts(*changes)) if finding.level is not Level.OK]


def test_a_healthy_host_has_no_findings_but_good_ones() -> None:
    findings = judge(facts())
    assert [finding for finding in findings if finding.level is not Level.OK] == []
    checks = {finding.check for finding in findings}
    assert checks >= {"bash", "programs", "tmux", "screen", "logout", "start-up", "driver", "GPU 0", "GPU 1", "disk"}
    assert checks >= {"locks", "memory", "load", "open files", "processes", "proc", "clock"}


USER_SLICE = "/user.slice/user-1000.slice/user@1000.service/tmux.scope"
MISMATCH = "nvidia_said=Failed to initialize NVML: Driver/library version mismatch NVML library version: 535.183"
SILENT = "nvidia_said=NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure ..."
LOST = "nvidia_said=Unable to determine the device handle for GPU0000:65:00.0: GPU is lost.  Reboot the system"
TRAINING = "gpu_process=bob GPU-a, 77, 8800, /usr/bin/python3"
BAD = [
    (["bash=4.2.46(2)-release"], Level.ERROR, "bash", "4.4 is the oldest"),
    (["missing=flock", "+missing=setsid"], Level.ERROR, "programs", "flock, setsid"),
    (["poor=stat"], Level.ERROR, "programs", "BusyBox"),
    (["tmux=", "screen="], Level.ERROR, "tmux", "neither tmux nor screen"),
    (["tmux=tmux 2.6"], Level.WARNING, "tmux", "older than 2.7"),
    (["tmux_code=124", "tmux_server=4242 T"], Level.ERROR, "tmux", "4242 is stopped"),
    (["tmux_code=124"], Level.ERROR, "tmux", "4242 does not answer"),
    (["tmux_code=137", "tmux_server="], Level.ERROR, "tmux", "server does not answer"),
    (["late=tmux"], Level.ERROR, "tmux", "does not answer"),
    (["tmux_code=1"], Level.WARNING, "tmux", "socket .* is gone"),
    (["tmux_code=1", "tmux_server=", "tmux_socket_there=1"], Level.NOTE, "tmux", "left from a server"),
    ([f"tmux_socket=/{'x' * 120}/comborun"], Level.ERROR, "tmux", "130 bytes, and 107"),
    (["tmux_folder=1000 755"], Level.ERROR, "tmux", "mode 755"),
    (["tmux_folder=1001 700"], Level.ERROR, "tmux", "belongs to user 1001"),
    (["tmux=", "screen_said=Cannot make directory '/run/screen'"], Level.WARNING, "screen", "no usable folder"),
    (["screen_said=Directory '/run/screen' must have mode 777."], Level.NOTE, "screen", "must have mode 777"),
    (["kill_now=yes"], Level.ERROR, "logout", "KillUserProcesses=yes"),
    (["kill_now=", "logind=/etc/l.conf KillUserProcesses=yes"], Level.ERROR, "logout", "yes in /etc/l.conf"),
    (["cgroup=" + USER_SLICE], Level.ERROR, "logout", "lingering is off"),
    (["tmux_cgroup=" + USER_SLICE], Level.ERROR, "logout", "lingering is off"),
    (["cgroup=" + USER_SLICE, "linger=yes", "systemd_version=255.4-1ubuntu8"], Level.WARNING, "logout", "255.4"),
    (["late=logout"], Level.WARNING, "logout", "systemd does not answer"),
    (["oomd=1"], Level.NOTE, "oomd", "running"),
    (["runtime_usable="], Level.WARNING, "runtime", "can't be used"),
    (["shell_ssh=0 20 Welcome to box!"], Level.WARNING, "start-up", "ssh prints: Welcome to box!"),
    (["shell_login=0 20 hi"], Level.NOTE, "start-up", "bash -l prints: hi"),
    (["shell_interactive=0 2600"], Level.NOTE, "start-up", "takes 2.6 s"),
    (["shell_login=124 5003"], Level.WARNING, "start-up", "did not start within"),
    (["shell_login=", "late=shell"], Level.WARNING, "start-up", "did not come to an end"),
    (["late=gpus", "nvidia_code="], Level.ERROR, "driver", "hangs"),
    (["nvidia_code=124"], Level.ERROR, "driver", "hangs"),
    (["nvidia_code=18", MISMATCH], Level.ERROR, "driver", "upgraded"),
    (["nvidia_code=9", SILENT], Level.ERROR, "driver", "not loaded"),
    (["nvidia_code=15", LOST], Level.ERROR, "driver", "fallen off"),
    (["nvidia_code=6", "nvidia_said=No devices were found"], Level.ERROR, "driver", "sees no GPU"),
    (["nvidia_code=77", "nvidia_said="], Level.ERROR, "driver", "code 77: it says nothing"),
    (["nvidia_code=", "gpu="], Level.ERROR, "driver", "no nvidia-smi"),
    (["driver_installed=550.90.07"], Level.WARNING, "driver", "535.183.01 is loaded, and 550.90.07"),
    (["gpu=0, GPU-a, 24564, 23564, 99, 535, RTX 4090"], Level.WARNING, "GPU 0", "1000 MiB of 24 GiB free, used by"),
    (["gpu=0, GPU-a, 24564, 9000, 99, 535, RTX 4090", TRAINING], Level.NOTE, "GPU 0", r"bob: python3 \(77, 8.6 GiB\)"),
    (["gpu=0, GPU-a, 24564, [N/A], 99, 535, RTX 4090"], Level.WARNING, "GPU 0", "does not tell"),
    (["gpu=0, GPU-a, 81559, 4, 0, 535, NVIDIA H100 80GB HBM3"], Level.NOTE, "GPU 0", "no ray tracing"),
    (["egl="], Level.NOTE, "EGL", "can't be asked"),
    (["egl=0 - -"], Level.NOTE, "EGL", "no device for any GPU"),
    (["egl=0 1 -", "+egl=1 0 -"], Level.NOTE, "EGL", "GPU 0 is EGL device 1, GPU 1 is EGL device 0"),
    (["egl=0 0 GPU-bbbb", "+egl=1 1 GPU-aaaa"], Level.NOTE, "EGL", "GPU 0 is EGL device 1"),
    (["missing=Xvfb"], Level.ERROR, "display", "no Xvfb, and the grid says"),
    (["xid=NVRM: Xid (PCI:0000:65:00): 79, GPU has fallen off the bus."], Level.WARNING, "xid", "1 fault .* 79"),
    ([f"disk_root={900 * GIB} {GIB // 2} 6000 5900 ext4 /home"], Level.ERROR, "disk", "512 MiB of 900 GiB"),
    ([f"disk_root={100 * GIB} {5 * GIB} 6000 5900 ext4 /home"], Level.WARNING, "disk", "5.0 GiB of 100 GiB"),
    ([f"disk_tmp={100 * GIB} 1000 6000 5900 ext4 /"], Level.ERROR, "disk", "at /tmp"),
    ([f"disk_root={900 * GIB} {500 * GIB} 60000000 1999 ext4 /home"], Level.ERROR, "inodes", "1999 of 60000000"),
    ([f"disk_root={900 * GIB} {500 * GIB} 60000000 90000 ext4 /home"], Level.WARNING, "inodes", "90000"),
    (["late=paths"], Level.ERROR, "root", "does not answer"),
    (["root_writable="], Level.ERROR, "root", "nothing can be written in"),
    (["root_writable=", "root_exists="], Level.ERROR, "root", "would be made"),
    (["tmp_writable="], Level.ERROR, "tmp", "TMPDIR"),
    (["flock=refused"], Level.ERROR, "locks", "refused"),
    (["flock=ignored"], Level.ERROR, "locks", "ignored"),
    (["cannot=make a FIFO"], Level.ERROR, "filesystem", "can't make a FIFO"),
    ([f"disk_root={900 * GIB} {500 * GIB} 0 0 nfs4 /home"], Level.WARNING, "filesystem", "nfs4"),
    ([f"disk_root={900 * GIB} {500 * GIB} 0 0 tmpfs /home"], Level.WARNING, "filesystem", "tmpfs"),
    ([f"MemAvailable={GIB // 2}"], Level.ERROR, "memory", "512 MiB"),
    ([f"MemAvailable={3 * GIB}"], Level.WARNING, "memory", "3.0 GiB of 128 GiB"),
    ([f"cgroup_memory={2 * 2**30}"], Level.WARNING, "memory", "allows this user 2.0 GiB"),
    ([f"SwapFree={GIB // 2}"], Level.WARNING, "swap", "7.5 GiB of 8.0 GiB"),
    (["load=80.5"], Level.WARNING, "load", "load 80.5 on 32 CPUs"),
    (["load=30"], Level.NOTE, "load", "load 30"),
    (["files_soft=512"], Level.WARNING, "open files", "512"),
    (["files_soft=64"], Level.ERROR, "open files", "64"),
    (["processes_soft=1024"], Level.WARNING, "processes", "412 of 1024"),
    (["cgroup_pids=500"], Level.ERROR, "processes", "412 of 500"),
    (["environ=", "hidepid=4"], Level.ERROR, "proc", r"hidepid=4"),
    (["hidepid=ptraceable"], Level.WARNING, "proc", "hides processes"),
    (["hidepid=invisible"], Level.NOTE, "proc", "only your own"),
    (["run_dead=/r/grid-20260101T000000Z-abcd"], Level.WARNING, "runs", "dispatcher is gone"),
    (["run_live=/r/grid-20260101T000000Z-abcd"], Level.NOTE, "runs", "running: grid-2026"),
    (["incoming=7200 /r/.incoming/ab cd"], Level.NOTE, "runs", "1 launch that broke off"),
    (["late=runs"], Level.WARNING, "runs", "could not all"),
    (
        ["lease=ada r-1 1 p0 0 4608 0 8 0 - 17", "+lease=ada r-1 1 p1 0,1 4608 0 8 12288 ray 17"], Level.NOTE, "leases",
        "^r-1 of ada has 2 sessions, GPU 0 9216 MiB, GPU 1 4608 MiB, 16 cores, 12288 MiB of memory, ray$",
    ),
    (["lease=bob r-2 0 p0 1 0 1 0 0 - 17"], Level.NOTE, "leases", "GPU 1 alone; its dispatcher is gone$"),
    (["lease_own=0 755 /tmp/comborun-1000"], Level.ERROR, "leases", "belongs to user 0"),
    (["lease_own=1000 775 /tmp/comborun-1000"], Level.ERROR, "leases", "others may write"),
    (["crlf=/home/ada/it's.sh"], Level.ERROR, "CRLF", "Windows line ends"),
    (["absent=/home/ada/eval.py"], Level.WARNING, "files", "not here"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "level", "check", "found"), BAD, ids=[" ".join(case[0])[:50] for case in BAD])
def test_a_bad_case_is_found_with_its_cost(changes: list[str], level: Level, check: str, found: str) -> None:
    (finding,) = problems(*changes)
    assert (finding.level, finding.check) == (level, check)
    assert re.search(found, finding.found), finding.found
    if level in {Level.ERROR, Level.WARNING}:
        assert finding.cost
        assert finding.fix or check == "runs"
    elif "left from" not in finding.found:
        assert finding.cost


FINE = [
    ["systemd=", "pid1=bash", "systemd_version=", "kill_now=", "late="],
    ["kill_now=yes", "logind=/etc/l.conf KillExcludeUsers=root ada"],
    ["kill_now=yes", "logind=/etc/l.conf KillOnlyUsers=bob eve"],
    ["kill_now=", "logind=/etc/a KillUserProcesses=yes", "+logind=/etc/b KillUserProcesses=no"],
    ["cgroup=" + USER_SLICE, "linger=yes", "systemd_version=256.3"],
    ["cgroup=" + USER_SLICE, "linger=yes", "systemd_version=249.11"],
    ["cgroup=/system.slice/docker-12.scope", "tmux_cgroup="],
    ["nvidia_code=", "gpu=", "driver_loaded=", "driver_installed="],
    ["screen="],
    ["files_soft=unlimited", "processes_soft=unlimited"],
    ["incoming=60 /r/.incoming/new"],
    ["runtime_dir=", "runtime_usable="],
    ["root=/home/ada/my runs"],
    ["hidepid=0"],
    ["cgroup_memory=9223372036854771712"],
]


@pytest.mark.parametrize("changes", FINE, ids=[" ".join(case)[:60] for case in FINE])
def test_what_only_looks_bad_is_fine(changes: list[str]) -> None:
    assert problems(*changes) == []


def test_root_is_spared_by_logind_unless_it_says_otherwise() -> None:
    root = ["uid=0", "user=0", "tmux_folder=0 700", "kill_now=yes"]
    assert problems(*root) == []
    assert problems(*root, "logind=/etc/l.conf KillExcludeUsers=ada")[0].check == "logout"


def test_an_old_bash_is_the_only_finding() -> None:
    assert [finding.check for finding in judge(Facts.parse("bash=3.2.57(1)-release\nend=1\n"))] == ["bash"]


@pytest.mark.parametrize(
    ("ahead", "slow", "level", "found"),
    [
        (0.0, 0.0, Level.OK, r"\+0\.00 s .* ± 0\.10"),
        (1.0, 0.0, Level.OK, r"\+1\.00"),
        (-60.0, 0.0, Level.NOTE, r"-60\.00"),
        (3600.0, 0.0, Level.WARNING, r"\+3600\.00"),
        (4.0, 10.0, Level.OK, r"± 5\.10"),
    ],
)
def test_a_clock_is_wrong_only_beyond_what_the_way_there_and_back_can_hide(
    ahead: float, slow: float, level: Level, found: str
) -> None:
    """The host looked at its clock at 1000.5 and 1001.0."""
    seen = facts(f"asked={1000.4 - ahead - slow / 2}", f"answered={1001.1 - ahead + slow / 2}")
    (finding,) = (finding for finding in judge(seen) if finding.check == "clock")
    assert finding.level is level
    assert re.search(found, finding.found), finding.found


def test_errors_come_first_and_make_the_host_unhealthy() -> None:
    findings = judge(facts("kill_now=yes", "oomd=1", "load=99", "flock=ignored"))
    order = [finding.level for finding in findings]
    assert order == sorted(order, key=[Level.ERROR, Level.WARNING, Level.NOTE, Level.OK].index)
    assert not Examination(facts(), findings).healthy
    assert Examination(facts(), judge(facts("load=99"))).healthy


KEYS = [*facts().values, "cgroup_memory", "cgroup_pids", "logind", "incoming", "gpu_process", "xid", "late", "cannot"]


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.text(max_size=30) | st.integers().map(str)), max_size=12))
def test_no_fact_whatever_it_holds_breaks_the_judgement(changes: list[tuple[str, str]]) -> None:
    values = {**facts().values, **{key: (value,) for key, value in changes if key != "bash"}}
    judged = judge(Facts.parse("".join(f"{key}={value}\n" for key in values for value in values[key])))
    assert judged
    assert all(part.isprintable() for finding in judged for part in (finding.found, finding.cost, finding.fix))


@pytest.mark.parametrize("line", ["", "0", "x, GPU-a, 1, 2, 3, 4, 5", "[Unknown Error]"])
def test_a_line_about_a_gpu_that_cannot_be_read_is_none(line: str) -> None:
    assert parse_gpu(line) is None


@pytest.mark.parametrize(
    ("kib", "text"), [(0, "0 KiB"), (9.4, "9 KiB"), (1024, "1.0 MiB"), (2.5 * GIB, "2.5 GiB"), (3 * 2**30, "3.0 TiB")]
)
def test_sizes_read_well(kib: float, text: str) -> None:
    assert size(kib) == text


SICK = (
    *("kill_now=", "logind=/etc/systemd/logind.conf.d/site.conf KillUserProcesses=yes", "load=61.2"),
    *("gpu=0, GPU-a, 81559, 41000, 99, 535, NVIDIA H100 80GB HBM3", "oomd=1"),
    "gpu_process=bob GPU-a, 31337, 40816, /home/bob/miniconda3/envs/train/bin/python3",
    *(
        "shell_ssh=0 20 *** Welcome to the robot learning cluster, please read the wiki ***",
        "crlf=/home/ada/my eval.sh",
    ),
    "run_dead=/home/ada/comborun/4_env_test-20260509T073525Z-1a2b",
)


def picture(changes: Iterable[str], width: int) -> str:
    seen = facts(*changes)
    examination = Examination(seen, judge(seen))
    return "".join(f"{line.plain}\n" for line in lines("gpubox", examination, width))


@pytest.mark.parametrize(
    ("name", "changes", "width"),
    [("healthy-80", (), 80), ("sick-80", SICK, 80), ("sick-10000", SICK, 10_000), ("sick-40", SICK, 40)],
)
def test_the_picture_is_the_golden_one(name: str, changes: tuple[str, ...], width: int) -> None:
    golden = GOLDEN / f"{name}.txt"
    assert golden.is_file(), f"{golden} is missing; it should hold:\n{picture(changes, width)}"
    assert picture(changes, width) == golden.read_text()


def test_a_command_is_never_broken_so_that_it_can_be_copied() -> None:
    fixes = [finding.fix for finding in problems(*SICK) if finding.fix]
    narrow = picture(SICK, 40)
    assert fixes
    assert all(f"fix:  {fix}\n" in narrow for fix in fixes)


def test_the_document_holds_findings_and_facts() -> None:
    seen = facts("load=99")
    told = document("gpubox", Examination(seen, judge(seen)))
    assert (told["host"], told["healthy"]) == ("gpubox", True)
    findings = told["findings"]
    assert isinstance(findings, list)
    assert findings[0]["check"] == "load"
    assert set(findings[0]) == {"check", "level", "found", "cost", "fix"}


def test_every_check_stands_in_the_documentation_and_nothing_else_does() -> None:
    page = (CHECKOUT / "docs/doctor.md").read_text()
    documented = set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE))
    found = {re.sub(r"^GPU \d+$", "GPU N", case[2]) for case in BAD} | {"clock"}
    assert documented == found


GRID = """\
name: g
host: gpubox
policies: [a]
environments: [b]
workdir: ~/work
setup: |
  source ~/env/activate.sh  # not "quoted
  source "$HOME/other.sh"
command: bash run.sh --config {policy}.sh /opt/eval.py --flag=x.sh ./deep/er.bash
after: python report.py
"""


def test_the_scripts_that_a_grid_names_are_found_on_the_host() -> None:
    grid = parse_grid(GRID, Path("/laptop/grid.yaml"))
    assert set(wanted_by(grid, local=False).files) == {
        "~/work/run.sh",
        "/opt/eval.py",
        "~/work/deep/er.bash",
        "~/env/activate.sh",
        "~/work/report.py",
    }


def test_a_relative_workdir_is_beside_the_grid_on_this_machine_and_unknown_elsewhere() -> None:
    grid = parse_grid(GRID.replace("~/work", "here"), Path("/laptop/grid.yaml"))
    assert "/laptop/here/run.sh" in wanted_by(grid, local=True).files
    assert set(wanted_by(grid, local=False).files) == {"/opt/eval.py", "~/env/activate.sh"}
