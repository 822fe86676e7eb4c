"""The answer of a verb. An error is a fact, shown as one sentence, and an exit code; never a traceback."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from comborun.host.system import files, machine, process
from comborun.rules.facts import Fact
from comborun.rules.host import Denial, FolderFlaw
from comborun.rules.names import RunLayout

USAGE, NO_RUN, ELSEWHERE, LACKING, FAULT, CANT_WRITE, BUSY, CONFIG = 64, 66, 68, 69, 71, 73, 75, 78
"""exit codes, as sysexits.h has them"""
_JSON_LINES = os.environ.pop("COMBORUN_JSON_LINES", "") == "1"
"""whether the laptop asked, and no person; no child process inherits it"""


class Refusal(Exception):  # noqa: N818 - it is an answer and no error of ours
    """The request can't be done. `exit_code` is the verb's, and the fact, or its code with fields, says why."""

    def __init__(self, exit_code: int, why: Fact | str, **fields: object) -> None:
        self.exit_code = exit_code
        self.fact = why if isinstance(why, Fact) else Fact(why, **fields)
        super().__init__(self.fact.code)


def unwritable(path: str, error: OSError | None = None) -> Refusal:
    return Refusal(CANT_WRITE, Denial.UNWRITABLE, path=path, **({"error": error.strerror} if error else {}))


def must_write(done: bool, where: str) -> None:
    """Raise Refusal unless something could be written there."""
    if not done:
        raise unwritable(where)


@contextmanager
def holding(path: str, wait_s: float) -> Iterator[None]:
    """Hold a lock meanwhile. Raises Refusal."""
    try:
        lock = files.lock(path, wait_s)
    except OSError as error:
        raise unwritable(path, error) from None
    if lock < 0:
        raise Refusal(BUSY, Denial.LOCK_HELD, lock=path)
    try:
        yield
    finally:
        os.close(lock)


def unusable(root: str, error: OSError) -> Refusal:
    """A root in which nothing can be written."""
    there = next((one for one in (f"{root}/.incoming", root) if os.path.isdir(one)), "")
    if not there:
        return Refusal(CANT_WRITE, FolderFlaw.NOT_MADE, path=root, error=error.strerror)
    if error.errno not in (errno.EACCES, errno.EPERM):
        return unwritable(there, error)
    about = {"path": there, "owner": process.owner(there), "error": error.strerror}
    return Refusal(CANT_WRITE, FolderFlaw.UNWRITABLE, **about)


def answer(verb: str, work: Callable[[list[str]], int], arguments: list[str]) -> int:
    """Run a verb; returns its exit code. A lack of processes, memory or room becomes one sentence on standard error."""
    try:
        code = work(arguments)
        sys.stdout.flush()
    except Refusal as refusal:
        _complain_of(refusal.fact, verb, refused=refusal.exit_code)
        return refusal.exit_code
    except BrokenPipeError:  # the reader is gone
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - or its closing at the end fails again
        return FAULT
    except (OSError, MemoryError) as error:
        _complain_of(_fault(error), verb)
        return FAULT
    return code


def _fault(error: OSError | MemoryError) -> Fact:
    """An error of the system: a limit of processes, memory or room, or in its own words."""
    if isinstance(error, MemoryError):
        return Fact(Denial.NO_MEMORY)
    limit, where = machine.limit_of(error.errno or 0), {"path": str(error.filename)} if error.filename else {}
    return Fact(Denial.FAULT, error=limit.as_data() if limit else error.strerror or str(error), **where)


def _complain_of(fact: Fact, verb: str, **more: object) -> None:
    """For the laptop the fact itself, beside its words; a person sees which verb it is about."""
    from comborun.words import host, say  # noqa: F401 - the table of words about hosts travels with every verb

    complain(say(fact) if _JSON_LINES else f"{verb}: {say(fact)}", fact=fact.as_data(), **more)


def answered(verb: str, act: Callable[[], object]) -> int:
    """Print what `act` returns as one JSON document; returns the exit code. A signal that ends us also cleans up."""
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: sys.exit(143))

    def work(_arguments: list[str]) -> int:
        sys.stdout.write(json.dumps(act(), default=Fact.as_data) + "\n")
        return 0

    return answer(verb, work, [])


def say(line: str, **facts: object) -> None:
    """Print a line; for the laptop a JSON object, with the facts beside it. If its reader is gone, the work goes on."""
    try:
        print(_worded(line, facts), flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - or its closing at the end fails


def complain(line: str, **facts: object) -> None:
    """The same on standard error, if that is still open."""
    try:
        print(_worded(line, facts), file=sys.stderr, flush=True)
    except OSError:
        return


def _worded(line: str, facts: dict[str, object]) -> str:
    return json.dumps({"comborun": line, **facts}) if _JSON_LINES else line


def run_directory(arguments: list[str]) -> str:
    """The run directory in the first argument. Raises Refusal if it is none."""
    path = arguments[0] if arguments else ""
    run = os.path.realpath(path) if path else ""
    if not run or not files.read_line(RunLayout(run).id).strip():
        raise Refusal(NO_RUN, Denial.NO_RUN, path=path or "RUN")
    return run
