"""A host over the user's own ssh program, for what paramiko can't do (hardware keys, second factors, Kerberos).

There is one master connection (ControlMaster) and one held shell over it. The user's own master is used if there is
one, and never ended. Ours has its socket in our own folder; it ends ten minutes after its last use if connections are
kept, else with close(), and by itself a minute after we are gone.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from comborun.errors import HostError
from comborun.remote.ssh.config import NO_SSH, Address, Options, resolve, ssh_arguments
from comborun.remote.ssh.keeping import Kept, consent, kept, silent
from comborun.remote.ssh.known_hosts import still_known
from comborun.remote.ssh.shell import COMMAND, Exchange, ShellRequest, ShellTransport, fault
from comborun.remote.ssh.streams import StreamShell
from comborun.text import KIB

if TYPE_CHECKING:
    from comborun.remote.ssh.config import SshTarget

_CHATTER = re.compile(r"debug\d: |OpenSSH_|Authenticated to |Warning: Permanently added|Transferred: |Bytes per")
_HOST_KEY = re.compile("HOST IDENTIFICATION HAS CHANGED|Host key verification failed|host key is known for")
_ASKS = re.compile(r"(Server accepts key: |Next authentication method: (password|keyboard)).*\s*\Z")
"""the last that `ssh -v` says before it asks for a passphrase, a touch or a second factor"""
_SECOND_FACTOR = re.compile('using "(password|keyboard-interactive)"|partial success')
_PERSIST_S = 60.0
_PING_S = 5.0
"""seconds for the first answer over a master that was there; a .bashrc may be slow"""
_LOGIN_S = 30.0
_PERSON_S = 300.0
"""seconds that a user at the terminal may take for a second factor"""
_CONTROL_S = 5.0
_LONGEST_FOLDER = 60
"""characters: a socket's path may have about 100 bytes, and ssh temporarily adds 17"""


class OpensshTransport(ShellTransport):
    """The contract of SshTransport through `ssh`, which itself asks a user at the terminal."""

    def __init__(self, host: str, options: Options | None = None) -> None:
        super().__init__(host)
        self._options = options or Options()
        self._arguments = ssh_arguments(Address.parse(host), self._options.config)
        self._folder: Path | None = None
        """of a master that ends with this transport"""
        self._path = ""
        """of the master's socket"""
        self._login = ""
        """the file in which ssh says how a login goes on; empty without one that may ask"""

    @property
    def asking(self) -> bool:  # type: ignore[override]
        with contextlib.suppress(OSError):
            said = Path(self._login).read_text("utf-8", "replace") if self._login else ""
            return bool(_ASKS.search(said) or _SECOND_FACTOR.search(said))
        return False

    def open_shell(self) -> PipeShell:
        if not shutil.which("ssh"):
            raise HostError(NO_SSH, "install openssh-client")
        if self._options.keep_s and self._folder is None:
            return self._over_kept_master()
        self._path = f"{self._own_folder()}/m"
        if self._control("check") != 0:
            self._start_master()
        return self._over_master()

    def _own_folder(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="combo-ssh-"))
            if len(os.fsencode(self._folder)) > _LONGEST_FOLDER:
                self._folder.rmdir()
                self._folder = Path(tempfile.mkdtemp(prefix="combo-ssh-", dir="/tmp"))
        return self._folder

    def _over_master(self) -> PipeShell:
        # ssh logs in by itself if the master opens no further session
        options = [*self._control_options(), *self._login_options(), "-o", "ControlMaster=no"]
        return PipeShell(["ssh", "-T", "-q", *options, *self._arguments, COMMAND])

    def _over_kept_master(self) -> PipeShell:
        """Over the user's own master, a kept one, or a new one, which is kept."""
        target = resolve(self.host, self._options.config)
        self._path = target.control_path
        if self._path and self._control("check") == 0 and (shell := self._answering()):
            return shell
        try:
            place = kept("m", target)
        except HostError as error:
            self.warnings = (f"the connection to {self.host} is not kept: {error.message}",)
            self._path = f"{self._own_folder()}/m"
            self._start_master()
            return self._over_master()
        self._path = str(place.socket)
        if stamp := place.stamp:
            if place.may_be_used(target) and self._control("check") == 0:
                if shell := self._answering():
                    return shell
                self.warnings = (silent(self.host),)
            place.end(stamp)
        self._folder = Path(tempfile.mkdtemp(prefix="n", dir=place.socket.parent))  # a rename stays on its disk
        self._path = f"{self._folder}/m"
        said = self._start_master()
        if not _SECOND_FACTOR.search(said) or consent(self.host, self._options.confirm):
            self._keep(place, target, said)
        self._login = ""
        return self._over_master()

    def _keep(self, place: Kept, target: SshTarget, said: str) -> None:
        """Move the socket of the new master to the place where later commands look for it."""
        shown = re.findall(r"SHA256:\S+", "\n".join(line for line in said.splitlines() if "Server host" in line))
        keys = [one.rstrip(",") for one in shown]
        with place.locked():
            place.write(self.host, keys if keys and still_known(target, keys) else [])
            try:
                Path(self._path).replace(place.socket)
            except FileNotFoundError:
                place.record.unlink()
                raise HostError(
                    f"{self.host} closed the connection after the login", "the next try connects again"
                ) from None
        self._path = str(place.socket)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _answering(self) -> PipeShell | None:
        """A shell over a master that was there, or None if nothing comes back: the link may have been cut meanwhile."""
        shell = self._over_master()
        try:
            Exchange(shell, ShellRequest(":", (), b"", _PING_S, KIB), self.host, _PING_S).finish()
        except BaseException as error:
            shell.close()
            if isinstance(error, HostError | OSError):
                return None
            raise
        return shell

    def _start_master(self) -> str:
        """Log in; returns what ssh said about it."""
        seconds = _PERSON_S
        if self._options.ask is None:
            target = resolve(self.host, self._options.config)
            seconds = target.connect_timeout * (1 + len(target.jumps)) + _LOGIN_S
        command = ["ssh", "-v", "-M", "-N", "-f", *self._control_options(), *self._login_options()]
        path = Path(self._path).with_name("said")
        self._login = str(path) if self._options.ask else ""
        with path.open("w+b") as said:
            try:
                done = subprocess.run(
                    [*command, *self._arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,  # a file, because the master keeps it open, and the reader of a pipe would wait
                    timeout=seconds,
                    start_new_session=self._options.ask is None,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                message = f"{self.host} did not let us in within {seconds:g} s"
                raise HostError(message, _without_chatter(_read(said))) from None
            if done.returncode:
                raise what_ssh_said(self.host, _read(said))
            return _read(said)

    def _control_options(self) -> list[str]:
        return ["-o", f"ControlPath={self._path}", "-o", "RemoteCommand=none", "-o", "RequestTTY=no"]

    def _login_options(self) -> list[str]:
        """Options for a login. The user's own StrictHostKeyChecking is not used: it may accept any host."""
        ask = self._options.ask is not None
        strict = "accept-new" if self._options.accept_new else "ask" if ask else "yes"
        connect_s = math.ceil(resolve(self.host, self._options.config).connect_timeout)
        settings = {
            "ControlPersist": f"{max(self._options.keep_s, _PERSIST_S):.0f}",
            "BatchMode": "no" if ask else "yes",
            "StrictHostKeyChecking": strict,
            "ConnectTimeout": str(connect_s),  # else a link that is back is not tried again for a minute
            "ServerAliveInterval": "10",
            "ServerAliveCountMax": "3",
        }
        return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]

    def _control(self, verb: str) -> int:
        """Send a command to the master; not 0 without a master."""
        command = ["ssh", "-O", verb, *self._control_options(), *self._arguments]
        try:
            return subprocess.run(command, capture_output=True, timeout=_CONTROL_S, check=False).returncode
        except (OSError, subprocess.TimeoutExpired):
            return 1

    def disconnect(self) -> None:
        if self._folder:
            self._control("exit")
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


class PipeShell(StreamShell):
    def __init__(self, command: list[str]) -> None:
        process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdin
        assert process.stdout
        assert process.stderr
        super().__init__(process.stdin.fileno(), process.stdout.fileno(), process.stderr.fileno())
        self._process = process

    @property
    def ended(self) -> bool:
        return super().ended or self._process.poll() is not None

    def interrupt(self) -> None:
        self._process.kill()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                if stream:
                    stream.close()


def what_ssh_said(host: str, said: str) -> HostError:
    """The message of `ssh -v` as an error with a hint; for a host key, with its fingerprint."""
    complaint = _without_chatter(said)
    message, hint = fault(complaint, host) or (f"ssh could not connect to {host}", f"check with  ssh {host} true")
    shown = re.findall(r"Server host key: (\S+ SHA256:\S+)", said) if _HOST_KEY.search(complaint) else []
    return HostError("\n  ".join([message, *shown[-1:], complaint]), hint)


def _without_chatter(said: str) -> str:
    told = (line.strip() for line in said.splitlines() if not _CHATTER.match(line))
    return "\n  ".join(filter(None, told))


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(1 << 16).decode("utf-8", "replace")
