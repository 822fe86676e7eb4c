"""What `combo logs` shows of progress bars."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from comborun.api.looking import last_drawings
from comborun.cli.logs import drawn, named_lines
from comborun.remote.logs import LogPiece, LogPosition
from comborun.rules.counting import shown

BAR = b"".join(b"\r%3d%%|#####| %d/100" % (at, at) for at in range(1, 51))


def piece(data: bytes, *, session: str = "lift", attempt: int = 1, ended: bool = False) -> LogPiece:
    return LogPiece(LogPosition(session, attempt, len(data), ended=ended), data)


def screen(*pieces: LogPiece, width: int = 80) -> list[str]:
    """The lines that stand on a terminal in the end."""
    lines = [""]
    for text in drawn(pieces, width):
        if text.startswith("\r\x1b[K"):
            lines[-1] = ""
        first, *more = text.removeprefix("\r\x1b[K").split("\n")
        lines[-1] += first
        lines += more
    return [line for line in lines if line]


def test_of_a_bar_the_last_state_is_shown_once() -> None:
    assert screen(piece(b"loading\n" + BAR + b"\ndone\n")) == ["loading", " 50%|#####| 50/100", "done"]
    assert screen(piece(b"loading\n" + BAR)) == ["loading", " 50%|#####| 50/100"], "though it has no end yet"


def test_a_message_is_not_joined_with_what_a_longer_bar_left() -> None:
    assert screen(piece(b"a bar that is long 1/2"), piece(b"\rshort\n"), piece(b"next\r\n")) == ["short", "next"]


def test_a_bar_that_is_followed_stays_in_its_line() -> None:
    pieces = [piece(b"\r%d/9 and more than fits" % at) for at in range(9)]
    shown = list(drawn(pieces, 10))
    assert all(len(text.replace("\r\x1b[K", "")) < 10 for text in shown[:-1])
    assert screen(*pieces) == ["8/9 and more than fits"]


def test_an_attempt_without_a_newline_at_its_end_is_not_joined_with_the_next_one() -> None:
    assert screen(piece(b"killed"), piece(b"again\n", attempt=2)) == ["killed", "again"]
    both = [piece(b"killed"), piece(b"other", session="pour"), piece(b"again\n", attempt=2)]
    assert [tuple(one) for one in named_lines(both)] == [("lift", "killed"), ("lift", "again"), ("pour", "other")]


def test_a_bar_of_several_logs_is_one_line_each_and_control_characters_are_gone() -> None:
    lines = [tuple(one) for one in named_lines([piece(BAR, ended=True), piece(b"\x1b[31mred\x07\n", session="pour")])]
    assert lines == [("lift", " 50%|#####| 50/100"), ("pour", "red")]


@given(st.lists(st.text(alphabet="ab\r\n", max_size=8), max_size=6))
def test_pieces_for_programs_hold_the_last_drawing_of_each_line_and_read_alike_once_joined(pieces: list[str]) -> None:
    within, said = False, []
    for piece in pieces:
        said.append(last_drawings(piece, within=within))
        within = not said[-1].endswith("\n") if said[-1] else within
    whole, joined = "".join(pieces).split("\n"), "".join(said).split("\n")
    assert [shown(line) for line in joined] == [shown(line) for line in whole]
    assert len(joined) == len(whole)
    alone = last_drawings("".join(pieces), within=False)
    assert "\r" not in alone[:-1], "one piece has no drawing that was drawn over"
