"""What could hang when a machine is examined: file systems, drivers, services, start-up files. A thread for each."""

from __future__ import annotations

import fcntl
import glob
import json
import os
import pwd
import re
import shutil
import stat
import tempfile
import time

from comborun.host import files, preflight, process
from comborun.host.egl import COMMAND
from comborun.host.facts import GPU_TABLE
from comborun.host.publish import runs_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from comborun.host.doctor import Examination

_MOST_RUNS, _MOST_SCRIPTS = 500, 4000
_GPU_COLUMNS = "index,uuid,memory.total,memory.used,utilization.gpu,driver_version,name"
_APP_COLUMNS = "gpu_uuid,pid,used_memory,process_name"
_LOGIND = re.compile(r"^\s*(KillUserProcesses|KillOnlyUsers|KillExcludeUsers)\s*=\s*(.*)$", re.MULTILINE)


def paths(seen: Examination) -> None:
    """Disks, whether the root's file system does what a run needs, and the files that a grid names."""
    at = seen.root
    while at and not os.path.isdir(at):
        at = os.path.dirname(at.rstrip("/")) if at != "/" else ""
    if at == seen.root:
        seen.fact("root_exists")
    _disk(seen, "root", at or "/")
    _disk(seen, "tmp", seen.temporary)
    _try(seen, at or "/")
    try:
        with tempfile.TemporaryFile(dir=seen.temporary):
            seen.fact("tmp_writable")
    except OSError:
        pass
    for name in seen.named:
        place = os.path.expanduser(name)
        if not os.path.exists(place):
            seen.fact("absent", place)
        _crlf(seen, place)


def grid(seen: Examination) -> None:
    """What a grid names and this machine lacks."""
    for line in preflight.lacks(json.loads(seen.grid)) if seen.grid else ():
        seen.fact("lacks", line)


def _crlf(seen: Examination, path: str) -> None:
    data = files.read_text(path, 1 << 24)
    if "\r\n" in data and "\0" not in data:
        seen.fact("crlf", path)


def _disk(seen: Examination, label: str, folder: str) -> None:
    code, said = seen.ask("df", "-k", "--output=size,avail,itotal,iavail,fstype,target", "--", folder)
    if code == 0:
        seen.fact(f"disk_{label}", said.splitlines()[-1])


def _try(seen: Examination, folder: str) -> None:
    """With real files, in a folder that goes again."""
    try:
        at = tempfile.mkdtemp(prefix=".comborun-doctor-", dir=folder)
    except OSError:
        return
    seen.fact("root_writable")
    try:
        seen.fact("flock", _locks(f"{at}/lock"))
        os.mkdir(f"{at}/a")
        acts: dict[str, Callable[[], None]] = {
            "rename a folder": lambda: os.rename(f"{at}/a", f"{at}/b"),
            "make a FIFO": lambda: os.mkfifo(f"{at}/fifo"),
            "make a symbolic link": lambda: os.symlink("lock", f"{at}/link"),
            "keep the mode of a file": lambda: _keep_mode(f"{at}/lock"),
        }
        for what, act in acts.items():
            try:
                act()
            except OSError:
                seen.fact("cannot", what)
    finally:
        shutil.rmtree(at, ignore_errors=True)


def _locks(path: str) -> str:
    """Two openings of one file exclude each other, as two processes do."""
    with open(path, "w") as one, open(path, "w") as other:
        try:
            fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return "refused"
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return "works"
        return "ignored"


def _keep_mode(path: str) -> None:
    os.chmod(path, 0o700)
    if stat.S_IMODE(os.stat(path).st_mode) != 0o700:
        raise PermissionError(path)


def runs(seen: Examination) -> None:
    """What earlier launches left below the root."""
    for folder in glob.glob(f"{glob.escape(seen.root)}/.incoming/*/"):
        try:
            seen.fact("incoming", f"{int(time.time() - os.stat(folder).st_mtime)} {folder.rstrip('/')}")
        except OSError:
            continue  # a launch may be over just now
    scripts: list[str] = []
    for directory in runs_below(seen.root)[-_MOST_RUNS:]:
        if any(os.path.exists(f"{directory}/dispatch/{name}") for name in ("done", "stopped")):
            continue
        scripts += glob.glob(f"{glob.escape(directory)}/sessions/*/session.sh")
        by = files.read(f"{directory}/dispatch/dispatcher")
        lives = process.alive(by.get("pid", ""), by.get("start", ""), by.get("boot", ""))
        seen.fact("run_live" if lives else "run_dead", directory)
    for script in scripts[:_MOST_SCRIPTS]:
        _crlf(seen, script)


def gpus(seen: Examination) -> None:
    """The driver, its GPUs, who uses them, and what the kernel says of them."""
    loaded = re.search(r"\s([0-9]+\.[0-9.]+)", files.read_line(f"{seen.system}/proc/driver/nvidia/version"))
    if loaded:
        seen.fact("driver_loaded", loaded[1])
    for device in glob.glob(f"{glob.escape(seen.system)}/proc/driver/nvidia/gpus/*/"):
        seen.fact("gpu_device", device.rstrip("/"))
    if not shutil.which("nvidia-smi"):
        return
    code, said = seen.ask_driver(*GPU_TABLE, f"--query-gpu={_GPU_COLUMNS}")
    seen.fact("nvidia_code", code)
    if code:
        seen.fact("nvidia_said", said)
        return
    for line in said.splitlines():
        seen.fact("gpu", line)
    _gpu_users(seen)
    _gpu_faults(seen)


def _gpu_users(seen: Examination) -> None:
    code, said = seen.ask("modinfo", "-F", "version", "nvidia")
    if code == 0:
        seen.fact("driver_installed", said.splitlines()[-1] if said else "")
    code, said = seen.ask_driver(*GPU_TABLE, f"--query-compute-apps={_APP_COLUMNS}")
    for line in said.splitlines() if code == 0 else ():
        app = re.match(r"GPU-[^,]*, *([0-9]+),", line)
        if app:
            seen.fact("gpu_process", f"{_owner(f'/proc/{app[1]}')} {line}")


def _gpu_faults(seen: Examination) -> None:
    code, said = seen.ask("dmesg")
    if code:
        _, said = seen.ask("journalctl", "-k", "-q", "-n", "5000", "--no-pager")
    for line in [line for line in said.splitlines() if "NVRM: Xid" in line][-3:]:
        seen.fact("xid", line)


def _owner(path: str) -> str:
    try:
        uid = os.stat(path).st_uid
    except OSError:
        return "?"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def leases(seen: Examination) -> None:
    """What the runs of all users have promised to their sessions. Whose a folder is tells its owner, never its name."""
    own = os.environ.get("COMBORUN_LEASES") or f"/tmp/comborun-{os.getuid()}"  # noqa: S108
    for folder in sorted({*glob.glob("/tmp/comborun-*"), own}):  # noqa: S108
        try:
            status = os.lstat(folder)
        except OSError:
            continue
        if not stat.S_ISDIR(status.st_mode):
            continue
        if folder == own:
            seen.fact("lease_own", f"{status.st_uid} {stat.S_IMODE(status.st_mode):o} {own}")
        elif folder.rpartition("-")[2] != str(status.st_uid):
            continue
        for file in sorted(glob.glob(f"{glob.escape(folder)}/*.lease")):
            _lease(seen, file, _owner(folder))


def _lease(seen: Examination, file: str, owner: str) -> None:
    """OWNER RUN ALIVE WHO GPUS MIB ALONE CPUS MEMORY TOKENS SINCE of each promise that holds; - is nothing."""
    try:
        told = json.loads("" if os.path.islink(file) else files.read_text(file))
        alive = int(process.alive(told["dispatcher"], told["start"], told["boot"]))
        promises = [one for one in told["promises"][:500] if not os.path.exists(f"{one['at']}/end")]
        for one in promises:
            asked, gpus = one["request"], ",".join(map(str, one["gpus"])) or "-"
            took = gpus, asked["gpu_memory"], int(asked["alone"]), asked["cpus"], asked["memory"]
            tokens = ",".join(asked["tokens"]) or "-"
            words = [*map(str, (owner, one["run"], alive, one["who"], *took, tokens, one["since"]))]
            if not any(re.search(r"\s", word) for word in words):  # others may write there what they like
                seen.fact("lease", " ".join(words))
    except (ValueError, TypeError, KeyError, RecursionError):
        return


def egl(seen: Examination) -> None:
    """A line for each device: its index, CUDA's number for the GPU, the GPU's UUID."""
    if shutil.which("nvidia-smi"):
        code, said = seen.ask_driver(*COMMAND)
        for line in said.splitlines() if code == 0 else ():
            if re.match("[0-9]+ ", line):
                seen.fact("egl", line)


def tmux(seen: Examination) -> None:
    """Our own server: does it answer, and if not, why?"""
    if not shutil.which("tmux"):
        return
    seen.fact("tmux", seen.ask("tmux", "-V")[1])
    name = os.environ.get("COMBORUN_TMUX_SOCKET") or "comborun"
    folder = f"{os.environ.get('TMUX_TMPDIR') or '/tmp'}/tmux-{os.getuid()}"  # noqa: S108 - as tmux has it
    socket = f"{folder}/{name}"
    seen.fact("tmux_socket", socket)
    if os.path.exists(folder):
        status = os.stat(folder)
        seen.fact("tmux_folder", f"{status.st_uid} {stat.S_IMODE(status.st_mode):o}")
    if os.path.exists(socket) and stat.S_ISSOCK(os.stat(socket).st_mode):
        seen.fact("tmux_socket_there")
    code, said = seen.ask("tmux", "-L", name, "list-sessions")
    seen.fact("tmux_code", code)
    seen.fact("tmux_said", said.rpartition("\n")[2] if code else "")
    for comm in glob.glob("/proc/[0-9]*/comm"):
        folder = os.path.dirname(comm)
        if files.read_line(comm) == "tmux: server" and _owner(folder) == _owner("/proc/self"):
            _tmux_server(seen, folder, name)


def _tmux_server(seen: Examination, folder: str, name: str) -> None:
    words = files.read_text(f"{folder}/cmdline").split("\0")
    look = process.look(os.path.basename(folder))
    if ("-L", name) not in zip(words, words[1:]) or look is None:
        return
    seen.fact("tmux_server", f"{os.path.basename(folder)} {look.state}")
    for line in files.read_text(f"{folder}/cgroup").splitlines():
        if line.startswith("0::"):
            seen.fact("tmux_cgroup", line[3:])


def screen(seen: Examination) -> None:
    """-v ends with 1 in some versions, -ls with 1 for none."""
    if shutil.which("screen"):
        seen.fact("screen", seen.ask("screen", "-v")[1])
        seen.fact("screen_said", seen.ask("screen", "-ls")[1])


def logout(seen: Examination) -> None:
    """Would logging out end sessions? The running logind's word, and the files that it read."""
    if not os.path.isdir(f"{seen.system}/run/systemd/system"):
        return
    seen.fact("systemd")
    _, said = seen.ask("systemctl", "--version")
    version = re.search(r"systemd\s([0-9]+)\S*(?:\s\(([^)]*)\))?", said)
    if version:
        seen.fact("systemd_version", version[2] or version[1])
    if seen.ask("systemctl", "is-active", "systemd-oomd")[1] == "active":
        seen.fact("oomd")
    for key, what, *command in (
        ("kill_now", "KillUserProcesses", "show-session"),
        ("linger", "Linger", "show-user", str(os.getuid())),
    ):
        told = re.search(f"^{what}=(yes|no)$", seen.ask("loginctl", *command, "-p", what)[1], re.MULTILINE)
        if told:
            seen.fact(key, told[1])
    if os.path.exists(f"{seen.system}/var/lib/systemd/linger/{os.environ.get('USER') or os.getuid()}"):
        seen.fact("linger", "yes")
    _logind_files(seen)


def _logind_files(seen: Examination) -> None:
    """The first whole file, then the parts by name, each from the first folder that has it."""
    folders = [f"{seen.system}/{folder}/systemd" for folder in ("etc", "run", "usr/local/lib", "usr/lib")]
    whole = [file for folder in folders for file in (f"{folder}/logind.conf",) if os.path.isfile(file)]
    parts: dict[str, str] = {}
    for folder in folders:
        for file in glob.glob(f"{glob.escape(folder)}/logind.conf.d/*.conf"):
            parts.setdefault(os.path.basename(file), file)
    for file in (*whole[:1], *(parts[name] for name in sorted(parts))):
        for setting in _LOGIND.finditer(files.read_text(file)):
            seen.fact("logind", f"{file} {setting[1]}={setting[2]}")


def shell(seen: Examination) -> None:
    """What the user's start-up files say, and how long they take, for each way in."""
    _start(seen, "login", "bash", "-lc", "true")
    _start(seen, "interactive", "bash", "-c", "exec bash -ic true 2>/dev/null")
    ssh = ("SSH_CLIENT=127.0.0.1 1 22", "SSH_CONNECTION=127.0.0.1 1 127.0.0.1 22")
    _start(seen, "ssh", "env", "-u", "SHLVL", *ssh, "bash", "-c", "true")


def _start(seen: Examination, kind: str, *command: str) -> None:
    begun = time.monotonic()
    code, said = seen.ask(*command)
    seen.fact(f"shell_{kind}", f"{code} {1000 * (time.monotonic() - begun):.0f} {said.partition(chr(10))[0]}")


ALL = (paths, grid, runs, gpus, leases, egl, tmux, screen, logout, shell)
