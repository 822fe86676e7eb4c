"""Trial runs of `combo calibrate` and `combo try`: in a folder of their own, watched to their end."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from comborun import __version__
from comborun.errors import HostError, UserError
from comborun.model.resources import HostFacts
from comborun.monitor.beginning import await_beginning, first_wait, refuse_halted, timing
from comborun.monitor.observe import History, load_run
from comborun.monitor.screen import StatusScreen
from comborun.monitor.watch import Clock, Settings, Source
from comborun.monitor.watcher import watch
from comborun.planner.laying import lay_out
from comborun.remote.grids import not_ready, preflight_question, with_policies
from comborun.remote.host import check_host, host_facts
from comborun.remote.publish import RunContent, publish
from comborun.remote.run_orders import StartOptions, laptop_secrets, start, stop
from comborun.remote.runs import list_runs, release, remove
from comborun.remote.shipping import compare_files, deliver, digest_of, survey
from comborun.remote.transport import LOCAL
from comborun.rules.facts import Fact
from comborun.rules.vocabulary import Life
from comborun.words import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.grid import Grid
    from comborun.model.plan import Plan
    from comborun.monitor.status import RunStatus
    from comborun.remote.transport import Transport

_LOCAL_S, _FAR_S = 0.25, 1.0
"""seconds between two looks"""
_AWAY_S = 900.0
"""seconds without an answer after which the user must decide"""


@dataclass(frozen=True)
class Progress:
    """Receives the progress of a trial."""

    warn: Callable[[str], None]
    """reports problems, and why a session waits"""
    say: Callable[[str], None] = lambda _: None
    """reports the next part"""
    count: Callable[[int, int], None] = lambda *_: None
    """reports the number of ended sessions, and of all"""


@dataclass(frozen=True)
class TrialSetup:
    transport: Transport
    grid: Grid
    plan: Plan
    """one session for each combo, in the grid's order"""
    facts: HostFacts
    secrets: bytes = field(repr=False)
    ready: Callable[[str], object]
    """delivers files; called with the folder of the runs before the first session starts"""
    progress: Progress
    folder: str
    """below the root: .calibrate or .try"""

    @property
    def root(self) -> str:
        return f"{self.grid.root.rstrip('/')}/{self.folder}"


def trial_setup(
    grid: Grid,
    connect: Callable[[str | None], Transport],
    choose: Callable[[Grid], Grid],
    progress: Progress,
    folder: str,
) -> TrialSetup:
    """Everything that trial runs of a grid need on its host. `choose` selects combos when all policies are known."""
    secrets, shipments = laptop_secrets(grid.secrets), survey(grid.sync, grid.path.parent)
    if grid.follow:
        hint = "--set does not replace policies: try a copy of the grid with policies: {one: {checkpoint: PATH}}"
        raise UserError("the checkpoints of this grid are not there yet", hint)
    transport = connect(grid.host)
    grid = choose(with_policies(grid, transport))
    facts = host_facts(
        transport, grid.secrets, grid.host_python, preflight_question(grid, local=transport.host == LOCAL)
    )
    check_host(facts)
    if "slurm" in grid.model_fields_set:
        progress.warn(f"this runs on {facts.called} itself: Slurm is not asked for a node")
    if facts.absent:
        progress.warn(not_ready(facts.absent, facts.called))
    plan = lay_out(uncut(grid), facts, digest_of(shipments))

    def ready(root: str) -> None:
        deliver(transport, compare_files(transport, shipments), root)

    return TrialSetup(transport, grid, plan, facts, secrets, ready, progress, folder)


def uncut(grid: Grid) -> Grid:
    """One session for each combo and seed, in the grid's order."""
    whole = {"shards": None, "block": None}
    combos = tuple(replace(one, settings=one.settings.model_copy(update=whole)) for one in grid.combos)
    return grid.model_copy(update={"combos": combos, "stop_early": None})


def plan_anywhere(grid: Grid, connect: Callable[[str | None], Transport]) -> Plan:
    """One session for each combo, as if the host had every requested GPU."""
    if grid.policy_glob:
        grid = with_policies(grid, connect(grid.host))
    most = max((combo.settings.gpus for combo in grid.combos), default=0)
    facts = HostFacts(LOCAL, "", 1, 0, tuple(range(most)), "", {}, ())
    return lay_out(uncut(grid).model_copy(update={"use_gpus": None, "servers": {}}), facts, here=False)


def tidy(setup: TrialSetup) -> None:
    """Remove earlier trial runs that nobody looks at any more, also those whose stop was interrupted. Others may do the
    same at this moment.
    """
    for run in list_runs(setup.transport, [setup.root]):
        with suppress(UserError):
            if run.left and (run.finished or stop(setup.transport, run.directory).done):
                remove(setup.transport, run.directory)


def carry_out(setup: TrialSetup, plan: Plan, look: Callable[[RunStatus], None]) -> tuple[str, History]:
    """Run `plan` to its end; `look` is called after each look. An interrupted run is stopped.

    Returns the run's directory and its attempts.
    """
    draft = RunContent(plan, setup.grid.record, setup.root, {"comborun": __version__, "tries": True})
    directory = publish(setup.transport, draft, "new").directory
    try:
        setup.ready(directory.rpartition("/")[0])
        start(setup.transport, directory, StartOptions(secrets=setup.secrets))
        first = await_beginning(setup.transport, directory)
        source = Source(setup.transport, load_run(setup.transport, directory))
        trial = _Trial(setup, source, look)
        if first:
            trial.warn_of(first)
        watch(source, trial, Clock(), Settings(_LOCAL_S if setup.transport.host == LOCAL else _FAR_S))
        return directory, source.fold(History())
    except BaseException as error:
        _leave(setup, directory, keep=isinstance(error, UserError))
        raise


def _leave(setup: TrialSetup, directory: str, *, keep: bool) -> None:
    """End a trial run that can't be carried out; `keep`: its folder stays, so that the user can look at it."""
    warn = setup.progress.warn
    warn("\nEnding what was started ...")
    try:
        release(setup.transport, directory)
        stopped = stop(setup.transport, directory)
        if stopped.done and not keep:
            remove(setup.transport, directory)
    except KeyboardInterrupt:
        warn(f"\nInterrupted again: what is left is in {directory}; the same command ends and removes it")
        raise
    except HostError as error:
        warn(f"the sessions could not be ended ({error.message}); they end by themselves, in {directory}")
        return
    except UserError:  # another trial was faster
        return
    if keep:
        warn(f"  what went wrong is in {directory}")
    elif not stopped.done:
        warn(f"not all sessions could be ended, and {directory} stays; the same command ends and removes it")


@dataclass
class _Trial(StatusScreen):
    """Follows a trial run: counts its ended sessions, and says what it waits for."""

    setup: TrialSetup
    source: Source
    look: Callable[[RunStatus], None]
    ended: int = 0
    idle_since: float | None = None
    """on the host's clock; None while a session runs"""
    warned: set[object] = field(default_factory=set)

    def show(self, status: RunStatus) -> None:
        """Show a status. Raises HostError if the host is away for long, and UserError if no session will run."""
        if not status.link.reachable or status.now is None:
            if status.link.lasting > _AWAY_S:
                raise HostError(status.link.complaint, "the same command again, when the host answers")
            return
        self.look(status)
        ended = sum(one.life is Life.ENDED for one in status.sessions)
        if ended > self.ended:
            self.setup.progress.count(ended, len(status.sessions))
            self.ended = ended
        if any(one.latest.alive for one in status.every):  # that ends without a dispatcher, too
            self.idle_since = None
        elif ended < len(status.sessions) or not status.finished:
            self._idle(status, status.now)

    def _idle(self, status: RunStatus, now: float) -> None:
        if status.dispatcher is None:
            refuse_halted(status)
            raise HostError(f"the dispatcher of {status.directory} is gone", "give the same command again")
        self.idle_since = now if self.idle_since is None else self.idle_since
        if now - self.idle_since >= timing().first_s and (wait := first_wait(self.source.view, History(), status)):
            self.warn_of(wait)

    def warn_of(self, wait: Fact) -> None:
        """Tell what the first session waits for; once, though its numbers and times change."""
        inner = Fact.of(wait.fields.get("reason"))
        what = wait.code, wait.text("waits_for"), wait.text("server"), inner and inner.code
        if what not in self.warned:
            self.warned.add(what)
            self.setup.progress.warn(f"  the first {say(wait)}; Ctrl-C ends what was started")
