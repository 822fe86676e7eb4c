"""What `combo stop` says that it would do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from monitor_stage import a_plan, a_session, a_view

from comborun.model.judging import EvidenceRules
from comborun.monitor.status import RunStatus, SessionStatus
from comborun.monitor.steering import PlannedStop
from comborun.rules.vocabulary import Life


@pytest.mark.parametrize(
    ("recorded", "ranged", "line", "repeated"),
    [(3, False, "", 3), (10, False, "", 0), (10, False, "all done", 10), (3, True, "", 0), (None, False, "", 0)],
)
def test_recorded_episodes_run_again_only_if_the_session_is_not_complete_by_them(
    recorded: int | None, ranged: bool, line: str, repeated: int
) -> None:
    planned = replace(a_session("flat", "maze", 10), ranged=ranged, evidence=EvidenceRules(line=line))
    now = SessionStatus(planned.name, "flat", "maze", "episode", 10, recorded=recorded, life=Life.RUNNING)
    view = a_view(a_plan([planned]))
    found = PlannedStop.of(
        view, RunStatus(run="r", grid="walkers", host="gpu-box", directory="~/r", sessions=(now,)), ()
    )
    assert [one.recorded for one in found.repeated] == ([repeated] if repeated else [])
    assert any(fact.code == "resume_repeats" for fact in found.facts()) == bool(repeated)


def test_it_names_the_hosts_that_run_what_it_ends() -> None:
    sessions = tuple(
        SessionStatus(name, "flat", "maze", "episode", 10, life=Life.RUNNING, host=host)
        for name, host in (("one", "alpha"), ("two", "gamma"))
    )
    seen = RunStatus(run="r", grid="walkers", host="alpha, beta, gamma", directory="~/r", sessions=sessions)
    view = a_view(a_plan([a_session("flat", "maze", 10)]), "alpha")
    assert [PlannedStop.of(view, seen, names).host for names in (("two",), ())] == ["gamma", "alpha, gamma"]
