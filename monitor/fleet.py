"""The runs on all hosts: each host is asked in a thread of its own, so that none waits for another.

Of a host that does not answer, the runs are shown as they were last seen, with their age.
"""

from __future__ import annotations

import queue
import threading
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from comborun.errors import HostError, RunGoneError, UserError
from comborun.monitor.classify import classify
from comborun.monitor.observe import History, last_look, load_run
from comborun.monitor.status import Expected, Link
from comborun.monitor.watch import Clock, Source, last_seen
from comborun.monitor.wording import MARKS, by_urgency, listed
from comborun.remote.launches import remembered
from comborun.remote.runs import STAMPED, GpuUser, Listing, Run, keep_listings, last_listings
from comborun.remote.transport import LOCAL, LocalTransport
from comborun.rules.facts import Fact
from comborun.rules.results.fields import number
from comborun.rules.vocabulary import Life, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from comborun.answers import runs
    from comborun.monitor.status import RunStatus
    from comborun.remote.transport import Transport

    Look = Callable[[Transport], tuple[tuple[Run, ...], tuple[GpuUser, ...]]]

PATIENCE_S = 2.0
"""after this time without an answer, the last known state of a host is shown"""
ENOUGH_S = 6.0
"""whoever asks all hosts once waits no longer for one, if another has answered: enough for a login over a slow link"""
_KEEP_S = 60.0
"""seconds between two writes of what was seen, while hosts are watched"""
_MOST_LOOKS = 20
"""of a host's runs that are not done"""
_LATE = "no answer yet"


class FleetRow(NamedTuple):
    """A run on one of the hosts."""

    host: str
    run: Run
    age: float | None = None
    """seconds since its host answered, if it does not answer now; None if it does"""
    complaint: str = ""
    """why it does not"""
    users: tuple[GpuUser, ...] = ()
    """processes on GPUs of the host"""
    ahead: float = 0.0
    """seconds by which the host's clock is ahead of this machine's"""
    parts: tuple[FleetRow, ...] = ()
    """of a run on several hosts, those that are known, the first host's first"""

    @property
    def each(self) -> tuple[FleetRow, ...]:
        """Its parts; of a run on one host itself."""
        return self.parts or (self,)

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(one.run.id for one in self.each)

    @property
    def state(self) -> str:
        return state(self.run)

    @property
    def brief_state(self) -> str:
        """`●8 ✗5 ·20`, after what holds the run."""
        held = "gone" if self.run.now.get("abandoned") else self.run.held.get("kind", "") if not self.run.done else ""
        held = held or ("held" if self.run.now.get("held_on") else "")
        symbols = (f"{MARKS[word].symbol}{count}" for word, count in by_urgency(self.run.counts))
        return " ".join(filter(None, [held, *symbols]))

    @property
    def done(self) -> int | None:
        """Planned episodes that are done; None if unknown."""
        return self.run.episodes[0]

    @property
    def planned(self) -> int | None:
        return self.run.episodes[1]

    @property
    def started(self) -> float:
        """On this machine's clock, as far as the host's is known."""
        return self.run.started - self.ahead

    @property
    def expected(self) -> Expected | None:
        """When the last session ends, on this machine's clock."""
        ends = self.run.now.get("estimated_end_range")
        return Expected(*(moment - self.ahead for moment in ends)) if ends and not self.run.finished else None

    @property
    def gpus(self) -> tuple[int, ...]:
        """The GPUs that its sessions have now."""
        return tuple(self.run.now.get("gpus", ())) if not self.run.finished else ()

    @property
    def others(self) -> tuple[tuple[str, int], ...]:
        """Who else uses the host's GPUs, and MiB; another run of this user counts by its grid's name."""
        held: dict[str, int] = {}
        for user in self.users if not self.run.finished else ():
            if user.run not in self.ids:
                who = user.run.rsplit("-", 2)[0] or user.owner
                held[who] = held.get(who, 0) + user.mib
        return tuple(sorted(held.items(), key=lambda item: -item[1]))


@dataclass
class _Host:
    listing: Listing
    asked: float | None
    """when it was asked what it has not answered yet, on the clock of the fleet"""
    answered: bool = False
    """whether it has answered, or can't be reached"""


class Fleet:
    """Looks at hosts: once, or again `again_s` seconds after each answer. Its rows are as new as the last `wait`."""

    def __init__(
        self, transports: Mapping[str, Transport], look: Look, again_s: float | None = None, clock: Clock | None = None
    ) -> None:
        self._transports = dict(transports)
        self._look, self._again_s, self._clock = look, again_s, clock or Clock()
        self._answers: queue.SimpleQueue[tuple[str, Listing | None]] = queue.SimpleQueue()
        self._over = threading.Event()
        kept, now = last_listings(), self._clock.elapsed()
        self._hosts = {host: _Host(kept.get(host) or Listing(host, ()), now) for host in self._transports}
        self._kept_at, self._new = now, False
        self._sources: dict[str, tuple[Source, History]] = {}
        if LOCAL in self._hosts and again_s is None:
            self._take(LOCAL, self._ask(LOCAL))  # in a fork, which must not be made beside threads
        for host in self._hosts:
            if not self._hosts[host].answered:
                threading.Thread(target=self._work, args=(host,), daemon=True).start()

    @property
    def answered(self) -> bool:
        """Whether every host has answered, or can't be reached."""
        return all(one.answered for one in self._hosts.values())

    @property
    def over(self) -> bool:
        """Whether there is nothing more to wait for, if each host is asked once."""
        if self.answered or self.asking or self._again_s is not None:
            return self.answered
        soon = self._clock.elapsed() - ENOUGH_S
        heard = any(one.answered and not one.listing.complaint for one in self._hosts.values())
        return heard and all(one.asked is None or one.asked <= soon for one in self._hosts.values())

    @property
    def late(self) -> tuple[str, ...]:
        """The hosts that are shown as they were last seen, and may still answer."""
        return tuple(one.host for one in self.listings() if one.asked)

    @property
    def asking(self) -> bool:
        """Whether the user is asked something at the terminal, for a login."""
        return any(getattr(one, "asking", False) for one in self._transports.values())

    def wait(self, seconds: float) -> bool:
        """Wait for something new: an answer, or that a host is late. Returns whether there is."""
        now = self._clock.elapsed()
        late = [one.asked + PATIENCE_S - now for one in self._hosts.values() if one.asked is not None]
        new, self._new = self._new, False
        due = [left for left in late if left > 0]
        try:
            self._take(*self._answers.get(timeout=0 if new else min([seconds, *due])))
            while True:
                self._take(*self._answers.get_nowait())
        except queue.Empty:
            new, self._new = new or self._new or (bool(due) and min(due) <= seconds), False
        if new and (self._again_s is None or self._clock.elapsed() - self._kept_at > _KEEP_S):
            self._keep()
        return new

    def listings(self) -> tuple[Listing, ...]:
        """What is known of each host that has answered or is late."""
        now, found = self._clock.elapsed(), list[Listing]()
        for one in self._hosts.values():
            late = one.asked is not None and now - one.asked >= PATIENCE_S
            if late:
                found.append(one.listing._replace(asked=True, complaint=one.listing.complaint or _LATE))
            elif one.answered:
                found.append(one.listing)
        return (*found, *(launched for one in found if one.complaint for launched in _since(one)))

    def rows(self) -> tuple[FleetRow, ...]:
        """A row for each run of those hosts, the newest first; each run once."""
        return self._rows(self.listings())

    def awaited(self) -> tuple[FleetRow, ...]:
        """The same, with what was last seen of the hosts that may still answer."""
        return self._rows([one.listing for one in self._hosts.values()])

    def _rows(self, listings: Iterable[Listing]) -> tuple[FleetRow, ...]:
        now = self._clock.now()
        return together(
            FleetRow(
                one.host,
                run,
                max(0.0, now - one.seen) if one.complaint and one.seen else None,
                one.complaint,
                one.users,
                run.now.get("ahead", 0.0),
            )
            for one, run in each_once(listings)
        )

    def close(self) -> None:
        self._over.set()
        self._keep()

    def disconnect(self) -> None:
        """End the connections; looks in progress fail. It may wait for them."""
        for transport in self._transports.values():
            if close := getattr(transport, "close", None):
                close()

    def _work(self, host: str) -> None:
        while True:
            self._answers.put((host, self._ask(host)))
            if self._again_s is None or self._over.wait(self._again_s):
                return
            self._answers.put((host, None))

    def _ask(self, host: str) -> Listing:
        lasting = self._again_s is not None and host == LOCAL
        transport = LocalTransport(forks=False) if lasting else self._transports[host]  # there are other threads
        try:
            there, users = self._look(transport)
            return Listing(host, looked_at(transport, there, self._sources), self._clock.now(), users=users)
        except UserError as error:
            hint = f" ({error.hint})" if error.hint else ""
            return Listing(host, (), None, error.headline + hint)

    def _take(self, host: str, listing: Listing | None) -> None:
        """An answer of a host; None: it is asked again."""
        one = self._hosts[host]
        if listing is None:
            one.asked = self._clock.elapsed()
            return
        self._new = True
        one.asked, one.answered = None, True
        if listing.complaint:
            listing = one.listing._replace(complaint=listing.complaint)
        one.listing = listing

    def _keep(self) -> None:
        self._kept_at = self._clock.elapsed()
        keep_listings(one.listing for one in self._hosts.values() if one.answered)


def looked_at(
    transport: Transport, there: tuple[Run, ...], sources: dict[str, tuple[Source, History]] | None = None
) -> tuple[Run, ...]:
    """The runs, and the present state of the newest ones that are not done. `sources` keeps what was read of them."""
    going = [run for run in there if not run.done][:_MOST_LOOKS]
    sources = {} if sources is None else sources
    return tuple(replace(run, now=_now(transport, run, sources)) if run in going else run for run in there)


def _now(transport: Transport, run: Run, sources: dict[str, tuple[Source, History]]) -> dict[str, Any]:
    """The state of a run; empty if it is unknown, for example because an older comborun made the run. A host that does
    not answer any more has not answered: raises HostError.
    """
    key = f"{transport.host}:{run.directory}"
    try:
        source, history = sources.get(key) or (Source(transport, _view(transport, run)), History())
        history = source.fold(history)
        source = source.renewed(history)
        if not run.grid_run:
            sources[key] = source, history
        return _now_of(classify(source.view, history))
    except UserError as error:
        sources.pop(key, None)
        if isinstance(error, HostError) and not isinstance(error, RunGoneError):
            raise
        return {}


def _view(transport: Transport, run: Run) -> Any:
    """Its plan, as this machine last saw it: the first look says if there is a newer one."""
    moves = transport.host == LOCAL or run.grid_run  # sessions of a part may have moved: then it is read anew
    seen = None if moves else last_look(transport.host, run.id, run.directory)
    return seen.view if seen else load_run(transport, run.directory)


def _since(one: Listing) -> Iterator[Listing]:
    """The runs launched there since it was listed, each as `combo status` last saw it."""
    launched = {launch.run: launch for launch in remembered() if launch.host == one.host and STAMPED.search(launch.run)}
    for launch in launched.values():
        part = {"grid_run": launch.grid_run, "box": launch.host} if launch.grid_run else {}
        run = Run(launch.run, launch.directory, {}, part=part)
        look = last_look(launch.host, launch.run, launch.directory)
        if run.id not in {known.id for known in one.runs} and run.started >= (one.seen or 0):
            now = _now_of(last_seen(look, Link(reachable=False, complaint=one.complaint), Clock())) if look else {}
            yield Listing(one.host, (replace(run, now=now),), look.at if look else None, one.complaint)


def _now_of(seen: RunStatus) -> dict[str, Any]:
    words: dict[str, Any] = {"finished": seen.finished, "seconds": seen.seconds, "abandoned": seen.abandoned}
    words |= {"episodes_done": seen.done, "episodes_planned": seen.planned, "ahead": seen.ahead}
    words |= {"estimated_end_range": list(seen.expected)} if seen.expected else {}
    words |= {"gpus": sorted({gpu for session in seen.every if session.alive for gpu in session.gpus})}
    return words | {"counts": seen.counts(), "smoke": seen.smoke()}


def each_once(found: Iterable[Listing]) -> list[tuple[Listing, Run]]:
    """All runs, the newest first. If several hosts (or names of a host) list a run, the one that knows more about it
    counts, else the host of its latest launch.
    """
    launched = {launch.run: launch.host for launch in remembered()}

    def knows(entry: tuple[Listing, Run]) -> tuple[bool, ...]:
        one, run = entry
        return not one.complaint, not run.now.get("abandoned"), launched.get(run.id) == one.host

    entries = [(one, run) for one in found for run in one.runs]
    best = {entry[1].id: entry for entry in sorted(entries, key=knows)}
    chosen = (entry for entry in entries if best[entry[1].id] is entry)
    return sorted(chosen, key=lambda entry: entry[1].stamp, reverse=True)


def together(rows: Iterable[FleetRow]) -> tuple[FleetRow, ...]:
    """The rows, with one for each run on several hosts instead of one for each part."""
    found: dict[str, list[FleetRow]] = {}
    for row in rows:
        found.setdefault(row.run.grid_run or row.run.id, []).append(row)
    return tuple(_joined(parts) if len(parts) > 1 else parts[0] for parts in found.values())


def _joined(parts: list[FleetRow]) -> FleetRow:
    """A run on several hosts: the sums of its parts. Of a host that was given up counts what the others say."""
    hosts = max((one.run.hosts for one in parts), key=len)
    known = max((one.run.part for one in parts), key=lambda part: len(part.get("lost", ())))
    lost, kept = known.get("lost", ()), known.get("kept", {})
    parts.sort(key=lambda one: [*hosts, one.run.part["box"]].index(one.run.part["box"]))
    left = [one for one in parts if one.run.part["box"] not in lost] or parts
    first, going = parts[0], [one for one in left if not one.run.finished]
    counts = sum((Counter(one.run.counts) for one in left), Counter(succeeded=kept.get("succeeded", 0)))
    smoke = sum((Counter(one.run.smoke) for one in left), Counter[str]())
    ends = [one.expected for one in going if one.expected]
    holds = {one.host: one.run.held["kind"] for one in going if one.run.held.get("kind")}
    now: dict[str, Any] = {
        "finished": not going,
        "seconds": max((one.run.seconds for one in left if one.run.seconds is not None), default=None),
        "abandoned": any(one.run.now.get("abandoned") for one in going),
        "counts": {str(word): counts[word] for word in (*Life, *Outcome) if counts[word]},
        "smoke": dict(smoke),
        "held_on": holds if len(holds) < len(going) else {},
    }
    for place, key in enumerate(("episodes_done", "episodes_planned")):
        known_sums = [one.run.episodes[place] for one in left]
        more = kept.get("episodes", 0)
        now[key] = None if None in known_sums else sum(filter(None, known_sums)) + more
    if ends and len(ends) == len(going):
        now["estimated_end_range"] = [max(moments) + first.ahead for moments in zip(*ends, strict=True)]
    held = going[0].run.held if going and len(holds) == len(going) else {}
    run = Run(first.run.id, first.run.directory, {}, held, first.run.canary, now=now, part={"hosts": hosts})
    silent = [one for one in left if one.complaint]
    return first._replace(
        host=", ".join(one.host for one in parts),
        run=run,
        age=max((one.age for one in silent if one.age is not None), default=None),
        complaint=silent[0].complaint if silent else "",
        users=tuple(user for one in going for user in one.users),
        parts=tuple(parts),
    )


def answer(row: FleetRow) -> runs.ListedRun:
    from comborun.answers import runs  # slow to import, and only JSON needs it
    from comborun.answers.status import Hold
    from comborun.monitor.document import answer_of

    run, expected = row.run, row.expected
    kind, why = (run.held.get(key, "") for key in ("kind", "why"))
    held = Hold(kind, number(run.held.get("at")), why, Fact.of(run.held.get("reason")))
    return answer_of(
        runs.ListedRun,
        run,
        host=row.host,
        run=run.id,
        counts={str(word): count for word, count in run.counts.items()},
        smoke={str(word): count for word, count in run.smoke.items()},
        started=row.started,
        reachable=not row.complaint,
        complaint=row.complaint or None,
        last_seen_seconds=row.age,
        stopped=kind == "stopped",
        hold=held if kind not in {"", "stopped"} else None,
        episodes_done=row.done,
        episodes_planned=row.planned,
        estimated_end=expected and expected.likeliest,
        estimated_end_range=expected and (expected.earliest, expected.latest),
        gpus=row.gpus,
        gpu_users=tuple(runs.GpuUser(**user._asdict()) for user in row.users),
        parts=tuple(map(_part, row.parts)),
    )


def _part(row: FleetRow) -> runs.PartOfRun:
    from comborun.answers import runs
    from comborun.monitor.document import answer_of

    return answer_of(
        runs.PartOfRun,
        row.run,
        host=row.host,
        run=row.run.id,
        counts={str(word): count for word, count in row.run.counts.items()},
        reachable=not row.complaint,
        episodes_done=row.done,
        episodes_planned=row.planned,
        gpus=row.gpus,
    )


def state(run: Run) -> str:
    """What stops the run, if anything, and how many sessions are in each state; the smoke test separately."""
    why = " ".join(run.held.get("why", "").split())
    held = run.held.get("kind", "") if not run.done else ""
    held = "dispatcher gone" if run.now.get("abandoned") else held + (f" ({why})" if held and why else "")
    unseen = "no session yet" if "counts" in run.now else "not known"
    counts = listed(run.counts) or ("ended" if run.done else "" if held else unseen)
    smoke = f"; smoke test: {listed(run.smoke)}" if run.smoke else ""
    of = f"{run.part['box']}'s part of a run on {', '.join(run.hosts)}" if run.grid_run and run.hosts else ""
    on = ", ".join(f"{kind} on {host}" for host, kind in run.now.get("held_on", {}).items())
    return ": ".join(filter(None, (of, held, on, counts))) + smoke
