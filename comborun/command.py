"""The user's command: split once into arguments, placeholders filled per argument, each argument one bash word.

A placeholder is `{name}` or `{name.key}` in lower case; any other brace is text, and `{{` is a literal `{`. Plan-time
placeholders become quoted literals. Start-time ones become `"$COMBORUN_..."`, because a grant or a retry decides them.
A leading `~/` of an argument, or of a value that fills one, means the host's home.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection, Mapping

from comborun.errors import UserError
from comborun.plan import BashWord

START_TIME: Mapping[str, str] = {
    "output_dir": "COMBORUN_OUTPUT_DIR",
    "attempt": "COMBORUN_ATTEMPT",
    "first_episode": "COMBORUN_FIRST_EPISODE",
    "last_episode": "COMBORUN_LAST_EPISODE",
    "episodes": "COMBORUN_EPISODES",
    "run": "COMBORUN_RUN",
    "results_dir": "COMBORUN_RESULTS_DIR",
    "gpu": "COMBORUN_GPU",
    "gpus": "COMBORUN_GPUS",
    "gpu_count": "COMBORUN_GPU_COUNT",
}
PLAN_TIME = ("policy", "environment", "seed", "session")
"""and `policy.KEY`, `environment.KEY` for the attributes of the two axes"""

NOT_YET = ("egl_device", "port", "display")
NOT_YET_FAMILIES = ("server.", "file.")

_PIECE = re.compile(r"\{\{|\{(?P<name>[a-z][a-z0-9_]*(?:\.[A-Za-z0-9_-]+)*)\}")
_QUOTED_OR_OPERATOR = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|(?P<operator>[|&;<>()]+)""", re.DOTALL)


class CommandError(UserError):
    """A command that can't be used; `text` is the piece that offends."""

    def __init__(self, message: str, hint: str, text: str) -> None:
        super().__init__(message, hint)
        self.text = text


def split_command(text: str) -> tuple[str, ...]:
    """Split by the shell's rules for quotes and blanks; nothing is expanded and no shell will read it again."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise CommandError(
            f"the command can't be split: {str(error).lower()}", "close the quote, or escape it with \\", text
        ) from None
    operators = (match["operator"] for match in _QUOTED_OR_OPERATOR.finditer(text))
    if operator := next(filter(None, operators), ""):
        raise CommandError(
            f"the command holds the shell operator {operator!r}, but no shell reads it",
            "put shell work into setup:, or quote it for a shell of its own: bash -c 'first && second'",
            operator,
        )
    if not words:
        raise CommandError("the command is empty", "give the program and its arguments", text)
    return tuple(words)


def placeholders(argument: str) -> tuple[str, ...]:
    """The names of the placeholders in an argument, in their order."""
    return tuple(match["name"] for match in _PIECE.finditer(argument) if match["name"])


def check_argument(argument: str, known: Collection[str]) -> None:
    """Raise CommandError when a placeholder of `argument` is not among `known`."""
    for name in placeholders(argument):
        if name in known:
            continue
        if name in NOT_YET or name.startswith(NOT_YET_FAMILIES):
            raise CommandError(
                f"not yet: the placeholder {{{name}}} is planned",
                "write the value itself for now",
                f"{{{name}}}",
            )
        close = difflib.get_close_matches(name, known, 1)
        raise CommandError(
            f"there is no placeholder {{{name}}}",
            f"did you mean {{{close[0]}}}?" if close else f"known here: {_listed(known)}; {{{{ is a literal {{",
            f"{{{name}}}",
        )


def _listed(names: Collection[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)


def word(argument: str, values: Mapping[str, str]) -> BashWord:
    """The bash word for an argument. `values` holds the plan-time placeholders; all others must be start-time ones.

    The word expands to exactly the argument's text, whatever it holds: literals go through shlex.quote.
    """
    parts: list[str] = []
    literal = ""
    position = 0
    for match in _PIECE.finditer(argument):
        literal += argument[position : match.start()]
        position = match.end()
        name = match["name"]
        if name is None:
            literal += "{"
        elif name in START_TIME:
            parts += [_quoted(literal, home=not parts), f'"${START_TIME[name]}"']
            literal = ""
        elif values[name].startswith("~/"):
            parts += [_quoted(literal, home=not parts), _quoted(values[name], home=True)]
            literal = ""
        else:
            literal += values[name]
    parts.append(_quoted(literal + argument[position:], home=not parts))
    return BashWord("".join(parts) or "''")


def _quoted(text: str, *, home: bool) -> str:
    if not text:
        return ""
    if home and text.startswith("~/"):
        return '"$HOME"/' + (shlex.quote(text[2:]) if text[2:] else "")
    return shlex.quote(text)


def fill(command: str, values: Mapping[str, str]) -> tuple[BashWord, ...]:
    """Every argument of a command as a bash word."""
    return tuple(word(argument, values) for argument in split_command(command))
