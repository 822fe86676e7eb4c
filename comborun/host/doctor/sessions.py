"""What holds sessions: tmux and screen, logging out, start-up files, earlier runs, leases, scripts."""

from __future__ import annotations

import glob
import json
import os
import re
import shlex
import stat
import textwrap
import time

from comborun.host import files, preflight, process
from comborun.host.doctor.box import Box, hangs, several, version
from comborun.host.process import owner
from comborun.host.publish import runs_below
from comborun.rules.findings import Finding, Level, error, fine, note, warning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence

_MOST_RUNS, _MOST_SCRIPTS, _MOST_LEASES = 500, 4000, 500
_LOGIND = re.compile(r"^\s*(KillUserProcesses|KillOnlyUsers|KillExcludeUsers)\s*=\s*(.*)$", re.MULTILINE)
_LONGEST_SOCKET = 107
"""bytes of a Unix socket's path"""
_STALE_S = 3600
NO_VIEW = "no session can be opened or looked at"
SYSTEMD_HANGS = (
    "systemd does not answer",
    "it is not known whether logging out ends sessions",
    "loginctl list-sessions",
)
START_UP_HANGS = (
    "the start-up files did not come to an end",
    "logging in may hang, and everything that does",
    "bash -lxc true",
)


# tmux and screen


def multiplexers(box: Box) -> Iterator[Finding]:
    """One of tmux and screen has to work; trouble with the second one is no more than a note."""
    tmux, screen = box.has("tmux"), box.has("screen")
    if tmux:
        yield from _tmux(box)
    elif not screen:
        cost = "there is nothing to run sessions in"
        yield error("tmux", "neither tmux nor screen is there", cost, "sudo apt-get install tmux")
    if screen:  # -v ends with 1 in some versions, -ls with 1 for none
        yield screen_folder(box.ask("screen", "-v")[1], box.ask("screen", "-ls")[1], alone=not tmux)


def _tmux(box: Box) -> Iterator[Finding]:
    """Our own server: does it answer, and if not, why?"""
    text = box.ask("tmux", "-V")[1]
    name = os.environ.get("COMBORUN_TMUX_SOCKET") or "comborun"
    folder = f"{os.environ.get('TMUX_TMPDIR') or '/tmp'}/tmux-{box.uid}"  # noqa: S108 - as tmux has it
    socket = f"{folder}/{name}"
    code, _ = box.ask("tmux", "-L", name, "list-sessions")
    problems = [*socket_path(socket)]
    if os.path.exists(folder):
        status = os.stat(folder)
        problems += socket_folder(folder, status.st_uid, stat.S_IMODE(status.st_mode))
    there = os.path.exists(socket) and stat.S_ISSOCK(os.stat(socket).st_mode)
    problems += server(code, socket, _server_of(name), there=there)
    if version(text) and version(text) < (2, 7):
        cost = "its server ends between two sessions, and refuses some that start at that moment"
        problems.append(warning("tmux", f"{text} is older than 2.7", cost, "sudo apt-get install tmux"))
    yield from problems
    if all(problem.level is Level.NOTE for problem in problems):
        yield fine("tmux", text + ("; our server runs" if code == 0 else ""))


def _servers() -> Iterator[tuple[int, list[str]]]:
    """This user's tmux servers: pid and words."""
    for comm in glob.glob("/proc/[0-9]*/comm"):
        folder = os.path.dirname(comm)
        if files.read_line(comm) == "tmux: server" and owner(folder) == owner("/proc/self"):
            yield int(os.path.basename(folder)), files.read_text(f"{folder}/cmdline").split("\0")


def _server_of(name: str) -> int:
    """The pid of the server with that socket; 0 where there is none."""
    found = (pid for pid, words in _servers() if ("-L", name) in zip(words, words[1:]))
    return next((pid for pid in found if process.look(pid)), 0)


def socket_path(socket: str) -> Iterator[Finding]:
    length = len(os.fsencode(socket))
    if length > _LONGEST_SOCKET:
        found = f"the socket's path has {length} bytes, and {_LONGEST_SOCKET} is the most: {socket}"
        yield error("tmux", found, "no session can be opened", "export TMUX_TMPDIR=/tmp")


def socket_folder(folder: str, uid: int, mode: int) -> Iterator[Finding]:
    ours = uid == os.getuid()
    if not ours or mode & 0o700 != 0o700 or mode & 0o007:
        found = f"{folder} belongs to user {uid} and has mode {mode:o}; tmux wants yours, and 700"
        act = "chmod 700" if ours else "sudo rm -r"
        yield error("tmux", found, "tmux refuses to open sessions", f"{act} {shlex.quote(folder)}")


def server(code: int, socket: str, pid: int, *, there: bool) -> Iterator[Finding]:
    """`code`: of tmux list-sessions; `pid`: of the process that serves the socket; `there`: the socket is."""
    if hangs(code):
        seen = process.look(pid)
        if seen and seen.state in "Tt":
            found, fix = f"our tmux server {pid} is stopped", f"kill -CONT {pid}"
        elif pid:
            found, fix = f"our tmux server {pid} does not answer", f"kill {pid}  # sessions go on without their windows"
        else:
            looking = f"ps -ef | grep {shlex.quote(os.path.basename(socket))}"
            found, fix = "our tmux server does not answer", looking
        yield error("tmux", found, NO_VIEW, fix)
    elif code and pid:
        found = f"our tmux server {pid} lives, and its socket {socket} is gone or another's"
        yield warning("tmux", found, "its sessions go on, but can't be read", f"kill -USR1 {pid}")
    elif code and there:
        yield note("tmux", f"{socket} is left from a server that is gone; the next session replaces it", "")


def screen_folder(screen: str, said: str, *, alone: bool) -> Finding:
    if "socket" in said.lower() and "annot make directory" not in said and "must have mode" not in said:
        return fine("screen", screen)
    found = f"screen has no usable folder: {said[:120] or 'it says nothing'}"
    cost = "a folder of its own is used instead: ~/.comborun-screen or below XDG_RUNTIME_DIR"
    level = Level.WARNING if alone else Level.NOTE
    return Finding("screen", level, found, cost, "export SCREENDIR=~/.screen; mkdir -pm 700 ~/.screen")


def runtime(_: Box) -> Iterator[Finding]:
    """XDG_RUNTIME_DIR is where screen's folder would go; it may be named and not be there."""
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    if folder and not (os.path.isdir(folder) and os.access(folder, os.W_OK)):
        cost = "programs that keep sockets there fail, screen's folder among them"
        yield warning("runtime", f"XDG_RUNTIME_DIR is {folder}, which can't be used", cost, "unset XDG_RUNTIME_DIR")


# Logging out


def logout(box: Box) -> Iterator[Finding]:
    """Would logging out end sessions? The running logind's word, and the files that it read."""
    if not box.find("/run/systemd/system"):
        first = box.read("/proc/1/comm").strip() or "?"
        yield fine("logout", f"no systemd here (process 1 is {first}): it ends nothing")
        return
    code, said = box.ask("systemctl", "--version")
    if hangs(code):
        yield warning("logout", *SYSTEMD_HANGS)
        return
    found = re.search(r"systemd\s([0-9]+)\S*(?:\s\(([^)]*)\))?", said)
    systemd = (found[2] or found[1]) if found else ""
    findings = [*_kill_user_processes(box), *_user_manager(box, systemd)]
    yield from findings or [fine("logout", f"ends nothing (systemd {systemd})")]
    if box.ask("systemctl", "is-active", "systemd-oomd")[1] == "active":
        cost = "under memory pressure it ends a whole control group: all sessions of one tmux server at once"
        yield note("oomd", "systemd-oomd is running", cost, "oomctl  # shows what it watches")


def _loginctl(box: Box, what: str, *command: str) -> str:
    """`yes` or `no`; empty where it does not say."""
    answer = re.search(f"^{what}=(yes|no)$", box.ask("loginctl", *command, "-p", what)[1], re.MULTILINE)
    return answer[1] if answer else ""


def _kill_user_processes(box: Box) -> Iterator[Finding]:
    assigned = dict(_logind_settings(box))
    value, file = assigned.get("KillUserProcesses", ("no", ""))
    value = _loginctl(box, "KillUserProcesses", "show-session") or value
    user = {box.user, str(box.uid)} | ({"root"} if box.uid == 0 else set())
    spared = user & set(assigned.get("KillExcludeUsers", ("root", ""))[0].split())
    only = set(assigned.get("KillOnlyUsers", ("", ""))[0].split())
    if value.lower() not in ("yes", "1", "true", "on") or spared or (only and not user & only):
        return
    fix = (
        "sudo mkdir -p /etc/systemd/logind.conf.d"
        " && printf '[Login]\\nKillUserProcesses=no\\n' | sudo tee /etc/systemd/logind.conf.d/comborun.conf"
        " && sudo systemctl restart systemd-logind"
    )
    found = f"KillUserProcesses=yes{f' in {file}' if file else ''}"
    yield error("logout", found, "every session is ended when you log out", fix)


def _logind_settings(box: Box) -> Iterator[tuple[str, tuple[str, str]]]:
    """Key, value and file: of the first whole file, then of the parts by name, each from the first folder with it."""
    folders = [f"/{folder}/systemd" for folder in ("etc", "run", "usr/local/lib", "usr/lib")]
    whole = [file for folder in folders for file in box.find(f"{folder}/logind.conf")]
    parts: dict[str, str] = {}
    for folder in folders:
        for file in box.find(f"{folder}/logind.conf.d/*.conf"):
            parts.setdefault(os.path.basename(file), file)
    for file in (*whole[:1], *(parts[name] for name in sorted(parts))):
        yield from ((found[1], (found[2].strip(), file)) for found in _LOGIND.finditer(box.read(file)))


def _user_manager(box: Box, systemd: str) -> Iterator[Finding]:
    """What runs below user@UID.service ends with it: on the last log-out, unless the user lingers."""
    processes = ("self", *(str(pid) for pid, _ in _servers()))
    groups = [
        line[3:] for pid in processes for line in box.read(f"/proc/{pid}/cgroup").splitlines() if line[:3] == "0::"
    ]
    below = [group for group in groups if "/user@" in group]
    lingers = _loginctl(box, "Linger", "show-user", str(box.uid)) == "yes"
    lingers = lingers or bool(box.find(f"/var/lib/systemd/linger/{glob.escape(box.user)}"))
    if below and not lingers:
        cost = "when your last login ends, systemd ends your user manager and every session with it"
        found = f"sessions run below {below[-1]}, and lingering is off"
        yield error("logout", found, cost, "loginctl enable-linger")
    elif below and (255,) <= version(systemd) < (256, 3):
        found = f"systemd {systemd} may end a user manager that lingers, and sessions run below it"
        cost = "every session ends at some log-out (fixed in 256.3)"
        yield warning("logout", found, cost, "combo launch from a plain ssh login, not from systemd-run --user")


# Start-up files

_SSH = ("env", "-u", "SHLVL", "SSH_CLIENT=127.0.0.1 1 22", "SSH_CONNECTION=127.0.0.1 1 127.0.0.1 22")
_WAYS = (
    ("bash -l", ("bash", "-lc", "true")),
    ("an interactive bash", ("bash", "-c", "exec bash -ic true 2>/dev/null")),
    ("bash started by ssh", (*_SSH, "bash", "-c", "true")),
)


def start_up(box: Box) -> Iterator[Finding]:
    """What the user's start-up files say, and how long they take, for each way in."""
    findings: list[Finding] = []
    for way, command in _WAYS:
        begun = time.monotonic()
        code, said = box.ask(*command)
        findings += start(way, code, time.monotonic() - begun, said.partition("\n")[0])
    yield from findings or [fine("start-up", "the start-up files are quiet and quick")]


def start(way: str, code: int, seconds: float, said: str) -> Iterator[Finding]:
    show = "bash -lxc true 2>&1 | tail"
    if hangs(code):
        cost = "logging in hangs, and scp, rsync and git with it"
        yield warning("start-up", f"{way} did not start within 5 s", cost, show)
    elif seconds > 1.5:
        found, cost = f"{way} takes {seconds:.1f} s to start", "every login and every scp waits for it"
        yield note("start-up", found, cost, show)
    if said:
        level = Level.WARNING if "ssh" in way else Level.NOTE
        found = f"{way} prints: {textwrap.shorten(said, 60, placeholder=' ...')}"
        cost = "it corrupts what scp, rsync and git say; comborun itself is not disturbed"
        yield Finding("start-up", level, found, cost, "put [[ $- == *i* ]] || return  at the top of ~/.bashrc")


# What earlier launches left below the root


def _open_runs(box: Box) -> list[str]:
    """Those that have not ended."""
    over = ("done", "stopped")
    runs = runs_below(box.root)[-_MOST_RUNS:]
    return [run for run in runs if not any(os.path.exists(f"{run}/dispatch/{name}") for name in over)]


def earlier_runs(box: Box) -> Iterator[Finding]:
    live = []
    for run in _open_runs(box):
        if process.named(files.read(f"{run}/dispatch/dispatcher")):
            live.append(os.path.basename(run))
            continue
        found = f"{os.path.basename(run)} has not ended, and its dispatcher is gone"
        yield warning("runs", found, "nothing of it will start any more", f"bash {shlex.quote(run)}/run_parallel.sh")
    if old := _broken_off(box):
        found = f"{several(len(old), 'launch', 'launches')} that broke off left files below .incoming"
        yield note("runs", found, "room on the disk", f"rm -r {' '.join(map(shlex.quote, old[:3]))}")
    if live:
        found = f"running: {', '.join(live[:3])}{' ...' if len(live) > 3 else ''}"
        yield note("runs", found, "their sessions share CPUs, memory and GPUs with new ones")


def _broken_off(box: Box) -> list[str]:
    found = []
    for folder in glob.glob(f"{glob.escape(box.root)}/.incoming/*/"):
        try:
            if time.time() - os.stat(folder).st_mtime > _STALE_S:
                found.append(folder.rstrip("/"))
        except OSError:
            continue  # a launch may be over just now
    return found


def leases(box: Box) -> Iterator[Finding]:
    """What the runs of all users have promised to their sessions. The owner of a folder says whose it is."""
    own = os.environ.get("COMBORUN_LEASES") or f"/tmp/comborun-{box.uid}"  # noqa: S108
    for folder in sorted({*glob.glob("/tmp/comborun-*"), own}):  # noqa: S108
        try:
            status = os.lstat(folder)
        except OSError:
            continue
        if not stat.S_ISDIR(status.st_mode):
            continue
        if folder == own:
            yield from lease_folder(own, status.st_uid, stat.S_IMODE(status.st_mode))
        elif folder.rpartition("-")[2] != str(status.st_uid):
            continue
        for file in sorted(glob.glob(f"{glob.escape(folder)}/*.lease")):
            yield from _leases_of(file, owner(folder))


def lease_folder(folder: str, uid: int, mode: int) -> Iterator[Finding]:
    if uid == os.getuid() and not mode & 0o022:
        return
    ours = uid == os.getuid()
    found = f"others may write in {folder} (mode {mode:o})" if ours else f"{folder} belongs to user {uid}"
    fix = f"chmod 755 {folder}" if ours else "export COMBORUN_LEASES=~/.comborun-leases"
    yield error("leases", found, "no session that asks for GPUs, cores, memory or tokens starts", fix)


def _leases_of(file: str, user: str) -> Iterator[Finding]:
    """What a run has promised; a file that is none of ours says nothing, since others may write there."""
    try:
        rows = json.loads("" if os.path.islink(file) else files.read_text(file))
        promises = [one for one in rows["promises"][:_MOST_LEASES] if not os.path.exists(f"{one['at']}/end")]
        if not promises:
            return
        parts = [several(len(promises), "session"), *promised(promises)]
        alive = process.alive(rows["dispatcher"], rows["start"], rows["boot"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return
    run = os.path.basename(file)[: -len(".lease")]
    dead = "" if alive else "; its dispatcher is gone"
    cost = "what it was promised is promised to no other run of that user"
    yield note("leases", f"{run} of {user} has {', '.join(parts)}{dead}", cost)


def promised(promises: Sequence[dict[str, Any]]) -> Iterator[str]:
    """GPUs, cores, memory and tokens of one run. Raises what foreign data raises."""
    asked = [one["request"] for one in promises]
    gpus = sorted({int(gpu) for one in promises for gpu in one["gpus"]})
    for gpu in gpus:
        there = [request for one, request in zip(promises, asked) if gpu in one["gpus"]]
        mib = sum(int(request["gpu_memory"]) for request in there)
        yield f"GPU {gpu}" + (" alone" if any(one["alone"] for one in there) else f" {mib} MiB" if mib else "")
    if cores := sum(int(request["cpus"]) for request in asked):
        yield several(cores, "core")
    if memory := sum(int(request["memory"]) for request in asked):
        yield f"{memory} MiB of memory"
    yield from sorted({str(token) for request in asked for token in request["tokens"]})


# Scripts


def files_named(box: Box) -> Iterator[Finding]:
    """Scripts with Windows line ends, in runs and among the files that a grid names, and files that are not there."""
    scripts = [one for run in _open_runs(box) for one in glob.glob(f"{glob.escape(run)}/sessions/*/session.sh")]
    named = [os.path.expanduser(name) for name in box.named]
    for path in filter(_has_windows_ends, (*named, *scripts[:_MOST_SCRIPTS])):
        cost = "bash reads the carriage return as part of the last word: options are not known, files not found"
        yield error("CRLF", f"{path} has Windows line ends", cost, f"sed -i 's/\\r$//' {shlex.quote(path)}")
    wanted = json.loads(box.grid) if box.grid else {}
    lacks = preflight.lacks(wanted) if wanted else []
    gone = tuple(f"{folder}/" for folder in preflight.workdirs(wanted) if not os.path.isdir(folder))
    for line in lacks:
        yield error("grid", line, "sessions that need it fail at once")
    for path in named:
        said = path.startswith(gone) or os.path.basename(path) in " ".join(lacks)
        if not said and not os.path.exists(path):
            found, cost = f"the grid names {path}, which is not here", "a command that needs it fails at once"
            yield warning("files", found, cost, f"ls -l {shlex.quote(path)}")


def _has_windows_ends(path: str) -> bool:
    data = files.read_text(path, 1 << 24)
    return "\r\n" in data and "\0" not in data
