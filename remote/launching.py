"""Launches a prepared grid (preparing.py) in two steps: publish and start. Both are safe to repeat."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from comborun import __version__
from comborun.amendment.changes import amend, check_rule, compare, read_as_before, read_otherwise
from comborun.amendment.notes import (
    change_lines,
    change_notes,
    cut_kept,
    policies_kept,
    reading_lines,
    rule_kept,
    taken_over,
)
from comborun.amendment.resumption import CANARY_OF, amended_with_smoke, smoke_sessions, with_smoke
from comborun.errors import HostError, UserError
from comborun.model.work import combo_of
from comborun.remote import program, run_orders
from comborun.remote.grids import laid_out
from comborun.remote.publish import RunContent, provenance, publish, put_amendment, reread
from comborun.remote.shipping import deliver, digest_of, shipped_lines
from comborun.words import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.amendment.changes import Amended, Choice, PlanComparison
    from comborun.model.plan import Plan
    from comborun.remote.preparing import LaunchRequest, Prepared
    from comborun.remote.publish import Publication
    from comborun.remote.transport import Transport

_TRIES = 5


@dataclass(frozen=True)
class Launched:
    """The run of a grid, and messages about it for the user."""

    plan: Plan
    publication: Publication
    added: tuple[str, ...] = ()
    """sessions that are new in an existing run"""
    running: tuple[str, ...] = ()
    """sessions that still run, but whose records no longer count"""
    changes: tuple[str, ...] = ()
    """sentences: what the run takes over from a changed grid, what not, and which holds were lifted"""
    shipped: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    """what the start found of the user's sessions in `replaces`, and how they ended"""
    submitted: tuple[str, ...] = ()
    started: bool = False
    """False if the run has finished, or a user holds it"""

    @property
    def hold(self) -> tuple[str, str] | None:
        """Kind and reason of the user's hold if nothing was started because of it."""
        found, state = self.publication.found, self.publication.state
        return (found.hold, found.why) if found and found.hold and state != "finished" and not self.started else None

    @property
    def begins(self) -> bool:
        """Whether a session should begin at once. Slurm's nodes may be busy for days, and so may other sessions."""
        return self.started and not self.plan.slurm and not self.added and not self.plan.follow


def publish_run(
    prepared: Prepared, confirm: Callable[[str], bool], tell: Callable[[str], object] = lambda _: None
) -> Launched:
    """Publish the run, or amend the existing one to follow the grid, even if others do so at the same time.

    `confirm` is called with the combos whose records would no longer count, and returns whether the run should follow
    the grid. `tell` gets the effects of a changed `results` on existing files, before the run takes it over.
    """
    request, grid = prepared.request, prepared.grid
    origin = provenance(grid, prepared.facts, prepared.shipments)
    deal = prepared.deal
    origin |= {"grid_run": deal.grid_run} if deal else {}
    draft = RunContent(prepared.plan, grid.record, grid.root, origin, program.Python(known=prepared.facts.python), deal)
    whole = replace(draft, plan=with_smoke(draft.plan, request.smoke)) if request.smoke else draft
    mode = "new" if request.new else "resume"
    notes: tuple[str, ...] = ()
    for _ in range(_TRIES):
        publication = publish(prepared.transport, whole, mode)
        found = publication.found
        if found is None:
            return Launched(whole.plan, publication, changes=notes)
        if found.elsewhere and request.take_over:
            run_orders.take_over(prepared.transport, publication.directory)
        else:
            program.refuse_elsewhere(found.elsewhere, publication.run)
        if found.environment and publication.state != "finished" and request.environment != "first":
            tell(say(found.environment))
        if draft.plan.follow:
            return _followed(publication, found.plan)
        changed = publication.state == "changed"
        if deal and changed:
            raise UserError(
                f"the grid, or what its `sync` ships, has changed since {publication.run} was dealt to its hosts",
                "--new starts another run; with the former grid and files the same command continues this one",
                code="changed_grid",
            )
        draft, kept = _with_kept_policies(prepared, draft, found.plan)
        if changed and not request.changed:
            if found.ended and not compare(found.plan, draft.plan).common:
                mode = f"after:{publication.run}"
                notes = (
                    f"the run {publication.run} has ended and shares no work with this grid, so this is another run",
                )
                continue
            _check_common(publication.run, found.plan, draft.plan)
        if launched := _bring_up(prepared, publication, draft, confirm, tell):
            return replace(launched, changes=(*kept, *launched.changes))
    raise HostError(f"other launches kept changing the run of {draft.plan.grid}", "launch it again")


def _check_common(run: str, has: Plan, wants: Plan) -> None:
    """Raise UserError if a run has no combo of the grid."""
    if set(map(combo_of, has.sessions)).isdisjoint(map(combo_of, wants.sessions)):
        raise UserError(
            f"the run {run} goes on, and it has no combo of this grid, which is also named {wants.grid}",
            "give this grid a `name:` of its own; --new starts another run of this name; --changed rerun drops the"
            " combos of that run",
        )


def start(prepared: Prepared, launched: Launched) -> Launched:
    """Ship files and start the run, unless it has finished or a user holds it."""
    transport, directory, found = prepared.transport, launched.publication.directory, launched.publication.found
    if launched.publication.state == "finished":
        return launched
    python = program.Python(known=prepared.facts.python)
    # a run keeps its list of files
    deliveries = prepared.deliveries if launched.plan.shipped == prepared.plan.shipped else ()
    deliver(transport, deliveries, launched.publication.root, python)
    launched = replace(launched, shipped=tuple(shipped_lines(deliveries)))
    slots = _slots(prepared.request, launched)
    if found and found.hold not in ("", "halted"):
        slot_lines = run_orders.steer(transport, directory, "slots", str(slots)).texts if slots else ()
        return replace(launched, changes=(*launched.changes, *slot_lines))
    lifted = _lift(transport, launched)
    request = prepared.request
    options = run_orders.StartOptions(slots, request.multiplexer, prepared.secrets, request.environment, request.follow)
    begun = run_orders.start(transport, directory, options)
    return replace(
        launched,
        started=True,
        changes=(*launched.changes, *lifted),
        replaced=tuple(
            f"{one.facts['replaced']}: {one.facts['what']}" for one in begun.lines if "replaced" in one.facts
        ),
        submitted=begun.texts if launched.plan.slurm else (),
    )


def _followed(publication: Publication, found: Plan) -> Launched:
    """The run of the grid goes on. Its plan is the host's, and another template would make other sessions."""
    if publication.state == "changed":
        raise UserError(
            f"the grid has changed since run {publication.run}, which follows a training", "--new starts another run"
        )
    return Launched(found, replace(publication, state="resumed"))


def launch_recheck(transport: Transport, plan: Plan, directory: str, episodes: int) -> Publication:
    """Start a run that repeats a few episodes of the run in `directory`; its manifest says so."""
    root, _, run = directory.rpartition("/")
    origin = {"comborun": __version__, CANARY_OF: run, "episodes": episodes}
    publication = publish(
        transport, RunContent(plan, f"# a recheck of {run}; its grid is there\n", root, origin), "new"
    )
    run_orders.restart_dispatcher(transport, publication.directory, plan)
    return publication


def _with_kept_policies(prepared: Prepared, draft: RunContent, found: Plan) -> tuple[RunContent, tuple[str, ...]]:
    """The draft with the policy files of the run's plan, unless `--changed rerun` takes the present ones."""
    had, has = found.policy_files, draft.plan.policy_files
    if had is None or has is None or had == has or prepared.request.changed == "rerun":
        return draft, ()
    if (had.patterns, had.exclude) != (has.patterns, has.exclude):
        return draft, ()
    grid, shipped = prepared.grid.with_files(had.found), digest_of(prepared.shipments)
    plan = replace(laid_out(grid, prepared.facts, shipped, slurm=prepared.request.slurm), policy_files=had)
    return replace(draft, plan=plan), (policies_kept(had, has),)


def _bring_up(
    prepared: Prepared,
    publication: Publication,
    draft: RunContent,
    confirm: Callable[[str], bool],
    tell: Callable[[str], object],
) -> Launched | None:
    """Amend the existing run where the grid differs; None if another launch was faster."""
    request, found = prepared.request, publication.found
    assert found
    comparison = compare(found.plan, draft.plan, found.started)
    differs = publication.state == "changed" and draft.plan.digest != found.plan.digest
    choice = _choice(comparison, publication.run, request.changed, confirm) if differs else request.changed or "keep"
    check_rule(comparison, choice)
    amended = _read_again(prepared, publication, amend(comparison, choice), confirm, tell)
    if request.smoke:
        amended = amended_with_smoke(amended, request.smoke)
    finished = found.whole and not amended.added
    state: Literal["finished", "resumed"] = "finished" if finished else "resumed"
    same = amended.plan == found.plan or (finished and not amended.dropped)
    if not differs and same and not read_otherwise(found.plan, amended.plan):
        if publication.state == "changed":  # except parts that the run keeps
            publication = replace(publication, state=state)
        unasked = f"--changed {request.changed} has no effect: no combo has changed"
        return Launched(
            found.plan,
            publication,
            changes=(
                *([unasked] if request.changed and not comparison.asks else []),
                *rule_kept(found.plan, draft.plan),
                *(() if finished else cut_kept(found.plan, draft.plan)),
            ),
        )
    if not finished:
        _check_engine(found.plan, draft.plan, publication.run)
    running = put_amendment(prepared.transport, publication, amended, draft)
    if running is None:
        return None
    return Launched(
        amended.plan,
        replace(publication, state=state),
        added=tuple(session.name for session in amended.added),
        running=running,
        changes=(
            *(change_notes(comparison, choice) if differs or request.changed else ()),
            *taken_over(found.plan, amended.plan),
            *rule_kept(found.plan, draft.plan),
            *cut_kept(amended.plan, draft.plan),
        ),
    )


def _read_again(
    prepared: Prepared,
    publication: Publication,
    amended: Amended,
    confirm: Callable[[str], bool],
    tell: Callable[[str], object],
) -> Amended:
    """The amendment, unless fewer existing files would count and the user refuses."""
    found = publication.found
    assert found
    rules = read_otherwise(found.plan, amended.plan)
    if not rules:
        return amended
    changes = reread(prepared.transport, publication.directory, rules)
    lines = "\n".join(f"  {line}" for line in reading_lines(changes))
    fewer = [one for one in changes if one.fewer]
    changed = prepared.request.changed
    if fewer and changed != "rerun":
        message = f"`results` has changed, and fewer episodes of run {publication.run} would count:\n{lines}"
        return amended if changed is None and confirm(message) else read_as_before(found.plan, amended)
    if lines:
        tell(f"`results` has changed, and the files that are there are read again:\n{lines}")
    return amended


def _choice(
    comparison: PlanComparison, run: str, wanted: Choice | None, confirm: Callable[[str], bool]
) -> Choice | None:
    """The choice for combos whose records would no longer count: the option's value, else the user's answer."""
    if wanted or not comparison.asks:
        return wanted
    listed = "\n".join(f"  {line}" for line in change_lines(comparison.asks))
    changed = f"the grid has changed, and the records of these combos would no longer count in run {run}:\n{listed}"
    return "rerun" if confirm(changed) else "keep"


def _check_engine(found: Plan, wanted: Plan, run: str) -> None:
    """Raise UserError if the grid's run has another engine."""
    if found.engine == wanted.engine:
        return
    if found.slurm:
        message, hint = f"this grid's run {run} is on Slurm", "add --slurm to go on with it, or --new for another run"
    else:
        message = f"this grid's run {run} is not on Slurm: a dispatcher starts its sessions"
        hint = "leave --slurm out to go on with it, or add --new for another run"
    raise UserError(message, hint)


def _lift(transport: Transport, launched: Launched) -> tuple[str, ...]:
    """Lift holds and quarantines that comborun itself has set; a sentence each."""
    directory, found = launched.publication.directory, launched.publication.found
    if not found or not found.held:
        return ()
    run_orders.steer(transport, directory, "resume")
    if tried := [session.name for session in smoke_sessions(launched.plan)]:
        run_orders.steer(transport, directory, "retry", *tried)
    if not found.hold:
        return ("GPUs that were in quarantine are used again",)
    return (f"no longer {found.hold}" + (f": {found.why}" if found.why else ""),)


def _slots(request: LaunchRequest, launched: Launched) -> int | None:
    """The number of slots; None leaves it unchanged, since a user may have set it."""
    found, parallel = launched.publication.found, launched.plan.limits.parallel
    if request.parallel or launched.plan.slurm:
        return request.parallel
    return parallel if found and found.plan.limits.parallel != parallel else None
