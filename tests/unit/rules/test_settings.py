"""What a person sets counts until the grid has another value, and nothing else is read from that record."""

from __future__ import annotations

from comborun.rules import settings

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
