"""What the kernel counts when memory runs out."""

from __future__ import annotations

from comborun.host import machine


def test_what_was_killed_for_memory_is_counted_in_the_group_before_the_host(monkeypatch):
    monkeypatch.setattr(machine, "kills", lambda: "5,9")
    assert machine.kills_since("3,9") == (2, "in its control group")
    assert machine.kills_since("5,6") == (3, "on this machine")
    assert machine.kills_since("5,9") == (0, "")
    assert machine.kills_since(",6") == (3, "on this machine")
    assert machine.kills_since(",") == (0, "")
    assert machine.kills_since("a[$(touch pwned)],x") == (0, "")


def test_both_counts_are_numbers_or_nothing():
    group, comma, host = machine.kills().partition(",")
    assert comma
    assert all(count.isdecimal() or not count for count in (group, host))
