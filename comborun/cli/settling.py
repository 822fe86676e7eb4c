"""Where the work of a grid is to be done: in a run of its own, or in the one that is there, brought up to the grid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from comborun.again.amend import amend, compare
from comborun.again.smoke import amended_with_smoke, with_smoke
from comborun.again.taken_over import taken_over
from comborun.cli.changing import choose, cut_kept, no_change, rule_kept, told_changes, told_running, within_the_rule
from comborun.cli.globbing import kept
from comborun.cli.on_slurm import check_engine
from comborun.errors import HostError
from comborun.monitor.answer.holds import Hold
from comborun.remote.publish import Draft, Publication, publish
from comborun.remote.publish import amend as put_amendment

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.cli.request import Request
    from comborun.grid.globbed import Found
    from comborun.plan import Plan
    from comborun.remote.transport import Transport

_TRIES = 5


@dataclass(frozen=True)
class Settled:
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


def settle(transport: Transport, draft: Draft, request: Request, planned: Callable[[Found | None], Plan]) -> Settled:
    """Publish the run, or bring the one that is there up to the grid, whoever else does so at the same time.

    `planned` lays the grid out again, for policies that a run was planned with.
    """
    mode = "new" if request.new else "resume"
    notes: tuple[str, ...] = ()
    whole = replace(draft, plan=with_smoke(draft.plan, request.smoke)) if request.smoke else draft
    for _ in range(_TRIES):
        publication = publish(transport, whole, mode)
        if publication.found is None:
            return Settled(publication, whole.plan, changes=notes)
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


def _bring_up(transport: Transport, publication: Publication, draft: Draft, request: Request) -> Settled | None:
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
        return Settled(publication, found.plan, changes=(*no_change(comparison, request.changed), *kept_as_it_is))
    if not finished:
        check_engine(found.plan, draft.plan, publication.run)
    running = put_amendment(transport, publication, amended, draft)
    if running is None:
        return None
    options = request.where.options(transport.host)
    return Settled(
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
