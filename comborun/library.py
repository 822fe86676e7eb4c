"""What travels with every run: the host program, and its first look for Python."""

from __future__ import annotations

import ast
import json
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGE = Path(__file__).resolve().parent
_PROGRAM = "comborun_host"
_ENTRY = '''"""The host program of this run: VERB RUN ARGUMENT..."""

import sys

from comborun.host.__main__ import main

sys.exit(main())
'''


def library_files() -> dict[str, str]:
    """Path below the run's `lib` -> text of what travels with every run; sorted by path."""
    files = {f"{_PROGRAM}/{name}": text for name, text in program_files().items()} | {"find_python.sh": finder()}
    return {name: files[name] for name in sorted(files)}


def program_files() -> dict[str, str]:
    """Path below the host program's folder -> text."""
    parts = [path for room in ("rules", "host") for path in (_PACKAGE / room).rglob("*.py")]
    files = {f"comborun/{path.relative_to(_PACKAGE).as_posix()}": path.read_text("utf-8") for path in parts}
    return {"__main__.py": _ENTRY, "comborun/__init__.py": "", **files}


def finder() -> str:
    """The text of find_python.sh."""
    return (_PACKAGE / "host/find_python.sh").read_text("utf-8")


@cache
def packed(verb: str) -> bytes:
    """The modules that a verb imports, with those that they import: name -> is it a package, text; compressed JSON."""
    sources: dict[str, tuple[bool, str]] = {"comborun": (True, "")}
    waiting = ["comborun.host.__main__", f"comborun.host.{verb.replace('-', '_')}"]
    while waiting:
        name = waiting.pop()
        path = _PACKAGE.joinpath(*name.split(".")[1:])
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name not in sources and file.is_file():
            sources[name] = path.is_dir(), file.read_text("utf-8")
            waiting += [name.rpartition(".")[0], *_imports(sources[name][1])]
    return zlib.compress(json.dumps(sources).encode(), 9)


def _imports(text: str) -> Iterator[str]:
    """Names that may be modules of comborun."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("comborun."))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("comborun."):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
