"""Asking the host once: its answer as values, whole, torn or adversarial; and what is remembered of it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from monitor_stage import Seen, StagedHost, an_answer, answer_of, look_at, plan_answer

from comborun.errors import HostError, UserError
from comborun.monitor.observe import load_run
from comborun.monitor.snapshot import Snapshot, parse_snapshot
from comborun.rules.room.capacity import Card

ANSWER: dict[str, object] = {"run": "r", "now": 5.5, "boot": "b", "dispatcher": None, "slots": 2, "attempts": []}


def test_what_a_gpu_does_not_tell_is_unknown_and_never_nothing() -> None:
    gpus = [{"index": 3, "used": None, "total": None}, {"index": 0, "used": 2, "total": 81559}, {"index": 1}]
    cards = parse_snapshot(an_answer(host=({"use": {"gpus": gpus}},))).use.gpus
    assert cards == (Card(3), Card(0, used=2, total=81559), Card(1))


def test_every_attempt_gets_its_own_tail_and_a_log_can_say_nothing_for_another_one() -> None:
    logs = {"a_b": b'x\ncomborun-probe 3\n{"run": "r", "now": 1}\n', "a_bb": b"", "c_d": b"three"}
    snapshot = parse_snapshot(an_answer(*(Seen(name, log=log) for name, log in logs.items())))
    assert {one.session: one.tail for one in snapshot.attempts} == logs


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "did not answer as a probe"),
        (b"bash: no such file\n", "did not answer as a probe"),
        (an_answer()[:-5], "cut off"),
        (b"comborun-probe 3\n[]\n", "cut off"),
        (b"comborun-probe 3\n" + b"[" * 100000 + b"\n", "cut off"),
        (answer_of(ANSWER | {"now": None}), "can't be read"),
        (answer_of(ANSWER | {"now": float("nan")}), "can't be read"),
        (answer_of(ANSWER | {"run": 7}), "can't be read"),
        (answer_of(ANSWER | {"attempts": [{"session": "a_b", "number": "one"}]}), "can't be read"),
    ],
)
def test_what_is_no_answer_is_the_hosts_error(answer: bytes, message: str) -> None:
    with pytest.raises(HostError, match=message):
        parse_snapshot(answer)


def test_an_answer_of_another_version_is_not_mistaken_for_a_lost_link() -> None:
    with pytest.raises(UserError, match="version '1'") as caught:
        parse_snapshot(an_answer().replace(b"probe 3", b"probe 1"))
    assert not isinstance(caught.value, HostError)


def parsed(answer: bytes) -> Snapshot | None:
    try:
        return parse_snapshot(answer)
    except UserError:
        return None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
PARTS = [*ANSWER, "hold", "waiting", "servers", "scheduler", "tasks", "use", "quarantine", "notice_failed"]


@given(st.binary(max_size=300))
@example(b'{"run": "r", "now": ' + b"9" * 5000 + b"}\n")
def test_any_bytes_are_a_snapshot_or_an_error_with_a_name(noise: bytes) -> None:
    for answer in (noise, b"comborun-probe 3\n" + noise, b"comborun-probe 3\n" + noise + b"\n" + noise):
        parsed(answer)


@given(st.dictionaries(st.sampled_from(PARTS), JSON), JSON)
def test_any_document_is_a_snapshot_or_an_error_with_a_name(told: dict[str, object], one: object) -> None:
    parsed(answer_of(ANSWER | told))
    fields = dict.fromkeys(("begin", "end", "live", "tail", "life", "stalled"), one)
    parsed(answer_of(ANSWER | {"attempts": [{"session": "a_b", "number": 1, **fields}]}, b"x"))


# Asking and remembering


@pytest.mark.parametrize("plan", [b"{", b"[]", b"{}", b'{"sessions": 3}', b"\xff"])
def test_a_plan_that_cannot_be_read_is_told(plan: bytes) -> None:
    with pytest.raises(UserError, match="can't be read"):
        load_run(StagedHost([plan_answer(plan)]), "/r/w")


@pytest.mark.parametrize("answer", [plan_answer(b"{}", run=""), plan_answer(b"")])
def test_a_folder_without_an_id_or_a_plan_is_no_run(answer: bytes) -> None:
    with pytest.raises(UserError, match="is not a run directory"):
        load_run(StagedHost([answer]), "/r/w")


def test_known_is_the_highest_attempt_whose_end_was_seen_though_the_probe_sends_it_once() -> None:
    answer = an_answer(Seen("grass_act").ended(), Seen("grass_act", 2).ended(), Seen("stairs_act"))
    history = look_at(answer, an_answer(Seen("stairs_act")))
    assert history.known(("grass_act", "stairs_act", "after")) == (2, 0, 0)
    assert [one.number for one in history.of("grass_act")] == [1, 2]
    assert look_at(answer, answer) == look_at(answer)
