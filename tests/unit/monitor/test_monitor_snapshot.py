"""The probe's answer as values: whole, torn, adversarial."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from monitor_stage import BOOT, NOW, Seen, a_busy_run, an_answer

from comborun.errors import HostError, UserError
from comborun.state import Cause, Completeness
from monitor.answer.snapshot import Snapshot, parse_snapshot


def test_the_header_tells_about_run_and_host() -> None:
    snapshot = parse_snapshot(an_answer(), 400)
    assert (snapshot.run, snapshot.now, snapshot.boot) == ("walkers-20260729T101500Z-ab12", NOW, BOOT)
    assert (snapshot.dispatcher, snapshot.slots, snapshot.use.load, snapshot.use.cpus) == (4242, 3, 1.25, 2)
    assert not snapshot.stopped
    assert snapshot.done is None
    assert snapshot.multiplexer == "tmux"


def test_fields_may_share_a_line() -> None:
    answer = b"comborun-probe 1\nrun=r now=5.5 boot=b dispatcher= slots=2 stopped=1\nload=0.1 cpus=8\ntails\n"
    snapshot = parse_snapshot(answer, 400)
    assert (snapshot.now, snapshot.slots, snapshot.stopped, snapshot.use.cpus) == (5.5, 2, True, 8)


def test_a_dispatcher_that_is_gone_is_none() -> None:
    assert parse_snapshot(an_answer(dispatcher=""), 400).dispatcher is None


def test_done_carries_its_fields() -> None:
    snapshot = parse_snapshot(an_answer(done=f"at={NOW}\nsucceeded=8\nafter=succeeded"), 400)
    assert snapshot.done is not None
    assert dict(snapshot.done) == {"at": str(NOW), "succeeded": "8", "after": "succeeded"}


def test_a_running_attempt_has_counts_life_and_the_end_of_its_log() -> None:
    seen = Seen("a_b", 2, NOW - 50, counts=(7, 5), log=b"episode 6\nepisode 7\n")
    (attempt,) = parse_snapshot(an_answer(seen), 400).attempts
    assert (attempt.session, attempt.number, attempt.records, attempt.successes) == ("a_b", 2, 7, 5)
    assert attempt.begin is not None
    assert attempt.begin.started == NOW - 50
    assert (attempt.supervised, attempt.working, attempt.alive) == (True, True, True)
    assert (attempt.log_size, attempt.log_changed) == (20, NOW - 1)
    assert attempt.tail == b"episode 6\nepisode 7\n"


def test_an_ended_attempt_has_its_end_and_is_not_alive() -> None:
    seen = Seen("a_b").ended("signal", "partial", code=139, signal=11, records=3, successes=2, note="core dumped")
    (attempt,) = parse_snapshot(an_answer(seen), 400).attempts
    assert attempt.end is not None
    assert (attempt.end.cause, attempt.end.completeness) == (Cause.SIGNAL, Completeness.PARTIAL)
    assert (attempt.end.code, attempt.end.signal, attempt.end.note) == (139, 11, "core dumped")
    assert not attempt.alive


def test_lines_that_are_not_known_yet_are_passed_over() -> None:
    answer = an_answer(Seen("a_b")).replace(b"live ", b"gpu index=0 memory=4096\nlive ")
    assert parse_snapshot(answer, 400).attempts[0].supervised


def test_noise_before_the_answer_is_passed_over() -> None:
    assert parse_snapshot(b"Welcome to gpu-box!\n" + an_answer(), 400).use.cpus == 2


def test_every_attempt_gets_its_own_tail() -> None:
    logs = {"a_b": b"one\n", "a_bb": b"", "c_d": b"three"}
    snapshot = parse_snapshot(an_answer(*(Seen(name, log=log) for name, log in logs.items())), 400)
    assert {one.session: one.tail for one in snapshot.attempts} == logs


def test_an_ended_attempt_brings_the_last_words_of_its_log() -> None:
    seen = Seen("a_b").ended("exited", "none", code=1, log=b"Traceback\nKeyError: 'x'\n")
    (attempt,) = parse_snapshot(an_answer(seen), 400).attempts
    assert (attempt.tail, attempt.log_size, attempt.alive) == (b"Traceback\nKeyError: 'x'\n", 24, False)


def test_every_tail_is_as_long_as_the_probe_says_and_no_longer_than_it_was_asked_for() -> None:
    answer = an_answer(Seen("a_b", log=b"0123456789"), Seen("c_d", log=b"abcdefghij"))
    cut = answer.replace(b"tail=4096", b"tail=4").replace(b"0123456789", b"6789").replace(b"abcdefghij", b"ghij")
    assert [one.tail for one in parse_snapshot(cut, 400).attempts] == [b"6789", b"ghij"]
    assert [one.tail for one in parse_snapshot(answer, 3).attempts] == [b"012", b"abc"]


def test_what_is_sent_of_a_log_is_measured_by_what_the_probe_said_it_sends() -> None:
    false = b"x\n==> /r/sessions/c_d/attempt-1/log <==\nlies " * 2
    answer = an_answer(Seen("a_b", log=false, size=9000), Seen("c_d", log=b"true"))
    short = answer.replace(b"size=9000 changed=%s tail=4096" % str(NOW - 1).encode(), b"size=9000 tail=%d" % len(false))
    assert short != answer
    assert [one.tail for one in parse_snapshot(short, 4096).attempts] == [false, b"true"]


def test_a_log_cannot_speak_for_a_session_that_has_ended() -> None:
    log = b"new\n==> /r/sessions/c_d/attempt-1/log <==\nfake"
    snapshot = parse_snapshot(an_answer(Seen("a_b", log=log, size=0), Seen("c_d").ended()), 400)
    assert [one.tail for one in snapshot.attempts] == [log, b""]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "did not answer as a probe"),
        (b"bash: no such file\n", "did not answer as a probe"),
        (an_answer().replace(b"tails\n", b""), "cut off"),
        (an_answer(Seen("a_b").ended()).replace(b"\n.\n", b"\n"), "cut off in a record"),
        (an_answer().replace(b"now=", b"then="), "names no run or no time"),
        (an_answer().replace(f"now={NOW}".encode(), b"now=nan"), "names no run or no time"),
        (an_answer(Seen("a_b")).replace(b"session a_b 1", b"session a_b one"), "can't be read at"),
    ],
)
def test_what_is_no_answer_is_the_hosts_error(answer: bytes, message: str) -> None:
    with pytest.raises(HostError, match=message):
        parse_snapshot(answer, 400)


def test_an_answer_of_another_version_is_not_mistaken_for_a_lost_link() -> None:
    with pytest.raises(UserError, match="version '2'") as caught:
        parse_snapshot(an_answer().replace(b"probe 1", b"probe 2"), 400)
    assert not isinstance(caught.value, HostError)


def parsed(answer: bytes) -> Snapshot | None:
    try:
        return parse_snapshot(answer, 400)
    except UserError:
        return None


@given(st.binary(max_size=300))
@example(b"comborun-probe 1\nrun=r\nnow=" + b"9" * 5000 + b"\ntails\n")
@example(b"comborun-probe 1\nrun=r\nnow=1\ncpus=--5\nslots=\xd9\xa3\ntails\n")
def test_any_bytes_are_a_snapshot_or_an_error_with_a_name(noise: bytes) -> None:
    parsed(noise)
    parsed(b"comborun-probe 1\n" + noise)
    parsed(b"comborun-probe 1\nrun=r\nnow=1.5\nsession a_b 1\n" + noise + b"\ntails\n" + noise)


@given(st.data())
def test_an_answer_cut_or_damaged_anywhere_raises_nothing_else(data: st.DataObject) -> None:
    _, answer = a_busy_run()
    at = data.draw(st.integers(0, len(answer)))
    parsed(answer[:at])
    parsed(answer[:at] + data.draw(st.binary(max_size=20)) + answer[at:])
