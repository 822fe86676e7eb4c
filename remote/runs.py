"""Lists runs and finds the one that a user names."""

from __future__ import annotations

import json
import os
import re
import time
import zlib
from base64 import b64decode
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from comborun.clock import elapsed
from comborun.errors import UserError
from comborun.remote import program
from comborun.remote.launches import memory, remembered, short
from comborun.remote.transport import LOCAL
from comborun.rules.facts import Fact
from comborun.rules.names import RUN
from comborun.rules.results.fields import number
from comborun.rules.run_files import newest_plan
from comborun.rules.vocabulary import Outcome
from comborun.text import close_to
from comborun.words import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comborun.model.plan import Plan
    from comborun.remote.fetch import FetchOptions
    from comborun.remote.mirror import Skipped
    from comborun.remote.transport import Transport

STAMPED = re.compile("-[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}$")
"""the end of every run's id"""
COMPLETED = ".fetched"
"""in a mirror: the time of the last complete fetch"""
_LARGEST_PLAN = 64 << 20
_CLOCK_S = 60.0
"""seconds by which a clock may be wrong without a word"""
_FRESH_S = 5.0
"""for which a plan that came with a list of runs counts as the newest"""


@dataclass(frozen=True)
class Run:
    id: str
    directory: str
    done: Mapping[str, str]
    """the fields of dispatch/done; empty while the run has not ended"""
    held: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """why it does not go on: `kind` is stopped, paused, draining or halted, `why` is a line, `reason` its fact"""
    canary: bool = False
    """whether it is a recheck: it repeats episodes of another run"""
    left: bool = False
    """of a trial: whether nobody looks at it any more"""
    now: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """the document of `combo status --json` for a run that is not done; empty if unknown. Of one that is done,
    `ahead` alone, if its host's clock is wrong
    """
    part: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """of a part of a run on several hosts: that run as `grid_run`, its own host there as `box`, all `hosts`, those that
    were given up as `lost`, and what counts of these as `kept`
    """

    @property
    def grid_run(self) -> str:
        return str(self.part.get("grid_run", ""))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Of a run on several hosts, or a part of one: all of them."""
        return tuple(self.part.get("hosts", ()))

    @property
    def stamp(self) -> str:
        """`YYYYmmddTHHMMSSZ`, from the id."""
        return self.id.rsplit("-", 2)[-2]

    @property
    def grid(self) -> str:
        return self.id.rsplit("-", 2)[0]

    @property
    def started(self) -> float:
        """Seconds since 1970."""
        return datetime.strptime(self.stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()

    @property
    def finished(self) -> bool:
        return bool(self.done) or bool(self.now.get("finished"))

    @property
    def seconds(self) -> float | None:
        if not self.done:
            return self.now.get("seconds")
        took, ended = number(self.done.get("seconds")), number(self.done.get("at"))  # a former version has no `seconds`
        return max(0.0, ended - self.started) if took is None and ended is not None else took

    @property
    def counts(self) -> dict[str, int]:
        if not self.done:
            return dict(self.now.get("counts", {}))
        numbers = {word: int(number(self.done.get(word)) or 0) for word in Outcome}
        return {word: count for word, count in numbers.items() if count}

    @property
    def episodes(self) -> tuple[int | None, int | None]:
        """How many are done, and planned, smoke test aside; None if unknown, as of runs that a former version ended."""
        if not self.done:
            return self.now.get("episodes_done"), self.now.get("episodes_planned")
        done, planned = (number(self.done.get(key)) for key in ("records", "planned"))
        return None if done is None else int(done), None if planned is None else int(planned)

    @property
    def smoke(self) -> dict[str, int]:
        """The same for the smoke test; of a finished run, how many succeeded and how many did not."""
        if not self.done:
            return dict(self.now.get("smoke", {}))
        all_of_them, good = (int(number(self.done.get(key)) or 0) for key in ("smoke", "smoke_succeeded"))
        numbers = {Outcome.SUCCEEDED: good, Outcome.FAILED: all_of_them - good}
        return {word: count for word, count in numbers.items() if count}


class GpuUser(NamedTuple):
    """A process that holds memory of a GPU."""

    gpu: int
    owner: str
    program: str
    mib: int
    run: str = ""
    """the run of whose session it is; empty for others"""


class Listing(NamedTuple):
    """The runs on a host, now or as last seen."""

    host: str
    runs: tuple[Run, ...]
    seen: float | None = None
    """time of the last list, on this machine's clock in seconds since 1970; None: never"""
    complaint: str = ""
    """why the host did not answer now; empty if it did"""
    users: tuple[GpuUser, ...] = ()
    asked: bool = False
    """whether it has not answered yet, but may still"""


def list_runs(transport: Transport, roots: Iterable[str]) -> tuple[Run, ...]:
    """The runs below `roots` in one round trip, the newest first: of one root by their making, not by the clock."""
    roots = tuple(dict.fromkeys(roots))
    return _newest_first(_run_verb(transport, roots, "list", *roots))


class SentPlan:
    """The newest plan of a run, as its host sent it. It is used once: later a changed grid may have made another."""

    def __init__(self, directory: str, answer: Mapping[str, Any]) -> None:
        self._directory, self._answer, self._at = directory, answer, elapsed()
        self.program = str(answer.get("program", ""))
        """what tells the program of that run from others"""

    def take(self, directory: str) -> Mapping[str, Any] | None:
        """The answer, if it is of that run, has just come, and was not taken before."""
        fresh = directory == self._directory and elapsed() - self._at < _FRESH_S
        answer, self._answer = self._answer if fresh else {}, {}
        return answer or None


def find_runs(
    transport: Transport, roots: Iterable[str], wanted: str | None
) -> tuple[tuple[Run, ...], SentPlan | None]:
    """The runs, and the plan of the one that `wanted` is likely to name, in one round trip."""
    roots = tuple(dict.fromkeys(roots))
    if transport.host == LOCAL:
        return list_runs(transport, roots), None
    found = _run_verb(transport, roots, "find", wanted or "", *roots)
    sent = SentPlan(found["directory"], found["plan"]) if found["plan"] else None
    return _newest_first(found["runs"]), sent


def look_at_host(transport: Transport, roots: Iterable[str]) -> tuple[tuple[Run, ...], tuple[GpuUser, ...]]:
    """The same, and who uses the host's GPUs, if a run that is not done may use them.

    Runs that have ended say how wrong the host's clock is. A look at the others does.
    """
    roots, asked = tuple(dict.fromkeys(roots)), time.time()
    done = program.run_packed(transport, "fleet", *roots, timeout=30, python=program.Python(roots=roots))
    answer = program.answer(transport, done, f"the runs on {transport.host} can't be read")
    took = time.time() - asked
    ahead = answer["now"] - asked - took / 2
    found = _newest_first(answer["runs"])
    if abs(ahead) > max(_CLOCK_S, took):
        found = tuple(replace(run, now={"ahead": ahead}) if run.done else run for run in found)
    return found, tuple(GpuUser(**one) for one in answer["users"])


def _newest_first(answer: Iterable[Iterable[dict[str, Any]]]) -> tuple[Run, ...]:
    found: dict[str, tuple[tuple[str, int], Run]] = {}
    for below in answer:
        started = ""
        for place, entry in enumerate(below):
            directory = entry["directory"]
            held, reason = entry["held"], Fact.of(entry["held"].get("reason"))
            held |= {"why": say(reason)} if reason else {}
            run = Run(PurePosixPath(directory).name, directory, entry["done"], held, entry["canary"], entry["left"])
            run = replace(run, part=entry.get("part", {}))
            started = max(started, run.stamp)
            found[directory] = (started, place), run
    return tuple(run for _, run in sorted(found.values(), key=lambda entry: (*entry[0], entry[1].id), reverse=True))


def last_listings() -> dict[str, Listing]:
    """The last answer of each host."""
    try:
        document = json.loads(memory("hosts.json").read_text("utf-8"))
        return {
            str(host): Listing(
                str(host),
                tuple(Run(**run) for run in one["runs"] if STAMPED.search(run["id"])),
                float(one["seen"]),
                users=tuple(GpuUser(*user) for user in one.get("users", ())),
            )
            for host, one in document.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def keep_listings(found: Iterable[Listing]) -> None:
    """Remember the answers for when their hosts do not answer."""
    kept = last_listings() | {one.host: one for one in found if not one.complaint and one.seen is not None}
    document = {
        host: {"runs": [asdict(run) for run in one.runs], "users": one.users, "seen": one.seen}
        for host, one in kept.items()
    }
    path = memory("hosts.json")
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(document), "utf-8")
        draft.replace(path)
    except OSError:
        return


def sizes(transport: Transport, runs: Sequence[Run]) -> tuple[int, ...]:
    return tuple(
        map(
            int, _run_verb(transport, [_root(run.directory) for run in runs], "sizes", *(run.directory for run in runs))
        )
    )


def remove(transport: Transport, directory: str) -> Fact | None:
    """Remove a run from its host; returns why it stays, or None."""
    return Fact.of(_run_verb(transport, [_root(directory)], "remove", directory))


def release(transport: Transport, directory: str) -> None:
    """Let another trial remove a trial run."""
    _run_verb(transport, [_root(directory)], "release", directory)


def _run_verb(transport: Transport, roots: Iterable[str], *words: str) -> Any:
    python = program.Python(roots=tuple(dict.fromkeys(roots)))
    seconds = 30 if words[0] in {"list", "find", "plan"} else 600
    done = program.run_packed(transport, "runs", *words, timeout=seconds, python=python)
    return program.answer(transport, done, f"the runs on {transport.host} can't be read")


def _root(directory: str) -> str:
    return directory.rpartition("/")[0]


def choose_run(runs: tuple[Run, ...], wanted: str | None, host: str) -> Run:
    """The run that `wanted` names, or the newest that is no recheck. A name is the id, its beginning or its last four
    characters, the folder, or the grid's name.

    Raises UserError if there is none, or if the beginning of an id is ambiguous.
    """
    if runs and wanted is None:
        return next((run for run in runs if not run.canary), runs[0])
    for run in runs:
        if wanted in {run.id, run.directory, run.grid}:
            return run
    begun = [run for run in runs if wanted and (run.id.startswith(wanted) or short(run.id) == wanted)]
    if len(begun) == 1:
        return begun[0]
    if begun:
        names = ", ".join(run.id for run in begun[:5])
        raise UserError(
            f"{wanted!r} could be any of {len(begun)} runs: {names}", "write more of the id", code="ambiguous_run"
        )
    raise _absent(runs, wanted, host)


def _absent(runs: tuple[Run, ...], wanted: str | None, host: str) -> UserError:
    """That there is no such run; of one that was there, that it was removed, and where its records are here."""
    if not runs:
        message = f"there are no runs on {host}"
        hint = (
            "combo launch GRID starts one; for a run on another host give --host, or its grid file instead of its name"
        )
    elif wanted and "/" in wanted:
        message, hint = f"there is no run in the folder {wanted!r} on {host}", "combo runs lists all that there are"
    else:
        message = f"there is no run {wanted!r} on {host}"
        close = close_to(wanted or "", [name for run in runs for name in (run.grid, run.id)])
        hint = f"did you mean `{close}`?" if close else f"the newest is {runs[0].id}; combo runs lists all"
    gone = [one for one in remembered() if one.host == host and wanted and one.run.startswith(wanted)]
    if gone:
        last = gone[-1]
        copied = host != LOCAL and age_of_copy(host, last.run, last.directory) is not None
        here = f"its records are here: combo report {copy_of(host, last.run, last.directory)}; " if copied else ""
        message = f"the run {last.run} is not on {host} any more: {last.directory} was removed or can't be read"
        hint = here + hint
    return UserError(message, hint, code="unknown_run")


def plan_of(directory: Path) -> tuple[Plan, int]:
    """The newest plan of a run on this machine, or of a copy, and its number. Raises OSError or ValueError."""
    number = newest_plan(str(directory))
    path, deal = directory / RUN.plan(number), directory / RUN.deal
    if path.stat().st_size > _LARGEST_PLAN:
        raise ValueError(f"{path} has more than {_LARGEST_PLAN} bytes")
    moves = [one.read_text("utf-8") for one in (directory / RUN.moves).glob("*") if deal.is_file()]
    return _plan(path.read_text("utf-8"), deal.read_text("utf-8") if deal.is_file() else "", moves), number


def _plan(text: str, deal: str, moves: Iterable[str] = ()) -> Plan:
    """The plan of a JSON text; sessions are marked that run on another host."""
    from comborun.model.plan import Plan  # slow to import, and many commands need none
    from comborun.model.work import deal_in, process_of

    plan, found = Plan.from_json(text), deal_in(deal, moves)
    return plan.without(lambda one: found is None or found.runs_here(process_of(one)))


def read_plan(transport: Transport, directory: str, sent: SentPlan | None = None) -> tuple[str, Plan, int]:
    """The id of a run, its newest plan, and that plan's number, in one round trip; in none if it was just `sent`.

    Raises OSError if the directory is no run, ValueError, KeyError or TypeError for a plan of another version.
    """
    if transport.host == LOCAL:
        folder = Path(directory).expanduser()
        return (folder / RUN.id).read_text("utf-8").strip(), *plan_of(folder)
    answer = sent.take(directory) if sent else None
    if answer is None:
        answer = _run_verb(transport, [_root(directory)], "plan", directory)
    text = zlib.decompress(b64decode(answer["plan"])).decode("utf-8", "replace")
    if not answer["id"] or not text:
        raise FileNotFoundError(directory)
    return answer["id"], _plan(text, answer.get("deal", "")), int(answer["number"])


def copy_of(host: str, run: str, directory: str) -> Path:
    """The folder of a run's records on this machine: the run itself, or the mirror of a run elsewhere."""
    if host == LOCAL:
        return Path(directory)
    from comborun.remote.fetch import mirror_directory

    return mirror_directory(host, run)


def age_of_copy(host: str, run: str, directory: str) -> float | None:
    """Seconds since the records of a run elsewhere were last copied; None: never, or not completely."""
    copy = copy_of(host, run, directory)
    try:
        return max(0.0, time.time() - (copy / COMPLETED).stat().st_mtime) if (copy / RUN.plan(1)).is_file() else None
    except OSError:
        return None


def bring_records(
    transport: Transport, run: str, directory: str, options: FetchOptions | None = None
) -> tuple[Path, tuple[Skipped, ...]] | None:
    """The folder of a run's records on this machine, and what could not be copied; None: the copy is not complete."""
    copy = copy_of(transport.host, run, directory)
    if transport.host == LOCAL:
        return copy, ()
    from comborun.remote.fetch import EVERYTHING, fetch

    fetched = fetch(transport, directory, copy, options or EVERYTHING)
    if not fetched.whole:
        return None
    (copy / COMPLETED).touch()
    return copy, fetched.skipped
