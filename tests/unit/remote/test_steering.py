"""Steering a run: what the host's script says, as lines, as errors that a person can mend."""

from __future__ import annotations

import pytest
from monitor_stage import StagedHost

from comborun.errors import HostError, UserError
from comborun.remote.control import send_test_notice, steer, stop
from comborun.remote.transport import Completed

DIRECTORY = "/r/little-20260101T000000Z-00aa"


def test_every_thing_that_was_done_is_a_line_and_nothing_in_it_acts_on_a_terminal() -> None:
    host = StagedHost([Completed(0, b"maze_good: queued again\n\nmaze_\x1b[31mpoor: runs\n", b"")])
    steered = steer(host, DIRECTORY, "retry", "maze_good", "maze_poor")
    assert steered.done
    assert steered.lines == ("maze_good: queued again", "maze_poor: runs")
    assert host.asked == [(DIRECTORY, "control", "retry", "maze_good", "maze_poor")]


def test_a_stop_names_the_sessions_that_it_ended_and_nothing_else() -> None:
    said = b"maze_good: cancelled, 1 record\nmaze_poor: cancelled before it began\nsurvives: 7 sleep\n"
    stopped = stop(StagedHost([Completed(1, said, b"stop: INT to 1 session, up to 15 s\n")]), DIRECTORY)
    assert stopped.sessions == ("maze_good", "maze_poor")
    assert stopped.lines[0].startswith("stop: INT to 1 session"), "what was done comes before what came of it"


@pytest.mark.parametrize(
    ("code", "stderr", "error", "words"),
    [
        (64, b"control: there is no session x\n", UserError, "^there is no session x$"),
        (66, b"control: /r is not a run directory\n", UserError, "^/r is not a run directory$"),
        (251, b"", UserError, "is not a run directory"),
        (252, b"", UserError, "an older comborun made"),
        (73, b"control: can't write in /r\n", HostError, "nothing was changed on gpu-box: control: can't write"),
    ],
)
def test_what_a_person_can_mend_is_told_as_such(code: int, stderr: bytes, error: type[UserError], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        steer(StagedHost([Completed(code, b"", stderr)]), DIRECTORY, "pause")
    assert caught.value.hint


def test_a_notice_ends_as_the_users_command_does_whatever_its_code() -> None:
    for code in (0, 64, 66, 69, 73):
        told = send_test_notice(StagedHost([Completed(code, b"sent\n", b"curl: no route\n")]), DIRECTORY)
        assert (told.done, told.lines) == (code == 0, ("sent", "curl: no route"))
    with pytest.raises(UserError, match=r"^the grid of this run has no notify$"):
        send_test_notice(StagedHost([Completed(69, b"", b"control: the grid of this run has no notify\n")]), DIRECTORY)
