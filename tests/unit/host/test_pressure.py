"""What the kernel counts when memory runs out."""

from __future__ import annotations

from comborun.host import pressure


def test_what_was_killed_for_memory_is_counted_in_the_group_before_the_host(monkeypatch):
    monkeypatch.setattr(pressure, "kills", lambda: "5,9")
    assert pressure.since("3,9") == (2, "in its control group")
    assert pressure.since("5,6") == (3, "on this machine")
    assert pressure.since("5,9") == (0, "")
    assert pressure.since(",6") == (3, "on this machine")
    assert pressure.since(",") == (0, "")
    assert pressure.since("a[$(touch pwned)],x") == (0, "")


def test_both_counts_are_numbers_or_nothing():
    group, comma, host = pressure.kills().partition(",")
    assert comma
    assert all(count.isdecimal() or not count for count in (group, host))
