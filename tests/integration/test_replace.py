"""`replaces`: the sessions that are named go, with what runs in them; every other one stays."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from box import Box, alive, bash, make_box, until

CALM = "trap 'echo got INT >>{log}; exit 0' INT; trap 'echo got TERM >>{log}; exit 0' TERM; "
WAIT = "echo up >>{log}; while :; do sleep 0.1; done"
DEAF = "trap '' INT; trap 'echo got TERM >>{log}; exit 0' TERM; " + WAIT
LOOPED = """
import time
try:
    print("ready")
    time.sleep(60)
except KeyboardInterrupt:
    print("KeyboardInterrupt")
"""
STUBBORN = "trap '' INT TERM; " + WAIT


@dataclass
class Old:
    """The user's own tmux server and screens, all private, and a run that replaces some of them."""

    box: Box
    home: Path

    def log(self, name: str) -> Path:
        return self.home / f"{name}.log"

    def text(self, name: str) -> str:
        return self.log(name).read_text() if self.log(name).exists() else ""

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-L", "default", *words]
        done = subprocess.run(
            command, env=self.box.environment, capture_output=True, text=True, check=False, timeout=20
        )
        return done.stdout

    def start(self, kind: str, name: str, program: str = CALM + WAIT, log: str = "") -> None:
        """A session of the user's own that runs a bash program; returns when it is up."""
        log = log or re.sub(r"\W", "_", name)
        text = program.replace("{log}", str(self.log(log)))
        before = self.text(log).count("up")
        words = ["bash", "-c", text]
        if kind == "tmux":
            self.tmux("new-session", "-d", "-s", name, shlex.join(words))
        else:
            subprocess.run(["screen", "-dmS", name, *words], env=self.box.environment, check=True, timeout=20)
        until(lambda: self.text(log).count("up") > before, f"{name} is up: {self.sessions(kind)}")

    def sessions(self, kind: str) -> list[str]:
        if kind == "tmux":
            return sorted(self.tmux("list-sessions", "-F", "#{session_name}").splitlines())
        done = subprocess.run(
            ["screen", "-ls"], env=self.box.environment, capture_output=True, text=True, check=False, timeout=20
        )
        return sorted(re.findall(r"^\s+\d+\.([^\t]+)\t", done.stdout, re.MULTILINE))

    def replace(self, *names: str) -> tuple[str, ...]:
        """Start the run that replaces them; what is said."""
        self.box.plan({"env_one": bash("true")})
        self.box.write("dispatch/replaces", "".join(f"{name}\n" for name in names))
        self.box.environment["COMBORUN_JSON_LINES"] = "1"
        started = self.box.start()
        assert started.returncode == 0, started.stderr
        lines = map(json.loads, started.stdout.splitlines())
        return tuple(f"{line['replaced']}: {line['what']}" for line in lines if "replaced" in line)


@pytest.fixture
def old() -> Iterator[Old]:
    home = Path(tempfile.mkdtemp(prefix="co"))  # short: it holds a socket
    with make_box(home, "tmux") as box:
        box.environment |= {"TMUX_TMPDIR": str(home), "COMBORUN_REPLACE_INT_S": "1", "COMBORUN_REPLACE_TERM_S": "1"}
        made = Old(box, home)
        yield made
        with contextlib.suppress(Exception):
            box.tmux("kill-server")
            made.tmux("kill-server")
            for pid in pids_of(str(home)):
                os.kill(pid, signal.SIGKILL)
    shutil.rmtree(home, ignore_errors=True)


def pids_of(word: str) -> list[int]:
    """Processes that have `word` on their command line; ours alone, since it is a folder of ours."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if word.encode() in file.read_bytes() and int(file.parent.name) != os.getpid():
                found.append(int(file.parent.name))
    return found


@pytest.mark.parametrize("kind", ["tmux", "screen"])
def test_a_session_of_any_name_ends_with_int_and_its_namesakes_stay(old: Old, kind: str) -> None:
    names = ("eval4env", "my old eval", "it's $ `x` *", "-rf")
    for name in (*names, "eval", "eval4", "eval4env2"):
        old.start(kind, name)
    said = old.replace(*names)
    for name, line in zip(names, said, strict=True):
        assert re.fullmatch(rf"{re.escape(name)}: {kind} .+ has ended after INT", line)
    assert old.text("eval4env") == "up\ngot INT\n"
    assert old.sessions(kind) == ["eval", "eval4", "eval4env2"]
    assert [old.text(name) for name in ("eval", "eval4", "eval4env2")] == ["up\n"] * 3
    assert old.box.fields("dispatch/dispatcher"), "and the run has started"


@pytest.mark.parametrize("kind", ["tmux", "screen"])
def test_the_beginning_of_a_name_ends_nothing(old: Old, kind: str) -> None:
    old.start(kind, "eval4env")
    assert old.replace("eval", "eval4en", "EVAL4ENV", "*") == (
        "eval: there is no session of that name",
        "eval4en: there is no session of that name",
        "EVAL4ENV: there is no session of that name",
        "*: there is no session of that name",
    )
    assert old.sessions(kind) == ["eval4env"]
    assert old.text("eval4env") == "up\n"


def test_all_screens_of_one_name_go_and_a_tmux_session_of_that_name_too(old: Old) -> None:
    for number in range(2):
        old.start("screen", "twice", log=f"screen{number}")
    old.start("tmux", "twice", log="tmux")
    said = old.replace("twice")
    assert len(said) == 3
    assert all("has ended after INT" in line for line in said)
    assert old.sessions("screen") == old.sessions("tmux") == []
    assert {old.text(log) for log in ("screen0", "screen1", "tmux")} == {"up\ngot INT\n"}


@pytest.mark.parametrize("kind", ["tmux", "screen"])
def test_what_is_deaf_to_int_gets_term_and_what_is_deaf_to_both_loses_its_window(old: Old, kind: str) -> None:
    old.start(kind, "deaf", DEAF)
    old.start(kind, "stubborn", STUBBORN)
    begun = time.monotonic()
    deaf, stubborn = old.replace("deaf", "stubborn")
    assert "has ended after TERM" in deaf
    assert "has ended when its window was closed" in stubborn, "HUP, which nobody ignores here"
    assert old.text("deaf") == "up\ngot TERM\n"
    assert time.monotonic() - begun < 10
    assert old.sessions(kind) == []


def test_what_survives_even_that_is_named_and_left_alone(old: Old) -> None:
    old.start("tmux", "undead", "trap '' HUP INT TERM; " + WAIT)
    (survivor,) = map(int, old.tmux("list-panes", "-t", "undead", "-F", "#{pane_pid}").split())
    (said,) = old.replace("undead")
    assert said.startswith("undead: tmux session ")
    assert re.search(rf"is closed, and these processes survive: .*\b{survivor}\b", said)
    assert alive(survivor)


def test_a_loop_over_programs_does_not_go_on_with_the_next(old: Old) -> None:
    program = shlex.join([sys.executable, "-uc", LOOPED])
    old.start("tmux", "loop", f"for n in 1 2 3; do echo up >>{{log}}; {program} >>{{log}}; done")
    until(lambda: "ready" in old.text("loop"), "the program runs")
    (said,) = old.replace("loop")
    assert "has ended after" in said
    assert "KeyboardInterrupt" in old.text("loop")
    assert old.text("loop").splitlines().count("up") <= 2
    assert old.sessions("tmux") == []


@pytest.mark.parametrize("kind", ["tmux", "screen"])
def test_a_shell_at_its_prompt_is_closed_at_once_and_what_was_typed_in_it_ends_first(old: Old, kind: str) -> None:
    environment = old.box.environment
    program = f"bash -c {shlex.quote((CALM + WAIT).replace('{log}', str(old.log('typed'))))}\n"
    for name in ("idle", "typed"):
        if kind == "tmux":
            old.tmux("new-session", "-d", "-s", name, "bash --norc -i")
        else:
            subprocess.run(["screen", "-dmS", name, "bash", "--norc", "-i"], env=environment, check=True)
    if kind == "tmux":
        old.tmux("send-keys", "-t", "=typed:", program)
    else:
        until(lambda: old.sessions("screen") == ["idle", "typed"], "both are there")
        subprocess.run(["screen", "-S", "typed", "-X", "stuff", program], env=environment, check=True)
    until(lambda: old.text("typed"), "the program runs")
    old.box.environment["COMBORUN_REPLACE_INT_S"] = "60"
    idle, typed = old.replace("idle", "typed")
    assert re.fullmatch(rf"idle: {kind} session.* has ended", idle)
    assert "has ended after INT" in typed
    assert old.text("typed") == "up\ngot INT\n"
    assert old.sessions(kind) == []


def test_a_child_in_a_process_session_of_its_own_goes_too(old: Old) -> None:
    # a background child of a script ignores INT
    child = f"setsid bash -c {shlex.quote((CALM + WAIT).replace('{log}', str(old.log('child'))))} & "
    old.start("tmux", "parent", child + CALM + WAIT)
    until(lambda: old.text("child"), "the child is up")
    (said,) = old.replace("parent")
    assert "has ended after TERM" in said
    assert old.text("parent") == "up\ngot INT\n"
    assert old.text("child") == "up\ngot TERM\n"


def test_windows_that_another_session_shares_and_sessions_of_comborun_are_left_alone(old: Old, screen_box: Box) -> None:
    old.start("tmux", "shared")
    old.tmux("new-session", "-d", "-t", "shared", "-s", "view")
    screen_box.environment["SCREENDIR"] = old.box.environment["SCREENDIR"]
    screen_box.plan({"env_one": bash("sleep 60")})
    screen_box.start()
    screen_box.begun("env_one")
    (name,) = old.sessions("screen")
    shared, ours = old.replace("shared", name)
    assert shared == "shared: its tmux windows belong to another session too: left alone"
    assert old.sessions("tmux") == ["shared", "view"]
    assert old.text("shared") == "up\n"
    assert ours.endswith("is left alone: it is a session of comborun")
    assert old.sessions("screen") == [name]
    assert screen_box.end("env_one") is None
    screen_box.stop()


def test_the_session_that_the_launch_was_typed_in_is_left_alone(old: Old) -> None:
    old.box.plan({"env_one": bash("true")})
    old.box.write("dispatch/replaces", "mine\n")
    said = old.home / "said"
    start = shlex.join(old.box.command("start"))
    typed = f"{start} >{said}; echo over >>{said}; sleep 60"
    old.tmux("new-session", "-d", "-s", "mine", shlex.join(["bash", "-c", typed]))
    until(lambda: said.exists() and "over" in said.read_text(), "it has been started")
    assert re.search(r"replaces mine: tmux \S+ is left alone: this launch was typed in it", said.read_text())
    assert old.sessions("tmux") == ["mine"]


def test_it_is_done_once_for_a_run_and_not_when_it_is_resumed(old: Old) -> None:
    old.start("tmux", "eval4env")
    assert len(old.replace("eval4env")) == 1
    old.box.await_done()
    old.start("tmux", "eval4env")
    assert old.replace("eval4env") == ()
    assert old.sessions("tmux") == ["eval4env"]
    assert old.text("eval4env") == "up\ngot INT\nup\n"
    assert (old.box.directory / "dispatch/replaced").read_text().count("\n") == 1
