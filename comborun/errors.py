"""Errors that a user can fix.

UserError          a message and a hint; shown without a traceback, exit code 2
|-- GridError      a grid file with one or more mistakes, each with its place
`-- HostError      the host can't be reached, or refused a command; exit code 3
    `-- RunGoneError  the host answers, but the run's folder is not there

Everything else that is raised is a bug and keeps its traceback. A session that fails is data, not an exception.
"""

from __future__ import annotations

from dataclasses import dataclass


class UserError(Exception):
    """A mistake or a circumstance that the user can fix."""

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Problem:
    """One mistake in a grid file. Line and column count from 1; 0 means the whole file."""

    file: str
    line: int
    column: int
    message: str
    hint: str = ""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class GridError(UserError):
    """All mistakes of a grid file at once; `file` names it where they stand in another one that it uses."""

    def __init__(self, problems: tuple[Problem, ...], file: str = "") -> None:
        first = problems[0]
        count = "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        super().__init__(f"{file or first.file} has {count}\n" + "\n".join(map(str, problems)))
        self.problems = problems
        if len(problems) == 1 and file in ("", first.file):  # its cause stands in the first line
            self.message, self.hint = f"{first.place}: {first.message}", first.hint


class HostError(UserError):
    """The host can't be reached, or could not carry out a request."""

    exit_code = 3


class RunGoneError(HostError):
    """The host answers, but the folder of the run is not there; its file system may come back."""
