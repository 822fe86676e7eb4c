"""The user's command: split once into arguments, placeholders filled per argument, each argument one bash word.

A placeholder is `{name}` or `{name.key}` in lower case; any other brace is text, and `{{` is a literal `{`. Plan-time
placeholders become quoted literals. Start-time ones become `"$COMBORUN_..."`, because a grant or a retry decides them.
A leading `~/` of an argument, or of a value that fills one, means the host's home.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from types import MappingProxyType

from comborun.errors import UserError
from comborun.servers import ASKED, variable
from comborun.session.word import BashWord
from comborun.suggest import close_to

START_TIME: Mapping[str, str] = {
    "output_dir": "COMBORUN_OUTPUT_DIR",
    "attempt": "COMBORUN_ATTEMPT",
    "first_episode": "COMBORUN_FIRST_EPISODE",
    "last_episode": "COMBORUN_LAST_EPISODE",
    "end_episode": "COMBORUN_END_EPISODE",
    "episodes": "COMBORUN_EPISODES",
    "episodes_per_rank": "COMBORUN_EPISODES_PER_RANK",
    "run": "COMBORUN_RUN",
    "results_dir": "COMBORUN_RESULTS_DIR",
    "gpu": "COMBORUN_GPU",
    "gpus": "COMBORUN_GPUS",
    "gpu_count": "COMBORUN_GPU_COUNT",
    "egl_device": "COMBORUN_EGL_DEVICE",
    "display": "COMBORUN_DISPLAY",
    "port": "COMBORUN_PORT",
    "threads": "COMBORUN_THREADS",
}
PLAN_TIME = ("policy", "environment", "seed", "session", "placement")
"""and `policy.KEY`, `environment.KEY` for the attributes of the two axes"""
SEVERAL = ("placement",)
"""those that stand alone in their argument and become several arguments, or none"""

FILE = "file."
"""begins the placeholder of a file that the grid's `files` write"""

TELLS_HOW_MANY = {"episodes", "last_episode", "end_episode", "episodes_per_rank"}
"""placeholders of which one hands a command the number of its episodes"""
_TELLS_WHERE_FROM = "first_episode"

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
            "quote it for a shell of its own: bash -c 'first && second'; what sessions need before it goes into setup:",
            operator,
        )
    if not words:
        raise CommandError("the command is empty", "give the program and its arguments", text)
    return tuple(words)


def placeholders(argument: str) -> tuple[str, ...]:
    """The names of the placeholders in an argument, in their order."""
    return tuple(match["name"] for match in _PIECE.finditer(argument) if match["name"])


def takes_count(command: str) -> bool:
    """Whether a command can be told to do fewer episodes than are planned."""
    return bool(TELLS_HOW_MANY & set(placeholders(command)))


def takes_range(command: str) -> bool:
    """Whether a command can be told to do any range of episodes."""
    return takes_count(command) and _TELLS_WHERE_FROM in placeholders(command)


def check_argument(argument: str, known: Collection[str]) -> None:
    """Raise CommandError when a placeholder of `argument` is not among `known`."""
    for name in placeholders(argument):
        if name in known:
            continue
        close = close_to(name, known)
        raise CommandError(
            f"there is no placeholder {{{name}}}",
            f"did you mean {{{close}}}?" if close else f"known here: {_listed(known)}; {{{{ is a literal {{",
            f"{{{name}}}",
        )


def check_alone(argument: str) -> None:
    """Raise CommandError when a placeholder of SEVERAL has company in its argument."""
    for name in placeholders(argument):
        if name in SEVERAL and argument != f"{{{name}}}":
            hint = (
                "give it an argument of its own; a shell takes it behind its text: bash -c 'run \"$@\"' run {placement}"
            )
            raise CommandError(f"{{{name}}} becomes several arguments, and stands within one", hint, f"{{{name}}}")


def _listed(names: Collection[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)


def word(argument: str, values: Mapping[str, str], *, home: bool = True) -> BashWord:
    """The bash word for an argument. `values` holds the plan-time placeholders; all others must be start-time ones.

    The word expands to exactly the argument's text, whatever it holds: literals go through shlex.quote. Without `home`
    a leading `~/` of the argument itself is text.
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
        elif later := _start_word(name):
            parts += [_quoted(literal, home=home and not parts), later]
            literal = ""
        elif values[name].startswith("~/"):
            parts += [_quoted(literal, home=home and not parts), _quoted(values[name], home=True)]
            literal = ""
        elif ASKED.search(values[name]):
            asking = word(but_servers_literal(values[name]), {}, home=False)
            parts += [_quoted(literal, home=home and not parts), asking]
            literal = ""
        else:
            literal += values[name]
    parts.append(_quoted(literal + argument[position:], home=home and not parts))
    return BashWord("".join(parts) or "''")


def but_servers_literal(text: str) -> str:
    """The text of a value as `word` reads an argument: `{server.NAME.url}` in it is filled, any other brace is text."""
    pieces: list[str] = []
    position = 0
    for match in ASKED.finditer(text):
        pieces += [text[position : match.start()].replace("{", "{{"), match.group()]
        position = match.end()
    return "".join([*pieces, text[position:].replace("{", "{{")])


def _start_word(name: str) -> str:
    """What stands for a start-time placeholder in a bash word; empty for a plan-time one."""
    if name in START_TIME:
        return f'"${START_TIME[name]}"'
    if match := ASKED.fullmatch(f"{{{name}}}"):
        return f'"${variable(match["name"], match["field"])}"'
    return f'"$COMBORUN_FILES"/{shlex.quote(name.removeprefix(FILE))}' if name.startswith(FILE) else ""


def _quoted(text: str, *, home: bool) -> str:
    if not text:
        return ""
    if home and text.startswith("~/"):
        return '"$HOME"/' + (shlex.quote(text[2:]) if text[2:] else "")
    return shlex.quote(text)


def fill(
    command: str, values: Mapping[str, str], several: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> tuple[BashWord, ...]:
    """Every argument of a command as a bash word. `several` holds the placeholders of SEVERAL, by their names."""
    words: list[BashWord] = []
    for argument in split_command(command):
        if argument[1:-1] in several and argument == f"{{{argument[1:-1]}}}":
            words += (BashWord(shlex.quote(text)) for text in several[argument[1:-1]])
        else:
            words.append(word(argument, values))
    return tuple(words)
