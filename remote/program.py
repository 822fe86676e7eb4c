"""Calls the host program: from the folder of a run, or else by sending the modules that the verb needs."""

from __future__ import annotations

import json
import os
import re
import sys
import zlib
from functools import cache, partial
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import comborun
from comborun.errors import HostError, UserError
from comborun.host.__main__ import module_of
from comborun.remote.transport import LOCAL, Completed, LocalTransport
from comborun.rules.names import FIND_PYTHON, PROGRAM, RUN, RunLayout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.remote.transport import Transport


_PACKAGE = Path(comborun.__file__).parent.resolve()
TRAVELS = ("rules", "words", "host")
"""the packages that go to hosts"""
_IMPORT = re.compile(r"^ *(?:from|import) (comborun\.[\w.]+)(?: import (\([^)]*\)|.*))?$", re.MULTILINE)
_FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:    .*\n|\n)+", re.MULTILINE)
_ENTRY = '''"""The host program of this run: VERB RUN ARGUMENT..."""

import sys

from comborun.host.__main__ import main

sys.exit(main())
'''


def library_files() -> dict[str, str]:
    files = {f"{PROGRAM}/comborun/{name.as_posix()}": (_PACKAGE / name).read_text("utf-8") for name in _modules()}
    files |= {f"{PROGRAM}/__main__.py": _ENTRY, f"{PROGRAM}/comborun/__init__.py": ""}
    files |= {FIND_PYTHON: finder(), PurePosixPath(RUN.window).name: (_PACKAGE / "host/window.sh").read_text("utf-8")}
    return {name: files[name] for name in sorted(files)}


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
            waiting += [name.rpartition(".")[0], *_imports(found[name][1])]
    return zlib.compress(json.dumps(found).encode(), 9)


def _imports(text: str) -> Iterator[str]:
    """Names that may be modules of comborun, without those for type checkers."""
    for module, names in _IMPORT.findall(_FOR_TYPES.sub("", text)):
        yield module
        yield from (f"{module}.{name}" for name in re.findall(r"\w+", names))


NO_RUN = 251
"""exit code: the folder does not exist"""
OLD_RUN = 252
"""exit code: the run has no host program, so an older comborun made it"""
NO_PYTHON = 253
"""exit code: no Python 3.8 or newer; standard error lists the interpreters that were tried"""

_OF_RUN = f"""
run=$1; shift
[[ $run != "~/"* ]] || run=$HOME/${{run#"~/"}}
[[ -d $run ]] || exit {NO_RUN}
[[ -d $run/{RUN.program} ]] || exit {OLD_RUN}
source "$run/{RUN.find_python}"
python_of_run "$run" "$@"
"""
_PACKED = """
loader=$1 python=$2 named=$3 roots=$4
shift 4
[[ -x $python ]] || python_or_leave "$named" "${@:1:roots}"
exec "$python" -I -S -c "$loader" "${@:roots+1}"
"""
_LOADER = """
import json, sys, zlib
from importlib.machinery import ModuleSpec
stream = sys.stdin.buffer
try:
    sources = json.loads(zlib.decompress(stream.read(int(stream.readline()))))
except (ValueError, zlib.error):
    sys.exit("the data arrived changed")
class Sent:
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self, is_package=sources[name][0]) if name in sources else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        exec(compile(sources[module.__name__][1], module.__name__, "exec"), module.__dict__)
    def get_source(self, name):
        return sources[name][1]
sys.meta_path.insert(0, Sent())
from comborun.host.__main__ import main
sys.exit(main())
"""
_CHANGED = re.compile(r"^comborun: (.*), the Python of this run, is gone; it goes on with (.*)\n", re.MULTILINE)


class Python(NamedTuple):
    """The interpreter for a host without a run."""

    known: str = ""
    """an interpreter that this command found earlier; it is not checked again"""
    named: str = ""
    """`host_python` of the grid; no other interpreter is used"""
    roots: tuple[str, ...] = ()
    """folders of runs that remember an interpreter"""


ANY = Python()


def of_run(directory: object) -> Python:
    """The interpreter of a run, or of another run of its root; for verbs that work on runs of any version."""
    return Python(roots=(str(PurePosixPath(str(directory)).parent),))


def run(
    transport: Transport,
    directory: str,
    verb: str,
    *words: str,
    stdin: bytes = b"",
    timeout: float = 60.0,
) -> Completed:
    """Run a verb of a run's own program. Raises HostError if the host can't be reached or has no Python for it."""
    here = _here(transport) if verb in _LOOKS else None
    if here and _is_ours(directory, verb) and _has_python(directory):
        return here.call(partial(_verb, verb, directory, *words), stdin, timeout)
    done = transport.run(_OF_RUN, directory, verb, *words, stdin=stdin, timeout=timeout)
    return _with_note_of_python(transport, _checked(transport, done))


def run_packed(
    transport: Transport,
    verb: str,
    *words: str,
    stdin: bytes = b"",
    timeout: float = 60.0,
    python: Python = ANY,
) -> Completed:
    """Run a verb and send the modules that it needs, in one round trip. Raises HostError as `run` does.

    On this machine a fork of this process does it, unless the grid names another interpreter.
    """
    if (here := _here(transport)) and not python.named:
        return here.call(partial(_verb, verb, *words), stdin, timeout)
    modules = packed(verb)
    stdin = b"%d\n" % len(modules) + modules + stdin
    options = (_LOADER, python.known, python.named, str(len(python.roots)), *python.roots)
    script = finder() + _PACKED
    return _checked(transport, transport.run(script, *options, verb, *words, stdin=stdin, timeout=timeout))


_LOOKS = frozenset({"probe", "sample"})
"""verbs that start no lasting process: on this machine a fork of this process can run them"""


def _here(transport: Transport) -> LocalTransport | None:
    return transport if isinstance(transport, LocalTransport) and transport.host == LOCAL else None


def _verb(*words: str) -> int:
    from comborun.host.__main__ import main

    sys.argv = ["comborun", *words]
    return main()


@cache
def _is_ours(directory: str, verb: str) -> bool:
    """Whether the program of a run on this machine is the same as ours. Loads the verb, so that each fork has it."""
    import_module(module_of(verb))
    library = Path(RunLayout(str(Path(directory).expanduser())).program) / "comborun"
    try:
        return all((library / name).read_bytes() == (_PACKAGE / name).read_bytes() for name in _modules())
    except OSError:
        return False


def _has_python(directory: str) -> bool:
    """Whether the run's interpreter still exists. If not, the host must find another one and report it."""
    try:
        remembered = Path(RunLayout(str(Path(directory).expanduser())).python).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return False
    return os.access(remembered, os.X_OK)


def refuse(transport: Transport, directory: str, done: Completed) -> None:
    """Raise UserError if there was no host program to run."""
    if done.code == NO_RUN:
        raise UserError(f"{directory} on {transport.host} is not a run directory", "combo runs lists them")
    if done.code == OLD_RUN:
        raise UserError(
            f"an older comborun made the run {directory} on {transport.host}",
            "combo stop, logs and report work on it; combo launch with the same grid and --new starts another",
        )


def answer(transport: Transport, done: Completed, failure: str = "") -> Any:
    """The JSON document of a verb's answer. Raises HostError with `failure` if there is none."""
    if done.code and failure:
        raise HostError(failure, done.complaint or f"exit code {done.code}")
    try:
        return json.loads(done.stdout)
    except (ValueError, RecursionError) as error:
        raise HostError(
            f"the answer of {transport.host} can't be read", done.complaint or f"{error}; it began {done.text[:80]!r}"
        ) from None


def _checked(transport: Transport, done: Completed) -> Completed:
    if done.code != NO_PYTHON:
        return done
    looked = "".join(f"\n  {line}" for line in done.complaint.splitlines()) or "\n  there is no python3"
    raise HostError(
        f"{transport.host} has no Python 3.8 or newer with json, ctypes, zlib, select, fcntl and hashlib{looked}",
        "install python3 there, or name one in the grid: `host_python: PATH`",
    )


def _with_note_of_python(transport: Transport, done: Completed) -> Completed:
    """Turn the note that another Python was found into a warning of the transport."""
    complaint = done.stderr.decode("utf-8", "surrogateescape")
    if changed := _CHANGED.search(complaint):
        note = f"{changed[1]}, the Python of this run, is gone on {transport.host}; it goes on with {changed[2]}"
        before: tuple[str, ...] = getattr(transport, "warnings", ())
        if hasattr(transport, "warnings") and note not in before:
            transport.warnings = (*before, note)
        done = Completed(
            done.code, done.stdout, _CHANGED.sub("", complaint, count=1).encode("utf-8", "surrogateescape")
        )
    return done
