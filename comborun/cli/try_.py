"""combo try: run one episode of one combo, and show which of its results count."""

from __future__ import annotations

import shlex
import shutil
import sys
from typing import TYPE_CHECKING

import click

from comborun.cli.options import episodes_option, grid_argument, host_options, json_option
from comborun.cli.terminal import SOME_DID_NOT, program, show_json, show_line, show_why, warn, wrapped
from comborun.monitor.classify import ended_by
from comborun.monitor.trial_setup import Progress, tidy, trial_setup
from comborun.monitor.trials import FOLDER, chosen, try_one
from comborun.monitor.wording import STYLES, SYMBOLS, indented
from comborun.rules.names import AttemptLayout
from comborun.rules.results.counts import WROTE_NOTHING
from comborun.rules.results.fields import NO_VERDICTS
from comborun.rules.vocabulary import amount
from comborun.text import harmless
from comborun.words import say
from comborun.words.rows import why_not_counted, without_line
from comborun.words.times import brief

if TYPE_CHECKING:
    from comborun.cli.options import GridChoice, HostChoice
    from comborun.monitor.trials import TryResult

_FILES_SHOWN = 8


@click.command("try")
@grid_argument
@click.argument("combo", nargs=-1, metavar="[COMBO]")
@host_options
@episodes_option(default=1)
@json_option
def try_(grid: GridChoice, combo: tuple[str, ...], where: HostChoice, episodes: int, as_json: bool) -> int:
    """Run one episode of one combo, here or on the grid's host, and show which of its results count.

    Shows the command, the end of its log, its files, and the lines for `results:` that would make more rows count.
    COMBO is a session's name, or its policy and environment; the default is the first combo. Changes no run.

    \b
    combo try grid.yaml
    combo try grid.yaml flat stairs --episodes 3
    """
    read = grid.read()
    warn(*map(str, read.warnings))
    progress = Progress(lambda text: click.echo(harmless(text), err=True))
    setup = trial_setup(read, where.connect, lambda whole: chosen(whole, combo), progress, FOLDER)
    tidy(setup)
    tried = try_one(setup, episodes, None if as_json else _running)
    if as_json:
        show_json(tried.document())
    else:
        again = " ".join([str(grid), *map(shlex.quote, () if tried.counts else combo)])
        host = where.options(where.host) if where.host else ""
        _show(tried, f"{program()} {'run' if tried.counts else 'try'} {again}{host}")
    return 0 if tried.counts else SOME_DID_NOT


def _running(seconds: float, line: str) -> None:
    """Draw one line of the terminal, again and again."""
    if sys.stdout.isatty():
        text = f"  running for {brief(seconds)}  {harmless(line)}"
        click.echo(f"\r\033[K{text[: shutil.get_terminal_size().columns - 1]}", nl=False)


def _show(tried: TryResult, then: str) -> None:
    """`then`: the command to give next."""
    session, end = tried.session, tried.end
    if sys.stdout.isatty():
        click.echo("\r\033[K", nl=False)
    sign = click.style(SYMBOLS[end.outcome], fg=STYLES[end.outcome])
    combo = click.style(f"{session.policy} in {session.environment}", bold=True)
    click.echo(f"{sign} {combo}: {harmless(': '.join(filter(None, (_verdict(tried), _trouble(tried)))))}")
    click.echo(wrapped(harmless(tried.command), "  $ "))
    for line in filter(str.strip, tried.log):
        click.echo(click.style(f"  | {indented(line)}", dim=True))
    how = f"ended with code {end.code}" if end.code is not None else f"ended: {end.cause}"
    after = f" after {brief(tried.seconds)}" if tried.seconds is not None else ""
    click.echo(f"  {how}{after}" + (f" ({harmless(end.note)})" if end.note else ""))
    _show_files(tried)
    said = why_not_counted(end.counts.facts) == _trouble(tried)
    if not said and not any(fact.code == WROTE_NOTHING for fact in end.counts.facts):
        show_why(end.counts.facts, tried.grid)
    if tried.seed and tried.counts:
        click.echo(f"  Its rows have the seed in {harmless(tried.seed)!r}. This line compares policies by it:")
        show_line({"seed": tried.seed}, tried.grid)
    click.echo(f"\nNext: {then}")


def _trouble(tried: TryResult) -> str:
    """Why nothing counts, in a few words: how the program ended, or what its files lack; empty if it counts."""
    if tried.counts:
        return ""
    if tried.end.clean:
        return why_not_counted([kept for fact in tried.end.counts.facts for kept in without_line(fact)])
    last = next((line.strip() for line in reversed(tried.log) if line.strip()), "")
    return ": ".join(filter(None, (say(ended_by(tried.end)), tried.end.note or indented(last))))


def _show_files(tried: TryResult) -> None:
    for path, size in tried.files[:_FILES_SHOWN]:
        click.echo(f"  wrote {harmless(path, keep='')} ({amount(size)})")
    if len(tried.files) > _FILES_SHOWN:
        click.echo(f"  and {len(tried.files) - _FILES_SHOWN} more files")
    output = AttemptLayout(tried.attempt).output
    where = f"in {output}" if tried.files else f"It wrote no file below {{output_dir}}, {output}"
    click.echo(click.style(f"  {harmless(where)}", dim=True))


def _verdict(tried: TryResult) -> str:
    counts, planned = tried.end.counts, tried.session.count
    if not tried.session.results.has_records:
        return "only its exit code counts: the grid says `results: none`"
    of = f" of {planned}" if planned else ""
    if not tried.counts and not tried.end.clean:
        return "it failed"
    if not counts.countable:
        return "the results are there; the report counts them"
    if not counts.records:
        return "no episode counts"
    noun = "episode counts" if max(planned, counts.records) == 1 else "episodes count"
    if tried.session.results.success.word == NO_VERDICTS:
        return f"{counts.records}{of} {noun}, by numbers alone"
    verdicts = f"{counts.successes} with success, {counts.failures} without"
    errored = f", {counts.errored} without a verdict" if counts.errored else ""
    return f"{counts.records}{of} {noun}: {verdicts}{errored}"
