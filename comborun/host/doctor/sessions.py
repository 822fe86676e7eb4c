"""What holds sessions: tmux and screen, logging out, scripts."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterator

from comborun.host.doctor import preflight
from comborun.host.doctor.machine import Box, hangs
from comborun.host.engines.multiplexers import MULTIPLEXERS
from comborun.host.system import files, process
from comborun.host.system.process import owner
from comborun.rules.findings import Finding, Found, Level, error, fine, warning

_NO_SERVER = ("no server running", "No such file", "Connection refused")
"""tmux's words where nothing is wrong: a server starts with the first session"""


# tmux and screen


def multiplexers(box: Box) -> Iterator[Finding]:
    """Checks the multiplexer that a run would choose; one of them is needed."""
    kind = next(filter(box.has, MULTIPLEXERS), "")
    if kind == "tmux":
        yield from _tmux(box)
    elif kind:
        said = box.ask(kind, MULTIPLEXERS[kind].version)[1]
        yield fine("tmux", Found.OTHER_MULTIPLEXER, multiplexer=kind, version=said)
    else:
        yield error("tmux", Found.NO_MULTIPLEXER, multiplexers=list(MULTIPLEXERS))


def _tmux(box: Box) -> Iterator[Finding]:
    """Whether our own server answers, and if not, why."""
    text = box.ask("tmux", "-V")[1]
    name = os.environ.get("COMBORUN_TMUX_SOCKET") or "comborun"
    code, said = box.ask("tmux", "-L", name, "list-sessions")
    ours = (pid for pid, words in _servers() if ("-L", name) in zip(words, words[1:]))
    problems = [*server(code, said, next(filter(process.look, ours), 0))]
    yield from problems or [fine("tmux", Found.TMUX, version=text, runs=code == 0)]


def _servers() -> Iterator[tuple[int, list[str]]]:
    """This user's tmux servers: pid and words."""
    for comm in glob.glob("/proc/[0-9]*/comm"):
        folder = os.path.dirname(comm)
        if files.read_line(comm) == "tmux: server" and owner(folder) == owner("/proc/self"):
            yield int(os.path.basename(folder)), files.read_text(f"{folder}/cmdline").split("\0")


def server(code: int, said: str, pid: int) -> Iterator[Finding]:
    """The state of a server. `code`, `said`: the answer of list-sessions; `pid`: of the process with our socket."""
    if hangs(code):
        seen = process.look(pid)
        if seen and seen.state in "Tt":
            yield error("tmux", Found.SERVER_STOPPED, pid=pid)
        else:
            yield error("tmux", Found.SERVER_SILENT, pid=pid) if pid else error("tmux", Found.TMUX_HANGS)
    elif code and pid:
        yield warning("tmux", Found.SERVER_WITHOUT_SOCKET, pid=pid)
    elif code and not any(absent in said for absent in _NO_SERVER):
        yield error("tmux", Found.TMUX_FAILS, said=said)


# Logging out


def logout(box: Box) -> Iterator[Finding]:
    """Whether logging out would end sessions, by the running logind and its files."""
    if not box.find("/run/systemd/system"):
        yield fine("logout", Found.NO_SYSTEMD, first=box.read("/proc/1/comm").strip() or "?")
        return
    code, said = box.ask("systemctl", "--version")
    if hangs(code):
        yield warning("logout", Found.SYSTEMD_HANGS)
        return
    found = re.search(r"systemd\s([0-9]+)\S*(?:\s\(([^)]*)\))?", said)
    systemd = (found[2] or found[1]) if found else ""
    findings = [*_kill_user_processes(box), *_user_manager(box)]
    yield from findings or [fine("logout", Found.LOGOUT_HARMLESS, systemd=systemd)]


def _loginctl(box: Box, *command: str) -> dict[str, str]:
    return dict(re.findall(r"(?m)^(\w+)=(.*)$", box.ask("loginctl", *command)[1]))


def _kill_user_processes(box: Box) -> Iterator[Finding]:
    logind = _loginctl(box, "show-session")
    only = set(logind.get("KillOnlyUsers", "").split())
    spared = box.user in logind.get("KillExcludeUsers", "root").split()
    if logind.get("KillUserProcesses") == "yes" and not spared and (not only or box.user in only):
        yield error("logout", Found.KILL_USER_PROCESSES)


def _user_manager(box: Box) -> Iterator[Finding]:
    """Whether sessions run below user@UID.service: they end with it on the last log-out, unless the user lingers."""
    processes = ("self", *(str(pid) for pid, _ in _servers()))
    groups = [line for pid in processes for line in box.read(f"/proc/{pid}/cgroup").splitlines()]
    below = [group for group in groups if group.startswith("0::") and "/user@" in group]
    if below and _loginctl(box, "show-user", str(box.uid)).get("Linger") != "yes":
        yield error("logout", Found.NO_LINGERING, group=below[-1][3:])


# Scripts


def files_named(box: Box) -> Iterator[Finding]:
    """Files that a grid names: those with Windows line ends, and missing ones."""
    named = [os.path.expanduser(name) for name in box.named]
    for path in filter(_has_windows_ends, named):
        yield error("CRLF", Found.WINDOWS_LINE_ENDS, path=path)
    wanted = json.loads(box.grid) if box.grid else {}
    lacks = preflight.lacks(wanted) if wanted else []
    gone = tuple(f"{folder}/" for folder in preflight.workdirs(wanted) if not os.path.isdir(folder))
    for lack in lacks:
        yield Finding("grid", Level.ERROR, lack)
    missing = {os.path.basename(path) for lack in lacks for path in (lack.text("path"), *lack.texts("paths"))}
    for path in named:
        said = path.startswith(gone) or os.path.basename(path) in missing
        if not said and not os.path.exists(path):
            yield warning("files", Found.NAMED_FILE_MISSING, path=path)


def _has_windows_ends(path: str) -> bool:
    data = files.read_text(path, 1 << 24)
    return "\r\n" in data and "\0" not in data
