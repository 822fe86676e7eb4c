"""combo plan and combo export: what a new run would do, and in which order."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from comborun.answers import grids
from comborun.api.boxes import TogetherRequest, dealt_together, several_hosts
from comborun.cli.options import grid_argument, host_options, hosts_options, json_option, slurm_option
from comborun.cli.placement import placement_lines
from comborun.cli.terminal import program, show_json, show_rows, show_text, warn, working
from comborun.errors import HostError, UserError
from comborun.generate.compose import compose_text
from comborun.generate.run_scripts import scripts, server_script
from comborun.generate.slurm_jobs import kind_of, kinds, texts
from comborun.model.plan import shown_of
from comborun.model.work import process_of, processes
from comborun.planner.knowledge import NOTHING_KNOWN
from comborun.planner.laying import lay_out, not_held
from comborun.planner.packing import outlook
from comborun.planner.program import host_warnings, rooms
from comborun.remote.grids import known_of, laid_out, not_ready, preflight_question, with_policies
from comborun.remote.host import host_facts
from comborun.remote.preparing import LaunchRequest
from comborun.remote.runs import list_runs
from comborun.remote.shipping import digest_of, survey
from comborun.remote.slurm import consult, refusal
from comborun.remote.transport import LOCAL
from comborun.rules.names import RUN
from comborun.rules.vocabulary import amount
from comborun.text import MIB, first_of, harmless, several
from comborun.words.times import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comborun.api.named import GridChoice, HostChoice
    from comborun.grid import Grid
    from comborun.model.plan import Plan
    from comborun.model.resources import ModelServer
    from comborun.planner.packing import Outlook
    from comborun.remote.shipping import Shipment
    from comborun.remote.slurm import SubmitTest
    from comborun.remote.transport import Transport
    from comborun.reporter.comparing.power import Findable

_MOST = 3
"""names, and job scripts, that are shown"""


@click.command()
@grid_argument
@hosts_options
@slurm_option
@click.option("--script", metavar="SESSION", help="Print the script of one session (or of array-1, settle on Slurm).")
@click.option(
    "--gap",
    type=click.FloatRange(0.1, 99),
    metavar="POINTS",
    help="Show how many episodes would find a gap of so many percentage points.",
)
@json_option
def plan(grid: GridChoice, where: HostChoice, hosts: tuple[str, ...], slurm: bool, as_json: bool, **shown: Any) -> None:
    """Show what a new run would do, and in which order. Changes nothing. The exit code is 3 if Slurm refuses the jobs.

    \b
    combo plan grid.yaml
    combo plan grid.yaml --script stairs_flat
    combo plan grid.yaml --gap 5                how many episodes this gap needs
    combo plan grid.yaml --slurm --host login1  as job arrays on Slurm
    combo plan grid.yaml --host h100 --host box2    who would run what
    """
    if entries := several_hosts(grid, hosts):
        _plan_together(grid, where, TogetherRequest(entries, leave_out=True), slurm=slurm, as_json=as_json, **shown)
        return
    checked = grid.read()
    shipments = survey(checked.sync, checked.path.parent)
    transport = where.connect(checked.host)
    with working("looking at the host"):
        checked = with_policies(checked, transport)
        named = preflight_question(checked, local=transport.host == LOCAL, windows=not slurm)
        facts = host_facts(transport, host_python=checked.host_python, named=named)
    if facts.absent and not as_json and not shown["script"]:
        warn(not_ready(facts.absent, facts.called))
    known = NOTHING_KNOWN if slurm else known_of(checked, facts)
    laid = laid_out(checked, facts, digest_of(shipments), known, slurm=slurm)
    expected = None if slurm else outlook(laid, checked, facts, known)
    if laid.follow:
        laid, expected = laid.template, expected and replace(expected, unknown=tuple(map(shown_of, expected.unknown)))
    if shown["script"]:
        show_text(grids.Text(shown["script"], _script(laid, shown["script"])), as_json=as_json)
        return
    gap: float | None = shown["gap"]
    power = _power(laid, gap)
    if as_json:
        whole = {field.name: getattr(laid, field.name) for field in fields(laid)}
        show_json(grids.Planned(**whole, expected=expected, power=power))
        return
    warn(*map(str, checked.warnings), *(() if slurm else host_warnings(checked, facts)))
    rows = dict(_outlook_rows(expected, checked) if expected else ())
    _show(laid, shipments, _run_row(transport, checked) | rows | dict(_power_rows(power, gap)))
    refused = show_on_slurm(transport, laid, checked) if slurm else None
    _list(laid)
    for line in placement_lines(laid, rooms(facts, laid.reserve)):
        click.echo(line)
    if slurm:
        _show_job_scripts(laid)
    if refused:  # last, where people see it
        raise refused


def _plan_together(
    grid: GridChoice, where: HostChoice, together: TogetherRequest, *, slurm: bool, as_json: bool, **shown: Any
) -> None:
    """Show who would run what of a new run."""
    found = dealt_together(grid, where, LaunchRequest(slurm=slurm, force=True), together)
    laid = next(iter(found.drafts.values())).plan
    if shown["script"]:
        show_text(grids.Text(shown["script"], _script(laid, shown["script"])), as_json=as_json)
        return
    power = _power(laid, shown["gap"])
    shares = {
        host: tuple(one.name for one in laid.current if found.deal.of[process_of(one)] == host)
        for host in found.deal.boxes
    }
    if as_json:
        whole = {field.name: getattr(laid, field.name) for field in fields(laid)}
        told = tuple(grids.PlannedHost(host, names, found.seconds.get(host)) for host, names in shares.items())
        show_json(grids.Planned(**whole, expected=None, power=power, hosts=told))
        return
    _show(laid, (), deal_rows(shares, found.seconds) | dict(_power_rows(power, shown["gap"])))
    warn(*(f"{host} can't be used, and has no share here: {why}" for host, why in found.left_out.items()))
    _list(laid, {name: host for host, names in shares.items() for name in names})


def deal_rows(shares: Mapping[str, Sequence[str]], seconds: Mapping[str, float]) -> dict[str, str]:
    """How many sessions each host has, and how long that takes."""
    return {
        harmless(host): several(len(names), "session")
        + (f", ends after about {duration(seconds[host])}" if names and seconds.get(host) else "")
        for host, names in shares.items()
    }


def _run_row(transport: Transport, grid: Grid) -> dict[str, str]:
    own = next((run for run in list_runs(transport, (grid.root,)) if run.id.rsplit("-", 2)[0] == grid.name), None)
    if own is None:
        return {}
    about = f"`{program()} launch` would use it, --new starts another; the plan below is for a new run"
    return {"has a run": f"{own.id}: {about}"}


def _script(laid: Plan, session: str) -> str:
    shared = {one.name: process_of(one) for one in laid.sessions}
    session = shared.get(session, session)
    known = dict(scripts(laid)) | {one.name: server_script(one) for one in laid.server_instances}
    jobs = dict(texts(laid)) if laid.slurm else {}
    text = jobs.get(f"{RUN.slurm}/{session}.sh") or known.get(session)
    if text is None:
        raise UserError(f"the plan has no session {session!r}", f"it has {', '.join(known)}")
    return text


def _show(laid: Plan, shipments: Iterable[Shipment], expected: dict[str, str]) -> None:
    limits = laid.limits
    counts: Counter[str] = Counter()
    for session in laid.sessions:
        counts[session.unit] += session.count
    number = len(processes(laid.sessions))
    shared = [several(number, "process", "processes")] if number < len(laid.sessions) else []
    work = [several(count, unit) if count else f"as many {unit}s as the program runs" for unit, count in counts.items()]
    each = "for each checkpoint " if laid.follow else ""
    every = ", ".join([several(len(laid.sessions), "session"), *shared, *work])
    click.echo(f"{click.style(laid.grid, bold=True)}: {each}{every}")
    rows = dict(expected)
    asking = [session for session in laid.sessions if session.gpus]
    if allowed := sorted({gpu for session in asking for gpu in session.request.only or laid.gpus}):
        rows["GPUs"] = ", ".join(map(str, allowed))
    if limits.stagger and not laid.slurm:
        rows["spacing"] = f"{limits.stagger:g} s between two starts"
    rows |= {f"server {server.name}": _server_row(server, laid) for server in laid.servers}
    if laid.after:
        rows["after"] = " ".join(laid.after.command)
    for shipment in shipments:
        size = f"{several(len(shipment.items), 'file')}, {amount(shipment.size)}"
        rows[f"ships {shipment.entry.source}"] = f"{size} to {shipment.entry.to}"
    if laid.replaces:
        rows["replaces"] = ", ".join(laid.replaces)
    if laid.secrets:
        rows["secrets"] = ", ".join(f"{name} ({source})" for name, source in laid.secrets)
    show_rows(rows)


def _list(laid: Plan, hosts: Mapping[str, str] = MappingProxyType({})) -> None:
    width = max(len(session.name) for session in laid.sessions)
    for number, session in enumerate(laid.sessions, 1):
        work = f"{session.first}-{session.first + session.count - 1}" if session.count else "as it decides"
        gpus = f", {several(session.gpus, 'GPU')}" if session.gpus else ""
        shared = f", in {session.together}" if session.together else ""
        shared += f", on {harmless(hosts[session.name])}" if session.name in hosts else ""
        click.echo(f"{number:4}  {session.name.ljust(width)}  {session.unit}s {work}{gpus}{shared}")


def _outlook_rows(seen: Outlook, grid: Grid) -> Iterator[tuple[str, str]]:
    limited = f", limited by {seen.limited}" if seen.limited else ", all of them"
    yield "at once", f"{seen.at_once}{limited}"
    if seen.never:
        yield "can't start", f"more than is free now: {first_of(seen.never, _MOST)}"
    if seen.filled:
        yield "filled in", f"{', '.join(seen.filled)}: not in the grid, but measured"
    if seen.makespan is not None:
        yield "ends after", f"about {duration(seen.makespan)}"
    if seen.sequential is not None:
        yield "one by one", duration(seen.sequential)
    if seen.unknown:
        yield "ends after", f"unknown: no time is known for {first_of(seen.unknown, _MOST, 'combo')}"
        if not grid.follow:
            yield "to measure", f"{program()} calibrate {grid.path}"
    elif seen.told:
        yield "known from", seen.told


def _power(laid: Plan, gap: float | None) -> Mapping[str, Findable]:
    """The gaps that the comparisons can find. Empty without scipy, which is an error only if the user gave a gap."""
    try:
        from comborun.reporter.comparing.power import answers

        return answers(laid.sessions, gap and gap / 100, sequential=laid.stop_early is not None)
    except ModuleNotFoundError:
        if gap:
            raise
        return {}


def _power_rows(power: Mapping[str, Findable], gap: float | None) -> Iterator[tuple[str, str]]:
    """No rows if no two policies meet in an environment, or the number of episodes is unknown."""
    if not power:
        return
    found = ", ".join(f"{scope} {_points(one['would_find'])}" for scope, one in power.items())
    more = "" if gap else "; --gap POINTS shows how many episodes another gap needs"
    yield "can find", f"these gaps in points, with a chance of 80 %: {found}{more}"
    if gap:
        counts = (f"{scope} {_count(one['unpaired'])} ({_count(one['paired'])} paired)" for scope, one in power.items())
        yield f"gap of {gap:g}", f"needs episodes of each combo: {', '.join(counts)}"


def _points(gap: float | None) -> str:
    if gap is None or gap < 0.001:
        return "none" if gap is None else "less than 0.1"
    return f"{100 * gap:.0f}" if gap >= 0.02 else f"{100 * gap:.1f}"


def _count(episodes: float | None) -> str:
    return "more than 20,000" if episodes is None else f"{episodes:,}"


def show_on_slurm(transport: Transport, plan: Plan, grid: Grid) -> HostError | None:
    """Show the requests to Slurm, and its answers. Changes nothing. Returns an error if Slurm refuses some of them."""
    assert plan.slurm
    of = Counter(kind_of(session, plan.slurm) for session in plan.sessions)
    limit = f", {plan.slurm.parallel} at once at most" if plan.slurm.parallel else ""
    rows = {
        f"array {number}": f"{several(of[kind], 'task')}{limit}, each with {kind}"
        for number, kind in enumerate(kinds(plan), 1)
    }
    said, refused = _slurm_rows(transport, plan)
    show_rows(rows | said)
    for sentence in not_held(plan, grid):
        click.echo(f"  not with --slurm: {sentence}")
    there = f"`{program()} calibrate`, or `{program()} run` with --new and `{program()} recheck`"
    click.echo(
        f"  not with --slurm: calibrate and recheck measure one machine: `srun --pty bash`, and on that node {there}"
    )
    return refused


def _show_job_scripts(plan: Plan) -> None:
    arrays = [(path, text) for path, text in texts(plan) if path.startswith(f"{RUN.slurm}/") and path != RUN.settle]
    for path, text in arrays[:_MOST]:
        click.echo(f"\n{click.style(str(path), bold=True)}")
        click.echo("".join(f"  {line}\n" for line in text.splitlines()), nl=False)
    left = len(arrays) - _MOST
    more = f"{several(left, 'more array')}: --script array-{_MOST + 1} shows the next; " if left > 0 else ""
    click.echo(f"\n{more}--script settle shows the small job that retries and ends the run")


def _slurm_rows(transport: Transport, plan: Plan) -> tuple[dict[str, str], HostError | None]:
    """The cluster and its answer to each array, as rows; and an error if it refuses one. Works without Slurm, too."""
    try:
        cluster = consult(transport, plan)
    except HostError as error:
        why = f"not asked: {error.message}" + (f" ({error.hint})" if error.hint else "")
        return {"cluster": harmless(why)}, None
    arrays = {f"array {number} now": _word(test) for number, test in enumerate(cluster.arrays, 1)}
    settle = {} if cluster.settle.taken else {"settle now": _word(cluster.settle)}
    return {"cluster": harmless(str(cluster)), **arrays, **settle}, refusal(transport, plan, cluster)


def _word(test: SubmitTest) -> str:
    said = harmless(test.said)
    if test.taken:
        return said.replace("to start", "would start", 1)
    if test.away:
        return click.style(f"can't start now, {harmless(test.away)}: {said}", fg="yellow")
    return click.style(f"refused: {said}", fg="red")


def _server_row(server: ModelServer, plan: Plan) -> str:
    """What a model server takes, when it is ready, and how many sessions use it."""
    asking = sum(server.name in dict(session.servers) for session in plan.sessions)
    parts = [f"{several(asking, 'session')} {'uses' if asking == 1 else 'use'} it"]
    if server.gpus:
        copies = sum(one.server is server for one in plan.server_instances)
        of = f" of {', '.join(map(str, server.request.only))}" if server.request.only else ""
        where = f"one on each of {several(copies, 'GPU')}" if server.each_gpu else several(server.gpus, "GPU") + of
        memory = server.request.gpu_memory
        parts.append(where + (f", {amount(memory * MIB)} on each" if memory else ", alone there"))
    parts.append("ready: " + " and ".join(server.ready))
    return "; ".join(parts)


@click.group()
def export() -> None:
    """Write a grid's plan as a file that another program can run.

    \b
    combo export compose grid.yaml > compose.yaml
    """


@export.command()
@grid_argument
@host_options
@json_option
def compose(grid: GridChoice, where: HostChoice, as_json: bool) -> None:
    """Write a Docker Compose file: a service for each session, with its own GPUs and range of episodes.

    The grid needs `container: {image: NAME}`. GPUs are numbered as on the host.

    \b
    combo export compose grid.yaml > compose.yaml
    combo export compose grid.yaml --host box > compose.yaml
    """
    checked = grid.read()
    if checked.follow:
        raise UserError("the checkpoints of this grid are not there yet", "combo follow GRID --pid PID evaluates them")
    warn(*map(str, checked.warnings))
    transport = where.connect(checked.host)
    checked = with_policies(checked, transport)
    text = compose_text(lay_out(checked, host_facts(transport, host_python=checked.host_python)))
    show_text(grids.Text("compose.yaml", text), as_json=as_json)
