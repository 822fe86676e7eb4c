"""Asking the host once, remembering what it said, and reading a run's plan."""

from __future__ import annotations

import pytest
from monitor_stage import NOW, Seen, StagedHost, a_plan, a_session, an_answer

from comborun.errors import HostError, UserError
from comborun.monitor.answer import parse_snapshot
from comborun.monitor.observe import History, fold, load_run, observe
from comborun.remote.transport import Completed

PLAN = a_plan([a_session("act", "grass"), a_session("act", "stairs")], after=True)


def after(*answers: bytes) -> History:
    history = History()
    for answer in answers:
        history = fold(history, parse_snapshot(answer))
    return history


def test_one_round_trip_carries_what_is_known() -> None:
    host = StagedHost([an_answer(Seen("a_b"))])
    snapshot = observe(host, "~/my runs/r", (0, 2, 0))
    assert snapshot.attempts[0].session == "a_b"
    assert host.asked == [("~/my runs/r", "probe", "0,2,0", "400")]


def test_a_probe_that_fails_is_the_hosts_error_with_its_last_words() -> None:
    host = StagedHost([Completed(127, b"", b"warning\nbash: /r/lib/probe.sh: No such file or directory\n")])
    with pytest.raises(HostError, match=r"on gpu-box failed: bash: /r/lib/probe.sh: No such file"):
        observe(host, "/r", (0,))


def test_a_silent_failure_is_told_by_its_code() -> None:
    with pytest.raises(HostError, match="exit code 137"):
        observe(StagedHost([Completed(137, an_answer(), b"")]), "/r", (0,))


def test_a_run_is_its_id_and_its_plan() -> None:
    host = StagedHost([b"walkers-1\n3\n" + PLAN.to_json().encode()], host="box")
    view = load_run(host, "~/comborun/walkers-1")
    assert (view.id, view.host, view.plan, view.number) == ("walkers-1", "box", PLAN, 3)
    assert view.sessions == ("grass_act", "stairs_act", "after")
    assert len(host.asked) == 1


@pytest.mark.parametrize(
    "answer", [Completed(66, b"", b""), Completed(66, b"walkers-1\n", b""), Completed(0, b"", b"")]
)
def test_a_folder_that_is_no_run_is_told_with_a_hint(answer: Completed) -> None:
    with pytest.raises(UserError, match="is no run directory") as caught:
        load_run(StagedHost([answer]), "/tmp")
    assert not isinstance(caught.value, HostError)
    assert "plan-1.json" in caught.value.hint


@pytest.mark.parametrize("plan", [b"", b"{", b"[]", b"{}", b'{"sessions": 3}', b"\xff"])
def test_a_plan_that_cannot_be_read_is_told(plan: bytes) -> None:
    with pytest.raises(UserError, match="can't be read"):
        load_run(StagedHost([b"walkers-1\n1\n" + plan]), "/r")


def test_known_is_the_highest_attempt_whose_end_was_seen() -> None:
    history = after(an_answer(Seen("grass_act").ended(), Seen("grass_act", 2).ended(), Seen("stairs_act")))
    assert history.known(("grass_act", "stairs_act", "after")) == (2, 0, 0)


def test_what_has_ended_is_remembered_though_the_probe_sends_it_once() -> None:
    history = after(an_answer(Seen("grass_act").ended(records=100)), an_answer(Seen("stairs_act")))
    assert [one.number for one in history.of("grass_act")] == [1]
    assert history.known(("grass_act",)) == (1,)


def test_a_running_attempt_is_replaced_by_its_end_and_keeps_its_last_words() -> None:
    running = Seen("grass_act", log=b"episode 99\n")
    history = after(an_answer(running), an_answer(running.ended(records=100), now=NOW + 60))
    (attempt,) = history.of("grass_act")
    assert attempt.end is not None
    assert attempt.tail == b"episode 99\n"
    assert history.snapshot is not None
    assert history.snapshot.now == NOW + 60


def test_an_attempt_that_the_host_no_longer_has_is_forgotten() -> None:
    assert after(an_answer(Seen("grass_act")), an_answer()).of("grass_act") == ()


def test_folding_the_same_answer_twice_changes_nothing() -> None:
    answer = an_answer(Seen("grass_act").ended(), Seen("stairs_act", log=b"x"))
    assert after(answer, answer) == after(answer)
