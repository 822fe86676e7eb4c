"""combo init, check, plan, schema: everything about a grid before anything runs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from comborun.amounts import several
from comborun.cli.frame import answer, grid_argument, json_option, program, tell
from comborun.cli.globbing import with_policies
from comborun.cli.knowing import expected_data, expected_rows, known_of
from comborun.cli.on_slurm import laid_out, show_on_slurm, show_scripts, slurm_option, slurm_script
from comborun.cli.placing import gpu_rows, placement_lines
from comborun.cli.presets import named_preset
from comborun.cli.serving import server_rows
from comborun.cli.where import where_options
from comborun.errors import UserError
from comborun.grid import Grid, load_grid, preset_starter, schema_text, starter_grid
from comborun.instances import instances
from comborun.planner import NOTHING_KNOWN, absent_gpus
from comborun.remote.host import ask
from comborun.remote.local import LocalTransport
from comborun.remote.runs import list_runs
from comborun.remote.shipping.survey import digest_of, survey, told
from comborun.script import scripts, server_script
from comborun.session.page import says_something

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from comborun.cli.where import Where
    from comborun.facts import HostFacts
    from comborun.plan import Plan, Session
    from comborun.remote.shipping.survey import Shipment
    from comborun.transport import Transport


@click.command()
@click.option("--name", default="my_grid", show_default=True, help="The grid's name.")
@click.option("--preset", metavar="P", help="The program that it is for; `combo presets` lists them.")
def init(name: str, preset: str | None) -> None:
    """Write a commented starter grid to standard output.

    \b
    combo init --name push_cube > grid.yaml
    combo init --preset openpi > grid.yaml
    """
    click.echo(preset_starter(named_preset(preset), preset, name) if preset else starter_grid(name), nl=False)


@click.command()
def schema() -> None:
    """Write the JSON Schema of a grid file, for editors.

    \b
    combo schema > grid.schema.json
    """
    click.echo(schema_text(), nl=False)


@click.command()
@grid_argument
@json_option
def check(grid: Path, as_json: bool) -> None:
    """Find every mistake in a grid file at once.

    \b
    combo check grid.yaml
    """
    checked = load_grid(grid)
    check_setup(checked)
    if as_json:
        answer({"grid": checked.name, "combos": len(checked.combos), "warnings": [str(w) for w in checked.warnings]})
        return
    warn(checked)
    found = f" for each file that {checked.policy_glob} finds" if checked.policy_glob else ""
    click.echo(f"{checked.name}: {several(len(checked.combos), 'combo')}{found}, no mistakes")


@click.command()
@grid_argument
@where_options
@slurm_option
@click.option("--script", metavar="SESSION", help="Print the script of one session (or of array-1, settle on Slurm).")
@json_option
def plan(grid: Path, where: Where, slurm: bool, script: str | None, as_json: bool) -> None:
    """Show what a new run would do, in which order, and how. Changes nothing. Ends with code 3 where Slurm refuses it.

    \b
    combo plan grid.yaml
    combo plan grid.yaml --script stairs_flat
    combo plan grid.yaml --slurm --host login1      as job arrays on Slurm
    """
    checked = load_grid(grid)
    check_setup(checked)
    shipments = survey(checked.sync, checked.path.parent)
    transport = where.connect(checked.host)
    checked = with_policies(checked, transport)
    facts = ask(transport, host_python=checked.host_python)
    known = NOTHING_KNOWN if slurm else known_of(checked, facts)
    laid = laid_out(checked, facts, digest_of(shipments), known, slurm=slurm)
    refused = None
    if script:
        click.echo(_script(laid, script), nl=False)
    elif as_json:
        expected = {} if slurm else {"expected": expected_data(laid, checked, facts, known)}
        answer(dataclasses.asdict(laid) | expected)
    else:
        warn(checked)
        if not slurm:
            warn_of_host(checked, facts)
        rows = {} if slurm else expected_rows(laid, checked, facts, known)
        _show(laid, shipments, run_row(transport, checked) | rows)
        if slurm:
            refused = show_on_slurm(transport, laid, checked)
        _list(laid)
        for line in placement_lines(laid, facts):
            click.echo(line)
        if slurm:
            show_scripts(laid)
    if refused:  # last, where a person looks
        raise refused


def warn(grid: Grid) -> None:
    """Show the warnings of a grid."""
    for warning in grid.warnings:
        click.secho("Warning: ", fg="yellow", nl=False, err=True)
        click.echo(str(warning), err=True)


def warn_of_host(grid: Grid, host: HostFacts) -> None:
    """Show what of a grid the host can't do, though it can do the rest."""
    if absent := absent_gpus(grid, host):
        gpus = f"GPU{'s' * (len(absent) > 1)} {', '.join(map(str, absent))}"
        has = ", ".join(map(str, host.gpus))
        click.secho("Warning: ", fg="yellow", nl=False, err=True)
        click.echo(
            f"{grid.path}: `use_gpus` names {gpus}, and {host.called} has {has}: the others of it are used", err=True
        )


def check_setup(grid: Grid) -> None:
    """Let bash read every `setup` once, without running it. Raises UserError with what bash says."""
    for text in filter(says_something, dict.fromkeys(combo.settings.setup for combo in grid.combos)):
        done = LocalTransport().run("bash -n", stdin=f"setup() {{\n{text}\n}}\n".encode())
        if done.code:
            raise UserError(f"{grid.path}: bash can't read setup:\n{done.complaint}", "mind quotes, `fi` and `done`")


def run_row(transport: Transport, grid: Grid) -> dict[str, str]:
    """The run that a launch of the grid would be about; nothing where there is none."""
    own = next((run for run in list_runs(transport, (grid.root,)) if run.id.rsplit("-", 2)[0] == grid.name), None)
    if own is None:
        return {}
    about = f"`{program()} launch` is about that one, --new starts another; what follows is for a new one"
    return {"has a run": f"{own.id}: {about}"}


def _script(laid: Plan, session: str) -> str:
    texts = dict(scripts(laid)) | {one.name: server_script(one) for one in instances(laid)}
    if laid.slurm and (text := slurm_script(laid, session)):
        return text
    if session not in texts:
        raise UserError(f"the plan has no session {session!r}", f"it has {', '.join(texts)}")
    return texts[session]


def _show(laid: Plan, shipments: Iterable[Shipment], expected: dict[str, str]) -> None:
    limits = laid.limits
    episodes = sum(session.count for session in laid.sessions if session.unit == "episode")
    sessions, work = several(len(laid.sessions), "session"), several(episodes, "episode")
    click.echo(f"{click.style(laid.grid, bold=True)}: {sessions}, {work}")
    rows = expected | gpu_rows(laid)
    if limits.stagger and not laid.slurm:
        rows["spacing"] = f"{limits.stagger:g} s between two starts"
    rows |= server_rows(laid)
    if laid.after:
        rows["after"] = " ".join(laid.after.command)
    for shipment in shipments:
        size = f"{several(len(shipment.items), 'file')}, {told(shipment.size)}"
        rows[f"ships {shipment.entry.source}"] = f"{size} to {shipment.entry.to}"
    if laid.replaces:
        rows["replaces"] = ", ".join(laid.replaces)
    if laid.secrets:
        rows["secrets"] = ", ".join(f"{name} ({source})" for name, source in laid.secrets)
    tell(rows)


def _list(laid: Plan) -> None:
    """The sessions, in their order."""
    width = max(len(session.name) for session in laid.sessions)
    for number, session in enumerate(laid.sessions, 1):
        click.echo(f"{number:4}  {session.name.ljust(width)}  {_work(session)}")


def _work(session: Session) -> str:
    unit = f"{session.unit}s"
    work = f"{unit} {session.first}-{session.first + session.count - 1}" if session.count else f"{unit} as it decides"
    return work + (f", {several(session.gpus, 'GPU')}" if session.gpus else "")
