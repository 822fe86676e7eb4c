"""What `--slurm` adds to plan, launch and run."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import click

from comborun.amounts import several
from comborun.cli.frame import tell
from comborun.cli.knowing import known_of
from comborun.errors import HostError, UserError
from comborun.jobs import kind_of, kinds, texts
from comborun.plaintext import harmless
from comborun.planner import lay_out, lay_out_on_slurm, not_held
from comborun.remote.slurm import check_taken, consult, refusal
from comborun.rules.names import RUN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.cli.request import Request
    from comborun.facts import HostFacts
    from comborun.grid import Grid
    from comborun.plan import Plan
    from comborun.planner import Knowledge
    from comborun.remote.slurm import Answer
    from comborun.transport import Transport

slurm_option = click.option("--slurm", is_flag=True, help="Hand the sessions to Slurm, as job arrays.")

_MOST_SCRIPTS = 3


def laid_out(grid: Grid, host: HostFacts, shipped: str, known: Knowledge | None = None, *, slurm: bool) -> Plan:
    """The plan for the engine that was asked for; without `known`, with all that is."""
    if slurm:
        return lay_out_on_slurm(grid, host, shipped)
    return lay_out(grid, host, shipped, known_of(grid, host) if known is None else known)


def refuse_options(request: Request) -> None:
    """Raise UserError for options that have no meaning on Slurm."""
    if request.multiplexer:
        raise UserError("--multiplexer with --slurm: sessions on nodes have no windows", "combo attach shows them")


def check_engine(found: Plan, wanted: Plan, run: str) -> None:
    """Raise UserError where a grid's run is another engine's: its sessions are started by one of them."""
    if found.engine == wanted.engine:
        return
    if found.slurm:
        message, hint = f"this grid's run {run} is on Slurm", "add --slurm to go on with it, or --new for another run"
    else:
        message = f"this grid's run {run} is not on Slurm: a dispatcher starts its sessions"
        hint = "leave --slurm out to go on with it, or add --new for another run"
    raise UserError(message, hint)


def check_cluster(transport: Transport, plan: Plan) -> None:
    """Raise HostError where Slurm is not there, or would not take the plan's jobs; warn of what it can't say now."""
    for doubt in check_taken(transport, plan, consult(transport, plan)):
        click.secho("Warning: ", fg="yellow", nl=False, err=True)
        click.echo(f"{harmless(doubt)}. It is submitted all the same: sbatch lets it wait, or refuses it", err=True)


def slurm_script(plan: Plan, name: str) -> str | None:
    """The text of `array-1`, `settle` and so on; None where the plan has none of that name."""
    return next((text for path, text in texts(plan) if path == f"{RUN.slurm}/{name}.sh"), None)


def show_on_slurm(transport: Transport, plan: Plan, grid: Grid) -> HostError | None:
    """What Slurm would be asked, and what it says to that. Changes nothing. The error, where it refuses some of it."""
    assert plan.slurm
    found = kinds(plan)
    of = [found.index(kind_of(session, plan.slurm)) for session in plan.sessions]
    rows = {
        f"array {number}": f"{several(of.count(number - 1), 'task')}{_at_once(plan)}, each with {kind}"
        for number, kind in enumerate(found, 1)
    }
    said, refused = _said(transport, plan)
    tell(rows | said)
    for sentence in not_held(plan, grid):
        click.echo(f"  not with --slurm: {sentence}")
    return refused


def show_scripts(plan: Plan) -> None:
    """The job scripts, as they are handed to sbatch."""
    scripts = [(path, text) for path, text in texts(plan) if PurePosixPath(path).name.startswith("array-")]
    for path, text in scripts[:_MOST_SCRIPTS]:
        click.echo(f"\n{click.style(str(path), bold=True)}")
        click.echo("".join(f"  {line}\n" for line in text.splitlines()), nl=False)
    left = len(scripts) - _MOST_SCRIPTS
    more = f"{several(left, 'more array')}: --script array-{_MOST_SCRIPTS + 1} shows the next; " if left > 0 else ""
    click.echo(f"\n{more}--script settle shows the small job that retries and ends the run")


def _at_once(plan: Plan) -> str:
    at_once = plan.slurm.parallel if plan.slurm else 0
    return f", {at_once} at once at most" if at_once else ""


def _said(transport: Transport, plan: Plan) -> tuple[dict[str, str], HostError | None]:
    """What the cluster is, and what it says to each array; and the error where it refuses one of them.

    A laptop without Slurm still shows what would be asked.
    """
    try:
        cluster = consult(transport, plan)
    except HostError as error:
        why = f"not asked: {error.message}" + (f" ({error.hint})" if error.hint else "")
        return {"cluster": harmless(why)}, None
    arrays = {f"array {number} now": _word(answer) for number, answer in enumerate(cluster.arrays, 1)}
    settle = {} if cluster.settle.taken else {"settle now": _word(cluster.settle)}
    return {"cluster": harmless(str(cluster)), **arrays, **settle}, refusal(transport, plan, cluster)


def _word(answer: Answer) -> str:
    said = harmless(answer.said)
    if answer.taken:
        return said.replace("to start", "would start", 1)
    if answer.away:
        return click.style(f"can't start now, {harmless(answer.away)}: {said}", fg="yellow")
    return click.style(f"refused: {said}", fg="red")


def lines_said(said: str) -> Iterator[str]:
    """What slurm_submit.sh said, a sentence each."""
    return filter(None, map(str.strip, said.splitlines()))
