"""Stops a run or sessions of it, starts sessions again, and continues a run."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from comborun.answers import orders
from comborun.api.joint import lift_stops, on_each, parts_of, stop_all
from comborun.errors import HostError, UserError
from comborun.model.resources import mebibytes
from comborun.model.work import combo_of
from comborun.monitor.addressing import sessions_of
from comborun.monitor.explain import server_names
from comborun.monitor.steering import PlannedResume, PlannedStop
from comborun.monitor.watch import once
from comborun.remote.boxes import at_once
from comborun.remote.program import refuse_elsewhere
from comborun.remote.run_orders import Reply, Verb, restart_dispatcher, send_test_notice, steer
from comborun.remote.run_orders import stop as stop_sessions
from comborun.remote.runs import list_runs
from comborun.remote.slurm import settle
from comborun.rules.settings import BECAUSE, FIELDS, PARALLEL, TAKES, is_value
from comborun.rules.vocabulary import Life
from comborun.text import did_you_mean, harmless
from comborun.words import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comborun.api.named import Target
    from comborun.model.plan import Plan
    from comborun.monitor.observe import RunView
    from comborun.monitor.status import RunStatus
    from comborun.monitor.watch import Source


# Stop


def planned_stops(
    target: Target,
    words: Sequence[str],
    policy: str | None = None,
    environment: str | None = None,
    *,
    take_over: bool = False,
) -> list[tuple[Target, PlannedStop]]:
    """What a stop of the sessions that the words and filters name would do on each of their hosts; without any it ends
    the whole run.

    A run whose status is unknown can be stopped as a whole, or by exact names.
    """
    parts = parts_of(target, words)
    for part, _ in parts:
        part.own(take_over=take_over)
    found: list[tuple[Target, PlannedStop]] = []
    lacking = None
    for part, own in parts:
        try:
            found.append((part, _planned_stop(part, own, policy, environment)))
        except UserError as error:
            if error.code != "unknown_session":  # others of its hosts may have some
                raise
            lacking = error
    if lacking and not found:
        raise lacking
    return found


def _planned_stop(target: Target, words: tuple[str, ...], policy: str | None, environment: str | None) -> PlannedStop:
    run, host = target.run, target.transport.host
    filtered = policy is not None or environment is not None
    try:
        source = target.source()
    except UserError as error:
        if filtered:
            raise
        return PlannedStop(run, host, words, unseen=error.message)
    names = _chosen(target, source, words, (policy, environment)) if words or filtered else ()
    try:
        seen = once(source)
    except UserError as error:
        return PlannedStop(run, host, names, unseen=error.message)
    refuse_elsewhere(seen.elsewhere, run)
    names = (*names, *_superseded(source.view.plan, seen, names, words))
    order = PlannedStop.of(source.view, seen, names)
    return order if order.running or names else replace(order, others=_others(target))


def _others(target: Target) -> tuple[str, ...]:
    """The other unfinished runs of its grid, the newest first."""
    root = target.directory.rpartition("/")[0]
    there = target.listed or list_runs(target.transport, (root,))
    beside = [run for run in there if run.directory.rpartition("/")[0] == root and run.id != target.run]
    going = [run for run in beside if not run.done and run.held.get("kind") != "stopped"]
    return tuple(run.id for run in going if run.grid == target.run.rsplit("-", 2)[0])


def _superseded(plan: Plan, seen: RunStatus, names: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    """Running sessions of combos named by policy and environment that a changed grid has replaced."""
    combos = {combo_of(one) for one in plan.sessions if one.name in names and one.name not in words}
    alive = {one.name for one in seen.every if one.alive}
    dropped = (one for one in plan.sessions if one.flag == "dropped" and one.name in alive)
    return (one.name for one in dropped if combo_of(one) in combos and one.name not in names)


def _chosen(
    target: Target, source: Source, words: Sequence[str], filters: tuple[str | None, str | None]
) -> tuple[str, ...]:
    """The sessions that the words and filters name. Raises UserError if there are none."""
    (policy, environment), view, plan = filters, source.view, source.view.plan
    names = sessions_of(source, words, target.listener.note)
    check_no_servers(target, view, names)
    for key, value, known in (("policy", policy, plan.policies), ("environment", environment, plan.environments)):
        if value is not None and value not in known:
            raise UserError(
                f"there is no {key} {value} in {view.id}", did_you_mean(value, known), code="unknown_session"
            )
    if policy is None and environment is None:
        return names
    there = (one for one in plan.sessions if one.flag != "elsewhere")
    fitting = (one for one in there if policy in {None, one.policy} and environment in {None, one.environment})
    chosen = tuple(one.name for one in fitting if not names or one.name in names)
    if not chosen:
        raise UserError(
            f"no session of {view.id} matches all of that", "combo status shows them", code="unknown_session"
        )
    return chosen


def stop(target: Target, planned: Sequence[tuple[Target, PlannedStop]]) -> orders.Stopped:
    """End the sessions of a planned stop, and everything that they started."""
    sessions, lines, clean = list[str](), list[str](), True
    with target.listener.working("ending sessions"):
        for part, order in planned:
            reply = stop_sessions(part.transport, part.directory, order.names)
            sessions += order.names or reply.facts("session")
            lines += reply.texts
            clean = clean and reply.done
    return orders.Stopped(target.run, tuple(sessions), clean, tuple(lines))


def stop_now(
    target: Target,
    words: Sequence[str] = (),
    policy: str | None = None,
    environment: str | None = None,
    *,
    take_over: bool = False,
) -> orders.Stopped:
    """Stop the run, or some of its sessions, wherever they run."""
    if target.boxes and not (words or policy or environment):
        with target.listener.working("ending sessions"):
            # the stop names a host that did not answer
            at_once({one.transport.host: partial(one.own, take_over=take_over) for one in target.boxes})
            return stop_all(target)
    return stop(target, planned_stops(target, words, policy, environment, take_over=take_over))


# Start again


def retry(
    target: Target,
    words: Sequence[str],
    which: Literal["", "failed", "stalled"] = "",
    environment: str = "now",
    *,
    take_over: bool = False,
) -> orders.Steered:
    """Start named sessions again, or all that failed or stalled; each gets a new budget of retries."""

    def retry_there(part: Target, own: Sequence[str]) -> orders.Steered:
        part.note_change()
        part.own(take_over=take_over)
        source = part.source()
        names = sessions_of(source, own, part.listener.note)
        check_no_servers(part, source.view, names)
        steered = steer(part.transport, part.directory, "retry", *([f"--{which}"] if which else names))
        return _steered(part, steered, _restart(part, source, environment) if steered.done else "")

    if bool(which) == bool(words):
        raise UserError("name sessions, or give either --failed or --stalled", "combo status lists them")
    return on_each(target, words, retry_there, some=bool(which))


def slots(target: Target, count: int) -> orders.Steered:
    """Let so many sessions run at once from now on."""
    return _steer_all(target, "slots", str(count))


def retune(target: Target, values: Mapping[str, str], because: str = "") -> orders.Steered:
    """Change settings of a run while it goes on: `parallel`, `use_gpus`, `reserve.gpu_memory`, `reserve.memory`.

    Sessions that run go on; added GPUs get sessions, and nothing new starts on those that are taken away.
    """
    words = [f"{key}={value}" for key, value in checked_settings(values).items()]
    line = " ".join(harmless(because).split())
    words += [f"{BECAUSE}={line}"] if line else []
    return _steer_all(target, "set", *words)


def checked_settings(values: Mapping[str, str]) -> dict[str, str]:
    """The values as the host takes them: memory in MiB. Raises UserError."""
    from comborun.grid.keys.amounts import parse_size  # slow to import

    if not values:
        raise UserError("nothing to set", f"such as parallel=6; known are {', '.join((PARALLEL, *FIELDS))}")
    found = {key.removeprefix("limits."): value.replace(" ", "") for key, value in values.items()}
    for key, value in found.items():
        if key.startswith("reserve.") and key in FIELDS:
            found[key] = str(mebibytes(parse_size(values[key])))
        elif not is_value(key, value):
            if takes := TAKES.get(key):
                raise UserError(f"`{key}` can't be `{value}`", takes)
            raise UserError(f"`{key}` can't be set while a run goes on", did_you_mean(key, (PARALLEL, *FIELDS)))
    return found


def hold(target: Target, verb: Literal["pause", "drain"], why: str = "") -> orders.Steered:
    """Let nothing new start until `resume`."""
    line = " ".join(harmless(why).split())
    return _steer_all(target, verb, *([line] if line else []), note=f"run `{target.command('resume')}` to continue")


def notify(target: Target) -> orders.Steered:
    """Send a test notice."""
    return on_each(target, (), lambda one, _: _steered(one, send_test_notice(one.transport, one.directory)))


def _steer_all(target: Target, verb: Verb, *words: str, note: str = "") -> orders.Steered:
    def act(part: Target, _: Sequence[str]) -> orders.Steered:
        reply = steer(part.transport, part.directory, verb, *words)
        return _steered(part, reply, note if reply.done else "")

    return on_each(target, (), act)


def _steered(target: Target, reply: Reply, note: str = "") -> orders.Steered:
    return orders.Steered(target.run, reply.done, reply.texts, note or None)


def check_no_servers(target: Target, view: RunView, names: Iterable[str]) -> None:
    """Raise UserError for the name of a model server: it starts and ends with its sessions."""
    for name in names:
        if name in server_names(view.plan):
            called = target.listener.program
            raise UserError(
                f"{name} is a model server of {view.id}: it starts with the sessions that use it, and ends after them",
                f"{called} explain {name} shows its state; {called} stop {view.id} ends all",
            )


def _restart(target: Target, source: Source, environment: str) -> str:
    """Start the dispatcher if it is gone, unless the run is stopped or held. Returns a note for the user.

    On Slurm, submit the new attempts.
    """
    transport, view, status = source.transport, source.view, once(source)
    if status.stopped or status.hold:
        how = f"is {status.hold.kind}" if status.hold else "was stopped"
        return f"the run {how}: nothing starts until `{target.listener.program} resume {view.id}`"
    if status.dispatcher is None:
        if status.environment and environment != "first":
            target.listener.note(say(status.environment))
        return restart_dispatcher(transport, view.directory, view.plan, environment)
    return settle(transport, view.directory) if view.plan.slurm else ""


# Continue


def planned_resumes(
    target: Target, environment: str = "now", *, take_over: bool = False, act: bool = True
) -> list[tuple[Target, PlannedResume]]:
    """What a resume would do on each host of a run. To `act` on it, the stop of several hosts is lifted first."""
    if act and target.boxes:
        lift_stops(target)
    return [(one, _planned_resume(one, environment, take_over=take_over and act)) for one, _ in parts_of(target, ())]


def _planned_resume(target: Target, environment: str, *, take_over: bool) -> PlannedResume:
    from comborun.amendment.resumption import resumption  # `combo stop` needs no grid model
    from comborun.api.reports import collected
    from comborun.reporter.merge import missing, rejected

    target.note_change()
    target.own(take_over=take_over)
    source = target.source()
    view, seen = source.view, once(source)
    refuse_elsewhere(seen.elsewhere, view.id)
    records, _ = collected(target)
    ended = [one for one in seen.sessions if one.life is Life.ENDED and one.attempt]
    outcomes = {one.name: one.outcome for one in ended if one.outcome}
    what = resumption(view.plan, outcomes, missing(records), rejected(records))
    coming = tuple(one.name for one in view.plan.current if one.name not in outcomes)
    if environment == "first":
        seen = replace(seen, environment=None)
    return PlannedResume(view, seen, what, coming)


def resume(target: Target, going: PlannedResume, environment: str = "now") -> str:
    """Do it: first fill gaps, then lift the hold, then ask for attempts, then start the dispatcher.

    This is safe to repeat. Returns sentences for the user.
    """
    from comborun.remote.publish import add_sessions

    if going.nothing:
        return ""
    transport, view, what = target.transport, going.view, going.what
    if what.added and not add_sessions(transport, view.directory, (view.plan, view.number), what.added):
        raise HostError(f"a launch has just changed {view.id}", "give the same command again")
    if going.held or going.kept:
        steer(transport, view.directory, "resume")
    if what.again:
        steer(transport, view.directory, "retry", *(one.name for one in what.again))
    return restart_dispatcher(transport, view.directory, view.plan, environment)
