"""A run, from Python: launch it, look at it, read its episodes, steer it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypedDict, Unpack

from comborun.answers import orders, runs
from comborun.api.named import GridChoice, HostChoice, Target
from comborun.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comborun.answers.status import Status
    from comborun.api.episodes import Episodes
    from comborun.api.watching import Watching


class LaunchOptions(TypedDict, total=False):
    """As the options of `combo launch`."""

    parallel: int
    multiplexer: str
    new: bool
    changed: Literal["rerun", "keep"]
    smoke: int
    slurm: bool
    force: bool
    take_over: bool
    environment: Literal["first", "now"]


class Run:
    """A run on a host. Each method asks the host anew; what a method returns never changes.

    Errors are exceptions of `comborun.errors`, with `code`, `message`, `hint` and `place`.
    """

    def __init__(self, target: Target, launched: orders.Launch | None = None) -> None:
        self.target = target
        self.launched = launched
        """what the launch did; None for a run that was opened"""

    @property
    def id(self) -> str:
        return self.target.run

    @property
    def host(self) -> str:
        return self.target.transport.host

    @property
    def directory(self) -> str:
        """Its folder on the host."""
        return self.target.directory

    def __repr__(self) -> str:
        return f"<run {self.id} on {self.host}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection to the host. The run goes on."""
        close = getattr(self.target.transport, "close", None)
        if close:
            close()

    # Look

    def status(self) -> Status:
        """The run now; if its host does not answer, as it was last seen, with `reachable` False."""
        from comborun.api.watching import status_of
        from comborun.monitor.document import answer

        return answer(status_of(self.target))

    def watch(self, interval: float | None = None) -> Watching:
        """Each look at the run until it has finished. Watching changes nothing, and leaving it neither.

        for status in run.watch(): ...      in a program
        run.watch()                         at the end of a cell of a notebook: a table that updates
        """
        from comborun.api.watching import Watching

        return Watching(self.target.answering, interval)

    def wait(self, interval: float | None = None) -> Status:
        """Wait until the run has finished."""
        return self.watch(interval).wait()

    def causes(self) -> runs.Causes:
        """What went wrong so far: sessions that failed alike together, each cause with the next step."""
        from comborun.api.looking import causes_of

        return causes_of(self.target.answering).answer

    def explain(self, *sessions: str) -> tuple[runs.Explanation, ...]:
        """Why sessions wait, what they do, or how they ended, and how to continue; of all that did not succeed."""
        from comborun.api.looking import explanations

        words = sessions or tuple(one.name for one in self.status().sessions if one.outcome not in _FINE)
        return tuple(one.answer for one in explanations(self.target.answering, words)) if words else ()

    def logs(self, *sessions: str, lines: int = 20) -> tuple[runs.Log, ...]:
        """The ends of the logs of some sessions, or of all."""
        from comborun.api.looking import log_records, logs

        texts: dict[str, runs.Log] = {}
        for one in log_records(logs(self.target.answering, sessions, lines).pieces):
            before = texts[one.session].untrusted_text if one.session in texts else ""
            texts[one.session] = replace(one, untrusted_text=before + one.untrusted_text)
        return tuple(texts.values())

    def follow(self, *sessions: str, lines: int = 20) -> Iterator[runs.Log]:
        """The same, and what they print from now on, until they have ended."""
        from comborun.api.looking import log_records, logs

        return log_records(logs(self.target.answering, sessions, lines, on=True).pieces)

    # Results

    def episodes(self) -> Episodes:
        """The episodes that count, so far; `to_pandas()` and `to_polars()` make a table."""
        from comborun.api.episodes import episodes_of

        return episodes_of(self.target)

    def compare(self, a: str, b: str) -> runs.ComparedPolicies:
        """What the report of the run, so far, says of two of its policies."""
        from comborun.api.reports import compare_policies

        return compare_policies(self.target, a, b)

    def compare_with(self, earlier: str) -> runs.Comparison:
        """Compare with an earlier run: is this one better?"""
        from comborun.api import reports

        where = HostChoice(self.host, listener=self.target.listener)
        return reports.comparison_answer(reports.compare((earlier, self.id), where)[1])

    def report(self, output: str | Path | None = None) -> runs.Report:
        """Make the report of the run so far."""
        from comborun.api import reports

        request = reports.ReportRequest(Path(output) if output else None)
        return reports.report_answer(*reports.make_report(self.target, reports.brought(self.target), request))

    # Steer

    def stop(self, *sessions: str, policy: str | None = None, environment: str | None = None) -> orders.Stopped:
        """End the run, or some of its sessions, and everything that they started. Nobody is asked."""
        from comborun.api import steering

        return steering.stop_now(self.target.answering, sessions, policy, environment)

    def retry(
        self, *sessions: str, failed: bool = False, stalled: bool = False, environment: str = "now"
    ) -> orders.Steered:
        """Start sessions again that ended without success, each with a new budget of retries."""
        from comborun.api import steering

        if bool(sessions) + failed + stalled != 1:
            raise UserError("retry takes names of sessions, or failed=True, or stalled=True", "status() lists them")
        which: Literal["", "failed", "stalled"] = "failed" if failed else "stalled" if stalled else ""
        return steering.retry(self.target.answering, sessions, which, environment)

    def resume(self, environment: str = "now") -> orders.Resumed:
        """Lift a hold or a stop, and run what is missing."""
        from comborun.api import steering
        from comborun.monitor.steering import joint_answer, resume_answer

        plans = steering.planned_resumes(self.target.answering, environment)
        for part, going in plans:
            steering.resume(part, going, environment)
        return joint_answer(self.id, [resume_answer(going, done=not going.nothing) for _, going in plans])

    def slots(self, count: int) -> orders.Steered:
        """Let so many sessions run at once from now on."""
        from comborun.api import steering

        return steering.slots(self.target.answering, count)

    def change(self, values: Mapping[str, object], because: str = "") -> orders.Steered:
        """Change settings of the run while it goes on, as `combo set` does: {"use_gpus": [0, 1], "parallel": 6}."""
        from comborun.api import steering

        given = {
            key: ",".join(map(str, one)) if isinstance(one, list | tuple) else str(one) for key, one in values.items()
        }
        return steering.retune(self.target.answering, given, because)

    def pause(self, why: str = "") -> orders.Steered:
        """Start nothing new until `resume`; running sessions go on."""
        from comborun.api import steering

        return steering.hold(self.target.answering, "pause", why)


_FINE = ("succeeded", "not_needed")


def open_run(
    run: str | Path | None = None,
    host: str | None = None,
    *,
    transport: Literal["ssh", "openssh"] | None = None,
    root: str | None = None,
) -> Run:
    """A run by its id, the start of it, its grid, grid file or folder; the newest run if none is named."""
    where = HostChoice(host, transport, root=root)
    return Run(where.find(None if run is None else str(run), kept=True))


def launch(
    grid: str | Path,
    host: str | None = None,
    set: Mapping[str, object] | None = None,  # noqa: A002  the option's name
    **options: Unpack[LaunchOptions],
) -> Run:
    """Start a grid's sessions; the same call again continues what is missing. `set` replaces values of the grid.

    launch("grid.yaml", host="h100", set={"limits.parallel": 4}, smoke=1)

    With `smoke` it waits for the smoke test. A changed grid needs `changed` or `new`.
    """
    from comborun.api.boxes import TogetherRequest, several_hosts, start_together
    from comborun.api.launching import start_run, with_failures, with_smoke_test
    from comborun.remote.preparing import LaunchRequest

    given = tuple(f"{key}={_yaml(value)}" for key, value in (set or {}).items())
    chosen, request = GridChoice(Path(grid), given), LaunchRequest(**options)
    if together := several_hosts(chosen, (host,) if host else ()):
        return Run(start_together(chosen, HostChoice(), request, TogetherRequest(together)).target)
    started = start_run(chosen, HostChoice(host), request)
    started = with_smoke_test(started) if options.get("smoke") else with_failures(started)
    return Run(started.target, started.answer)


def all_runs(host: str | None = None) -> tuple[runs.ListedRun, ...]:
    """The runs on all hosts that this machine has used, or on one; of a host that does not answer as last seen."""
    from comborun.monitor.fleet import Fleet, answer

    where = HostChoice(host)
    fleet = Fleet(where.everywhere(), where.look)
    while not fleet.over:
        fleet.wait(0.5)
    fleet.close()
    return tuple(map(answer, fleet.rows()))


def _yaml(value: object) -> str:
    """A value as it stands after `--set KEY=`."""
    import json

    return value if isinstance(value, str) else json.dumps(value)
