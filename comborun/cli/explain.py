"""combo explain: why a session does not run, what it does, or how it ended."""

from __future__ import annotations

from pathlib import PurePosixPath

import click

from comborun.cli.options import Target, json_option, of_run_option, sessions_argument
from comborun.cli.terminal import note, program, show_json, wrapped
from comborun.monitor.addressing import sessions_of
from comborun.monitor.classify import classify
from comborun.monitor.explain import MOST_LINES, Explanation, explain_server, server_names, to_document
from comborun.monitor.explain import explain as explain_session
from comborun.monitor.observe import History
from comborun.monitor.wording import MARKS, SERVER_MARKS, UNMARKED
from comborun.remote.logs import end_of_log
from comborun.rules.names import SERVERS, RunLayout
from comborun.text import harmless
from comborun.words import say
from comborun.words.endings import outcome_words


@click.command()
@sessions_argument("sessions", required=True, metavar="SESSION")
@of_run_option
@json_option
def explain(sessions: tuple[str, ...], target: Target, as_json: bool) -> None:
    """Explain why a session does not run, what it does, or how it ended, and how to continue.

    \b
    combo explain stairs_flat
    combo explain flat stairs            its policy and its environment
    combo explain vlm                    a model server
    """
    found = _explained(target, sessions)
    if as_json:
        documents = [to_document(one) for one in found]
        show_json(documents[0] if len(documents) == 1 else documents)
        return
    for one in found:
        _show(one, target.options)


def _explained(target: Target, words: tuple[str, ...]) -> list[Explanation]:
    source = target.source()
    transport, view = target.transport, source.view
    history = source.fold(History())
    layout, status = RunLayout(target.directory), classify(view, history)
    found = []
    for session in sessions_of(source, words, note, guess=True):
        if session in server_names(view.plan):
            one = explain_server(view, status, session)
            log = layout.attempt(SERVERS + session, one.attempt).log if one.attempt else ""
        else:
            one, attempts = explain_session(view, history, status, session), history.of(session)
            log = layout.attempt(session, one.attempt).log if attempts and attempts[-1].log_size else ""
        found.append(one.with_log(end_of_log(transport, PurePosixPath(log), 2 * MOST_LINES)) if log else one)
    return found


def _show(found: Explanation, options: str) -> None:
    word = found.outcome or found.state
    symbol, style, _ = MARKS.get(word) or SERVER_MARKS.get(word, UNMARKED)
    text = f"{symbol} {outcome_words(word)}"
    state = click.style(text, dim=style == "dim" or None, fg=None if style == "dim" else style)
    combo = harmless(f" ({found.policy} in {found.environment})" if found.policy else "")
    click.echo(f"{click.style(found.session, bold=True)}{combo} is {state}")
    for reason in found.reasons:
        click.echo(wrapped(harmless(say(reason)), "  - "))
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
