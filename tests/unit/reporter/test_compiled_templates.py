"""Compiled templates are kept beside them, and never used for another source."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader

from comborun.reporter.pages.compiled import CompiledTemplates


@pytest.fixture(autouse=True)
def writing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


def shown(folder: Path) -> str:
    environment = Environment(
        loader=FileSystemLoader(folder), bytecode_cache=CompiledTemplates(folder), autoescape=True
    )
    return environment.get_template("a.j2").render()


def kept(folder: Path) -> list[Path]:
    return [*(folder / "__pycache__").glob("*")]


def test_a_template_is_compiled_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.j2").write_text("one {{ 1 + 1 }}")
    assert shown(tmp_path) == "one 2"
    (path,) = kept(tmp_path)
    with monkeypatch.context() as context:
        context.delattr(Environment, "_compile")
        assert shown(tmp_path) == "one 2"
    (tmp_path / "a.j2").write_text("two")
    assert shown(tmp_path) == "two"
    assert kept(tmp_path) == [path]


@pytest.mark.parametrize("content", [b"", b"j2", b"\x00" * 200])
def test_a_torn_one_is_made_again(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.j2").write_text("one")
    shown(tmp_path)
    (path,) = kept(tmp_path)
    path.write_bytes(content)
    assert shown(tmp_path) == "one"
    assert path.read_bytes() != content


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.j2").write_text("one")
    (tmp_path / "__pycache__").write_text("a file")
    assert shown(tmp_path) == "one"
    (tmp_path / "__pycache__").unlink()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert shown(tmp_path) == "one"
    assert not kept(tmp_path)
