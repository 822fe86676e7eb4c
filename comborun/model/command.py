"""The user's command: split into arguments, placeholders filled in, each argument one bash word.

A placeholder is `{name}` or `{name.key}` in lower case; any other brace is text, and `{{` is a literal `{`. Plan-time
placeholders become quoted literals, start-time ones `"$COMBORUN_..."`. A leading `~/` of an argument, or of a value
that fills one, is the host's home. A file of `files` is one bash word, too, so that each attempt gets its own values.

A launcher starts `python -m torch.distributed.run` and not `torchrun`, because the command's interpreter has the
program's torch. `--standalone` takes a free port, so that several launchers can run side by side. `--tee 3` copies what
the ranks print into files below `{output_dir}/ranks` and into the session's log.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.model.resources import ASKED, BashWord
from comborun.rules.names import SERVER_VARIABLES, server_variable
from comborun.text import close_to

if TYPE_CHECKING:
    from comborun.model.plan import Session


_GIVEN_AT_START = (
    *("output_dir", "attempt", "first_episode", "last_episode", "end_episode", "first_seed", "episode_list"),
    *("episodes", "episodes_per_rank", "environments", "run", "results_dir", "gpu", "gpus"),
    *("gpu_count", "egl_device", "vulkan_device", "display", "port", "threads"),
)
START_TIME: Mapping[str, str] = {name: f"COMBORUN_{name.upper()}" for name in _GIVEN_AT_START}
"""placeholder -> the variable that has its value when a session starts"""
PLACEMENT = "placement"
"""stands alone, and becomes any number of arguments"""
PLAN_TIME = ("policy", "environment", "seed", "session", PLACEMENT)
"""and `policy.KEY`, `environment.KEY` for the attributes of the two axes"""

ENVIRONMENTS, ENTRIES = "environments", "entries_"
"""the environments of one start, or an attribute of each; and the entries of a list of `files` for them"""
FILE = "file."
"""start of the placeholder of a file of `files`"""

TELLS_HOW_MANY = {"episodes", "last_episode", "end_episode", "episodes_per_rank", "episode_list"}
"""each gives a command its number of episodes"""
BY_INDEX = {"first_episode", "episode_list"}
"""each gives the index of the first episode"""
BY_SEED = "first_seed"
"""gives the seed of the first episode, to a program that always counts from 0"""

_PIECE = re.compile(r"\{\{|\{(?P<name>[a-z][a-z0-9_]*(?:\.[A-Za-z0-9_-]+)*)\}")
_QUOTED_OR_OPERATOR = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|(?P<operator>[|&;<>()]+)""", re.DOTALL)


class CommandError(UserError):
    """A mistake in a command; `text` is the wrong part."""

    def __init__(self, message: str, hint: str, text: str) -> None:
        super().__init__(message, hint)
        self.text = text


def split_command(text: str) -> tuple[str, ...]:
    """Split by the shell's rules for quotes and blanks. Nothing is expanded."""
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
    return tuple(match["name"] for match in _PIECE.finditer(argument) if match["name"])


def values_of(kind: str, name: str, attributes: Mapping[str, str]) -> dict[str, str]:
    """The values of `{policy}` and of each `{policy.KEY}`; the same for an environment or a server."""
    return {kind: name, **{f"{kind}.{key}": value for key, value in attributes.items()}}


def takes_count(command: str) -> bool:
    """Whether a command has a placeholder for the number of episodes."""
    return bool(TELLS_HOW_MANY & set(placeholders(command)))


def takes_range(command: str) -> bool:
    """Whether a command has placeholders for a range of episodes."""
    return takes_count(command) and bool({BY_SEED, *BY_INDEX} & set(placeholders(command)))


def check_argument(argument: str, known: Collection[str]) -> None:
    """Raise CommandError for a placeholder that is not in `known`."""
    for name in placeholders(argument):
        if name in known:
            continue
        close, listed = close_to(name, known), ", ".join(f"{{{one}}}" for one in known)
        raise CommandError(
            f"there is no placeholder {{{name}}}",
            f"did you mean {{{close}}}?" if close else f"known here: {listed}; {{{{ is a literal {{",
            f"{{{name}}}",
        )


def check_words(command: str) -> None:
    """Raise CommandError for a command that can't be split, or for {placement} as only a part of an argument."""
    whole = f"{{{PLACEMENT}}}"
    if any(PLACEMENT in placeholders(argument) and argument != whole for argument in split_command(command)):
        hint = "give it an argument of its own; a shell takes it behind its text: bash -c 'run \"$@\"' run {placement}"
        raise CommandError(f"{whole} becomes several arguments, and stands within one", hint, whole)


def word(argument: str, values: Mapping[str, str], *, home: bool = True) -> BashWord:
    """The bash word for an argument. `values` holds the plan-time placeholders; all others must be start-time ones.

    The word expands to exactly the argument's text. Without `home` a leading `~/` of the argument is text.
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
        elif apart := _apart(name, values):
            parts += [_quoted(literal, home=home and not parts), apart]
            literal = ""
        else:
            literal += values[name]
    parts.append(_quoted(literal + argument[position:], home=home and not parts))
    return BashWord("".join(parts) or "''")


def escaped(text: str, pattern: re.Pattern[str], known: Callable[[str], object]) -> str:
    """The text for `word`: the known names that `pattern` finds are placeholders, other braces are text."""
    pieces: list[str] = []
    position = 0
    for match in pattern.finditer(text):
        if known(match.group()[1:-1]):
            pieces += [text[position : match.start()].replace("{", "{{"), match.group()]
            position = match.end()
    return "".join([*pieces, text[position:].replace("{", "{{")])


def _apart(name: str, values: Mapping[str, str]) -> str:
    """The bash text of a placeholder that is quoted by itself; empty if its value is quoted with the text around it."""
    if name in START_TIME:
        return f'"${START_TIME[name]}"'
    if name.startswith((f"{ENVIRONMENTS}.", ENTRIES)):
        return f'"${of_all(name)}"'
    if match := ASKED.fullmatch(f"{{{name}}}"):
        return f'"${server_variable(match["name"], match["field"])}"'
    if name.startswith(FILE):
        return f'"$COMBORUN_FILES"/{shlex.quote(name.removeprefix(FILE))}'
    if values[name].startswith("~/"):
        return _quoted(values[name], home=True)
    return word(escaped(values[name], ASKED, bool), {}, home=False) if ASKED.search(values[name]) else ""


def of_all(placeholder: str) -> str:
    """The variable of `{environments.KEY}`, or of entries, for all environments of a start together."""
    return "COMBORUN_" + re.sub("[^A-Z0-9]", "_", placeholder.upper())


def _quoted(text: str, *, home: bool) -> str:
    if not text:
        return ""
    if home and text.startswith("~/"):
        return '"$HOME"/' + (shlex.quote(text[2:]) if text[2:] else "")
    return shlex.quote(text)


def fill(command: str, values: Mapping[str, str], placement: tuple[str, ...] = ()) -> tuple[BashWord, ...]:
    """Every argument of a command as a bash word. `placement`: the arguments for {placement}."""
    words: list[BashWord] = []
    for argument in split_command(command):
        if argument == f"{{{PLACEMENT}}}":
            words += (BashWord(shlex.quote(text)) for text in placement)
        else:
            words.append(word(argument, values))
    return tuple(words)


OF_GPUS = ("gpu", "gpus", "gpu_count", "egl_device", "vulkan_device")
"""placeholders without a value for a session without a GPU"""
FILLED = re.compile(r"(?<!\{)\{[a-z][a-z0-9_]*(?:\.[A-Za-z0-9_-]+)*\}(?!\})")
"""a possible placeholder in a variable"""


def asks_for(session: Session, placeholder: str) -> bool:
    """Whether the session uses this start-time value."""
    name = START_TIME[placeholder]
    return any(name in text for text in (*session.texts, *(word for _, word in session.each)))


def late(word: str, placeholder: str = "") -> bool:
    """Whether a bash word holds this start-time value; without a name, any of them."""
    names = [START_TIME[placeholder]] if placeholder else [*START_TIME.values(), FILES]
    return any(f'"${name}"' in word for name in names) or (not placeholder and f'"${SERVER_VARIABLES}' in word)


FILES = "COMBORUN_FILES"
NUMBERS = {"episodes", "first_episode", "last_episode", "end_episode", "episodes_per_rank", "first_seed"} | {
    *("attempt", "gpu", "gpu_count", "port", "egl_device")
}
"""start-time placeholders that are numbers in JSON, if the value is nothing else"""

_ALONE = re.compile(r"\{([a-z][a-z0-9_]*(?:\.[A-Za-z0-9_-]+)*)\}")
_NO_TEXT = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null")
_HOME = "~/"


@dataclass(frozen=True)
class Number:
    """A number, true, false or null, as JSON writes it."""

    text: str


JsonTree = str | Number | tuple["JsonTree", ...] | Mapping[str, "JsonTree"]


@dataclass(frozen=True)
class FileText:
    """The content of a file: `text`, or `tree` as JSON. Both may hold placeholders."""

    text: str = ""
    tree: JsonTree | None = None

    @property
    def asks(self) -> tuple[str, ...]:
        pieces = (self.text,) if self.tree is None else _strings(self.tree)
        return tuple(name for piece in pieces for name in placeholders(piece))


def file_word(content: FileText, values: Mapping[str, str]) -> BashWord:
    """The bash word of a file's text; `values` holds the plan-time placeholders."""
    if content.tree is None:
        return word(content.text, values, home=False)
    return tree_word(content.tree, values, end="\n")


def tree_word(tree: JsonTree, values: Mapping[str, str], indent: str = "\n", end: str = "") -> BashWord:
    """The bash word of a tree as JSON."""
    escaped = {name: json.dumps(value, ensure_ascii=False)[1:-1] for name, value in values.items()}
    return word(_json(tree, escaped, indent) + end, {**escaped, "home": _HOME}, home=False)


def of_environment(name: str) -> bool:
    """Whether a placeholder has a value for one environment only."""
    return name.partition(".")[0] == "environment"


def without_entries(content: FileText, taken: list[JsonTree]) -> FileText:
    """The file with a placeholder in place of each entry of a list that is there once for each environment; these are
    added to `taken`.
    """

    def cut(tree: JsonTree) -> JsonTree:
        match tree:
            case Mapping():
                return {key: cut(value) for key, value in tree.items()}
            case tuple():
                return tuple(cut_entry(item) for item in tree)
            case _:
                return tree

    def cut_entry(item: JsonTree) -> JsonTree:
        if not any(of_environment(name) for text in _strings(item) for name in placeholders(text)):
            return cut(item)
        taken.append(item)
        return Number(f"{{{ENTRIES}{len(taken)}}}")

    return content if content.tree is None else FileText(tree=cut(content.tree))


def _json(tree: JsonTree, values: Mapping[str, str], indent: str = "\n") -> str:
    """JSON with placeholders in its strings. JSON's own braces can't be mistaken: no name follows them."""
    deeper = indent + " "
    match tree:
        case Number():
            return tree.text
        case str():
            return _string(tree, values)
        case Mapping():
            entries = [
                f"{json.dumps(key, ensure_ascii=False)}: {_json(value, values, deeper)}" for key, value in tree.items()
            ]
            return "{" + deeper + f",{deeper}".join(entries) + indent + "}" if entries else "{}"
        case _:
            items = [_json(value, values, deeper) for value in tree]
            return "[" + deeper + f",{deeper}".join(items) + indent + "]" if items else "[]"


def _string(text: str, values: Mapping[str, str]) -> str:
    """A string of JSON; a placeholder alone stands without quotes if its value is a number, true, false or null."""
    alone = _ALONE.fullmatch(text)
    if alone and (alone[1] in NUMBERS or _NO_TEXT.fullmatch(values.get(alone[1], ""))):
        return text
    written = json.dumps(text, ensure_ascii=False)
    return f'"{{home}}{written[3:]}' if text.startswith(_HOME) else written


def _strings(tree: JsonTree) -> Iterator[str]:
    match tree:
        case str():
            yield tree
        case Mapping():
            for value in tree.values():
                yield from _strings(value)
        case tuple():
            for value in tree:
                yield from _strings(value)
        case _:
            return


MODULE = "torch.distributed.run"
RANKS = "ranks"
"""folder below {output_dir} for the logs of the ranks"""
_OURS = ("--standalone", "--nproc", "--log-dir", "--log_dir", "--tee", "--redirects", "-t", "-r")


def launched(command: str, processes: int | None = None, arguments: str = "", program: str = "") -> str:
    """The command line that starts `command` on every rank, with its placeholders. Raises CommandError.

    Without `processes` there is a rank for each GPU. `program` replaces `python -m torch.distributed.run`.
    """
    words = split_command(command)
    interpreter, script = _parts(words)
    program = program or shlex.join([interpreter, "-m", MODULE])
    options = [
        "--standalone",
        f"--nproc_per_node={processes or '{gpu_count}'}",
        f"--log_dir={{output_dir}}/{RANKS}",
        "--tee=3",
    ]
    return " ".join(filter(None, [program, *options, arguments, shlex.join(script)]))


def check_arguments(text: str) -> None:
    """Raise CommandError for a launcher's option that comborun sets."""
    for word in split_command(text):
        if word.startswith(_OURS):
            hint = "`processes` says how many, and `combo logs --rank R` finds the logs"
            raise CommandError(f"comborun sets {word.partition('=')[0]} itself", hint, word)


def _parts(words: tuple[str, ...]) -> tuple[str, list[str]]:
    """The interpreter, and the command as the launcher takes it: a script, `-m` and a module, or any program."""
    name = PurePosixPath(words[0]).name
    if name in {"torchrun", "accelerate", "deepspeed"} or MODULE in words[:4]:
        raise CommandError(
            f"`{words[0]}` starts all ranks, and `launcher` would start it once for each rank",
            "remove the launcher from the command, or `launcher` from the grid",
            words[0],
        )
    if re.fullmatch(r"python[0-9.]*", name):
        rest = list(words[1:])
        while rest and rest[0] in {"-u", "-B", "-I", "-s", "-E"}:
            rest.pop(0)
        if not rest or (rest[0].startswith("-") and rest[0] != "-m"):
            hint = "python SCRIPT ..., or python -m MODULE ...; other options of Python belong in `variables`"
            raise CommandError(f"the launcher can't start `{' '.join(words[:2])}`", hint, words[0])
        return words[0], rest
    if words[0] == "-m" or name.endswith(".py"):
        return "python", list(words)
    return "python", ["--no_python", *words]
