"""Episodes with their videos, and the report so far, from a run's records on this machine.

Reading them takes seconds and, with scipy, much memory, so a process of its own does it and ends. It hands back values
and HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path, PurePosixPath
from threading import Lock, Thread
from time import monotonic, time
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from comborun.errors import UserError
from comborun.remote.transport import LOCAL
from comborun.rules import globs
from comborun.rules.names import RUN
from comborun.text import harmless

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.model.attempt import EpisodeRecord
    from comborun.monitor.watch import Look, Source
    from comborun.reporter.records.collected import Collected
    from comborun.reporter.records.videos import Video

T = TypeVar("T")
PLAYABLE = (".mp4", ".webm", ".gif")
_FACTS_MOST = 6
_FACT_MOST = 60
"""characters"""
_SHARE = 8.0
"""making values anew takes a ninth of the time, at most"""


class Rollout(NamedTuple):
    """An episode with a record."""

    session: str
    policy: str
    environment: str
    episode: int
    attempt: int
    verdict: str
    start: str
    """its seed, else its index: the same for the episodes of other policies that began alike"""
    at: float
    """about when it ended, on the host's clock"""
    video: str = ""
    """path in the run; empty without one"""
    size: int = 0
    fault: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    """other fields of its record"""

    @property
    def key(self) -> str:
        return f"{self.session}:{self.episode}"

    @property
    def playable(self) -> bool:
        return bool(self.video) and not self.fault and self.video.lower().endswith(PLAYABLE)


@dataclass(frozen=True)
class ReportSoFar:
    made: float = 0.0
    html: str = ""
    folder: str = ""
    """where the whole report is"""
    complaint: str = ""


VIDEOS = (
    'cd -- "$1" && shift && find "$@" -type f \\( -name "*.mp4" -o -name "*.webm" -o -name "*.gif" \\) -size +0'
    ' -exec stat -c "%s %n" {} + 2>/dev/null; true'
)
"""the videos in some folders of a run: a running attempt has not listed them yet"""


def videos_there(sources: Mapping[str, Source], look: Look) -> tuple[tuple[str, int], ...]:
    """Videos of running attempts on another host, by their paths in the run, and their bytes. Raises HostError."""
    lines: list[str] = []
    for host, part in look.by_host().items():
        alive = [one for one in part.status.every if one.alive and one.attempt]
        outputs = [RUN.attempt(one.name, one.attempt).output for one in alive]
        if outputs and host != LOCAL and part.status.link.reachable:
            source = sources[host]
            lines += source.transport.run(VIDEOS, source.view.directory, *outputs).text.splitlines()
    found = (line.partition(" ") for line in lines)
    return tuple((path, int(size)) for size, _, path in found if size.isdecimal() and is_inside(path))


# In the other process


def rollouts(source: Path, now: float, there: Sequence[tuple[str, int]] = ()) -> tuple[Rollout, ...]:
    """The newest first. `there`: videos of running attempts on the host, and their bytes. Raises UserError."""
    from comborun.reporter.collect import collect_run
    from comborun.reporter.records import videos

    collected = collect_run(source)
    found = {path: videos.Video(path, size, "") for path, size in there}
    found |= {video.path: video for video in _videos(source, collected)}
    bases = {one.session.name: one.session.results.base for one in collected.sessions}
    links = videos.Links([*found.values()], collected.records, bases).of
    times = _times(collected, now)
    lines: dict[str, int] = {}
    for record in collected.records:
        lines[record.path] = max(lines.get(record.path, 1), record.line)
    rows = []
    for record in collected.records:
        begun, ended = times.get((record.session, record.attempt), (0.0, 0.0))
        at = begun + (ended - begun) * (record.line or lines[record.path]) / lines[record.path]
        named = record.extra.get("video")
        video = links.get(videos.key(record)) or (named if isinstance(named, str) and named in found else "")
        one = found.get(video)
        rows.append(
            Rollout(
                record.session, record.policy, record.environment, record.episode, record.attempt, str(record.verdict),
                f"seed {record.seed}" if record.seed is not None else f"episode {record.episode}", at, video,
                one.size if one else 0, one.fault if one else "", tuple(_facts(record)),
            )
        )  # fmt: skip
    return tuple(sorted(rows, key=lambda row: (-row.at, row.key)))


def _videos(source: Path, collected: Collected) -> Iterator[Video]:
    """As each attempt has listed them, else those that are there."""
    from comborun.reporter.records import videos

    for history in collected.sessions:
        for attempt in history.attempts:
            at = RUN.attempt(history.session.name, attempt.number)
            if (source / at.videos).is_file():
                text = (source / at.videos).read_text("utf-8", "replace")
                yield from videos.listed(text, at.directory)
            elif (source / at.output).is_dir():
                names = globs.found(str(source / at.output), history.session.results.videos)
                yield from videos.index(source, [f"{at.output}/{name}" for name in names])


def _times(collected: Collected, now: float) -> Mapping[tuple[str, int], tuple[float, float]]:
    return {
        (history.session.name, one.number): (one.started or 0.0, one.ended or now)
        for history in collected.sessions
        for one in history.attempts
    }


def _facts(record: EpisodeRecord) -> Iterator[tuple[str, str]]:
    metrics = {name: f"{value:.6g}" for name, value in record.metrics.items()}
    others = {name: str(value) for name, value in record.extra.items() if isinstance(value, str | int | float)}
    shown = {name: value for name, value in {**others, **metrics}.items() if name != "video"}
    for name, value in [*shown.items()][:_FACTS_MOST]:
        yield harmless(name, keep="")[:_FACT_MOST], harmless(value, keep="")[:_FACT_MOST]


def report_so_far(source: Path, folder: Path) -> ReportSoFar:
    """Writes the whole report into `folder`. Raises UserError."""
    from comborun.monitor.view.pages import templates
    from comborun.reporter.figures.episodes import trends
    from comborun.reporter.figures.ranking import differences, pairs, ranking
    from comborun.reporter.figures.rates import heat_map
    from comborun.reporter.pages.page import page
    from comborun.reporter.report import report_run
    from comborun.reporter.standing import standing_of

    made = time()
    summary = report_run(source, folder)
    standing = standing_of(summary)
    drawn = [ranking(standing), trends(summary), heat_map(summary), pairs(standing), differences(standing)]
    sections = page(summary)
    text = templates().get_template("report_part.html.j2").render(sections, figures=[one for one in drawn if one])
    return ReportSoFar(made, text, str(folder))


# In the server


class Renewed(Generic[T]):
    """A value that is made anew when it is asked for and is too old, in a thread; until then the last one."""

    def __init__(self, value: T, least_s: float) -> None:
        self.value = value
        self.complaint = ""
        self.number = 0
        """grows with each new value"""
        self.busy = False
        self._least_s = least_s
        self._stamp: object = None
        self._next = 0.0
        self._lock = Lock()

    def ask(self, stamp: object, make: Callable[[], T]) -> None:
        """`stamp` changes when the value would. What takes long is made less often."""
        with self._lock:
            if self.busy or self._stamp == stamp or monotonic() < self._next:
                return
            self.busy = True
        Thread(target=self._make, args=(stamp, make), daemon=True).start()

    def _make(self, stamp: object, make: Callable[[], T]) -> None:
        begun = monotonic()
        try:
            self.value, self.complaint = make(), ""
            self._stamp = stamp
        except (UserError, OSError, RuntimeError) as error:
            self.complaint = harmless(str(error).partition("\n")[0])
        finally:
            self._next = monotonic() + max(self._least_s, _SHARE * (monotonic() - begun))
            self.number += 1
            self.busy = False


def elsewhere(work: Callable[..., T], *arguments: object) -> T:
    """The result of a function in a new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def choose(
    rows: Sequence[Rollout], show: str = "", policy: str = "", environment: str = "", most: int = 300
) -> tuple[list[Rollout], int]:
    """The rows that a filter lets through, at most so many, and how many there are. Failed ones come first unless
    `show` says otherwise: `failed`, `success`, or `newest`.
    """
    found = [one for one in rows if policy in ("", one.policy) and environment in ("", one.environment)]
    if show == "failed":
        found = [one for one in found if one.verdict != "success"]
    elif show == "success":
        found = [one for one in found if one.verdict == "success"]
    elif show != "newest":
        found.sort(key=lambda one: one.verdict == "success")
    return found[:most], len(found)


def alike(rows: Sequence[Rollout], one: Rollout, policies: Sequence[str]) -> list[Rollout]:
    """The same start in the same environment with every policy, in their order; of several attempts the newest."""
    found: dict[str, Rollout] = {}
    for other in rows:
        if other.environment == one.environment and other.start == one.start:
            found.setdefault(other.policy, other)
    found[one.policy] = one
    return [found[policy] for policy in policies if policy in found]


def is_inside(path: str) -> bool:
    """Whether a path can be that of a file of an attempt: its log, or something below `out`."""
    parts = PurePosixPath(path).parts
    return len(parts) > 3 and parts[0] == "sessions" and ".." not in parts and parts[3] in {"log", "out"}
