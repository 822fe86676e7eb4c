"""What a right grid file says: combos in their order, settings with overrides, values as they were written."""

from __future__ import annotations

from pathlib import Path

import pytest
from gridtext import grid as grid_of
from gridtext import plan

from comborun.errors import UserError
from comborun.grid import load_grid
from comborun.model.judging import ProgressRules
from comborun.rules.results.fields import ResultRules

HEAD = """\
policies: [flat, rough]
environments: [grass, stairs]
episodes: 100
command: evaluate {policy} {environment} {episodes} {output_dir}
"""


def test_what_is_excluded_is_left_out_and_what_is_included_comes_back_last() -> None:
    grid = grid_of(
        HEAD
        + "exclude: [{policy: flat}, {environment: stairs}]\n"
        + "include: [{policy: flat, environment: stairs}, {policy: rough}]\n"
    )
    assert [combo.key for combo in grid.combos] == [("rough", "grass"), ("flat", "stairs"), ("rough", "stairs")]


def test_overrides_are_applied_in_order_and_maps_are_merged() -> None:
    grid = grid_of(
        HEAD
        + """\
variables: {A: one, B: one}
resources: {gpus: 1}
results: {success: done, metrics: speed}
overrides:
  - when: {environment: stairs}
    episodes: 10
    variables: {B: two, C: two}
    results: {files: x.jsonl}
  - when: {policy: rough, environment: [stairs, grass]}
    episodes: 20
    resources: {gpus: 0}
    command: other {environment} {episodes} {output_dir}
"""
    )
    settings = {combo.key: combo.settings for combo in grid.combos}
    assert settings["flat", "stairs"].episodes == 10
    assert dict(settings["flat", "stairs"].variables) == {"A": "one", "B": "two", "C": "two"}
    rules = {one.key: one.rules for one in grid.combos}
    assert rules["flat", "stairs"] == ResultRules(("x.jsonl",), success="done", metrics=("speed",))
    assert (settings["rough", "stairs"].episodes, settings["rough", "stairs"].gpus) == (20, 0)
    assert settings["rough", "stairs"].command.startswith("other")
    assert dict(settings["rough", "stairs"].variables) == {"A": "one", "B": "two", "C": "two"}
    assert settings["rough", "grass"].results == grid.results


def test_progress_is_read_off_the_log_by_the_grids_pattern_and_an_override_replaces_it_whole() -> None:
    text = """\
progress: {pattern: 'episode (\\d+)', counts_from: 1}
overrides:
  - {when: {policy: flat}, progress: {silent: true}}
  - {when: {policy: rough, environment: stairs}, progress: none}
"""
    progress = {(one.policy, one.environment): one.progress for one in plan(HEAD + text).sessions}
    assert progress == {
        ("flat", "grass"): ProgressRules(silent=True),
        ("flat", "stairs"): ProgressRules(silent=True),
        ("rough", "grass"): ProgressRules(r"episode (\d+)", 1),
        ("rough", "stairs"): ProgressRules(guess=False),
    }


def test_aliases_and_merge_keys_are_followed() -> None:
    grid = grid_of(
        "policies:\n  a: &a {x: '1', y: '2'}\n  b: {<<: *a, y: '3'}\n  c: {<<: [{z: '4'}, *a]}\n"
        "environments: [e]\nepisodes: 1\ncommand: run {policy.x} {episodes} {output_dir}\n"
    )
    assert [dict(combo.policy.attributes) for combo in grid.combos] == [
        {"x": "1", "y": "2"},
        {"y": "3", "x": "1"},
        {"z": "4", "x": "1", "y": "2"},
    ]


def test_a_grid_keeps_every_character_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    text = "\ufeff" + HEAD.replace("\n", "\r\n") + "# café\r\n"
    path.write_bytes(text.encode())
    grid = load_grid(path)
    assert grid.text == text
    assert grid.path == path
    assert len(grid.combos) == 4


def test_a_file_that_cannot_be_read_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("name: caf\xe9".encode("latin-1"))
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.truncate(10 << 30)
    for name, words in (
        ("absent.yaml", "can't be read: No such file"),
        (".", "can't be read: Is a directory"),
        ("latin.yaml", "not UTF-8 text: byte 9 is 0xe9"),
        ("image.png", "not UTF-8"),
        ("nul\0byte.yaml", "can't be read"),
        ("huge.yaml", "too many for a grid"),
    ):
        with pytest.raises(UserError, match=words):
            load_grid(tmp_path / name)
