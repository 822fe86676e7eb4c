"""Steering a run: what the host's script says, as lines, as errors that a person can mend."""

from __future__ import annotations

import json

import pytest
from monitor_stage import StagedHost

from comborun.errors import HostError, UserError
from comborun.remote.run_orders import send_test_notice, steer, stop
from comborun.remote.transport import Completed
from comborun.rules.host import Denial

DIRECTORY = "/r/little-20260101T000000Z-00aa"


def test_every_thing_that_was_done_is_a_line_and_nothing_in_it_acts_on_a_terminal() -> None:
    host = StagedHost([Completed(0, b"maze_good: queued again\n\nmaze_\x1b[31mpoor: runs\n", b"")])
    steered = steer(host, DIRECTORY, "retry", "maze_good", "maze_poor")
    assert steered.done
    assert steered.texts == ("maze_good: queued again", "maze_poor: runs")
    assert host.asked == [(DIRECTORY, "control", "retry", "maze_good", "maze_poor")]


def test_a_stop_names_the_sessions_that_it_ended_and_nothing_else() -> None:
    lines = (
        {"comborun": "maze_good: cancelled, 1 record", "session": "maze_good"},
        {"comborun": "maze_poor: cancelled before it began", "session": "maze_poor"},
        {"comborun": "survives: 7 sleep"},
    )
    said = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    stopped = stop(StagedHost([Completed(1, said, b"stop: INT to 1 session, up to 15 s\n")]), DIRECTORY)
    assert stopped.facts("session") == ("maze_good", "maze_poor")
    assert stopped.texts[0].startswith("stop: INT to 1 session"), "what was done comes before what came of it"
    assert stopped.texts[1:] == tuple(line["comborun"] for line in lines)


def test_a_run_of_a_former_version_answers_in_words_which_are_shown_and_not_read() -> None:
    stopped = stop(StagedHost([Completed(0, b"maze_good: cancelled, 1 record\n", b"")]), DIRECTORY)
    assert (stopped.texts, stopped.facts("session")) == (("maze_good: cancelled, 1 record",), ())


def refused(code: int, text: str, fact: str = "") -> bytes:
    why = {"fact": {"code": fact}} if fact else {}
    return json.dumps({"comborun": text, "refused": code, **why}).encode() + b"\n"


@pytest.mark.parametrize(
    ("code", "stderr", "error", "words"),
    [
        (64, refused(64, "there is no session x"), UserError, "^there is no session x$"),
        (64, b"control: there is no session x\n", UserError, "^control: there is no session x$"),
        (66, refused(66, "/r is not a run directory"), UserError, "^/r is not a run directory$"),
        (251, b"", UserError, "is not a run directory"),
        (252, b"", UserError, "an older comborun made"),
        (73, refused(73, "can't write in /r"), HostError, "nothing was changed on gpu-box: can't write"),
        (75, refused(75, "it is held", Denial.LOCK_HELD), HostError, "nothing was changed on gpu-box: it is held$"),
    ],
)
def test_what_a_person_can_mend_is_told_as_such(code: int, stderr: bytes, error: type[UserError], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        steer(StagedHost([Completed(code, b"", stderr)]), DIRECTORY, "pause")
    assert caught.value.hint


def test_a_session_that_another_host_runs_is_an_answer_and_no_fault_of_the_host() -> None:
    said = refused(75, "the host box runs it", Denial.DEALT_ELSEWHERE)
    assert not steer(StagedHost([Completed(75, b"", said)]), DIRECTORY, "retry", "maze_good").done


def test_a_notice_ends_as_the_users_command_does_whatever_its_code() -> None:
    for code in (0, 64, 66, 69, 73):
        told = send_test_notice(StagedHost([Completed(code, b"sent\n", b"curl: no route\n")]), DIRECTORY)
        assert (told.done, told.texts) == (code == 0, ("curl: no route", "sent"))
    with pytest.raises(UserError, match=r"^the grid of this run has no notify$"):
        send_test_notice(StagedHost([Completed(69, b"", refused(69, "the grid of this run has no notify"))]), DIRECTORY)
