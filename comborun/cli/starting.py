"""From a grid file to a run under way: check, lay out, publish or amend, deliver, start. Safe to repeat."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from comborun.again.amend import amend, compare
from comborun.again.smoke import amended_with_smoke, smoke_sessions, with_smoke
from comborun.again.taken_over import taken_over
from comborun.cli.beginning import await_beginning
from comborun.cli.changing import choose, cut_kept, no_change, rule_kept, told_changes, told_running, within_the_rule
from comborun.cli.frame import program
from comborun.cli.globbing import kept, with_policies
from comborun.cli.grids import check_setup, warn, warn_of_host
from comborun.cli.knowing import measured_notes
from comborun.cli.lacking import lacking
from comborun.cli.on_slurm import check_cluster, check_engine, laid_out, lines_said, refuse_options
from comborun.errors import HostError
from comborun.grid import load_grid, parse_grid
from monitor.answer.holds import HALTED, Hold
from monitor.reasons.hints import held
from remote.control import steer
from remote.host import ask, check
from remote.launch import StartOptions, await_added, start
from remote.provenance import preset_origin, provenance, shipped_origin
from remote.publish import Draft, Publication, publish
from remote.publish import amend as put_amendment
from remote.replace import replaced
from remote.runs import Launch, remember
from remote.secrets import asked_of_host, check_host, from_laptop
from remote.shipping.survey import digest_of, survey
from remote.shipping.sync import compare as compare_files
from remote.shipping.sync import deliver, lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.cli.request import Request
    from comborun.grid.globbed import Found
    from comborun.plan import Plan
    from comborun.transport import Transport

_TRIES = 5


@dataclass(frozen=True)
class Launched:
    transport: Transport
    plan: Plan
    """of the run from now on"""
    publication: Publication
    options: str
    """what every later command needs to find the host, as it is typed"""
    shipped: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    submitted: tuple[str, ...] = ()
    """what was handed to Slurm, where it starts the sessions"""
    changes: tuple[str, ...] = ()
    """what the run takes over from a grid that has changed, what not, and what no longer holds it"""
    hold: Hold | None = None
    """what a person has ordered, so that nothing was started"""
    waits: str = ""
    """what the first session waits for, `waits for ...`; empty when one has begun, or nobody looked"""
    lacks: str = ""
    """what a run that has finished has not done"""


@dataclass(frozen=True)
class _Settled:
    """Where the work of a grid is from now on."""

    publication: Publication
    plan: Plan
    added: tuple[str, ...] = ()
    """sessions that are new in a run that was there"""
    changes: tuple[str, ...] = ()

    @property
    def hold(self) -> Hold | None:
        found = self.publication.found
        return Hold(found.hold, why=found.why) if found and found.hold else None


def start_run(request: Request) -> Launched:
    """Check, publish and start a grid; safe to repeat, so that an interruption loses nothing."""
    runs: list[str] = []
    try:
        return _start_run(request, runs.append)
    except KeyboardInterrupt:
        click.echo(f"\nInterrupted. {_rest(request, runs)}.", err=True)
        raise


def _rest(request: Request, runs: list[str]) -> str:
    """What does the rest of a launch that was interrupted: with --new the same command would make another run."""
    if not request.new:
        return "What had been started goes on; the same command again does the rest"
    rest = "the same command without --new does the rest"
    if runs:
        return f"The run {runs[-1]} is there, and what had been started goes on; {rest}"
    return f"If `{program()} runs` shows a new run, {rest}; else nothing was started"


def _start_run(request: Request, tell_run: Callable[[str], None]) -> Launched:
    if request.slurm:
        refuse_options(request)
    grid = load_grid(request.grid)
    warn(grid)
    check_setup(grid)
    secrets, shipments = from_laptop(grid.secrets), survey(grid.sync, grid.path.parent)
    transport = request.where.connect(grid.host)
    grid = with_policies(grid, transport)
    facts = ask(transport, asked_of_host(grid.secrets))
    check(facts, request.multiplexer, windows=not request.slurm)
    check_host(facts)

    def planned(found: Found | None = None) -> Plan:
        meant = parse_grid(grid.text, grid.path, found) if found else grid
        return laid_out(meant, facts, digest_of(shipments), slurm=request.slurm)

    plan = planned()
    if plan.slurm:
        check_cluster(transport, plan)
    else:
        warn_of_host(grid, facts)
    deliveries = compare_files(transport, shipments)
    origin = {
        **provenance(grid.path, grid.text, facts),
        "preset": preset_origin(grid.preset),
        "sync": shipped_origin(shipments),
    }
    settled = _settle(transport, Draft(plan, grid.text, grid.root, origin), request, planned)
    publication = settled.publication
    tell_run(publication.run)
    way = request.where.way(transport.host)
    remember(Launch(publication.run, transport.host, publication.root, publication.directory, grid.name, way))
    launched = Launched(
        transport, settled.plan, publication, request.where.options(transport.host), changes=settled.changes
    )
    if publication.state == "new":
        launched = replace(launched, changes=(*settled.changes, *measured_notes(plan, grid, facts)))
    if publication.state == "finished":
        return replace(launched, lacks=lacking(transport, publication.directory))
    if settled.plan.shipped != plan.shipped:  # the run keeps the files that it was planned with
        deliveries = ()
    deliver(transport, deliveries, publication.root)
    return _set_going(request, replace(launched, shipped=tuple(lines(deliveries))), settled, secrets)


def _set_going(request: Request, launched: Launched, settled: _Settled, secrets: bytes) -> Launched:
    """Start what has been published, unless a person holds it, and wait for its first session."""
    transport = launched.transport
    slots = _slots(request, settled)
    if settled.hold and settled.hold.kind != HALTED:
        told = _only_slots(transport, settled, slots)
        return replace(launched, hold=settled.hold, changes=(*launched.changes, *told))
    lifted = _lift(transport, settled)
    said = _start(transport, settled, StartOptions(slots, request.multiplexer, secrets))
    if settled.plan.slurm:  # whose nodes may be busy for days
        launched = replace(launched, submitted=tuple(lines_said(said)))
    elif not settled.added:
        waits = await_beginning(transport, settled.publication.directory, launched.options)
        launched = replace(launched, waits=waits)
    return replace(launched, replaced=replaced(said), changes=(*launched.changes, *lifted))


def _settle(transport: Transport, draft: Draft, request: Request, planned: Callable[[Found | None], Plan]) -> _Settled:
    """Publish the run, or bring the one that is there up to the grid, whoever else does so at the same time.

    `planned` lays the grid out again, for policies that a run was planned with.
    """
    mode = "new" if request.new else "resume"
    notes: tuple[str, ...] = ()
    whole = replace(draft, plan=with_smoke(draft.plan, request.smoke)) if request.smoke else draft
    for _ in range(_TRIES):
        publication = publish(transport, whole, mode)
        if publication.found is None:
            return _Settled(publication, whole.plan, changes=notes)
        plan, told = kept(publication.found.plan, draft.plan, request.changed, planned)
        draft = replace(draft, plan=plan)
        if _is_another(publication, draft, request):
            mode = f"after:{publication.run}"
            notes = (f"the run {publication.run} has ended and shares no work with this grid, so this is another run",)
        elif settled := _bring_up(transport, publication, draft, request):
            return replace(settled, changes=(*told, *settled.changes))
    raise HostError(f"other launches changed the run of {draft.plan.grid} all the while", "launch it again")


def _is_another(publication: Publication, draft: Draft, request: Request) -> bool:
    """Whether the grid is to have a run of its own beside one that has ended and that has none of its work."""
    found = publication.found
    if publication.state != "changed" or found is None or not found.ended or request.changed:
        return False
    return not compare(found.plan, draft.plan).common


def _bring_up(transport: Transport, publication: Publication, draft: Draft, request: Request) -> _Settled | None:
    """Amend the run that was found as far as the grid says otherwise; None when another launch was faster."""
    found = publication.found
    if found is None:
        raise ValueError("there is no run to amend")
    comparison = compare(found.plan, draft.plan, found.started)
    asked = publication.state == "changed" and draft.plan.digest != found.plan.digest
    wanted = request.changed or (None if asked else "keep")
    choice = choose(comparison, publication.run, wanted) if asked else within_the_rule(comparison, wanted)
    amended = amend(comparison, choice)
    if request.smoke:
        amended = amended_with_smoke(amended, request.smoke)
    finished = found.whole and not amended.added
    if not asked and (amended.plan == found.plan or (finished and not amended.dropped)):
        if publication.state == "changed":  # but for what the run keeps
            publication = replace(publication, state="finished" if finished else "resumed")
        kept_as_it_is = rule_kept(found.plan, draft.plan) + (() if finished else cut_kept(found.plan, draft.plan))
        return _Settled(publication, found.plan, changes=(*no_change(comparison, request.changed), *kept_as_it_is))
    if not finished:
        check_engine(found.plan, draft.plan, publication.run)
    running = put_amendment(transport, publication, amended, draft)
    if running is None:
        return None
    options = request.where.options(transport.host)
    return _Settled(
        publication=replace(publication, state="finished" if finished else "resumed"),
        plan=amended.plan,
        added=tuple(session.name for session in amended.added),
        changes=(
            *(told_changes(comparison, choice) if asked or request.changed else ()),
            *taken_over(found.plan, amended.plan),
            *rule_kept(found.plan, draft.plan),
            *cut_kept(amended.plan, draft.plan),
            *told_running(running, publication.run, options),
        ),
    )


def _only_slots(transport: Transport, settled: _Settled, slots: int | None) -> tuple[str, ...]:
    """What a run that a person holds is told: how many may run at once when it goes on."""
    return steer(transport, settled.publication.directory, "slots", str(slots)).lines if slots else ()


def _lift(transport: Transport, settled: _Settled) -> tuple[str, ...]:
    """Let a run go on that comborun itself has halted, or that it keeps from GPUs; a sentence each."""
    directory, found = settled.publication.directory, settled.publication.found
    if not found or not found.held:
        return ()
    steer(transport, directory, "resume")
    if tried := [session.name for session in smoke_sessions(settled.plan)]:
        steer(transport, directory, "retry", *tried)
    return (f"no longer {held(settled.hold)}" if settled.hold else "GPUs that were in quarantine are used again",)


def _start(transport: Transport, settled: _Settled, options: StartOptions) -> str:
    """Start the dispatcher, or let it go on; what was said of it."""
    directory = settled.publication.directory
    said = start(transport, directory, options)
    if settled.plan.slurm or not settled.added:
        return said
    if not await_added(transport, directory, settled.added):
        said = start(transport, directory, options)
    return said


def _slots(request: Request, settled: _Settled) -> int | None:
    """Sessions at once; None leaves them as they are, which may be as somebody set them meanwhile."""
    found, parallel = settled.publication.found, settled.plan.limits.parallel
    if settled.plan.slurm:
        return request.parallel
    return request.parallel or (parallel if found and found.plan.limits.parallel != parallel else None)
