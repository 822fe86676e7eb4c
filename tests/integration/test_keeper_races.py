"""Keepers that end while commands come, and that take each other's place."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from box import until
from sshd import Sshd, logins

from comborun.remote.ssh.config import Options, resolve
from comborun.remote.ssh.keeping import Kept, all_kept, kept
from comborun.remote.ssh.kept import KeptTransport, borrowed
from comborun.remote.ssh.openssh import OpensshTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Halting = Callable[[str], contextlib.AbstractContextManager["Halted"]]

pytestmark = pytest.mark.usefixtures("place")

_HALTS = """
import os, sys, threading, time

where, there = os.environ.get("HALT_AT", "").split(), os.environ.get("HALT_FILE")

def halt(frame, event, argument):
    if event == "call" and frame.f_code.co_qualname == where[-1] and not os.path.exists(there):
        callers = []
        while frame:
            callers.append(frame.f_code.co_qualname)
            frame = frame.f_back
        if where[0] in callers:
            open(there, "w").close()
            end = time.monotonic() + 120  # its test may be killed
            while not os.path.exists(there + ".go") and time.monotonic() < end:
                time.sleep(0.01)

if where and "comborun.remote.ssh.keeper" in sys.orig_argv:
    sys.settrace(halt)
    threading.settrace(halt)
"""
"""sitecustomize.py of a keeper that stops at its first call of HALT_AT, `[CALLER ]FUNCTION`, until it is let go"""


class Halted:
    """Where a keeper stops."""

    def __init__(self, folder: Path) -> None:
        self._there = folder / "there"

    def wait(self) -> None:
        until(self._there.exists, "the keeper comes to where it halts")

    def go(self) -> None:
        self._there.with_name("there.go").touch()


@pytest.fixture
def halting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Halting:
    """Keepers that are started within `with halting(FUNCTION)` halt there once."""

    @contextlib.contextmanager
    def at(function: str) -> Iterator[Halted]:
        (tmp_path / "sitecustomize.py").write_text(_HALTS)
        with monkeypatch.context() as changed:
            for name, value in {"PYTHONPATH": tmp_path, "HALT_AT": function, "HALT_FILE": tmp_path / "there"}.items():
                changed.setenv(name, str(value))
            yield Halted(tmp_path)

    return at


@contextlib.contextmanager
def frozen(server: Sshd) -> Iterator[None]:
    """The connections that there are get no answer; later ones do."""
    pids = [pid for pid in server.serving() if server.process and pid != server.process.pid]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def start(server: Sshd) -> None:
    """Start a keeper, whether there is one or not."""
    transport = KeptTransport(server.alias, server.options(keep_s=60.0))
    transport._start(resolve(server.alias, server.config), place_of(server))


def place_of(server: Sshd) -> Kept:
    return kept("k", resolve(server.alias, server.config))


def answer(server: Sshd, keep_s: float = 60.0) -> str:
    with KeptTransport(server.alias, server.options(keep_s=keep_s)) as transport:
        return transport.run("echo hi").text


def later(function: Callable[..., Any], *arguments: object) -> Future[Any]:
    pool = ThreadPoolExecutor(1)
    future = pool.submit(function, *arguments)
    pool.shutdown(wait=False)
    return future


def test_a_client_that_was_just_accepted_keeps_its_keeper(own_sshd: Callable[..., Sshd], halting: Halting) -> None:
    server = own_sshd()
    with halting("Keeper._answer") as halted:
        first = later(answer, server, 0.1)
        halted.wait()
    time.sleep(5)  # longer than a keeper without clients waits before it looks whether it is over
    halted.go()
    assert first.result(20) == "hi\n"
    assert logins(server) == 1


def test_a_client_that_waits_while_its_keeper_ends_is_served(own_sshd: Callable[..., Sshd], halting: Halting) -> None:
    server = own_sshd()
    with halting("Keeper._step_aside") as halted:
        answer(server, 0.1)
        halted.wait()
    waiting = later(answer, server)
    time.sleep(0.5)
    halted.go()
    assert waiting.result(20) == "hi\n"
    assert logins(server) == 1


def test_a_keeper_that_ends_leaves_a_newer_one_alone(own_sshd: Callable[..., Sshd], halting: Halting) -> None:
    """It has seen that the place is its own, and then another keeper takes it."""
    server = own_sshd()
    with halting("Keeper._step_aside Path.unlink") as halted:
        answer(server, 0.1)
        halted.wait()
    newer = later(start, server)
    with contextlib.suppress(TimeoutError):
        newer.result(3)
    halted.go()
    newer.result(20)
    time.sleep(0.5)
    assert [place.host for place in all_kept()] == [server.alias]
    assert answer(server) == "hi\n"
    assert logins(server) == 2


def test_a_client_is_not_dropped_by_what_another_one_has_found(own_sshd: Callable[..., Sshd], halting: Halting) -> None:
    """Two clients while the host gives no answer: the keeper ends after the second one, not after the first."""
    server = own_sshd()
    place = place_of(server)
    with halting("Keeper._answer") as halted:
        start(server)
    second = later(borrowed, place)
    halted.wait()
    with frozen(server):
        with pytest.raises(OSError, match="Timeout"):
            borrowed(place)
        time.sleep(3)
    halted.go()
    second.result(20).close()


def test_a_keeper_that_is_still_taking_its_place_is_not_ended(own_sshd: Callable[..., Sshd], halting: Halting) -> None:
    server = own_sshd()
    with halting("Kept.write") as halted:
        first = later(answer, server)
        halted.wait()
    assert [one.end() for one in all_kept()] == []
    halted.go()
    assert first.result(20) == "hi\n"


def test_two_commands_that_find_a_master_dead_end_only_that_one(
    own_sshd: Callable[..., Sshd], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = own_sshd()
    options, begun = server.options(keep_s=60.0), list[str]()
    with OpensshTransport(server.alias, options) as one:
        one.run("true")
    with OpensshTransport(server.alias, options) as late, OpensshTransport(server.alias, options) as early:
        with frozen(server):
            monkeypatch.setattr(late, "_answering", lambda: begun.append(early.run("echo $SSH_CONNECTION").text))
            assert late.run("echo hi").text == "hi\n"
        assert [early.run("echo $SSH_CONNECTION").text] == begun


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.skipif("not os.environ.get('COMBORUN_SLOW')", reason="takes 30 s of both cores: set COMBORUN_SLOW=1")
def test_eight_processes_use_and_replace_keepers_and_each_command_is_answered(own_sshd: Callable[..., Sshd]) -> None:
    server = own_sshd("MaxStartups 100")
    command = [sys.executable, __file__, str(server.config), server.alias]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen([*command, role], env=environment, stdout=subprocess.PIPE, text=True)
        for role in ["use"] * 6 + ["restart", "unlink"]
    ]
    told = [one.communicate()[0].split() for one in processes]
    assert [one.returncode for one in processes] == [0] * 8
    assert all(int(count) > 3 for count in itertools.chain.from_iterable(told))


def _stress(config: str, alias: str, role: str) -> int:
    """Returns how many commands were answered, or keepers ended."""
    options, done, end = Options(Path(config), keep_s=0.5), 0, time.monotonic() + 30
    place = kept("k", resolve(alias, options.config))
    while time.monotonic() < end:
        if role == "use":
            with KeptTransport(alias, options) as transport:
                for _ in range(random.randrange(1, 4)):
                    text = f"{os.getpid()}-{done}"
                    assert transport.run("sleep $1; echo $2", str(random.random() / 20), text).text == text + "\n"
                    done += 1
            time.sleep(random.choice((0, 0, 0.05, 1)))
            continue
        time.sleep(random.random() / 2)
        if role == "restart":
            KeptTransport(alias, options)._start(resolve(alias, options.config), place)
        else:
            place.remove(place.stamp)
        done += 1
    return done


if __name__ == "__main__":
    print(_stress(*sys.argv[1:]))
