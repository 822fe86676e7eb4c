"""Output of the commands on the terminal, and their errors."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import re
import shlex
import sys
import threading
import time
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from comborun.answers import Done, Error, to_json
from comborun.api.listener import Listener
from comborun.errors import HostError, UserError
from comborun.text import harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from comborun.answers.grids import Text
    from comborun.api.listener import Opened

QUIET_S = 2.0
"""shorter work prints nothing"""
AT_ONCE = "comborun.at_once"
"""in a command's context: on a terminal all work is shown at once, since a picture is to come"""
_TICK_S = 0.25
_CLOSE_S = 1.0
"""seconds in which a connection is ended at the end of a command"""
_HINTS = {
    errno.ENOSPC: "the disk is full; if you redirected the output, check that disk",
    errno.EDQUOT: "your quota on that disk is used up",
    errno.EAGAIN: "too many processes of yours run here: ulimit -u",
    errno.ENOMEM: "there is not enough memory here",
    errno.EMFILE: "too many files are open: ulimit -n",
    errno.ENAMETOOLONG: "write a shorter path",
}
_HUSHES: list[Callable[[], None]] = []
"""each ends the display of some work; a question for a secret may come from another thread"""
_LONG_WORD = re.compile(r"(\S{400})\S+")
"""a path or name that would fill the screen"""
_OF_REPORT = {"matplotlib", "numpy", "scipy"}
SOME_DID_NOT = 1
INTERRUPTED = 130


_LETTERS = "comborun-letters"
"""what a terminal without UTF-8 shows for our symbols: letters that differ, and ? for any other character"""
_LETTER_OF = dict(zip("✗✓●○◌◍◇◐■□·–—━─╾█▸→…", "x+*@o!&%#..--=--#>>~", strict=True))
codecs.register_error(
    _LETTERS,
    lambda error: (
        ("".join(_LETTER_OF.get(one, "?") for one in error.object[error.start : error.end]), error.end)
        if isinstance(error, UnicodeEncodeError)
        else codecs.replace_errors(error)
    ),
)


def guarded(command: click.Command) -> int:
    """Run a command. Shows errors that a user can fix without a traceback. Returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_LETTERS)
    try:
        code = command.main(standalone_mode=False, color=colour())
        sys.stdout.flush()
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        told = _with_key(error)
        told.show()
        return _failed(error.exit_code, Error("usage", told.format_message(), ""))
    except UserError as error:
        return _show_failed(error)
    except (click.Abort, KeyboardInterrupt):
        return _failed(INTERRUPTED, Error("interrupted", "interrupted by the user", ""))
    except BrokenPipeError:  # as in `combo logs | head`
        _discard_output()
        return 0
    except (ModuleNotFoundError, OSError, UnicodeError, RecursionError, MemoryError, RuntimeError) as error:
        shown = _as_user_error(error)
        if shown is None:
            raise
        return _show_failed(shown)
    return code if isinstance(code, int) else 0


def _show_failed(error: UserError) -> int:
    show_error(error)
    try:
        code = _failed(error.exit_code, Error.of(error))
        sys.stdout.flush()
    except OSError:  # it is what can't be written
        _discard_output()
        return error.exit_code
    return code


def _failed(code: int, error: Error) -> int:
    """The exit code; a command that was asked for JSON answers the error too, on a line of its own."""
    if "--json" in sys.argv[1:]:
        show_record(Done(code, error))
    return code


def _discard_output() -> None:
    """Drop output that can't be written; otherwise Python would complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _as_user_error(error: Exception) -> UserError | None:
    """An error of this machine or of a user's file as a UserError; None for a bug."""
    match error:
        case ModuleNotFoundError(name=str(name)) if name.partition(".")[0] in _OF_REPORT:
            hint = "pip install 'comborun[report]', or in a checkout: uv tool install '.[report]'"
            return UserError(f"this needs {name}, which is not installed", hint)
        case OSError(filename=None):
            hint = _HINTS.get(error.errno or 0, "is it this machine's network, its disk, or a limit? ulimit -a")
            return UserError(f"operating system error: {error.strerror or error}", hint)
        case OSError():
            return UserError(f"{error.filename}: {error.strerror}", _HINTS.get(error.errno or 0, ""))
        case UnicodeError():
            return UserError(f"a file or a name is not readable text: {error}")
        case RecursionError():
            return UserError("a file is nested too deeply to be read", "did a faulty program write it?")
        case MemoryError():
            return UserError("there is not enough memory on this machine", "ulimit -v shows a limit that was set")
        case RuntimeError() if "new thread" in str(error):
            return UserError("this machine starts no more threads", _HINTS[errno.EAGAIN])
    return None


@contextlib.contextmanager
def repeatable() -> Iterator[None]:
    """Print after an interruption that the command is safe to repeat. Also a decorator."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("\nInterrupted: it may be only partly done. Run the same command again to finish.", err=True)
        raise


@contextlib.contextmanager
def working(what: str) -> Iterator[Callable[[object], None]]:
    """Print on standard error what takes more than two seconds (see AT_ONCE): on a terminal with a clock, else once.

    Yields a function for the progress. The thread imports nothing and holds no lock, because this process may fork.
    """
    begun, reached, over = time.monotonic(), "", threading.Event()
    clock = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    context = click.get_current_context(silent=True)
    quiet_s = 0.0 if clock and context and AT_ONCE in context.meta else QUIET_S

    def show() -> None:
        if over.wait(quiet_s):
            return
        if not clock:
            click.echo(f"{what} ...", err=True)
            return
        while not over.is_set():
            seconds = int(time.monotonic() - begun)
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            line = f"{what}  {seconds // 60}:{seconds % 60:02}  {reached}"[: columns - 1]
            os.write(sys.stderr.fileno(), f"\r\033[K{line}".encode())
            over.wait(_TICK_S)
        os.write(sys.stderr.fileno(), b"\r\033[K")

    def tell(at: object) -> None:
        nonlocal reached
        reached = str(at)

    def end() -> None:
        over.set()
        shown.join()

    shown = threading.Thread(target=show, daemon=True)
    shown.start()
    _HUSHES.append(end)
    try:
        yield tell
    finally:
        _HUSHES.remove(end)
        end()


def hush() -> None:
    """Say no more about what is being done: something else is shown."""
    for one in _HUSHES:
        one()


@contextlib.contextmanager
def unasked() -> Iterator[None]:
    """Nobody is asked for a secret meanwhile: the screen shows something else."""

    def refuse() -> None:
        raise HostError("the host asks for a secret, which can't be typed here", "leave with q, and start again")

    _HUSHES.append(refuse)
    try:
        yield
    finally:
        _HUSHES.remove(refuse)


def _asked(ask: Callable[..., Any], **how: Any) -> Callable[[str], Any] | None:
    """Asks a question at the terminal; None without one."""

    def answer(question: str) -> Any:
        hush()
        return ask(question, err=True, **how)

    return answer if sys.stdin.isatty() else None


def colour() -> bool | None:
    """False if the user wants no colour (no-color.org); None lets the terminal decide."""
    return False if os.environ.get("NO_COLOR") else None


def show_error(error: UserError) -> None:
    """Show an error and its hint; both may hold text from a host."""
    click.secho("Error: ", fg="red", bold=True, nl=False, err=True, color=colour())
    click.echo(_LONG_WORD.sub(r"\1...", harmless(error.message)), err=True)
    if error.hint:
        click.secho("  hint: ", fg="cyan", nl=False, err=True, color=colour())
        click.echo(harmless(error.hint), err=True)


def _with_key(error: click.ClickException) -> click.ClickException:
    """The error; if the unknown option is a key of the grid, it explains --set."""
    if not isinstance(error, click.NoSuchOption):
        return error
    from comborun.grid.keys.grid_file import GridFile

    key = error.option_name.lstrip("-")
    takes = error.ctx and any("--set" in one.opts for one in error.ctx.command.params)
    if not takes or key not in GridFile.model_fields:
        return error
    said = f"No such option '{error.option_name}': `{key}` is a key of the grid. Write it there, or --set {key}=..."
    return click.NoSuchOption(error.option_name, said, ctx=error.ctx)


def show_json(answer: Any) -> None:
    """An answer as one JSON document on standard output."""
    click.echo(to_json(answer))


def show_text(answer: Text, *, as_json: bool) -> None:
    """A text that a user redirects into a file, unchanged."""
    if as_json:
        show_json(answer)
    else:
        click.echo(answer.text, nl=False)


def show_record(answer: Any) -> None:
    """An answer as one line of a stream."""
    click.echo(to_json(answer, indent=None))
    sys.stdout.flush()


def program() -> str:
    """`combo` as the user can type it: its name if it is on the PATH, else its path."""
    from shutil import which

    here, found = Path(sys.argv[0]).resolve().with_name("combo"), which("combo")
    if (found and Path(found).resolve() == here) or not here.is_file():
        return "combo"
    below = here.is_relative_to(Path.cwd())
    return shlex.quote(f"./{here.relative_to(Path.cwd())}" if below else str(here))


def show_rows(rows: dict[str, str], *, err: bool = False) -> None:
    width = max(map(len, rows), default=0)
    for label, value in rows.items():
        click.echo(f"  {click.style(label.ljust(width), dim=True)}  {value}", err=err)


def show_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[str] = (), colours: Sequence[str] = ()
) -> None:
    """Print aligned columns, those of `numbers` to the right; without rows nothing. `colours` has one for each row.

    No cell is cut, whatever the width, because people copy names.
    """
    from rich.cells import cell_len

    table = [tuple(harmless(cell, keep="") for cell in row) for row in (heads, *rows)]
    if len(table) == 1:
        return
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    for row, colour in zip_longest(table, ("", *colours), fillvalue=""):
        line = ""
        for head, cell, width in zip(heads, row, widths, strict=True):
            blanks = " " * (width - cell_len(cell))
            line += f"{blanks}{cell}  " if head in numbers else f"{cell}{blanks}  "
        click.echo(click.style(line.rstrip(), fg=colour or None, dim=row is table[0] or None))


class _Terminal(Listener):
    """Says on standard error what a call says, and asks there."""

    forks = True

    @property
    def program(self) -> str:  # type: ignore[override]
        return program()

    @property
    def ask(self) -> Callable[[str], str] | None:  # type: ignore[override]
        return _asked(click.prompt, hide_input=True)

    @property
    def agree(self) -> Callable[[str], bool] | None:  # type: ignore[override]
        return _asked(click.confirm, default=True)

    def tell(self, text: str) -> None:
        hush()
        click.echo(harmless(text), err=True)

    def note(self, sentence: str) -> None:
        click.echo(harmless(f"Note: {sentence}"), err=True)

    def warn(self, *warnings: str) -> None:
        for warning in warnings:
            click.secho("Warning: ", fg="yellow", nl=False, err=True)
            click.echo(harmless(warning), err=True)

    def working(self, what: str) -> contextlib.AbstractContextManager[Callable[[object], None]]:
        return working(what)

    def confirm(self, question: str, otherwise: UserError) -> bool:
        if not sys.stdin.isatty():
            raise otherwise
        self.tell(otherwise.message)
        try:
            return click.confirm(question, default=True, err=True)
        except click.Abort:
            click.echo("\nNothing was changed.", err=True)
            raise

    def opened(self, transport: Opened) -> None:
        """Close it at the end of the command, and show its warnings, such as skipped ssh settings."""
        if context := click.get_current_context(silent=True):
            context.call_on_close(partial(_close, transport))


def _close(opened: Opened) -> None:
    """A look in progress, at a host that does not answer, holds up the end of a command for a moment only."""
    closing = threading.Thread(target=opened.close, daemon=True)
    closing.start()
    closing.join(_CLOSE_S)
    for warning in opened.warnings:
        TERMINAL.note(warning)


TERMINAL = _Terminal()
note, warn = TERMINAL.note, TERMINAL.warn


def wrapped(sentence: str, lead: str = "") -> str:
    """The sentence in lines of the terminal's width, indented after `lead`; in one line without a terminal."""
    if not sys.stdout.isatty():
        return f"{lead}{sentence}"
    from shutil import get_terminal_size

    from rich.console import Console
    from rich.text import Text

    room = max(1, get_terminal_size().columns - len(lead))
    first, *others = (line.plain.rstrip() for line in Text(sentence).wrap(Console(), room))  # it knows wide characters
    return f"\n{' ' * len(lead)}".join((f"{lead}{first}", *others))
