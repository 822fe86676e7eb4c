"""What a person sets counts until the grid has another value, and nothing else is read from that record."""

from __future__ import annotations

from comborun.rules import settings
from comborun.rules.endings.failures import Failure
from comborun.rules.facts import Fact
from comborun.rules.holds import Notice
from comborun.words import say

GRID = {"gpus": "0,1", "reserve_gpu_mib": "0", "reserve_memory_mib": "512"}


def test_what_was_set_counts_until_the_grid_changes() -> None:
    record = settings.changed({}, GRID, {"use_gpus": "1,2", "parallel": "6"})
    assert settings.in_force(record, GRID) == {"gpus": "1,2"}
    more = settings.changed(record, GRID, {"reserve.gpu_memory": "2048"})
    assert settings.in_force(more, GRID) == {"gpus": "1,2", "reserve_gpu_mib": "2048"}
    assert settings.in_force(more, {**GRID, "gpus": "0,1,2"}) == {"reserve_gpu_mib": "2048"}


def test_a_foreign_record_changes_nothing() -> None:
    for record in ({}, {"gpus": "x", "gpus_of_grid": "0,1"}, {"gpus": ["1"], "gpus_of_grid": "0,1"}, {"gpus": "1"}):
        assert settings.in_force(record, GRID) == {}
    assert not settings.is_value("use_gpus", "0,1;rm")
    assert not settings.is_value("stagger", "3")
    assert settings.is_value("parallel", "6")
    assert settings.is_value("use_gpus", "0,10")
    assert not settings.is_value("use_gpus", "0,1,0")


def test_a_gpu_that_is_gone_is_not_called_one_that_fails_again_and_again() -> None:
    said = say(Fact("gpus_in_quarantine", gpus=["1", "2"], failures=[Notice.GPU_FELL, Failure.CRASHED]))
    assert said == "GPU 1, GPU 2 get no more sessions (the driver lists it no more, crashed again and again)"
