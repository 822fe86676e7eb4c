"""Who may import whom, and what a fast start must not load (docs/architecture.md)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from structure import CHECKOUT, LINKED, circles, graph, imports, modules

ALLOWED = {
    "comborun.rules": {"comborun.rules"},
    "comborun.words": {"comborun.rules", "comborun.words"},
    "comborun.host": {"comborun.rules", "comborun.words", "comborun.host"},
    "comborun": {"comborun", "comborun.rules", "comborun.words"},
    "comborun.remote": {"comborun", "comborun.rules", "comborun.words", "comborun.host", "comborun.remote"},
    "comborun.monitor": {"comborun", "comborun.rules", "comborun.words", "comborun.remote", "comborun.monitor"},
    "comborun.reporter": {"comborun", "comborun.rules", "comborun.words", "comborun.reporter"},
}
_BELOW = {"comborun", "comborun.rules", "comborun.words", "comborun.remote", "comborun.monitor", "comborun.reporter"}
ALLOWED["comborun.monitor.view"] = {*_BELOW, "comborun.monitor.view"}
ALLOWED["comborun.api"] = {*_BELOW, "comborun.api"}
ALLOWED["comborun.cli"] = {*_BELOW, "comborun.api", "comborun.monitor.view", "comborun.cli"}

ROOMS = {
    "comborun.rules": ("results", "endings", "room"),
    "comborun.host": ("system", "record", "engines", "admission", "supervise", "dispatch"),
    "comborun": ("model", "grid", "planner", "generate", "amendment"),
    "comborun.remote": ("ssh",),
    "comborun.reporter": ("statistics", "records", "counting", "comparing", "figures", "pages"),
}
"""of each package, from the ground up: a room imports of the others only those before it"""

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = {"paramiko", "scipy", "matplotlib", "numpy", "jinja2", "libtmux", "textual", "starlette", "uvicorn"}
OF_GRIDS = {"pydantic", "ruamel.yaml", "comborun.grid.keys.grid_file"}
"""slow to load, too, and only commands that read a grid file need them"""


def home(module: str) -> str:
    """The part of the program that a module belongs to."""
    parts = module.split(".")
    known = (".".join(parts[:length]) for length in (3, 2))
    return next((part for part in known if part in ALLOWED), parts[0])


def test_a_module_imports_only_what_its_package_and_its_room_may() -> None:
    assert all((CHECKOUT / "comborun" / name).resolve() == CHECKOUT / name for name in LINKED)
    for module, path in modules().items():
        relative, asked = path.relative_to(CHECKOUT), imports(path)
        package = home(module)
        if module != "comborun.__main__":
            ours = {home(name) for name in asked if home(name) in ALLOWED}
            assert ours <= ALLOWED[package], f"{relative} imports {sorted(ours - ALLOWED[package])}"
        room, rooms = module.removeprefix(f"{package}.").split(".")[0], ROOMS.get(package, ())
        if room in rooms:
            inside = {name.removeprefix(f"{package}.").split(".")[0] for name in asked if home(name) == package}
            above = inside & set(rooms[rooms.index(room) + 1 :])
            assert not above, f"{relative} imports {sorted(above)}"
        if package in {"comborun.rules", "comborun.words", "comborun.host"}:  # they travel to hosts
            tops = {name.split(".", maxsplit=1)[0] for name in asked}
            assert tops <= {*sys.stdlib_module_names, "comborun"}, relative


def test_tests_of_what_travels_import_nothing_that_needs_a_newer_python() -> None:
    for path in (*CHECKOUT.glob("tests/unit/rules/*.py"), *CHECKOUT.glob("tests/unit/host/*.py")):
        ours = {home(name) for name in imports(path) if name.startswith("comborun")}
        assert ours <= {"comborun", *ALLOWED["comborun.host"]}, path.relative_to(CHECKOUT)


def test_no_files_form_a_circle() -> None:
    """Imports for types count, too: who reads one file of a circle must read them all."""
    assert circles(graph(modules())) == []


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c", "a"]]


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], HEAVY),
        (["plan", "--help"], HEAVY),
        (["monitor", "--help"], {*HEAVY, *OF_GRIDS}),
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


def test_a_report_of_a_folder_reads_no_grid(tmp_path: Path) -> None:
    rows = [{"policy": "a", "environment": "e", "episode": at, "success": at > 2} for at in range(5)]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    script = (
        "import sys\nfrom comborun.cli import combo\n"
        "combo.main(['report', sys.argv[1]], standalone_mode=False)\nprint('LOADED', *sys.modules)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=CHECKOUT)
    said, _, loaded = done.stdout.partition("LOADED ")
    assert "a succeeds in e" in said
    assert not {*OF_GRIDS, "comborun.planner.laying"} & set(loaded.split())


SLOW = {
    *("dataclasses", "typing", "pathlib", "shutil", "tempfile", "subprocess", "argparse", "logging", "asyncio"),
    *("ast", "hashlib", "threading"),
}


LOADED_LATER = " host.engines.multiplexers host.record.recounts host.record.curves_file host.supervise.watch"
"""by a supervisor"""


@pytest.mark.parametrize(
    "modules", [f"host.supervise.supervisor{LOADED_LATER}", "host.verbs.probe", "host.verbs.boxes"]
)
def test_what_starts_for_each_session_and_each_look_starts_without_what_is_slow_to_load(modules: str) -> None:
    """A slot that became free waits for a supervisor, and whoever looks for an answer."""
    names = ", ".join(f"comborun.{module}" for module in modules.split())
    loads = f"import {names}; print(*sys.modules)"
    script = f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); {loads}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    assert not SLOW & set(done.stdout.split())


def test_a_notebook_completes_the_names_of_the_package_though_nothing_is_loaded() -> None:
    code = "import comborun; print(*dir(comborun)); print(comborun.errors.UserError is comborun.UserError)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, same = done.stdout.splitlines()
    assert {"launch", "open", "runs", "Run", "UserError", "errors"} <= {*names.split()}
    assert "import_module" not in names
    assert same == "True"


def test_the_page_is_served_before_the_report_is_loaded() -> None:
    script = "import sys, comborun.monitor.view.server; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=CHECKOUT)
    assert not {"comborun.reporter.summary", "numpy", "scipy", "matplotlib"} & set(done.stdout.split())
