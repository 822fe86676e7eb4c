"""combo explain: why a session waits, what it does, or how it ended; and what went wrong in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from comborun.api.looking import causes_of, explanations
from comborun.cli.options import json_option, of_run_option, sessions_argument
from comborun.cli.terminal import program, show_json, wrapped
from comborun.monitor.wording import MARKS, SERVER_MARKS, UNMARKED
from comborun.rules.vocabulary import first_of, several
from comborun.text import harmless
from comborun.words import say
from comborun.words.endings import outcome_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.api.named import Target
    from comborun.monitor.causes import RunCauses
    from comborun.monitor.explain import Command, Explanation

_MOST_NAMED = 8
"""sessions of a cause that are named"""


@click.command()
@sessions_argument("sessions", metavar="[SESSION]")
@of_run_option
@json_option
def explain(sessions: tuple[str, ...], target: Target, as_json: bool) -> None:
    """Explain why a session does not run, what it does, or how it ended, and how to continue.

    Without a session: what went wrong in the run, equal causes together, each with the next step.

    \b
    combo explain                        all failures of the newest run
    combo explain stairs_flat
    combo explain flat stairs            its policy and its environment
    combo explain vlm                    a model server
    """
    if not sessions:
        _explain_run(causes_of(target), target.options, as_json=as_json)
        return
    found = explanations(target, sessions)
    if as_json:
        answers = [one.answer for one in found]
        show_json(answers[0] if len(answers) == 1 else answers)
        return
    for one in found:
        _show(one, "" if target.boxes else target.options)


def _explain_run(found: RunCauses, options: str, *, as_json: bool) -> None:
    if as_json:
        show_json(found.answer)
        return
    said = say(found.summary) if found.causes else "nothing has gone wrong"
    click.echo(f"{click.style(harmless(found.run), bold=True)}: {said}")
    for line in found.advice:
        click.echo(wrapped(harmless(line), "! "))
    for one in found.causes:
        kind = one.failure.row.words if one.failure else ""
        click.echo(f"\n{click.style(one.words, bold=True)}{f' ({kind})' if kind and kind not in one.words else ''}")
        click.echo(wrapped(f"{several(len(one.names), 'session')}: {first_of(one.names, _MOST_NAMED)}", "  "))
        click.echo(wrapped(f"next: {say(one.step)}", "  "))
        _show_commands(one.commands, options)


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
    if found.commands:
        click.echo()
    _show_commands(found.commands, options)


def _show_commands(commands: Sequence[Command], options: str) -> None:
    words = [f"{program()} {one.words}{options}" for one in commands]
    width = max(map(len, words), default=0)
    for line, one in zip(words, commands, strict=True):
        click.echo(f"  {line.ljust(width)}  {click.style(one.does, dim=True)}")
