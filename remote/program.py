"""Calls a verb of the host program. All verbs are safe to repeat.

A run has a program of its own. For other verbs the modules that they need are sent.
"""

from __future__ import annotations

import json
import os
import re
import sys
from functools import partial
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from comborun.errors import HostError, UserError
from comborun.host.__main__ import module_of
from comborun.remote import library
from comborun.remote.transport import LOCAL, Completed, LocalTransport
from comborun.rules.facts import Fact
from comborun.rules.names import RUN, RunLayout
from comborun.words import say

if TYPE_CHECKING:
    from comborun.remote.transport import Transport

NO_RUN = 251
"""exit code: the folder does not exist"""
OLD_RUN = 252
"""exit code: the run has no host program, so an older comborun made it"""
NO_PYTHON = 253
"""exit code: no Python 3.8 or newer; standard error lists the interpreters that were tried"""

OF_RUN = f"""
export COMBORUN_JSON_NOTES=1
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
_NOTE = re.compile(rb'^\{"comborun_python": .*\n', re.MULTILINE)
"""of find_python.sh: the interpreter that the run remembers is gone, and another one was found"""


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
    transport: Transport, directory: str, verb: str, *words: str, stdin: bytes = b"", timeout: float = 60.0
) -> Completed:
    """Run a verb of a run's own program. Raises HostError if the host can't be reached or has no Python for it."""
    here = _here(transport) if verb in _LOOKS else None
    if here and _may_fork(directory, verb):
        return here.call(partial(_verb, verb, directory, *words), stdin, timeout)
    done = transport.run(OF_RUN, directory, verb, *words, stdin=stdin, timeout=timeout)
    return finished(transport, done)


def run_packed(
    transport: Transport, verb: str, *words: str, stdin: bytes = b"", timeout: float = 60.0, python: Python = ANY
) -> Completed:
    """Run a verb and send the modules that it needs, in one round trip. Raises HostError as `run` does.

    On this machine a fork of this process does it, unless the grid names another interpreter.
    """
    if (here := _here(transport)) and not python.named:
        return here.call(partial(_verb, verb, *words), stdin, timeout)
    modules = library.packed(verb)
    stdin = b"%d\n" % len(modules) + modules + stdin
    options = (_LOADER, python.known, python.named, str(len(python.roots)), *python.roots)
    script = library.finder() + _PACKED
    return _checked(transport, transport.run(script, *options, verb, *words, stdin=stdin, timeout=timeout))


_LOOKS = frozenset({"probe", "sample"})
"""verbs that start no lasting process: on this machine a fork of this process can run them"""


def _here(transport: Transport) -> LocalTransport | None:
    if isinstance(transport, LocalTransport) and transport.host == LOCAL and transport.forks:
        return transport
    return None


def _verb(*words: str) -> int:
    from comborun.host.__main__ import main

    sys.argv = ["comborun", *words]
    return main()


def _may_fork(directory: str, verb: str) -> bool:
    """Whether a run on this machine has the same program as ours, and its interpreter still exists: if not, the host
    must find another one and report it. Loads the verb, so that each fork has it."""
    import_module(module_of(verb))
    run = str(Path(directory).expanduser())
    try:
        remembered = Path(RunLayout(run).python).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return False
    return library.is_in(run) and os.access(remembered, os.X_OK)


def refuse(transport: Transport, directory: str, done: Completed) -> None:
    """Raise UserError if there was no host program to run."""
    if done.code == NO_RUN:
        raise UserError(f"{directory} on {transport.host} is not a run directory", "combo runs lists them")
    if done.code == OLD_RUN:
        raise UserError(
            f"an older comborun made the run {directory} on {transport.host}",
            "combo stop, logs and report work on it; combo launch with the same grid and --new starts another",
        )


def refuse_elsewhere(found: Fact | None, run: str) -> None:
    """Raise UserError if a run goes on where its processes can't be seen from the host."""
    if found:
        hint = f"if {found.text('host')} was renamed or is gone, `combo resume {run} --take-over` goes on here"
        raise UserError(f"{run}: {say(found)}", hint)


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


def finished(transport: Transport, done: Completed) -> Completed:
    """The answer of a run's own program; a note that another Python was found becomes a warning of the transport.

    Raises HostError if there is no Python for it.
    """
    done = _checked(transport, done)
    if found := _NOTE.search(done.stderr):
        gone, now = json.loads(found[0])["comborun_python"]
        note = f"{gone}, the Python of this run, is gone on {transport.host}; it goes on with {now}"
        before: tuple[str, ...] = getattr(transport, "warnings", ())
        if hasattr(transport, "warnings") and note not in before:
            transport.warnings = (*before, note)
        done = done._replace(stderr=_NOTE.sub(b"", done.stderr, count=1))
    return done
