"""A command that was asked for JSON answers in JSON when it fails, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from comborun.cli import combo, guarded


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["check", "bad.yaml", "--json"], "grid", "polcies"),
        (["status", "--json", "nosuch"], "unknown_run", "no runs"),
        (["check", "--json"], "usage", "GRID"),
        (["init", "--skill", "bad.yaml", "--json"], "mistake", "bad.yaml"),
    ],
)
def test_an_error_is_one_json_document_on_standard_output(
    words: list[str],
    code: str,
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "bad.yaml").write_text("polcies: [a]\nenvironments: [b]\ncommand: run\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["combo", *words])
    assert guarded(combo) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == code
    assert named in error["message"]
