"""The part of comborun that travels to a host: as files of a run, or as the modules that one verb needs."""

from __future__ import annotations

import json
import re
import zlib
from functools import cache
from pathlib import Path, PurePosixPath

import comborun
from comborun.host.__main__ import module_of
from comborun.rules.names import FIND_PYTHON, PROGRAM, RUN, RunLayout
from comborun.rules.run_files import program_digest

_PACKAGE = Path(comborun.__file__).parent.resolve()
TRAVELS = ("rules", "words", "host")
"""the packages that go to hosts"""
_IMPORT = re.compile(r"^ *(?:from|import) (comborun\.[\w.]+)(?: import (\([^)]*\)|.*))?$", re.MULTILINE)
_BY_NAME = re.compile(r'"(\w+)\.\w+"')
"""a module beside one that imports it only if needed, as the readers in rules/results/formats.py"""
_FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:    .*\n|\n)+", re.MULTILINE)
_ENTRY = '''"""The host program of this run: VERB RUN ARGUMENT..."""

import sys

from comborun.host.__main__ import main

sys.exit(main())
'''


def library_files() -> dict[str, str]:
    files = {f"{PROGRAM}/comborun/{name.as_posix()}": (_PACKAGE / name).read_text("utf-8") for name in _modules()}
    files |= {f"{PROGRAM}/__main__.py": _ENTRY, f"{PROGRAM}/comborun/__init__.py": ""}
    files |= {
        FIND_PYTHON: finder(),
        PurePosixPath(RUN.window).name: (_PACKAGE / "host" / PurePosixPath(RUN.window).name).read_text("utf-8"),
    }
    return {name: files[name] for name in sorted(files)}


@cache
def digest() -> str:
    """What tells the program that travels from that of another version, as `runs find` has it."""
    top = f"{PROGRAM}/"
    own = library_files().items()
    return program_digest((name[len(top) :], text.encode()) for name, text in own if name.startswith(top))


def _modules() -> list[Path]:
    return [path.relative_to(_PACKAGE) for room in TRAVELS for path in (_PACKAGE / room).rglob("*.py")]


def finder() -> str:
    return (_PACKAGE / "host" / FIND_PYTHON).read_text("utf-8")


@cache
def packed(verb: str) -> bytes:
    """The modules that a verb needs: name -> whether it is a package, text; as compressed JSON."""
    found: dict[str, tuple[bool, str]] = {"comborun": (True, "")}
    waiting = ["comborun.host.__main__", module_of(verb)]
    while waiting:
        name = waiting.pop()
        path = _PACKAGE.joinpath(*name.split(".")[1:])
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name not in found and file.is_file():
            found[name] = path.is_dir(), file.read_text("utf-8")
            waiting.append(name.rpartition(".")[0])
            for module, names in _IMPORT.findall(_FOR_TYPES.sub("", found[name][1])):  # names may be modules
                waiting += [module, *(f"{module}.{one}" for one in re.findall(r"\w+", names))]
            if "import_module" in found[name][1]:
                waiting += [f"{name.rpartition('.')[0]}.{beside}" for beside in _BY_NAME.findall(found[name][1])]
    return zlib.compress(json.dumps(found).encode(), 9)


@cache
def is_in(run: str) -> bool:
    """Whether the program of a run on this machine is the same as ours."""
    library = Path(RunLayout(run).program) / "comborun"
    try:
        return all((library / name).read_bytes() == (_PACKAGE / name).read_bytes() for name in _modules())
    except OSError:
        return False
