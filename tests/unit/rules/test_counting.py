"""The lines of a log in which a program counts what it has done."""

from __future__ import annotations

from comborun.rules.counting import Counted, lines


def test_lines_end_where_the_program_ended_them_or_drew_over_them() -> None:
    assert list(lines(b"10%|#   |\r20%\x1b[0m\0bye\n")) == ["10%|#   |", "20%", "bye", ""]
    assert list(lines(b"0 of 9\n1 of 9", cut=True)) == ["1 of 9"]
    assert list(lines(b"x" * 9, longest=4)) == ["xxxx"]


def test_lines_after_which_it_counted_on_are_told_apart() -> None:
    bars = Counted("", 40)
    assert bars.advanced(["CUDA out of memory", "[  9/40] stairs FELL"]) == 2
    assert bars.advanced([" |# | 9/40 [00:12<00:40, 1.2s/it]", "x", " |# | 9/40 [00:13<00:41, 1.3s/it]"]) == 1
    assert bars.advanced(["[ 9/41] stairs FELL", "9 of 40"]) == 0
    assert Counted("", 4).advanced(["[ 1/4] stairs FELL"]) == 0
    named = Counted(r"done with (\d+)", 40)
    assert named.advanced(["No space left on device", "done with 9", "bye"]) == 2
    assert named.counts("done with 1")
    assert not any(map(Counted("(", 40).counts, ["(", "[  9/40] stairs"]))
