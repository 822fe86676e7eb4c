"""The doctor on this machine, and on what it can be made to look like."""

from __future__ import annotations

import json
import os
import resource
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from box import alive, until
from click.testing import CliRunner
from prefaced import Prefaced

from comborun.cli.doctor import doctor
from comborun.host.verbs.facts import NEEDED
from comborun.remote.host import Examination, HostNeeds, examine
from comborun.remote.transport import LocalTransport
from comborun.rules.facts import Fact
from comborun.rules.findings import Finding, Found, Level
from comborun.rules.names import MULTIPLEXER_NAMES
from comborun.words.doctor import advice

HANGS = "#!/bin/bash\ntrap '' TERM INT HUP\necho $$ >>{}\nwhile :; do sleep 60; done\n"
Fake = Callable[[str, str], None]


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home, a system and a tmux socket of the test's own: what this machine happens to have is not asked."""
    (tmp_path / "home").mkdir()
    (tmp_path / "system").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COMBORUN_SYSTEM_ROOT", str(tmp_path / "system"))
    monkeypatch.setenv("COMBORUN_TMUX_SOCKET", f"cb{secrets.token_hex(4)}")
    monkeypatch.setenv("COMBORUN_DOCTOR_S", "2")
    monkeypatch.delenv("TMUX", raising=False)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Puts a program in front of the real ones."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def put(name: str, text: str) -> None:
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)

    return put


def look(root: Path, *files: str) -> Examination:
    return examine(LocalTransport(), str(root), HostNeeds(files))


def found(root: Path, check: str, *files: str) -> list[Finding]:
    findings = look(root, *files).findings
    assert len({finding.check for finding in findings}) >= 10
    return [finding for finding in findings if finding.check == check]


def mend(finding: Finding) -> None:
    subprocess.run(["bash", "-c", advice(finding.fact)[1]], check=True)


def everything(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


def test_this_machine_is_looked_at_and_nothing_is_left_behind(tmp_path: Path) -> None:
    root = tmp_path / "my runs"
    root.mkdir()
    before = everything(tmp_path)
    began = time.monotonic()
    seen = look(root)
    assert time.monotonic() - began < 10
    assert everything(tmp_path) == before
    assert not any("hangs" in finding.fact.code for finding in seen.findings)
    good = {finding.check: finding.fact for finding in seen.findings if finding.level is Level.OK}
    assert good.keys() >= {"bash", "programs", "tmux", "locks", "open files"}
    assert good["locks"].fields["root"] == str(root)
    assert abs(good["clock"].fields["off_s"]) <= good["clock"].fields["doubt_s"] + 0.01


def test_a_root_that_is_not_there_yet_is_looked_at_where_it_would_be(tmp_path: Path) -> None:
    before = everything(tmp_path)
    (finding,) = found(tmp_path / "not/there/yet", "locks")
    assert finding.level is Level.OK
    assert everything(tmp_path) == before


def test_programs_that_hang_cost_their_time_once_are_told_and_ended(tmp_path: Path, fake: Fake) -> None:
    for name in ("nvidia-smi", "tmux", "screen", "loginctl", "systemctl", "df"):
        fake(name, HANGS.format(tmp_path / "pids"))
    (tmp_path / "system/run/systemd/system").mkdir(parents=True)
    began = time.monotonic()
    seen = look(tmp_path)
    assert time.monotonic() - began < 12
    told = {finding.check: finding for finding in seen.findings if finding.level is not Level.OK}
    assert told["driver"].fact == Fact(Found.DRIVER_HANGS)
    assert told["tmux"].level is Level.ERROR
    assert told["logout"].fact == Fact(Found.SYSTEMD_HANGS)
    left = list(map(int, (tmp_path / "pids").read_text().split()))
    until(lambda: not any(map(alive, left)), "all of them are ended")


def test_what_no_signal_reaches_does_not_hold_up_the_rest(tmp_path: Path, fake: Fake) -> None:
    """As a process in the kernel: it leaves its group, so that nothing ends it, and holds the pipe open."""
    fake("nvidia-smi", f'#!/bin/bash\nsetsid sleep 40 & echo $! >>"{tmp_path}/pids"; wait\n')
    began = time.monotonic()
    try:
        (finding,) = found(tmp_path, "driver")
        assert time.monotonic() - began < 12
        assert finding.fact == Fact(Found.DRIVER_HANGS)
    finally:
        for pid in (tmp_path / "pids").read_text().split():
            os.kill(int(pid), signal.SIGKILL)


def test_gpus_and_their_users_are_told(tmp_path: Path, fake: Fake) -> None:
    fake(
        "nvidia-smi",
        f"""#!/bin/bash
case $* in
  *query-gpu*) printf '0, GPU-a, 00:01, 70000, 81559, 5, 550.90.07, NVIDIA H100 80GB HBM3\\n' ;;
  *compute-apps*) printf 'GPU-a, {os.getpid()}, 69000, /opt/train\\nGPU-a, [N/A], 1, x\\n' ;;
esac
""",
    )
    folder = tmp_path / "system/proc/driver/nvidia"
    folder.mkdir(parents=True)
    version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 2024\n"
    (folder / "version").write_text(version)
    seen = look(tmp_path)
    told = {finding.check: finding.fact for finding in seen.findings if finding.fact.code != Found.NO_RAY_TRACING}
    assert (told["GPU 0"].fields["free_bytes"], told["GPU 0"].fields["total_bytes"]) == (11559 << 20, 81559 << 20)
    (user,) = told["GPU 0"].fields["users"]
    assert (user["program"], user["pid"], user["bytes"]) == ("train", os.getpid(), 69000 << 20)
    assert told["driver"] == Fact(Found.DRIVER, version="535.183.01", gpus=1)


@pytest.mark.parametrize(
    ("act", "code"), [("pass", Found.LOCKS_IGNORED), ("raise OSError(37, 'No locks')", Found.LOCKS_REFUSED)]
)
def test_locks_that_do_not_lock_are_found_out(tmp_path: Path, act: str, code: Found) -> None:
    host = Prefaced(f"import fcntl\ndef flock(*_): {act}\nfcntl.flock = flock\n")
    (finding,) = (finding for finding in examine(host, str(tmp_path)).findings if finding.check == "locks")
    assert (finding.level, finding.fact.code) == (Level.ERROR, code)


@pytest.mark.parametrize(
    ("number", "level", "code"),
    [(1, Level.NOTE, Found.FIFOS_ELSEWHERE), (28, Level.ERROR, Found.FIFOS_REFUSED)],
)
def test_a_root_without_fifos_is_found_out(tmp_path: Path, number: int, level: Level, code: Found) -> None:
    fifo = (
        f"import os\nmade = os.mkfifo\n"
        f"def mkfifo(path, *rest):\n    if '.comborun-doctor-' in path and '/tmp/comborun' not in path:"
        f" raise OSError({number}, 'no')\n    return made(path, *rest)\nos.mkfifo = mkfifo\n"
    )
    (finding,) = (one for one in examine(Prefaced(fifo), str(tmp_path)).findings if one.check == "fifos")
    assert (finding.level, finding.fact.code) == (level, code)


def test_programs_that_are_missing_are_named_and_the_disk_is_not_blamed_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = look(tmp_path).findings
    poor = tmp_path / "bin"
    poor.mkdir()
    for program in {*NEEDED, "sleep"} - {"head", "setsid", "timeout"}:
        (poor / program).symlink_to(str(shutil.which(program)))
    monkeypatch.setenv("PATH", str(poor))
    errors = [finding for finding in look(tmp_path).findings if finding.level is Level.ERROR]
    assert [(finding.check, finding.fact) for finding in errors if finding not in before] == [
        ("programs", Fact(Found.PROGRAMS_MISSING, programs=["head", "setsid", "timeout"])),
        ("tmux", Fact(Found.NO_MULTIPLEXER, multiplexers=list(MULTIPLEXER_NAMES))),
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")
def test_a_file_system_that_is_nearly_full_is_an_error(tmp_path: Path) -> None:
    root = tmp_path / "full"
    root.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,nr_inodes=60", "none", root], check=False)
    if mounted.returncode:
        pytest.skip("this container may not mount")
    try:
        seen = look(root)
    finally:
        subprocess.run(["umount", root], check=True)
    told = {finding.check: finding for finding in seen.findings if finding.level is not Level.OK}
    assert told["disk"].level is Level.ERROR
    assert told["disk"].fact.fields["total_bytes"] == 2 << 20
    assert told["inodes"].level is Level.ERROR
    assert told["filesystem"].fact == Fact(Found.DISK_IN_MEMORY, root=str(root), kind="tmpfs")


def test_a_low_limit_is_told(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        (finding,) = found(tmp_path, "open files")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (finding.level, finding.fact.fields["most"]) == (Level.WARNING, 200)


def test_a_root_that_cannot_be_written_and_no_temporary_folder_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/nonexistent")
    findings = look(Path("/proc/comborun")).findings
    assert {one.check: one.level for one in findings if one.check in {"root", "tmp"}} == {
        "root": Level.ERROR, "tmp": Level.ERROR,
    }  # fmt: skip


def test_windows_line_ends_are_found_and_the_fix_mends_them(tmp_path: Path) -> None:
    named = tmp_path / "home/it's my.sh"
    named.write_bytes(b"true\r\n")
    binary = tmp_path / "home/binary"
    binary.write_bytes(b"\0\1\r\n")
    asked = ("~/it's my.sh", "~/binary", "~/absent.py")
    told = found(tmp_path, "CRLF", *asked)
    assert [finding.fact for finding in told] == [Fact(Found.WINDOWS_LINE_ENDS, path=str(named))]
    mend(told[0])
    assert found(tmp_path, "CRLF", *asked) == []
    absent = Fact(Found.NAMED_FILE_MISSING, path=f"{tmp_path}/home/absent.py")
    assert [finding.fact for finding in found(tmp_path, "files", *asked)] == [absent]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, Path]]:
    """A real tmux server on our socket: its pid and the socket."""
    folder = Path("/tmp") / f"cb{secrets.token_hex(4)}"
    folder.mkdir()
    monkeypatch.setenv("TMUX_TMPDIR", str(folder))
    tmux = ["tmux", "-L", os.environ["COMBORUN_TMUX_SOCKET"], "-f", "/dev/null"]
    shown = [*tmux, "new-session", "-d", "-s", "x", "-P", "-F", "#{pid} #{socket_path}", "sleep 300"]
    pid, _, socket = subprocess.run(shown, capture_output=True, text=True, check=True, timeout=20).stdout.partition(" ")
    yield int(pid), Path(socket.strip())
    for number in (signal.SIGCONT, signal.SIGTERM):
        os.kill(int(pid), number)
    shutil.rmtree(folder, ignore_errors=True)


def test_a_stopped_server_is_told_and_the_fix_wakes_it(tmp_path: Path, server: tuple[int, Path]) -> None:
    os.kill(server[0], signal.SIGSTOP)
    (finding,) = (finding for finding in found(tmp_path, "tmux") if finding.level is Level.ERROR)
    assert finding.fact == Fact(Found.SERVER_STOPPED, pid=server[0])
    mend(finding)
    assert [finding.level for finding in found(tmp_path, "tmux")] == [Level.OK]


def test_a_server_without_its_socket_is_told_and_the_fix_brings_it_back(
    tmp_path: Path, server: tuple[int, Path]
) -> None:
    server[1].unlink()
    (finding,) = (finding for finding in found(tmp_path, "tmux") if finding.level is Level.WARNING)
    assert finding.fact == Fact(Found.SERVER_WITHOUT_SOCKET, pid=server[0])
    mend(finding)
    until(server[1].exists, "its socket is there again")
    assert [finding.level for finding in found(tmp_path, "tmux")] == [Level.OK]


def test_an_old_bash_is_told_and_nothing_else(tmp_path: Path, fake: Fake) -> None:
    bash = str(Path("/bin/bash").resolve())
    fake("bash", f'#!{bash}\n[[ $* == *BASH_VERSION* ]] && printf 3.2.57 && exit\nexec {bash} "$@"\n')
    assert [(finding.check, finding.level) for finding in look(tmp_path).findings] == [("bash", Level.ERROR)]


def test_busybox_in_place_of_coreutils_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    poor = tmp_path / "bin"
    poor.mkdir()
    (poor / "busybox").write_text("#!/bin/sh\nexit 1\n")
    (poor / "busybox").chmod(0o755)
    for program in ("head", "timeout"):
        (poor / program).symlink_to(poor / "busybox")
    monkeypatch.setenv("PATH", f"{poor}:{os.environ['PATH']}")
    (finding,) = found(tmp_path, "programs")
    assert (finding.level, finding.fact) == (Level.ERROR, Fact(Found.PROGRAMS_POOR, programs=["head", "timeout"]))


def test_the_command_tells_people_and_programs_and_its_code_tells_errors(tmp_path: Path, fake: Fake) -> None:
    runner = CliRunner()
    shown = runner.invoke(doctor, ["--root", str(tmp_path)], standalone_mode=False)
    assert shown.return_value == 0, shown.output
    assert "✓ bash" in shown.stdout
    fake("nvidia-smi", "#!/bin/bash\necho NVML is lost\nexit 18\n")
    told = runner.invoke(doctor, ["--root", str(tmp_path), "--json"], standalone_mode=False)
    assert told.return_value == 1
    document = json.loads(told.stdout)
    assert document["healthy"] is False
    assert document["findings"][0]["check"] == "driver"
    assert document["about"]["root"] == str(tmp_path)


def test_the_files_of_a_grid_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_bytes(b"true\r\n")
    grid = tmp_path / "grid.yaml"
    grid.write_text("name: g\npolicies: [a]\nenvironments: [b]\ncommand: bash run.sh\nworkdir: .\nresults: none\n")
    told = CliRunner().invoke(doctor, ["--root", str(tmp_path), "--grid", str(grid), "--json"], standalone_mode=False)
    assert told.return_value == 1, told.output
    finding = json.loads(told.stdout)["findings"][0]
    assert finding["fact"] == {"code": "windows_line_ends", "path": f"{tmp_path}/run.sh"}
    assert str(tmp_path) in finding["found"]
