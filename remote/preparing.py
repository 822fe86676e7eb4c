"""What a launch knows before it sends anything: a grid that was checked and planned for its host."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.planner.program import host_warnings
from comborun.remote import program, run_orders, slurm
from comborun.remote.grids import laid_out, not_ready, preflight_question, with_policies
from comborun.remote.host import check_host, host_facts
from comborun.remote.shipping import compare_files, digest_of, size_of, survey
from comborun.remote.transport import LOCAL
from comborun.rules.following import POLICY
from comborun.rules.vocabulary import amount

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.amendment.changes import Choice
    from comborun.grid import Grid
    from comborun.model.plan import Plan
    from comborun.model.resources import HostFacts
    from comborun.planner.laying import Drafts
    from comborun.remote.shipping import Delivery, Shipment
    from comborun.remote.transport import Transport
    from comborun.rules.deal import Deal


@dataclass(frozen=True)
class LaunchRequest:
    parallel: int | None = None
    multiplexer: str | None = None
    new: bool = False
    changed: Choice | None = None
    smoke: int | None = None
    slurm: bool = False
    force: bool = False
    take_over: bool = False
    environment: str = ""
    follow: str = ""
    """of `combo follow`: the pid of the training, or `stopped`"""


@dataclass(frozen=True)
class Prepared:
    """A grid that was checked and planned for its host, before anything is sent."""

    request: LaunchRequest
    transport: Transport
    grid: Grid
    facts: HostFacts
    plan: Plan
    shipments: tuple[Shipment, ...]
    deliveries: tuple[Delivery, ...]
    secrets: bytes = field(repr=False)
    warnings: tuple[str, ...] = ()
    deal: Deal | None = None
    """of one of several hosts"""

    @property
    def sends(self) -> str:
        """The size of the files of `sync` that have to go there first; empty without any."""
        size = size_of(item for one in self.deliveries for item in one.missing)
        return amount(size) if size else ""


def prepare(
    request: LaunchRequest, grid: Grid, connect: Callable[[str | None], Transport], drafts: Drafts | None = None
) -> Prepared:
    """Check everything before a launch; UserError and HostError name any obstacle. Its hosts share `drafts`."""
    if request.slurm and request.multiplexer:
        raise UserError("--multiplexer with --slurm: sessions on nodes have no windows", "combo attach shows them")
    secrets, shipments = run_orders.laptop_secrets(grid.secrets), survey(grid.sync, grid.path.parent)
    _check_follow(request, grid)
    transport = connect(grid.host)
    _check_training(request, transport)
    grid = with_policies(grid, transport)
    named = preflight_question(grid, local=transport.host == LOCAL, windows=not request.slurm, new=request.new)
    facts = host_facts(transport, grid.secrets, grid.host_python, named)
    check_host(facts, request.multiplexer, windows=not request.slurm)
    absent, fix = () if request.force else facts.absent, "fix that, or add --force to start anyway"
    try:
        plan = laid_out(grid, facts, digest_of(shipments), slurm=request.slurm, drafts=drafts)
    except UserError as error:
        if not absent:
            raise
        raise UserError(
            not_ready(absent, facts.called, f"{error.message}; {error.hint}"), fix, code="not_ready"
        ) from error
    if absent:
        raise UserError(not_ready(absent, facts.called), fix, code="not_ready")
    if plan.slurm:
        doubts = slurm.check_taken(transport, plan, slurm.consult(transport, plan))
        warnings = tuple(f"{one}. It is submitted all the same: sbatch lets it wait, or refuses it" for one in doubts)
    else:
        warnings = host_warnings(grid, facts)
    deliveries = compare_files(transport, shipments, program.Python(known=facts.python))
    return Prepared(request, transport, grid, facts, plan, shipments, deliveries, secrets, warnings)


def _check_follow(request: LaunchRequest, grid: Grid) -> None:
    if grid.follow and not request.follow:
        raise UserError("this grid follows a training", "combo follow GRID --pid PID starts it")
    if request.follow and not grid.follow:
        raise UserError(
            "`policies` of this grid are no training", "policies: {follow: ~/runs/x/ckpt_*.pt, done: STABLE}"
        )
    long = [one.session for one in grid.combos if request.follow and POLICY not in one.session]
    if long:
        raise UserError(f"the session name {long[0]} does not hold the step", "shorter names, with {policy} in them")


def _check_training(request: LaunchRequest, transport: Transport) -> None:
    """Before anything is made there: is it a process of that host?"""
    if request.follow.isdecimal() and transport.run('test -d "/proc/$1"', request.follow).code:
        hint = "name that of the training, or leave it out: then the run ends with combo stop"
        raise UserError(f"no process {request.follow} runs on {transport.host}", hint)
