"""What follows from how the sessions of a calibration went, and the file that it is kept in."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import gridtext
import pytest

from comborun.errors import UserError
from comborun.model.plan import Plan, Session
from comborun.model.resources import HostFacts
from comborun.planner.calibrating import (
    DoneAt,
    Trial,
    alone,
    beside,
    best,
    crowded,
    disturbed,
    kinds,
    measured,
    refused,
    second_trial,
    step,
    stops,
)
from comborun.planner.knowledge import Calibration, MeasuredCombo, Step, calibration_text, calibrations, knowledge_of
from comborun.rules.room.capacity import Card

HOST = gridtext.host(cpus=8)
GRID = "environments: [x, y]\nepisodes: 100\nname: g\ncommand: run {policy} {episodes} {first_episode} {output_dir}\n"


def plan(text: str = "policies: [a]\n", host: HostFacts = HOST) -> Plan:
    return gridtext.plan(GRID + text, host)


def whole(episodes: int, seconds: float, *seen: DoneAt, memory: int = 0) -> Trial:
    return Trial(episodes, 1000.0, 1000.0 + seconds, whole=True, seen=seen, memory=memory)


def test_start_up_is_told_from_episodes_by_two_lengths_or_by_when_records_came() -> None:
    session = plan().sessions[0]
    two = measured(session, [whole(3, 5.0, memory=700), whole(30, 10.4, memory=900)])
    assert (two.start_up_s, two.episode_s, two.memory_mib, two.episodes) == (4.4, 0.2, 900, 33)
    marks = measured(session, [whole(5, 140.0, DoneAt(60, 1), DoneAt(140, 5))])
    assert (marks.start_up_s, marks.episode_s) == (40.0, 20.0)
    neither = measured(session, [whole(4, 20.0)])
    assert (neither.start_up_s, neither.episode_s) == (0.0, 5.0)
    assert second_trial(session, whole(3, 2.0)) == 15
    assert second_trial(session, whole(3, 30.0)) == second_trial(session, whole(100, 2.0)) == 0


def test_a_combo_that_never_did_its_work_is_refused_with_how_it_ended() -> None:
    failed = Trial(3, 0, 1, whole=False, how="failed, gpu_memory")
    with pytest.raises(UserError, match="`a in x` failed in its trial: failed, gpu_memory"):
        measured(plan().sessions[0], [failed])


def test_of_many_combos_a_row_and_a_column_are_measured_and_the_others_follow_in_proportion() -> None:
    policies = [f"p{number}" for number in range(8)]
    sessions = plan(f"policies: [{', '.join(policies)}]\n").sessions
    chosen = kinds(sessions)
    assert len(sessions) == 16
    assert {(one.policy, one.environment) for one in chosen} == {(policy, "x") for policy in policies} | {("p0", "y")}
    found = [
        measured(one, [whole(10, 10.0 * (1 + int(one.policy[1:])) * (2 if one.environment == "y" else 1))])
        for one in chosen
    ]
    known = knowledge_of(calibration(found), sessions, "grid.calibration.json")
    paces = {(one.policy, one.environment): known.pace(one) for one in sessions}
    estimated = paces["p3", "y"]
    assert (estimated.seconds, estimated.estimated) == (8.0, True)
    assert "7 of 16 combos in proportion" in known.origin


def test_sessions_side_by_side_are_of_one_length_and_share_the_cores() -> None:
    laid = plan()
    found = [
        (one, entry(one, start_up, pace)) for one, start_up, pace in zip(laid.sessions, (4, 1), (2.0, 0.5), strict=True)
    ]
    four = beside(laid, found, 4)
    assert [(one.count, one.request.cpus) for one in four.sessions] == [(4, 2), (22, 2), (4, 2), (22, 2)]
    assert [one.count for one in beside(laid, found, 2, 30.0).sessions] == [13, 58]
    assert len({one.name for one in four.sessions}) == 4
    assert four.limits.parallel == 4
    assert [one.count for one in alone(laid, laid.sessions, [3, 3]).sessions] == [3, 3]
    trials = [whole(one.count, 24.0) for one in four.sessions]
    went = step(found, four, trials)
    assert (went.episodes, went.one_by_one_s, went.seconds, went.speed) == (52, 48.0, 24.0, 2.0)
    assert step(found, beside(laid, found, 2), trials[:2]).one_by_one_s == 24.0


def test_it_stops_at_the_knee_at_a_failure_and_before_the_reserve() -> None:
    steps = [Step(1, 10, 1.0), Step(2, 10, 1.9), Step(4, 10, 2.0)]
    assert stops(steps[:2]) == ""
    assert stops(steps) == "4 at once get 5 % more done than 2"
    assert (best(steps[:2]), best(steps)) == (2, 2)
    assert [disturbed(steps), disturbed([steps[0], Step(2, 10, 2.8)])] == [False, True]
    busy = [(one, entry(one, 1, 1)) for one in plan().sessions]  # a core each, of eight
    assert crowded(busy, plan(), 12) == ""
    assert crowded(busy, plan(), 16) == "16 at once would keep 16.0 cores busy, but there are 8"
    idle = [(one, replace(measured, cores=0.0)) for one, measured in busy]
    assert crowded(idle, plan(), 1000) == ""  # it was measured, and they keep none busy
    unknown = [(one, replace(measured, cores=None)) for one, measured in busy]
    assert "cores that a session uses were not measured" in crowded(unknown, plan(), 16)
    failed = step([], plan(), [Trial(1, 0, 1, whole=False, how="failed, host_memory"), whole(1, 1)])
    assert stops([*steps[:2], failed]) == "1 of 2 failed: failed, host_memory"
    small = HostFacts(
        "local", "box", 8, 64 << 30, (0,), "5", {"tmux": "3"}, (), cards=(Card(0, "", "H100", 80000, 41000),)
    )
    laid = plan("policies: [a]\nresources: {gpus: 1}\nreserve: {gpu_memory: 60000 MiB}\n", small)
    found = [(one, entry(one, 1, 1, gpu_memory=9000)) for one in laid.sessions]
    assert refused(beside(laid, found, 2), small) == ""
    assert "1 at once" not in refused(beside(laid, found, 4), small)
    assert "and its reserve" in refused(beside(laid, found, 4), small)


def test_the_file_holds_a_measurement_for_each_host_and_what_is_none_is_refused() -> None:
    one = calibration([entry(plan().sessions[0], 1, 1)])
    text = calibration_text((), one)
    assert calibrations(text, Path("f")) == (one,)
    assert one.is_of(HOST)
    other = Calibration("far", 4, (), "", "", (), (), 1, "")
    both = calibration_text(calibrations(text, Path("f")), other)
    assert calibrations(calibration_text(calibrations(both, Path("f")), one), Path("f")) == (other, one)
    assert knowledge_of(other, plan().sessions, "f") is None
    for wrong in ("", "[]", "{}", '{"schema": 1, "hosts": [1]}', text.replace('"schema": 1', '"schema": 2')):
        with pytest.raises(UserError, match=r"be read as a calibration|of version 2"):
            calibrations(wrong, Path("f"))
    for number in ('"12"', "Infinity", "NaN", "null", "1" + 400 * "0"):
        with pytest.raises(UserError, match="be read as a calibration"):
            calibrations(re.sub(r'"episode_s": [\d.]+', f'"episode_s": {number}', text), Path("f"))


def entry(session: Session, start_up: float, pace: float, gpu_memory: int = 0) -> MeasuredCombo:
    one = measured(session, [whole(1, 1.0)])
    return MeasuredCombo(one.policy, one.environment, one.work, 5, start_up, pace, 0, gpu_memory, 1.0)


def calibration(found: list[MeasuredCombo]) -> Calibration:
    return Calibration("box", 8, (), "2026-01-01T00:00:00Z", "0", tuple(found), (Step(1, 10, 1.0),), 2, "")
