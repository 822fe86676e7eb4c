"""Errors that a user can fix.

UserError          a message and a hint, shown without a traceback; exit code 2
|-- GridError      a grid file with one or more mistakes, each with its place
`-- HostError      the host can't be reached, or refused a command; exit code 3
    `-- RunGoneError  the host answers, but the run's folder is not there

`code` is a stable word for programs (docs/agents.md).
Everything else that is raised is a bug and keeps its traceback. A session that fails is data, not an exception.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from comborun.rules.vocabulary import several


class UserError(Exception):
    code, exit_code = "mistake", 2
    """a stable word, and the exit code of a command"""
    place = ""
    """file:line:column of the first mistake in a grid"""
    problems: tuple[Problem, ...] = ()
    """every mistake in a grid"""

    def __init__(self, message: str, hint: str = "", code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or self.code

    @property
    def headline(self) -> str:
        """The first line of the message: the others are details, or what another program said."""
        return self.message.partition("\n")[0]


@dataclass(frozen=True)
class Problem:
    """One mistake in a grid file. Line and column count from 1; 0 means the whole file."""

    file: str
    line: int
    column: int
    message: str
    hint: str = ""
    count: int = 1
    """number of mistakes that it stands for"""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


ALIKE_SHOWN = 5
_VARIES = re.compile(r"'[^']*'|\d[\d, -]*")


def shape(sentence: str) -> str:
    """The sentence without its numbers and quoted names."""
    return _VARIES.sub("", sentence)


class GridError(UserError):
    """All mistakes of a grid file at once; `file` names it if they are in another file that it uses."""

    code = "grid"

    def __init__(self, problems: tuple[Problem, ...], file: str = "") -> None:
        first = problems[0]
        kinds: Counter[str] = Counter()
        shown = []
        for one in problems:
            kinds[kind := shape(one.message)] += 1
            if kinds[kind] <= ALIKE_SHOWN and one.count == 1:
                shown.append(str(one))
        count = sum(one.count for one in problems)
        if more := count - len(shown):
            shown.append(f"and {more} more of these kinds")
        super().__init__(f"{file or first.file} has {several(count, 'mistake')}\n" + "\n".join(shown))
        self.problems, self.place = problems, first.place
        if len(problems) == 1 and file in ("", first.file):  # the first line names the cause
            self.message, self.hint = f"{first.place}: {first.message}", first.hint


class HostError(UserError):
    code, exit_code = "host", 3


class RunGoneError(HostError):
    """The host answers, but the run's folder is missing; its file system may come back."""

    code = "run_gone"
