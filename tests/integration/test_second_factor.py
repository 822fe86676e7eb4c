"""A host that asks for a code after the key, as those of many institutes do: a real sshd with PAM."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from box import until
from sshd import Sshd, User

from comborun.errors import HostError
from comborun.monitor.fleet import PATIENCE_S
from comborun.remote.ssh.keeping import all_kept
from comborun.remote.ssh.kept import KeptTransport

if TYPE_CHECKING:
    from collections.abc import Iterator

    from desk import Desk

CODE = "314159"
LINES = (
    "UsePAM yes",
    "KbdInteractiveAuthentication yes",
    "AuthenticationMethods publickey,keyboard-interactive",
)
STACK = """\
auth required pam_exec.so quiet expose_authtok {check}
auth required pam_permit.so
account required pam_permit.so
session required pam_permit.so
"""
CHECK = f"""\
#!/bin/bash
read -r -d '' code
[[ $code == {CODE} ]]
"""
BIND = 'mount --bind "$1" /etc/pam.d/sshd && shift && exec "$@"'

pytestmark = [
    pytest.mark.usefixtures("place"),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
    pytest.mark.skipif(not Path("/etc/pam.d/sshd").exists(), reason="sshd has no PAM here"),
]


@pytest.fixture
def guarded(ssh_place: Path, ssh_user: User) -> Iterator[Sshd]:
    """An sshd that sees a PAM stack of its own: the key first, then a code."""
    place = Path(tempfile.mkdtemp(dir=ssh_place))
    place.chmod(0o755)
    check, stack = place / "check", place / "stack"
    check.write_text(CHECK)
    check.chmod(0o755)
    stack.write_text(STACK.format(check=check))
    around = ("unshare", "--mount", "--propagation", "private", "bash", "-c", BIND, "bash", str(stack))
    if subprocess.run([*around, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    server = Sshd(place, ssh_user, LINES, around=around)
    yield server
    server.stop_all()


@pytest.fixture
def terminal(desk: Desk, guarded: Sshd, tmp_path: Path) -> Iterator[Terminal]:
    shown = Terminal(desk, guarded, tmp_path)
    yield shown
    shown.tmux("kill-server")


def logins(server: Sshd) -> list[str]:
    """One for each code that was right."""
    return re.findall("Accepted keyboard", server.log.read_text())


class Terminal:
    """A shell in a tmux of its own, where commands are typed."""

    def __init__(self, desk: Desk, server: Sshd, folder: Path) -> None:
        self._words = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        kept = {name: os.environ[name] for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME")}
        variables = {**desk.environment, **kept, "COMBORUN_SSH_CONFIG": str(server.config), "PS1": "$ "}
        size = ["-x", "120", "-y", "40"]
        command = ["new-session", "-d", *size, "bash --norc --noprofile"]
        subprocess.run([*self._words, *command], env=variables, cwd=desk.home, check=True)

    def tmux(self, *words: str) -> str:
        return subprocess.run([*self._words, *words], capture_output=True, text=True, check=False).stdout

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def combo(self, *words: str) -> None:
        self.tmux("send-keys", "C-l")
        until(lambda: "ended=" not in self.screen(), "the screen is cleared")
        self.type(shlex.join([sys.executable, "-m", "comborun", *words]) + "; echo ended=$?")

    def wait_for(self, text: str) -> str:
        until(lambda: text in self.screen(), lambda: f"{text!r} is shown, not\n{self.screen()}")
        return self.screen()

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-J").rstrip()


RUNS = ("runs", "--host", "testbox", "--transport", "openssh")
KEEP = "Keep this login to testbox open"


def test_keeping_is_asked_for_once_and_then_remembered(terminal: Terminal, guarded: Sshd) -> None:
    terminal.combo(*RUNS)
    terminal.wait_for("Password:")
    terminal.type("not it")
    until(lambda: terminal.screen().count("Password:") == 2, "it is asked again")
    time.sleep(PATIENCE_S + 1)
    assert terminal.screen().count("Password:") == 2
    assert "no answer yet" not in terminal.screen(), "nothing is drawn over a question"
    terminal.type(CODE)
    terminal.wait_for(KEEP)
    terminal.type("y")
    terminal.wait_for("ended=0")

    terminal.combo(*RUNS)
    assert "Password" not in terminal.wait_for("ended=0")
    assert len(logins(guarded)) == 1

    terminal.combo("disconnect")
    assert "disconnected from testbox" in terminal.wait_for("ended=0")
    terminal.combo(*RUNS)
    terminal.wait_for("Password:")
    terminal.type(CODE)
    assert KEEP not in terminal.wait_for("ended=0"), "the answer is remembered"
    terminal.combo(*RUNS)
    assert "Password" not in terminal.wait_for("ended=0")
    assert len(logins(guarded)) == 2


def test_who_says_no_gives_the_code_each_time_and_is_not_asked_again(terminal: Terminal, guarded: Sshd) -> None:
    terminal.combo(*RUNS)
    terminal.wait_for("Password:")
    terminal.type(CODE)
    terminal.wait_for(KEEP)
    terminal.type("n")
    terminal.wait_for("ended=0")
    terminal.combo(*RUNS)
    terminal.wait_for("Password:")
    terminal.type(CODE)
    assert KEEP not in terminal.wait_for("ended=0")
    assert len(logins(guarded)) == 2


def test_a_connection_that_ends_during_the_question_is_an_error_of_the_host(terminal: Terminal, guarded: Sshd) -> None:
    terminal.combo(*RUNS)
    terminal.wait_for("Password:")
    terminal.type(CODE)
    terminal.wait_for(KEEP)
    guarded.stop_all()
    time.sleep(1)
    terminal.type("y")
    shown = terminal.wait_for("ended=3")
    assert "closed the connection" in shown
    assert all_kept() == []


def test_paramiko_says_which_transport_can_give_it(guarded: Sshd) -> None:
    with (
        KeptTransport(guarded.alias, guarded.options(keep_s=60.0)) as transport,
        pytest.raises(HostError, match="second factor: keyboard-interactive") as caught,
    ):
        transport.run("true")
    assert "--transport openssh" in caught.value.hint
