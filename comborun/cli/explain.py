"""combo explain: why a session is not running, what it is doing, or how it ended."""

from __future__ import annotations

from pathlib import PurePosixPath

import click

from comborun.cli.options import Target, json_option, of_run_option
from comborun.cli.terminal import answer, program, wrapped
from comborun.errors import UserError
from comborun.monitor.classify import classify
from comborun.monitor.explain import MOST_LINES, Explanation, explain_server, server_names, to_document
from comborun.monitor.explain import explain as explain_session
from comborun.monitor.observe import History
from comborun.monitor.wording import SERVER_SYMBOLS, STYLES, SYMBOLS
from comborun.remote.logs import follow
from comborun.rules.names import RunLayout
from comborun.text import did_you_mean, harmless


@click.command()
@click.argument("session")
@of_run_option
@json_option
def explain(session: str, target: Target, as_json: bool) -> None:
    """Say why a session isn't running, what it is doing, or how it ended; with numbers, and what would go on.

    \b
    combo explain stairs_flat
    combo explain vlm                    a model server
    """
    found = _explained(target, session)
    if as_json:
        answer(to_document(found))
    else:
        _show(found, target.options)


def _explained(target: Target, session: str) -> Explanation:
    source = target.source()
    transport, view = target.transport, source.view
    servers = server_names(view.plan)
    known = [*view.sessions, *servers]
    if session not in known:
        hint = did_you_mean(session, known) or f"{program()} status {view.id} names them"
        raise UserError(f"there is no session {session} in {view.id}", hint)
    history = source.fold(History())
    layout, status = RunLayout(target.directory), classify(view, history)
    if session in servers:
        found = explain_server(view, status, session)
        log = layout.server_attempt(session, found.attempt).log if found.attempt else ""
    else:
        found, attempts = explain_session(view, history, status, session), history.of(session)
        log = layout.attempt(session, found.attempt).log if attempts and attempts[-1].log_size else ""
    return found.with_log(b"".join(follow(transport, PurePosixPath(log), 2 * MOST_LINES, on=False))) if log else found


def _show(found: Explanation, options: str) -> None:
    sign = SYMBOLS.get(found.state) or SERVER_SYMBOLS.get(found.state, "·")
    style = STYLES.get(found.state, "dim")
    state = click.style(f"{sign} {found.state}", dim=style == "dim" or None, fg=None if style == "dim" else style)
    click.echo(f"{click.style(harmless(found.combo), bold=True)} ({found.session}) is {state}")
    for reason in found.reasons:
        click.echo(wrapped(harmless(reason), "  - "))
    if found.last_lines:
        click.echo(f"\nThe end of its log (attempt {found.attempt}):")
    for line in found.last_lines:
        click.echo(f"  {click.style(line, dim=True)}")
    words = [f"{program()} {one.words}{options}" for one in found.commands]
    width = max(map(len, words), default=0)
    if words:
        click.echo()
    for line, one in zip(words, found.commands, strict=True):
        click.echo(f"  {line.ljust(width)}  {click.style(one.does, dim=True)}")
