"""A training in the table: its steps and its newest values, whatever rows are read from its log."""

from __future__ import annotations

from dataclasses import replace

import pytest
from monitor_stage import Seen, a_plan, a_session, a_view, an_answer, picture, status_of

from comborun.model.judging import EvidenceRules, ProgressRules
from comborun.model.plan import Session
from comborun.monitor.status import SessionStatus
from comborun.rules.facts import Fact
from comborun.rules.results.fields import ResultRules
from comborun.rules.vocabulary import Outcome

RULES = ResultRules.of(
    {"files": [], "source": "log", "pattern": r"step=(?P<step>\d+)", "success": "none", "episode": "step"}
)
TRAINING = replace(a_session("ppo", "pick", 1000), unit="step", results=RULES, evidence=EvidenceRules())
TRAINED = Fact("trained_to", step=500, steps=1000, unit="steps", reward=2.5)
SEEN = Seen("pick_ppo", counts=(5, 0), log=b"[train] step=500\n")


def seen(one: Seen, session: Session = TRAINING) -> SessionStatus:
    return status_of(a_view(a_plan([session])), an_answer(one)).sessions[0]


def test_rows_of_its_log_are_no_steps() -> None:
    assert seen(SEEN).done is None
    assert seen(replace(SEEN, trained=TRAINED)).done == 500
    assert seen(replace(SEEN, trained=Fact("trained_to", step=7, unit="iterations"))).done is None


def test_a_pattern_of_the_grid_counts_its_steps() -> None:
    counted = replace(TRAINING, progress=ProgressRules(pattern=r"step=(\d+)"))
    assert seen(SEEN, counted).done == 500


def test_the_table_shows_its_newest_values() -> None:
    status = status_of(a_view(a_plan([TRAINING])), an_answer(replace(SEEN, trained=TRAINED)))
    drawn = picture(status, 160)
    assert "step 500 of 1,000: reward 2.5" in drawn
    assert "500/1000" in drawn


@pytest.mark.parametrize(("announced", "by_steps"), [(500, True), (500, False), (1000, True), (None, True)])
def test_a_program_that_announces_fewer_steps_than_planned_is_done_by_these(
    announced: int | None, by_steps: bool
) -> None:
    told = Fact("trained_to", step=500, steps=announced, unit="steps")
    session = replace(TRAINING, evidence=EvidenceRules(line="finished", steps=by_steps))
    note = seen(SEEN.ended(trained=told.as_data()), session).note
    proof = "it reached the 500 steps that its program announced; 1000 were planned"
    assert note == (proof if by_steps and announced == 500 else "")


@pytest.mark.parametrize("rows", [5, 1000])
def test_one_that_has_ended_is_judged_by_its_host_and_not_by_its_rows(rows: int) -> None:
    done = seen(SEEN.ended(records=rows, trained=TRAINED.as_data()))
    assert (done.outcome, done.done) == (Outcome.SUCCEEDED, 500)
    partial = seen(SEEN.ended(completeness="none", code="1", records=rows))
    assert partial.outcome is not Outcome.SUCCEEDED
