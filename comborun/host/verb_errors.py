"""The answer of a verb. An error is one sentence and an exit code, never a traceback."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable

from comborun.host.system import files, machine
from comborun.rules.facts import Fact
from comborun.rules.names import RunLayout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

USAGE, NO_RUN, ELSEWHERE, LACKING, FAULT, CANT_WRITE, BUSY, CONFIG = 64, 66, 68, 69, 71, 73, 75, 78
"""exit codes, as sysexits.h has them"""
NO_MEMORY = "there is not enough memory here"
_JSON_LINES = os.environ.pop("COMBORUN_JSON_LINES", "") == "1"
"""whether the laptop asked, and no person; no child process inherits it"""


class Refusal(Exception):  # noqa: N818 - it is an answer and no error of ours
    """The request can't be done."""

    def __init__(self, code: int, message: str, fact: Fact | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.fact = fact


def answer(verb: str, work: Callable[[list[str]], int], arguments: list[str]) -> int:
    """Run a verb; returns its exit code. A lack of processes, memory or room becomes one sentence on standard error."""
    try:
        code = work(arguments)
        sys.stdout.flush()
    except Refusal as refusal:
        more = {"fact": refusal.fact.as_data()} if refusal.fact else {}
        complain(str(refusal) if _JSON_LINES else f"{verb}: {refusal}", refused=refusal.code, **more)
        return refusal.code
    except BrokenPipeError:  # the reader is gone
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - or its closing at the end fails again
        return FAULT
    except MemoryError:
        complain(f"{verb}: {NO_MEMORY}")
        return FAULT
    except OSError as error:
        from comborun.words import host, say  # noqa: F401 - the table of words about hosts travels with every verb

        limit = machine.limit_of(error.errno or 0)
        where = f" ({error.filename})" if error.filename else ""
        complain(f"{verb}: {say(limit) if limit else error.strerror or error}{where}")
        return FAULT
    return code


def answered(verb: str, act: Callable[[], Any]) -> int:
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
        raise Refusal(NO_RUN, f"{path or 'RUN'} is not a run directory")
    return run
