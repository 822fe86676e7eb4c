"""Whether a log that grows says anything new."""

from __future__ import annotations

from comborun.rules.endings.progress import TAIL, Repetition


class Log:
    """A log that a test writes on, and somebody who looks at it."""

    def __init__(self, unit: str = "", count: int = 0) -> None:
        self.seen = Repetition(unit, count)
        self._text = b""

    def news(self, text: str) -> bool:
        """Whether it says something new once that is written, too."""
        self._text += text.encode()
        return self.seen.look(self._text[-TAIL:], cut=len(self._text) > TAIL)

    @property
    def told(self) -> tuple[int, str, bool]:
        return self.seen.times, self.seen.line, self.seen.loop


def complaint_in_a_round(times: int, count: int) -> str:
    """A traceback, and what the program does about it."""
    return "".join(
        f"12:00:{10 + i} INFO step {count}\nTraceback:\n  File x.py, line 3\nConnectionError at 0x7f0{i}\n"
        for i in range(times)
    )


def test_the_same_line_again_is_nothing_new_however_often() -> None:
    log = Log()
    assert log.news("loading\nrendering\n")
    assert not log.news("rendering\n")
    assert not log.news("rendering\n" * 30)
    assert log.seen.times == 32
    assert log.news("rendering\nnext\n")
    assert log.news("rendering\n" * 5)
    assert log.news("other\n" + "rendering\n" * 3), "another line in between"


def test_a_line_that_counts_is_progress_and_a_complaint_that_counts_is_none() -> None:
    log = Log()
    assert log.news("step 1 of 9\n")
    assert log.news("step 2 of 9\n")
    assert log.news("[12:00:01] retry 1: Connection refused at 0x7ffe12\n")
    assert not log.news("[12:00:02] retry 2: Connection refused at 0x7aab99\n")
    assert log.news("12:00:03 Waiting for the server\n")
    assert not log.news("12:00:04 Waiting for the server\n")


def test_a_complaint_that_comes_again_in_a_round_is_nothing_new_wherever_the_round_is_looked_at() -> None:
    log = Log()
    assert log.news(complaint_in_a_round(3, 7))
    assert not log.news(complaint_in_a_round(2, 7))
    assert log.told == (5, "connectionerror at ", False)
    assert not log.news("12:00:59 INFO step 7\nTraceback:\n")
    assert not log.news("  File x.py, line 3\nConnectionError at 0x1\n" + complaint_in_a_round(20, 7))
    assert log.seen.loop
    assert log.news("found it\n")
    assert not log.seen.loop
    assert log.news("scene 4 failed to load at 0x1f\nretrying...\n" * 3)
    assert log.told[:2] == (3, "scene  failed to load at ")


def test_a_round_in_which_something_counts_or_nothing_complains_is_progress() -> None:
    log = Log()
    assert log.news(complaint_in_a_round(4, 1))
    assert log.news(complaint_in_a_round(1, 2))
    assert log.news(complaint_in_a_round(1, 3))
    assert log.news("moved to its goal\nreached it\n" * 9)
    assert log.news("moved to its goal\nreached it\n")


def test_a_complaint_that_tells_which_episode_it_is_about_or_how_many_of_all_is_progress() -> None:
    log = Log("step", 50)
    assert log.news("Episode 7: failure, retry 1\n" * 30)
    assert not log.news("Episode 7: failure, retry 2\n")
    assert log.news("Episode 8: failure, retry 1\n")
    assert log.news("[ 8/50] stairs TIMEOUT\n")
    assert log.news("[ 9/50] stairs TIMEOUT\n")
    assert log.news("attempt 1/5 failed\n")
    assert not log.news("attempt 2/5 failed\n")


def test_a_line_that_complains_of_nothing_is_no_loop_however_often_it_comes() -> None:
    log = Log()
    assert log.news("WARNING: joint limit\n" * 30)
    assert (log.seen.times, log.seen.loop) == (30, False)
    assert log.news("lost the target\n" * 30)
    assert (log.seen.times, log.seen.loop) == (30, True)


def test_a_log_that_is_full_of_one_line_stays_so() -> None:
    log = Log()
    assert log.news("the same old line\n" * 4000)
    assert not log.news("the same old line\n" * 1000)


def test_a_bar_that_is_drawn_over_itself_is_progress() -> None:
    log = Log()
    assert log.news(" 10%|#\r 20%|##")
    assert log.news("\r 30%|###")
