"""combo explain: why a session is not running, what it is doing, or how it ended."""

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from comborun.cli.options import Where, json_option, root_option, run_option, where_options
from comborun.cli.terminal import answer, program
from comborun.errors import UserError
from comborun.monitor.classify import classify
from comborun.monitor.explain import MOST_LINES, Explanation, explain_server, server_names, to_document
from comborun.monitor.explain import explain as explain_session
from comborun.monitor.observe import History, load_run
from comborun.monitor.watch import Source
from comborun.monitor.wording import SERVER_SYMBOLS, STYLES, SYMBOLS
from comborun.remote.logs import follow
from comborun.rules.names import RunLayout
from comborun.text import did_you_mean, harmless

if TYPE_CHECKING:
    from comborun.remote.transport import Transport


@click.command()
@click.argument("session")
@run_option
@where_options
@root_option
@json_option
def explain(session: str, wanted: str | None, where: Where, root: str | None, as_json: bool) -> None:
    """Say why a session isn't running, what it is doing, or how it ended; with numbers, and what would go on.

    \b
    combo explain stairs_flat
    combo explain vlm                    a model server
    """
    transport, found = where.find(wanted, root)
    told = _explained(transport, found.directory, session)
    if as_json:
        answer(to_document(told))
        return
    _tell(told, where.options(transport.host))


def _explained(transport: Transport, directory: str, session: str) -> Explanation:
    view = load_run(transport, directory)
    servers = server_names(view.plan)
    known = [*view.sessions, *servers]
    if session not in known:
        hint = did_you_mean(session, known) or f"{program()} status {view.id} names them"
        raise UserError(f"there is no session {session} in {view.id}", hint)
    history = Source(transport, view).fold(History())
    layout, status = RunLayout(directory), classify(view, history)
    if session in servers:
        told = explain_server(view, status, session)
        return (
            _with_log(transport, told, PurePosixPath(layout.server_attempt(session, told.attempt).log))
            if told.attempt
            else told
        )
    told = explain_session(view, history, status, session)
    attempts = history.of(session)
    if not attempts or not attempts[-1].log_size:
        return told
    return _with_log(transport, told, PurePosixPath(layout.attempt(session, told.attempt).log))


def _with_log(transport: Transport, told: Explanation, log: PurePosixPath) -> Explanation:
    return told.with_log(b"".join(follow(transport, log, 2 * MOST_LINES, on=False)))


def _tell(told: Explanation, options: str) -> None:
    sign = SYMBOLS.get(told.state) or SERVER_SYMBOLS.get(told.state, "·")
    state = click.style(f"{sign} {told.state}", **_style(STYLES.get(told.state, "dim")))
    click.echo(f"{click.style(harmless(told.combo), bold=True)} ({told.session}) is {state}")
    for reason in told.reasons:
        click.echo(_bullet(harmless(reason)))
    if told.last_lines:
        click.echo(f"\nThe end of its log (attempt {told.attempt}):")
    for line in told.last_lines:
        click.echo(f"  {click.style(line, dim=True)}")
    if told.commands:
        click.echo()
    words = [f"{program()} {one.words}{options}" for one in told.commands]
    width = max(map(len, words), default=0)
    for line, one in zip(words, told.commands, strict=True):
        click.echo(f"  {line.ljust(width)}  {click.style(one.does, dim=True)}")


def _style(style: str) -> dict[str, Any]:
    return {"dim": True} if style == "dim" else {"fg": style}


def _bullet(sentence: str) -> str:
    """Broken where the terminal would break it, and indented there; whole where there is none."""
    if not sys.stdout.isatty():
        return f"  - {sentence}"
    width = shutil.get_terminal_size().columns
    return textwrap.fill(
        sentence, width, initial_indent="  - ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
