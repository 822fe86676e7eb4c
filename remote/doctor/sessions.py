"""What holds sessions: tmux and screen, logging out, start-up files, earlier runs, leases, scripts. Pure."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import PurePosixPath

from comborun.remote.doctor.finding import Facts, Finding, Level, error, fine, integer, note, version, warning
from comborun.remote.doctor.machine import hangs
from comborun.text import several

_LONGEST_SOCKET = 107
"""bytes of a Unix socket's path"""
_STALE_S = 3600
_NO_VIEW = "no session can be opened or looked at"


def multiplexers(facts: Facts) -> Iterator[Finding]:
    """One of tmux and screen has to work; trouble with the second one is no more than a note."""
    if facts.late("tmux"):
        yield error("tmux", "tmux does not answer", _NO_VIEW, "tmux -V")
    elif facts.one("tmux"):
        yield from _tmux(facts)
    elif not facts.one("screen"):
        found, cost = "neither tmux nor screen is there", "there is nothing to run sessions in"
        yield error("tmux", found, cost, "sudo apt-get install tmux")
    if facts.one("screen"):
        yield _screen(facts)


def _tmux(facts: Facts) -> Iterator[Finding]:
    text = facts.one("tmux")
    problems = [*_socket(facts), *_server(facts)]
    if version(text) and version(text) < (2, 7):
        cost = "its server ends between two sessions, and refuses some that start at that moment"
        problems.append(warning("tmux", f"{text} is older than 2.7", cost, "sudo apt-get install tmux"))
    yield from problems
    if all(problem.level is Level.NOTE for problem in problems):
        yield fine("tmux", text + ("; our server runs" if facts.number("tmux_code") == 0 else ""))


def _socket(facts: Facts) -> Iterator[Finding]:
    socket, uid = facts.one("tmux_socket"), facts.one("uid")
    length = len(socket.encode())
    if length > _LONGEST_SOCKET:
        found = f"the socket's path has {length} bytes, and {_LONGEST_SOCKET} is the most: {socket}"
        yield error("tmux", found, "no session can be opened", "export TMUX_TMPDIR=/tmp")
    owner, _, mode = facts.one("tmux_folder").partition(" ")
    folder = str(PurePosixPath(socket).parent)
    if owner and (owner != uid or not re.fullmatch(r"7[0-7]?0", mode)):
        found = f"{folder} belongs to user {owner} and has mode {mode}; tmux wants yours, and 700"
        act = "chmod 700" if owner == uid else "sudo rm -r"
        yield error("tmux", found, "tmux refuses to open sessions", f"{act} {shlex.quote(folder)}")


def _server(facts: Facts) -> Iterator[Finding]:
    code, socket = facts.number("tmux_code"), facts.one("tmux_socket")
    pid, state = (*facts.one("tmux_server").split(), "", "")[:2]
    if hangs(code):
        if state in {"T", "t"}:
            found, fix = f"our tmux server {pid} is stopped", f"kill -CONT {pid}"
        elif pid:
            found, fix = f"our tmux server {pid} does not answer", f"kill {pid}  # sessions go on without their windows"
        else:
            looking = f"ps -ef | grep {shlex.quote(PurePosixPath(socket).name)}"
            found, fix = "our tmux server does not answer", looking
        yield error("tmux", found, _NO_VIEW, fix)
    elif code and pid:
        found = f"our tmux server {pid} lives, and its socket {socket} is gone or another's"
        yield warning("tmux", found, "its sessions go on, but can't be looked at", f"kill -USR1 {pid}")
    elif code and facts.one("tmux_socket_there"):
        yield note("tmux", f"{socket} is left from a server that is gone; the next session replaces it", "")


def _screen(facts: Facts) -> Finding:
    said = facts.one("screen_said")
    if "socket" in said.lower() and "annot make directory" not in said and "must have mode" not in said:
        return fine("screen", facts.one("screen"))
    found = f"screen has no usable folder: {said[:120] or 'it says nothing'}"
    cost = "a folder of its own is used instead: ~/.comborun-screen or below XDG_RUNTIME_DIR"
    level = Level.NOTE if facts.one("tmux") else Level.WARNING
    return Finding("screen", level, found, cost, "export SCREENDIR=~/.screen; mkdir -pm 700 ~/.screen")


def runtime(facts: Facts) -> Iterator[Finding]:
    """XDG_RUNTIME_DIR is where screen's folder would go; it may be named and not be there."""
    folder = facts.one("runtime_dir")
    if folder and not facts.one("runtime_usable"):
        cost = "programs that keep sockets there fail, screen's folder among them"
        yield warning("runtime", f"XDG_RUNTIME_DIR is {folder}, which can't be used", cost, "unset XDG_RUNTIME_DIR")


def logout(facts: Facts) -> Iterator[Finding]:
    if facts.late("logout"):
        cost = "it is not known whether logging out ends sessions"
        yield warning("logout", "systemd does not answer", cost, "loginctl list-sessions")
        return
    if not facts.one("systemd"):
        yield fine("logout", f"no systemd here (process 1 is {facts.one('pid1') or '?'}): it ends nothing")
        return
    findings = [*_kill_user_processes(facts), *_user_manager(facts)]
    yield from findings or [fine("logout", f"ends nothing (systemd {facts.one('systemd_version')})")]
    if facts.one("oomd"):
        cost = "under memory pressure it ends a whole control group: all sessions of one tmux server at once"
        yield note("oomd", "systemd-oomd is running", cost, "oomctl  # shows what it watches")


def _kill_user_processes(facts: Facts) -> Iterator[Finding]:
    assigned: dict[str, tuple[str, str]] = {}
    for line in facts.all("logind"):
        file, _, setting = line.partition(" ")
        key, _, value = setting.partition("=")
        assigned[key] = value.strip(), file
    value, file = assigned.get("KillUserProcesses", ("no", ""))
    value = facts.one("kill_now") or value
    user = {facts.one("user"), facts.one("uid")} | ({"root"} if facts.one("uid") == "0" else set())
    spared = user & set(assigned.get("KillExcludeUsers", ("root", ""))[0].split())
    only = set(assigned.get("KillOnlyUsers", ("", ""))[0].split())
    if value.lower() not in {"yes", "1", "true", "on"} or spared or (only and not user & only):
        return
    fix = (
        "sudo mkdir -p /etc/systemd/logind.conf.d"
        " && printf '[Login]\\nKillUserProcesses=no\\n' | sudo tee /etc/systemd/logind.conf.d/comborun.conf"
        " && sudo systemctl restart systemd-logind"
    )
    found = f"KillUserProcesses=yes{f' in {file}' if file else ''}"
    yield error("logout", found, "every session is ended when you log out", fix)


def _user_manager(facts: Facts) -> Iterator[Finding]:
    """What runs below user@UID.service ends with it: on the last log-out, unless the user lingers."""
    below = [group for key in ("cgroup", "tmux_cgroup") for group in facts.all(key) if "/user@" in group]
    systemd = facts.one("systemd_version")
    if below and facts.one("linger") != "yes":
        cost = "when your last login ends, systemd ends your user manager and every session with it"
        found = f"sessions run below {below[-1]}, and lingering is off"
        yield error("logout", found, cost, "loginctl enable-linger")
    elif below and (255,) <= version(systemd) < (256, 3):
        found = f"systemd {systemd} may end a user manager that lingers, and sessions run below it"
        cost = "every session ends at some log-out (fixed in 256.3)"
        yield warning("logout", found, cost, "combo launch from a plain ssh login, not from systemd-run --user")


_WAYS = {"login": "bash -l", "interactive": "an interactive bash", "ssh": "bash started by ssh"}


def start_up(facts: Facts) -> Iterator[Finding]:
    findings = [finding for kind in _WAYS for finding in _start(kind, facts.one(f"shell_{kind}"))]
    yield from findings
    if facts.late("shell"):
        found, cost = "the start-up files did not come to an end", "logging in may hang, and everything that does"
        yield warning("start-up", found, cost, "bash -lxc true")
    elif not findings and facts.one("shell_login"):
        yield fine("start-up", "the start-up files are quiet and quick")


def _start(kind: str, told: str) -> Iterator[Finding]:
    """`told` is exit code, milliseconds, and the first line that was printed."""
    way, (code, took, said) = _WAYS[kind], (*told.split(" ", 2), "", "", "")[:3]
    show = "bash -lxc true 2>&1 | tail"
    if hangs(integer(code)):
        cost = "logging in hangs, and scp, rsync and git with it"
        yield warning("start-up", f"{way} did not start within 5 s", cost, show)
    elif (ms := integer(took) or 0) > 1500:
        yield note(
            "start-up", f"{way} takes {ms / 1000:.1f} s to start", "every login and every scp waits for it", show
        )
    if said:
        level = Level.WARNING if kind == "ssh" else Level.NOTE
        found = f"{way} prints: {textwrap.shorten(said, 60, placeholder=' ...')}"
        cost = "it corrupts what scp, rsync and git say; comborun itself is not disturbed"
        yield Finding("start-up", level, found, cost, "put [[ $- == *i* ]] || return  at the top of ~/.bashrc")


def earlier_runs(facts: Facts) -> Iterator[Finding]:
    if facts.late("runs"):
        yield warning("runs", "the runs below the root could not all be looked at", "they may be on a slow disk")
    for run in facts.all("run_dead"):
        found = f"{PurePosixPath(run).name} has not ended, and its dispatcher is gone"
        yield warning("runs", found, "nothing of it will start any more", f"bash {shlex.quote(run)}/run_parallel.sh")
    incoming = (entry.partition(" ") for entry in facts.all("incoming"))
    if old := [path for age, _, path in incoming if (integer(age) or 0) > _STALE_S]:
        found = f"{several(len(old), 'launch', 'launches')} that broke off left files below .incoming"
        yield note("runs", found, "room on the disk", f"rm -r {shlex.join(old[:3])}")
    if live := [PurePosixPath(run).name for run in facts.all("run_live")]:
        found = f"running: {', '.join(live[:3])}{' ...' if len(live) > 3 else ''}"
        yield note("runs", found, "their sessions share CPUs, memory and GPUs with new ones")


def leases(facts: Facts) -> Iterator[Finding]:
    """Which runs, of which users, have promised what of this host; and whether our own folder for that can be used.

    A lease is told as `user run driven who gpus mib alone cores memory tokens since`; - is nothing.
    """
    yield from _own_leases(facts)
    rows = [row for line in facts.all("lease") if len(row := line.split()) == 11]
    rows = sorted(row for row in rows if all(row[place].isdecimal() for place in (2, 5, 6, 7, 8)))
    for (user, run, driven), promised in groupby(rows, key=lambda row: row[:3]):
        parts = _promised(list(promised))
        dead = "" if driven == "1" else "; its dispatcher is gone"
        cost = "what it was promised is promised to no other run of that user"
        yield note("leases", f"{run} of {user} has {', '.join(parts)}{dead}", cost)


def _own_leases(facts: Facts) -> Iterator[Finding]:
    owner, mode, folder = (*facts.one("lease_own").split(" ", 2), "", "", "")[:3]
    ours = owner == facts.one("uid")
    if not owner or (ours and re.fullmatch(r"[0-7]?[0-7][0145][0145]", mode)):
        return
    found = f"others may write in {folder} (mode {mode})" if ours else f"{folder} belongs to user {owner}"
    fix = f"chmod 755 {folder}" if ours else "export COMBORUN_LEASES=~/.comborun-leases"
    yield error("leases", found, "no session that asks for GPUs, cores, memory or tokens starts", fix)


def _promised(rows: list[list[str]]) -> Iterator[str]:
    """Sessions, GPUs, cores, memory, tokens of one run."""
    yield several(len(rows), "session")
    held = [(set(row[4].split(",")) - {"-"}, int(row[5]), row[6] != "0") for row in rows]
    for gpu in sorted({gpu for gpus, _, _ in held for gpu in gpus if gpu.isdecimal()}, key=int):
        there = [(mib, alone) for gpus, mib, alone in held if gpu in gpus]
        mib = sum(mib for mib, _ in there)
        yield f"GPU {gpu}" + (" alone" if any(alone for _, alone in there) else f" {mib} MiB" if mib else "")
    if cores := sum(int(row[7]) for row in rows):
        yield several(cores, "core")
    if memory := sum(int(row[8]) for row in rows):
        yield f"{memory} MiB of memory"
    yield from sorted({token for row in rows for token in row[9].split(",")} - {"-"})


def files(facts: Facts) -> Iterator[Finding]:
    """Scripts with Windows line ends, in runs and among the files that a grid names, and files that are not there."""
    for path in facts.all("crlf"):
        cost = "bash reads the carriage return as part of the last word: options are not known, files not found"
        yield error("CRLF", f"{path} has Windows line ends", cost, f"sed -i 's/\\r$//' {shlex.quote(path)}")
    for line in facts.all("lacks"):
        yield error("grid", line, "sessions that need it fail at once")
    told = " ".join(facts.all("lacks"))
    for path in (path for path in facts.all("absent") if PurePosixPath(path).name not in told):
        found, cost = f"the grid names {path}, which is not here", "a command that needs it fails at once"
        yield warning("files", found, cost, f"ls -l {shlex.quote(path)}")
