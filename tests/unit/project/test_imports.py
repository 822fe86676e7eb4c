"""Who may import whom, and what a fast start must not load (docs/architecture.md)."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
ALLOWED = {
    "comborun.rules": {"comborun.rules"},
    "comborun.host": {"comborun.rules", "comborun.host"},
    "comborun": {"comborun", "comborun.rules"},
    "comborun.remote": {"comborun", "comborun.rules", "comborun.remote"},
    "comborun.monitor": {"comborun", "comborun.rules", "comborun.remote", "comborun.monitor"},
    "comborun.reporter": {"comborun", "comborun.rules", "comborun.reporter"},
    "comborun.cli": {
        "comborun",
        "comborun.rules",
        "comborun.cli",
        "comborun.remote",
        "comborun.monitor",
        "comborun.reporter",
    },
}

ROOMS = {
    "comborun": ("grid", "planner", "forecast", "again"),
    "comborun.remote": ("ssh", "doctor"),
    "comborun.reporter": ("statistics", "adapters", "records", "counting", "comparing", "figures", "pages"),
}
"""of each package, from the ground up: a room imports of the others only those before it"""

HEAVY = {"paramiko", "scipy", "matplotlib", "numpy", "jinja2", "libtmux"}
OF_GRIDS = {"pydantic", "ruamel.yaml", "comborun.grid.model"}
"""slow to load, too, and only commands that read a grid file need them"""


def home(module: str) -> str:
    """The part of the program that a module belongs to."""
    part = ".".join(module.split(".")[:2])
    return part if part in ALLOWED else module.split(".", maxsplit=1)[0]


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules() -> list[Path]:
    links = ("remote", "monitor", "reporter")
    assert all((CHECKOUT / "comborun" / name).resolve() == CHECKOUT / name for name in links)
    folders = (CHECKOUT / "comborun", *(CHECKOUT / "comborun" / name for name in links))
    return sorted({path for folder in folders for path in folder.rglob("*.py")})


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_a_module_imports_only_what_its_package_may(path: Path) -> None:
    relative = path.relative_to(CHECKOUT)
    if relative == Path("comborun/__main__.py"):
        return
    part = home(".".join(relative.with_suffix("").parts))
    ours = {home(name) for name in imports(path) if home(name) in ALLOWED}
    assert ours <= ALLOWED[part], f"{relative} imports {sorted(ours - ALLOWED[part])}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_a_room_stands_on_those_below_it(path: Path) -> None:
    module = ".".join(path.relative_to(CHECKOUT).with_suffix("").parts)
    package = home(module)
    room, rooms = module.removeprefix(f"{package}.").split(".")[0], ROOMS.get(package, ())
    if room in rooms:
        inside = {name.removeprefix(f"{package}.") for name in imports(path) if home(name) == package}
        asked = {name.split(".")[0] for name in inside} & set(rooms)
        above = asked - set(rooms[: rooms.index(room) + 1])
        assert not above, f"{path.relative_to(CHECKOUT)} imports {sorted(above)}"


TRAVELS = [path for path in modules() if {"rules", "host"} & set(path.relative_to(CHECKOUT / "comborun").parts[:1])]


@pytest.mark.parametrize("path", TRAVELS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_what_travels_to_hosts_imports_only_itself_and_the_standard_library(path: Path) -> None:
    tops = {name.split(".", maxsplit=1)[0] for name in imports(path)}
    assert tops <= {*sys.stdlib_module_names, "comborun"}


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], HEAVY),
        (["plan", "--help"], HEAVY),
        (["monitor", "--help"], {*HEAVY, *OF_GRIDS}),
        (["stop", "--help"], {*HEAVY, *OF_GRIDS}),
        (["report", "--help"], {*HEAVY, *OF_GRIDS}),
    ],
)
def test_help_loads_nothing_that_it_does_without(arguments: list[str], heavy: set[str]) -> None:
    script = (
        "import gc, json, sys; sys.argv = ['combo', *sys.argv[1:]]\n"
        "from comborun.cli import combo\n"
        "try:\n    combo.main(standalone_mode=False)\nfinally:\n"
        "    print('LOADED', json.dumps({'modules': sorted(sys.modules), 'collects': gc.isenabled()}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True, cwd=CHECKOUT
    )
    usage, _, loaded = done.stdout.partition("LOADED ")
    assert "Usage:" in usage
    found = json.loads(loaded)
    assert found["collects"], "garbage is collected again when a command runs"
    assert not heavy & set(found["modules"])


SLOW = {"dataclasses", "typing", "pathlib", "shutil", "tempfile", "subprocess", "argparse", "logging", "asyncio"}


def test_a_supervisor_starts_without_what_is_slow_to_load() -> None:
    """One starts for each session, and a slot that became free waits for it."""
    script = f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); import comborun.host.session; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    assert not SLOW & set(done.stdout.split())
