"""The doctor on what holds sessions: tmux and screen, logging out, start-up files, earlier runs. Pure."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import PurePosixPath

from comborun.amounts import several
from comborun.remote.doctor.finding import Facts, Finding, Level, integer, version

LONGEST_SOCKET = 107
"""bytes of a Unix socket's path"""
EXIT_EMPTY = (2, 7)
"""the first tmux that can keep a server without sessions"""
SLOW_START_MS = 1500
STALE_S = 3600


def multiplexers(facts: Facts) -> Iterator[Finding]:
    """One of tmux and screen has to work; trouble with the second one is no more than a note."""
    if facts.late("tmux"):
        yield Finding("tmux", Level.ERROR, "tmux does not answer", "no session can be opened or looked at", "tmux -V")
    elif facts.one("tmux"):
        yield from _tmux(facts)
    elif not facts.one("screen"):
        cost = "there is nothing to run sessions in"
        yield Finding("tmux", Level.ERROR, "neither tmux nor screen is there", cost, "sudo apt-get install tmux")
    if facts.one("screen"):
        yield from _screen(facts)


def _tmux(facts: Facts) -> Iterator[Finding]:
    text = facts.one("tmux")
    problems = [*_socket(facts), *_server(facts)]
    if version(text) and version(text) < EXIT_EMPTY:
        cost = "its server ends between two sessions, and refuses some that start at that moment"
        problems.append(Finding("tmux", Level.WARNING, f"{text} is older than 2.7", cost, "sudo apt-get install tmux"))
    yield from problems
    if not any(problem.level in {Level.ERROR, Level.WARNING} for problem in problems):
        running = "; our server runs" if facts.number("tmux_code") == 0 else ""
        yield Finding("tmux", Level.OK, text + running)


def _socket(facts: Facts) -> Iterator[Finding]:
    socket = facts.one("tmux_socket")
    length = len(socket.encode())
    if length > LONGEST_SOCKET:
        found = f"the socket's path has {length} bytes, and {LONGEST_SOCKET} is the most: {socket}"
        yield Finding("tmux", Level.ERROR, found, "no session can be opened", "export TMUX_TMPDIR=/tmp")
    owner, _, mode = facts.one("tmux_folder").partition(" ")
    folder = str(PurePosixPath(socket).parent)
    if owner and (owner != facts.one("uid") or not re.fullmatch(r"7[0-7]?0", mode)):
        found = f"{folder} belongs to user {owner} and has mode {mode}; tmux wants yours, and 700"
        fix = f"chmod 700 {shlex.quote(folder)}" if owner == facts.one("uid") else f"sudo rm -r {shlex.quote(folder)}"
        yield Finding("tmux", Level.ERROR, found, "tmux refuses to open sessions", fix)


def _server(facts: Facts) -> Iterator[Finding]:
    code, server = facts.number("tmux_code"), facts.one("tmux_server").split()
    pid, state = server if len(server) == 2 else ("", "")
    if code in {124, 137}:
        frozen = state in {"T", "t"}
        found = f"our tmux server {pid} {'is stopped' if frozen else 'does not answer'}".replace("  ", " ")
        looking = f"ps -ef | grep {shlex.quote(PurePosixPath(facts.one('tmux_socket')).name)}"
        ending = f"kill {pid}  # sessions go on without their windows" if pid else looking
        fix = f"kill -CONT {pid}" if frozen else ending
        yield Finding("tmux", Level.ERROR, found, "no session can be opened or looked at", fix)
    elif code and pid:
        found = f"our tmux server {pid} lives, and its socket {facts.one('tmux_socket')} is gone or another's"
        yield Finding("tmux", Level.WARNING, found, "its sessions go on, but can't be looked at", f"kill -USR1 {pid}")
    elif code and facts.one("tmux_socket_there"):
        found = f"{facts.one('tmux_socket')} is left from a server that is gone; the next session replaces it"
        yield Finding("tmux", Level.NOTE, found)


def _screen(facts: Facts) -> Iterator[Finding]:
    said, text = facts.one("screen_said"), facts.one("screen")
    usable = "socket" in said.lower() and "annot make directory" not in said and "must have mode" not in said
    if usable:
        yield Finding("screen", Level.OK, text)
        return
    alone = not facts.one("tmux")
    cost = "a folder of its own is used instead: ~/.comborun-screen or below XDG_RUNTIME_DIR"
    level = Level.WARNING if alone else Level.NOTE
    yield Finding(
        "screen",
        level,
        f"screen has no usable folder: {said[:120] or 'it says nothing'}",
        cost,
        "export SCREENDIR=~/.screen; mkdir -pm 700 ~/.screen",
    )


def runtime(facts: Facts) -> Iterator[Finding]:
    """XDG_RUNTIME_DIR is where screen's folder would go; it may be named and not be there."""
    folder = facts.one("runtime_dir")
    if folder and not facts.one("runtime_usable"):
        cost = "programs that keep sockets there fail, screen's folder among them"
        yield Finding(
            "runtime", Level.WARNING, f"XDG_RUNTIME_DIR is {folder}, which can't be used", cost, "unset XDG_RUNTIME_DIR"
        )


def logout(facts: Facts) -> Iterator[Finding]:
    if facts.late("logout"):
        cost = "it is not known whether logging out ends sessions"
        yield Finding("logout", Level.WARNING, "systemd does not answer", cost, "loginctl list-sessions")
        return
    if not facts.one("systemd"):
        yield Finding("logout", Level.OK, f"no systemd here (process 1 is {facts.one('pid1') or '?'}): it ends nothing")
        return
    findings = [*_kill_user_processes(facts), *_user_manager(facts)]
    yield from findings or [Finding("logout", Level.OK, f"ends nothing (systemd {facts.one('systemd_version')})")]
    if facts.one("oomd"):
        cost = "under memory pressure it ends a whole control group: all sessions of one tmux server at once"
        yield Finding("oomd", Level.NOTE, "systemd-oomd is running", cost, "oomctl  # shows what it watches")


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
    yield Finding(
        "logout",
        Level.ERROR,
        f"KillUserProcesses=yes{f' in {file}' if file else ''}",
        "every session is ended when you log out",
        "sudo mkdir -p /etc/systemd/logind.conf.d"
        " && printf '[Login]\\nKillUserProcesses=no\\n' | sudo tee /etc/systemd/logind.conf.d/comborun.conf"
        " && sudo systemctl restart systemd-logind",
    )


def _user_manager(facts: Facts) -> Iterator[Finding]:
    """What runs below user@UID.service ends with it: on the last log-out, unless the user lingers."""
    below = [group for key in ("cgroup", "tmux_cgroup") for group in facts.all(key) if "/user@" in group]
    if not below:
        return
    if facts.one("linger") != "yes":
        cost = "when your last login ends, systemd ends your user manager and every session with it"
        found = f"sessions run below {below[-1]}, and lingering is off"
        yield Finding("logout", Level.ERROR, found, cost, "loginctl enable-linger")
    elif (255,) <= version(facts.one("systemd_version")) < (256, 3):
        found = f"systemd {facts.one('systemd_version')} may end a user manager that lingers, and sessions run below it"
        cost = "every session ends at some log-out (fixed in 256.3)"
        yield Finding(
            "logout", Level.WARNING, found, cost, "combo launch from a plain ssh login, not from systemd-run --user"
        )


_WAYS = {"login": "bash -l", "interactive": "an interactive bash", "ssh": "bash started by ssh"}


def start_up(facts: Facts) -> Iterator[Finding]:
    fine = True
    for kind, way in _WAYS.items():
        code, _, rest = facts.one(f"shell_{kind}").partition(" ")
        took, _, said = rest.partition(" ")
        for finding in _start(way, integer(code), integer(took) or 0, said):
            fine = False
            yield finding
    if facts.late("shell"):
        cost = "logging in may hang, and everything that does"
        yield Finding("start-up", Level.WARNING, "the start-up files did not come to an end", cost, "bash -lxc true")
    elif fine and facts.one("shell_login"):
        yield Finding("start-up", Level.OK, "the start-up files are quiet and quick")


def _start(way: str, code: int | None, took: int, said: str) -> Iterator[Finding]:
    if code in {124, 137}:
        cost = "logging in hangs, and scp, rsync and git with it"
        yield Finding("start-up", Level.WARNING, f"{way} did not start within 5 s", cost, "bash -lxc true 2>&1 | tail")
    elif took > SLOW_START_MS:
        cost = "every login and every scp waits for it"
        yield Finding(
            "start-up", Level.NOTE, f"{way} takes {took / 1000:.1f} s to start", cost, "bash -lxc true 2>&1 | tail"
        )
    if said:
        level = Level.WARNING if way == _WAYS["ssh"] else Level.NOTE
        cost = "it corrupts what scp, rsync and git say; comborun itself is not disturbed"
        fix = "put [[ $- == *i* ]] || return  at the top of ~/.bashrc"
        yield Finding("start-up", level, f"{way} prints: {textwrap.shorten(said, 60, placeholder=' ...')}", cost, fix)


def earlier_runs(facts: Facts) -> Iterator[Finding]:
    if facts.late("runs"):
        yield Finding(
            "runs", Level.WARNING, "the runs below the root could not all be looked at", "they may be on a slow disk"
        )
    for run in facts.all("run_dead"):
        yield Finding(
            "runs",
            Level.WARNING,
            f"{PurePosixPath(run).name} has not ended, and its dispatcher is gone",
            "nothing of it will start any more",
            f"bash {shlex.quote(run)}/run_parallel.sh",
        )
    stale = [entry.partition(" ") for entry in facts.all("incoming")]
    old = [path for age, _, path in stale if (integer(age) or 0) > STALE_S]
    if old:
        fix = f"rm -r {shlex.join(old[:3])}"
        yield Finding(
            "runs",
            Level.NOTE,
            f"{several(len(old), 'launch')} that broke off left files below .incoming",
            "room on the disk",
            fix,
        )
    if live := facts.all("run_live"):
        names = ", ".join(PurePosixPath(run).name for run in live[:3])
        yield Finding(
            "runs",
            Level.NOTE,
            f"running: {names}{' ...' if len(live) > 3 else ''}",
            "their sessions share CPUs, memory and GPUs with new ones",
        )


def files(facts: Facts) -> Iterator[Finding]:
    """Scripts with Windows line ends, in runs and among the files that a grid names, and files that are not there."""
    for path in facts.all("crlf"):
        cost = "bash reads the carriage return as part of the last word: options are not known, files not found"
        yield Finding(
            "CRLF", Level.ERROR, f"{path} has Windows line ends", cost, f"sed -i 's/\\r$//' {shlex.quote(path)}"
        )
    for path in facts.all("absent"):
        cost = "a command that needs it fails at once"
        yield Finding(
            "files", Level.WARNING, f"the grid names {path}, which is not here", cost, f"ls -l {shlex.quote(path)}"
        )
