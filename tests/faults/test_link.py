"""The link to the host fails while a run is watched: sshd killed, sshd frozen, an answer cut, packets lost.

In each case two monitors watch, one over each transport. No session's state may change, both say that the host is
unreachable and find it again by themselves, the run ends, and the report has every planned episode exactly once.
The faults are short here; at full length, with the monitor's own patience, they run with COMBORUN_SLOW=1.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from accounts import planned
from box import until
from desk import Desk
from hosts import Site
from laptop import ANSWER_S, FarRun, Laptop, Watcher, episodes, only_run
from sshd import Sshd, fresh_user, running_sshd

FULL = bool(os.environ.get("COMBORUN_SLOW"))
EPISODES = 400
"""more than a fault has time for: at the gate they go fast"""


@dataclass(frozen=True)
class Fault:
    begin: Callable[[], None]
    end: Callable[[], None]
    seconds: float


def lengths(short: float, full: float) -> list[Any]:
    """The fault at its short length, and at its full one where that is asked for."""
    reason = "takes minutes: set COMBORUN_SLOW=1"
    slow = (pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.skipif(not FULL, reason=reason))
    return [pytest.param(short, id=f"{short:g}s"), pytest.param(full, id=f"{full:g}s", marks=slow)]


def patience(seconds: float) -> float:
    """The monitor's own where the fault is long enough to show it."""
    return ANSWER_S if seconds > ANSWER_S else 3.0


@pytest.fixture
def near(desk: Desk, ssh_place: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Laptop, Sshd]]:
    """An sshd on loopback and a laptop that knows it."""
    with fresh_user() as user, running_sshd(ssh_place / f"fault-{user.name}", user) as server:
        desk.environment["COMBORUN_SSH_CONFIG"] = str(server.config)
        laptop = Laptop(desk, user.home)
        yield laptop, server
        laptop.combo("stop", timeout=30)
        laptop.close()


@pytest.fixture
def far(desk: Desk, far_site: Site) -> Iterator[tuple[Laptop, Site]]:
    """A host behind a slow link and a laptop that knows it."""
    desk.environment["COMBORUN_SSH_CONFIG"] = str(far_site.host.config)
    laptop = Laptop(desk, far_site.host.home, tuple(far_site.network.client.inside()))
    yield laptop, far_site
    laptop.close()


@pytest.mark.parametrize("seconds", lengths(3, 30))
def test_sshd_that_is_killed_or_freezes_changes_no_session(near: tuple[Laptop, Sshd], seconds: float) -> None:
    """Nor does a host that hangs in the middle of an answer, as when the link is cut after the first words have come:
    what has begun to answer gets no more time for it.
    """
    laptop, server = near

    def probe() -> Path:
        return only_run(laptop.far_home).directory / "lib/comborun_host/comborun/host/verbs/probe.py"

    def hang() -> None:
        kept = probe().rename(probe().with_suffix(".kept"))
        kept.with_suffix(".py").write_text(
            "import os; os.execlp('sh', 'sh', '-c', 'echo comborun-probe 3; sleep 100')\n"
        )

    def answer() -> None:
        probe().with_suffix(".kept").rename(probe())

    def freeze() -> None:
        server.process.send_signal(signal.SIGSTOP)
        server.signal_serving(signal.SIGSTOP)

    def thaw() -> None:
        server.signal_serving(signal.SIGCONT)
        server.process.send_signal(signal.SIGCONT)

    faults = Fault(server.stop_all, server.start, 3), Fault(hang, answer, 3), Fault(freeze, thaw, seconds)
    endures(laptop, patience(seconds), *faults)


@pytest.mark.parametrize("seconds", lengths(4, 60))
def test_a_slow_link_that_is_cut_changes_no_session(far: tuple[Laptop, Site], seconds: float) -> None:
    laptop, site = far
    link = site.network.link
    endures(laptop, patience(seconds), Fault(link.cut, link.mend, seconds))


def endures(laptop: Laptop, patience: float, *faults: Fault) -> None:
    """Watch a run through faults to its end, and look at everything that may have gone wrong."""
    laptop.launch(laptop.grid(pace=sum(fault.seconds for fault in faults) / 20, episodes=EPISODES))
    run = only_run(laptop.far_home)
    until(lambda: len(run.begins) == 4, "all sessions begin")
    plain = laptop.watch("--plain", "--transport", "ssh", patience=patience)
    in_json = laptop.watch("--json", "--transport", "openssh", patience=patience)
    until(lambda: "running" in plain.text, f"the monitor shows the run; it says\n{plain.text}")
    until(lambda: in_json.documents and all_run(in_json.documents[-1]), f"all run; it says\n{in_json.text}")
    before = run.processes

    for fault in faults:
        records = go_through(run, fault, plain, in_json)
        assert records, "the sessions worked on while nobody could reach them"
        assert run.processes == before, "every session is the process that it was, and there is no other"
        assert not run.ends
        recovered(plain, in_json)

    laptop.open_gates()
    assert [plain.await_exit(), in_json.await_exit()] == [0, 0]
    assert states(in_json) == {("running", None, 1), ("ended", "succeeded", 1)}
    assert run.processes == before
    assert dict(episodes(plain.report)) == dict.fromkeys(
        planned("good", "poor", environments=("maze", "field"), episodes=EPISODES), 1
    )
    totals = json.loads((plain.report / "final_benchmark_report.json").read_text())["totals"]
    assert (totals["planned"], totals["completed"]) == (4 * EPISODES, 4 * EPISODES)


def go_through(run: FarRun, fault: Fault, *watchers: Watcher) -> int:
    """The fault from its beginning to its end, and at least until all have noticed; records made meanwhile."""
    deadline = time.monotonic() + fault.seconds
    seen = run.records
    fault.begin()
    try:
        for watcher in watchers:
            until(lambda one=watcher: unreachable(one), f"it is noticed; the monitor says\n{watcher.text}", 90)
        until(lambda: time.monotonic() > deadline, "the fault is as long as it is meant to be", 90)
        return run.records - seen
    finally:
        fault.end()


def recovered(plain: Watcher, in_json: Watcher) -> None:
    until(lambda: not unreachable(plain), f"the host is found again; it says\n{plain.text}", 90)
    until(lambda: in_json.documents[-1]["reachable"], f"the host is found again; it says\n{in_json.text}", 90)
    lost = [one for one in in_json.documents if not one["reachable"]]
    assert lost
    assert all(all_run(one) and not one["finished"] for one in lost), "what was last known stays"


def unreachable(watcher: Watcher) -> bool:
    if watcher.documents:
        return not watcher.documents[-1]["reachable"]
    return watcher.text.rfind("! unreachable since") > watcher.text.rfind("reachable again")


def all_run(document: dict[str, Any]) -> bool:
    return {session["state"] for session in document["sessions"]} == {"running"}


def states(watcher: Watcher) -> set[tuple[str, str | None, int]]:
    """Every state that a session was shown in since all of them ran."""
    since = itertools.dropwhile(lambda document: not all_run(document), watcher.documents)
    shown = (session for document in since for session in document["sessions"])
    return {(session["state"], session["outcome"], session["attempt"]) for session in shown}
