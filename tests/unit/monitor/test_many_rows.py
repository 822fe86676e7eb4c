"""The table of more sessions than a terminal has room for."""

from __future__ import annotations

import re

from monitor_stage import NOW, Seen, a_plan, a_session, a_view, an_answer, picture, status_of

from comborun.monitor.table import MOST_ROWS


def drawn(failed: int, longest: str = "p0") -> str:
    """Of 400 sessions: so many failed alike, one failed in another way, three run, and the others wait."""
    sessions = [a_session(f"p{number}", f"e{number}") for number in range(399)]
    plan = a_plan([*sessions, a_session(longest, "last")])
    names = [one.name for one in plan.sessions]
    seen = [Seen(one).ended("exited", "partial", records=3, code=3) for one in names[:failed]]
    seen += [Seen(names[failed]).ended("exited", "partial", records=3, code=4)]
    seen += [Seen(one, started=NOW - 50) for one in names[failed + 1 : failed + 4]]
    return picture(status_of(a_view(plan), an_answer(*seen)), 160)


def test_what_failed_alike_a_hundred_times_leaves_room_for_other_failures_and_for_what_runs() -> None:
    shown = drawn(150)
    assert len(re.findall("^. (?:partial|running|queued) ", shown, re.MULTILINE)) == MOST_ROWS
    assert len(re.findall("^. running ", shown, re.MULTILINE)) == 3
    assert "exit code 4" in shown
    assert "and 300 more: 54 partial, 246 queued" in shown


def test_columns_are_as_wide_as_what_is_shown() -> None:
    assert drawn(150, "a" * 40).splitlines()[-3].rstrip() == drawn(150).splitlines()[-3].rstrip()
