"""Where the runs of a grid file are, without reading the whole grid."""

from __future__ import annotations

from pathlib import Path

import pytest

from comborun.api.named import HostChoice

REST = "policies: [p]\nenvironments: [e]\ncommand: run {policy} {environment} {episodes} {output_dir}\nepisodes: 1\n"
RESULTS = "results: {files: '*.jsonl'}\n"


@pytest.mark.parametrize(
    ("keys", "name", "host", "root"),
    [
        ("name: walk\n", "walk", None, "~/comborun"),
        ("name: walk 2   # with a comment\nhost: me@box\nroot: /data/runs\n", "walk-2", "me@box", "/data/runs"),
        ("name: walk # x\nhost: box.lab\nroot: ~/runs\n", "walk", "box.lab", "~/runs"),
        ("'name': walk\n\"host\": box\n", "walk", "box", "~/comborun"),
        ("name: walk\nhost: 'box'\n'root': /data\n", "walk", "box", "/data"),
        ("name: walk\n#host: box\n", "walk", None, "~/comborun"),
        ("", "grid", None, "~/comborun"),
        ("name: walk\nepisodes: none of it\n", "walk", None, "~/comborun"),
    ],
)
def test_a_grid_file_names_its_host_root_and_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: str, name: str, host: str | None, root: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = tmp_path / "grid.yaml"
    path.write_text(keys + REST + RESULTS)
    found = HostChoice().of_grid(path)
    assert found
    where, called = found
    assert (called, where.host, where.root) == (name, host, root)
