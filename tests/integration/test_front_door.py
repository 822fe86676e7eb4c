"""The front door, in a checkout of its own: a copy below a path with spaces, started from elsewhere, through a link.

The copy's `.venv` holds the environment that runs these tests, so that nothing is installed here. Installing for real,
with pip and with uv, is what `tests/run.sh` and the first `scripts/run_parallel.sh` on a fresh machine do.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from box import until
from desk import CHECKOUT, Desk, evaluate

from comborun.rules.names import MULTIPLEXER_NAMES

UNAVAILABLE = 69
UNREACHABLE = 3
NOTHING_IS_INSTALLED = {"PIP_NO_INDEX": "1", "PIP_REQUIRE_VIRTUALENV": "1", "UV_OFFLINE": "1"}
"""whatever goes wrong"""
ENTRY = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import sys
from comborun.__main__ import main
sys.exit(main())
"""
"""what pip makes of `combo = "comborun.__main__:main"` where the path of Python has a blank"""

PYTHON_310 = """\
#!/bin/sh
[ "$1" = -c ] && exec "{python}" -c 'import sys; sys.version_info = (3, 10); exec(sys.argv[1])' "$2"
exit 1
"""
"""stands in for a Python that is too old"""


@dataclass
class Door:
    desk: Desk
    checkout: Path
    link: Path

    def command(self, *arguments: object) -> list[str]:
        return [str(self.link), *map(str, arguments)]

    def run(self, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            env={**self.desk.environment, **variables},
            cwd="/",
            timeout=100,
            check=False,
        )

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.desk.environment,
            cwd="/",
        )

    @property
    def begun(self) -> list[Path]:
        return [begin for run in self.desk.runs for begin in run.glob("sessions/*/attempt-1/begin")]

    def without(self, *programs: str) -> str:
        """A PATH that has every program of this machine but these."""
        folder = self.desk.home / "programs"
        folder.mkdir()
        for program in (file for place in os.get_exec_path() if Path(place).is_dir() for file in Path(place).iterdir()):
            link = folder / program.name
            if not any(re.fullmatch(name, program.name) for name in programs) and not link.is_symlink():
                link.symlink_to(program)
        return str(folder)


@pytest.fixture
def door(desk: Desk) -> Door:
    if not (CHECKOUT / ".git").exists():
        pytest.skip("which files make a checkout is git's to say")
    checkout = desk.home / "my projects/the checkout"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", ":!tests", ":!docs"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (CHECKOUT / name).is_file() or (CHECKOUT / name).is_symlink():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, checkout / name, follow_symlinks=False)
            bytecode = Path(cache_from_source(name))
            if name.endswith(".py") and (CHECKOUT / bytecode).is_file():  # so that nobody has to compile it all again
                (checkout / bytecode).parent.mkdir(exist_ok=True)
                shutil.copy2(CHECKOUT / bytecode, checkout / bytecode)
    furnish(checkout)
    link = desk.home / "bin/evaluate grids"
    link.parent.mkdir()
    link.symlink_to("../my projects/the checkout/scripts/run_parallel.sh")
    desk.environment |= {"PYTHONPATH": str(checkout), **NOTHING_IS_INSTALLED}
    return Door(desk, checkout, link)


def furnish(checkout: Path) -> None:
    """Give a checkout an environment that counts as set up."""
    programs = checkout / ".venv/bin"
    programs.mkdir(parents=True)
    combo = programs / "combo"
    combo.write_text(ENTRY.format(python=sys.executable))
    combo.chmod(0o755)
    (programs / "activate").write_text(f"PATH={checkout}/.venv/bin:$PATH\n")
    with (checkout / "pyproject.toml").open() as pyproject:
        sum_ = subprocess.run(["cksum"], stdin=pyproject, capture_output=True, text=True, check=True).stdout.strip()
    (checkout / ".venv/.comborun-example").write_text(f"{sum_} {checkout.resolve()}/.venv\n")


def test_a_grid_goes_from_the_front_door_to_its_report(door: Door) -> None:
    ended = door.run(door.desk.grid())
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Setting up" not in ended.stderr
    assert door.desk.report()["totals"]["completed"] == 16
    program = door.desk.runs[-1] / "lib/comborun_host/comborun/host"
    assert (program / "verbs/start.py").read_bytes() == (door.checkout / "comborun/host/verbs/start.py").read_bytes()


def test_without_a_grid_the_example_of_this_checkout_is_meant(door: Door) -> None:
    example = door.checkout / "examples/quadruped/grid.yaml"
    example.write_text(example.read_text() + "colour: red\n")
    for arguments in ((), ("--parallel", "2")):
        refused = door.run(*arguments)
        assert refused.returncode == 2
        assert re.search(rf"{re.escape(str(example.resolve()))}:\d+:.*colour", refused.stderr), refused.stderr
    assert not door.desk.runs
    assert "--parallel N" in door.run("--help").stdout


def test_interrupting_it_tells_how_to_come_back_and_ends_no_session(door: Door) -> None:
    front = door.start(door.desk.grid(command=evaluate(pace=0.5)))
    until(lambda: door.begun, "a session begins")
    assert front.stdout
    assert any("● maze_good: running" in line for line in iter(front.stdout.readline, "")), "the monitor shows them"
    front.send_signal(signal.SIGINT)
    said, _ = front.communicate(timeout=20)
    assert front.returncode == 130
    assert "The sessions go on" in said
    back = re.search(r"watch +('.*?/\.venv/bin/combo'|\S+) (monitor \S+)", said)
    assert back, said
    assert door.desk.combo(*back[2].split()).returncode == 0
    assert door.desk.report()["totals"]["completed"] == 16


@pytest.fixture
def bare(door: Door) -> str:
    """A PATH without tmux, screen and what could install them; `id` stands in for a user who is not root."""
    path = door.without(*MULTIPLEXER_NAMES, "sudo", "apt-get", "id")
    user = Path(path, "id")
    user.write_text("#!/bin/sh\necho 1000\n")
    user.chmod(0o755)
    return path


def test_without_tmux_screen_and_root_it_says_what_is_missing(door: Door, bare: str) -> None:
    for here in (["--host", "local"], ["--host=local"]):
        refused = door.run(door.desk.grid(), *here, PATH=bare)
        assert refused.returncode == UNREACHABLE, refused.stderr
        assert "these system packages are missing: tmux" in refused.stderr
        assert "sudo apt-get install tmux" in refused.stderr
        assert "local lacks what sessions need: tmux" in refused.stderr
    refused = door.run(door.desk.grid(), "--multiplexer", "screen", PATH=bare)
    assert "these system packages are missing: screen" in refused.stderr
    assert not door.desk.runs


def test_sessions_elsewhere_need_no_multiplexer_here(door: Door, bare: str) -> None:
    name = "nobody@127.0.0.1:9"
    named = door.desk.grid("named.yaml", host=f'"{name}" # not here')
    for ended in (
        door.run(named, PATH=bare),
        door.run(PATH=bare, COMBORUN_GRID=str(named)),
        door.run(door.desk.grid(), f"--host={name}", PATH=bare),
    ):
        assert ended.returncode == UNREACHABLE, ended.stderr
        assert "127.0.0.1" in ended.stderr
        assert "missing" not in ended.stderr


def test_without_a_python_that_will_do_it_says_what_to_install(door: Door) -> None:
    shutil.rmtree(door.checkout / ".venv")
    path = door.without(r"python[\d.]*", "uv")
    for old in (False, True):
        if old:
            python = Path(path, "python3")
            python.write_text(PYTHON_310.format(python=sys.executable))
            python.chmod(0o755)
        refused = door.run(door.desk.grid(), PATH=path)
        assert refused.returncode == UNAVAILABLE
        assert "Python 3.11 or newer is missing" in refused.stderr
        assert "install it, or install uv" in refused.stderr


def test_a_checkout_that_was_moved_does_not_run_the_code_of_its_old_place(door: Door) -> None:
    moved = door.desk.home / "moved"
    door.checkout.rename(moved)
    door.link.unlink()
    door.link.symlink_to(moved / "scripts/run_parallel.sh")
    refused = door.run(door.desk.grid(), PATH=door.without(r"python[\d.]*", "uv"))
    assert f"Setting up the Python environment in {moved.resolve()}/.venv" in refused.stderr
    assert not (moved / ".venv").exists(), "what names the old place is gone"
