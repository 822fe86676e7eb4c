"""The probe's answer as values: whole, torn, adversarial."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from monitor_stage import BOOT, NOW, Seen, a_busy_run, an_answer, answer_of

from comborun.errors import HostError, UserError
from comborun.monitor.answer import parse_snapshot
from comborun.monitor.snapshot import Snapshot
from comborun.rules.words import Cause, Completeness

ANSWER: dict[str, object] = {"run": "r", "now": 5.5, "boot": "b", "dispatcher": None, "slots": 2, "attempts": []}


def test_the_header_tells_about_run_and_host() -> None:
    snapshot = parse_snapshot(an_answer())
    assert (snapshot.run, snapshot.now, snapshot.boot) == ("walkers-20260729T101500Z-ab12", NOW, BOOT)
    assert (snapshot.dispatcher, snapshot.slots, snapshot.use.load, snapshot.use.cpus) == (4242, 3, 1.25, 2)
    assert not snapshot.stopped
    assert not snapshot.done
    assert snapshot.multiplexer == "tmux"


def test_a_dispatcher_that_is_gone_is_none() -> None:
    assert parse_snapshot(an_answer(dispatcher=None)).dispatcher is None


def test_a_running_attempt_has_counts_life_and_the_end_of_its_log() -> None:
    seen = Seen("a_b", 2, NOW - 50, counts=(7, 5), log=b"episode 6\nepisode 7\n")
    (attempt,) = parse_snapshot(an_answer(seen)).attempts
    assert (attempt.session, attempt.number, attempt.counts.records, attempt.counts.successes) == ("a_b", 2, 7, 5)
    assert attempt.begin is not None
    assert attempt.begin.started == NOW - 50
    assert (attempt.life, attempt.alive) == ("running", True)
    assert (attempt.log_size, attempt.log_changed) == (20, NOW - 1)
    assert attempt.tail == b"episode 6\nepisode 7\n"


def test_an_ended_attempt_has_its_end_and_is_not_alive() -> None:
    seen = Seen("a_b").ended("signal", "partial", code=139, signal=11, records=3, successes=2, note="core dumped")
    (attempt,) = parse_snapshot(an_answer(seen)).attempts
    assert attempt.end is not None
    assert (attempt.end.cause, attempt.end.completeness) == (Cause.SIGNAL, Completeness.PARTIAL)
    assert (attempt.end.code, attempt.end.signal, attempt.end.note) == (139, 11, "core dumped")
    assert not attempt.alive


def test_what_is_not_known_yet_is_passed_over() -> None:
    told = Seen("a_b").told() | {"mood": {"good": True}}
    assert parse_snapshot(answer_of(ANSWER | {"weather": [1], "attempts": [told]})).attempts[0].alive


def test_noise_before_the_answer_is_passed_over() -> None:
    assert parse_snapshot(b"Welcome to gpu-box!\n" + an_answer()).use.cpus == 2


def test_every_attempt_gets_its_own_tail() -> None:
    logs = {"a_b": b"one\n", "a_bb": b"", "c_d": b"three"}
    snapshot = parse_snapshot(an_answer(*(Seen(name, log=log) for name, log in logs.items())))
    assert {one.session: one.tail for one in snapshot.attempts} == logs


def test_an_ended_attempt_brings_the_last_words_of_its_log() -> None:
    seen = Seen("a_b").ended("exited", "none", code=1, log=b"Traceback\nKeyError: 'x'\n")
    (attempt,) = parse_snapshot(an_answer(seen)).attempts
    assert (attempt.tail, attempt.log_size, attempt.alive) == (b"Traceback\nKeyError: 'x'\n", 24, False)


def test_a_log_can_say_nothing_for_another_one() -> None:
    false = b'x\ncomborun-probe 2\n{"run": "r", "now": 1}\n'
    snapshot = parse_snapshot(an_answer(Seen("a_b", log=false), Seen("c_d", log=b"true")))
    assert [one.tail for one in snapshot.attempts] == [false, b"true"]


def test_tails_that_are_not_all_there_are_what_came() -> None:
    told = [Seen(name, log=b"0123456789").told() for name in ("a_b", "c_d")]
    snapshot = parse_snapshot(answer_of(ANSWER | {"attempts": told}, b"0123456789abc"))
    assert [one.tail for one in snapshot.attempts] == [b"0123456789", b"abc"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "did not answer as a probe"),
        (b"bash: no such file\n", "did not answer as a probe"),
        (an_answer()[:-5], "cut off"),
        (b"comborun-probe 2\n[]\n", "cut off"),
        (b"comborun-probe 2\n" + b"[" * 100000 + b"\n", "cut off"),
        (answer_of(ANSWER | {"now": None}), "names no run or no time"),
        (answer_of(ANSWER | {"now": float("nan")}), "names no run or no time"),
        (answer_of(ANSWER | {"run": 7}), "names no run or no time"),
        (answer_of(ANSWER | {"attempts": [{"session": "a_b", "attempt": "one"}]}), "no session or no attempt"),
    ],
)
def test_what_is_no_answer_is_the_hosts_error(answer: bytes, message: str) -> None:
    with pytest.raises(HostError, match=message):
        parse_snapshot(answer)


def test_an_answer_of_another_version_is_not_mistaken_for_a_lost_link() -> None:
    with pytest.raises(UserError, match="version '1'") as caught:
        parse_snapshot(an_answer().replace(b"probe 2", b"probe 1"))
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


@given(st.binary(max_size=300))
@example(b'{"run": "r", "now": ' + b"9" * 5000 + b"}\n")
def test_any_bytes_are_a_snapshot_or_an_error_with_a_name(noise: bytes) -> None:
    parsed(noise)
    parsed(b"comborun-probe 2\n" + noise)
    parsed(b"comborun-probe 2\n" + noise + b"\n" + noise)


@given(
    st.dictionaries(st.sampled_from([*ANSWER, "hold", "waiting", "servers", "slurm", "gpus", "disk_kib"]), JSON), JSON
)
def test_any_document_is_a_snapshot_or_an_error_with_a_name(told: dict[str, object], one: object) -> None:
    parsed(answer_of(ANSWER | told))
    fields = dict.fromkeys(("begin", "end", "counts", "log", "life", "stalled"), one)
    parsed(answer_of(ANSWER | {"attempts": [{"session": "a_b", "attempt": 1, **fields}]}, b"x"))


@given(st.data())
def test_an_answer_cut_or_damaged_anywhere_raises_nothing_else(data: st.DataObject) -> None:
    _, answer = a_busy_run()
    at = data.draw(st.integers(0, len(answer)))
    parsed(answer[:at])
    parsed(answer[:at] + data.draw(st.binary(max_size=20)) + answer[at:])
