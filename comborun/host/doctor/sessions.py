"""What holds sessions: tmux and screen, logging out, scripts."""

from __future__ import annotations

import glob
import json
import os
import re
import shlex

from comborun.host.doctor import preflight
from comborun.host.doctor.machine import Box, hangs
from comborun.host.engines.multiplexers import MULTIPLEXERS
from comborun.host.system import files, process
from comborun.host.system.process import owner
from comborun.rules.findings import Finding, error, fine, warning
from comborun.words import host, say  # noqa: F401 - the table of words about hosts travels with the doctor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

_NO_SERVER = ("no server running", "No such file", "Connection refused")
"""tmux's words where nothing is wrong: a server starts with the first session"""
NO_VIEW = "no session can be opened or looked at"
SYSTEMD_HANGS = "systemd does not answer", "it is not known whether logging out ends sessions", "loginctl list-sessions"


# tmux and screen


def multiplexers(box: Box) -> Iterator[Finding]:
    """Checks the multiplexer that a run would choose; one of them is needed."""
    first, *_ = MULTIPLEXERS
    kind = next(filter(box.has, MULTIPLEXERS), "")
    if kind == "tmux":
        yield from _tmux(box)
    elif kind:
        said = box.ask(kind, MULTIPLEXERS[kind].version)[1]
        yield fine(first, f"is not there; sessions run in {kind} ({said})")
    else:
        found = f"neither {' nor '.join(MULTIPLEXERS)} is there"
        yield error(first, found, "there is nothing to run sessions in", f"sudo apt-get install {first}")


def _tmux(box: Box) -> Iterator[Finding]:
    """Whether our own server answers, and if not, why."""
    text = box.ask("tmux", "-V")[1]
    name = os.environ.get("COMBORUN_TMUX_SOCKET") or "comborun"
    code, said = box.ask("tmux", "-L", name, "list-sessions")
    problems = [*server(code, said, _server_of(name))]
    yield from problems or [fine("tmux", text + ("; our server runs" if code == 0 else ""))]


def _servers() -> Iterator[tuple[int, list[str]]]:
    """This user's tmux servers: pid and words."""
    for comm in glob.glob("/proc/[0-9]*/comm"):
        folder = os.path.dirname(comm)
        if files.read_line(comm) == "tmux: server" and owner(folder) == owner("/proc/self"):
            yield int(os.path.basename(folder)), files.read_text(f"{folder}/cmdline").split("\0")


def _server_of(name: str) -> int:
    """The pid of the server with that socket, or 0."""
    found = (pid for pid, words in _servers() if ("-L", name) in zip(words, words[1:]))
    return next((pid for pid in found if process.look(pid)), 0)


def server(code: int, said: str, pid: int) -> Iterator[Finding]:
    """The state of a server. `code`, `said`: the answer of list-sessions; `pid`: of the process with our socket."""
    if hangs(code):
        seen = process.look(pid)
        if seen and seen.state in "Tt":
            found, fix = f"our tmux server {pid} is stopped", f"kill -CONT {pid}"
        elif pid:
            found, fix = f"our tmux server {pid} does not answer", f"kill {pid}  # sessions go on without their windows"
        else:
            found, fix = "our tmux server does not answer", "ps -ef | grep tmux"
        yield error("tmux", found, NO_VIEW, fix)
    elif code and pid:
        found = f"our tmux server {pid} lives, and its socket is gone or another's"
        yield warning("tmux", found, "its sessions go on, but can't be read", f"kill -USR1 {pid}")
    elif code and not any(absent in said for absent in _NO_SERVER):
        yield error("tmux", f"tmux: {said}", NO_VIEW, "export TMUX_TMPDIR=~/.tmux; mkdir -m 700 ~/.tmux")


# Logging out


def logout(box: Box) -> Iterator[Finding]:
    """Whether logging out would end sessions, by the running logind and its files."""
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
    findings = [*_kill_user_processes(box), *_user_manager(box)]
    yield from findings or [fine("logout", f"ends nothing (systemd {systemd})")]


def _loginctl(box: Box, *command: str) -> dict[str, str]:
    return dict(re.findall(r"(?m)^(\w+)=(.*)$", box.ask("loginctl", *command)[1]))


def _kill_user_processes(box: Box) -> Iterator[Finding]:
    logind = _loginctl(box, "show-session")
    only = set(logind.get("KillOnlyUsers", "").split())
    spared = box.user in logind.get("KillExcludeUsers", "root").split()
    if logind.get("KillUserProcesses") != "yes" or spared or (only and box.user not in only):
        return
    fix = (
        "sudo mkdir -p /etc/systemd/logind.conf.d"
        " && printf '[Login]\\nKillUserProcesses=no\\n' | sudo tee /etc/systemd/logind.conf.d/comborun.conf"
        " && sudo systemctl restart systemd-logind"
    )
    yield error("logout", "KillUserProcesses=yes", "every session is ended when you log out", fix)


def _user_manager(box: Box) -> Iterator[Finding]:
    """Whether sessions run below user@UID.service: they end with it on the last log-out, unless the user lingers."""
    processes = ("self", *(str(pid) for pid, _ in _servers()))
    groups = [line for pid in processes for line in box.read(f"/proc/{pid}/cgroup").splitlines()]
    below = [group for group in groups if group.startswith("0::") and "/user@" in group]
    if below and _loginctl(box, "show-user", str(box.uid)).get("Linger") != "yes":
        cost = "when your last login ends, systemd ends your user manager and every session with it"
        found = f"sessions run below {below[-1][3:]}, and lingering is off"
        yield error("logout", found, cost, "loginctl enable-linger")


# Scripts


def files_named(box: Box) -> Iterator[Finding]:
    """Files that a grid names: those with Windows line ends, and missing ones."""
    named = [os.path.expanduser(name) for name in box.named]
    for path in filter(_has_windows_ends, named):
        cost = "bash reads the carriage return as part of the last word: options are not known, files not found"
        yield error("CRLF", f"{path} has Windows line ends", cost, f"sed -i 's/\\r$//' {shlex.quote(path)}")
    wanted = json.loads(box.grid) if box.grid else {}
    lacks = preflight.lacks(wanted) if wanted else []
    gone = tuple(f"{folder}/" for folder in preflight.workdirs(wanted) if not os.path.isdir(folder))
    for lack in lacks:
        yield error("grid", say(lack), "sessions that need it fail at once")
    missing = {os.path.basename(path) for lack in lacks for path in (lack.text("path"), *lack.texts("paths"))}
    for path in named:
        said = path.startswith(gone) or os.path.basename(path) in missing
        if not said and not os.path.exists(path):
            found, cost = f"the grid names {path}, which is not here", "a command that needs it fails at once"
            yield warning("files", found, cost, f"ls -l {shlex.quote(path)}")


def _has_windows_ends(path: str) -> bool:
    data = files.read_text(path, 1 << 24)
    return "\r\n" in data and "\0" not in data
