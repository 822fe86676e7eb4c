"""The machine that a run belongs to: claimed once, kept through restarts, given up when nothing runs."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from comborun.host.record import run_owner
from comborun.host.system import process
from comborun.rules.machines import Elsewhere
from comborun.rules.names import RunLayout


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    for folder in ("dispatch", "sessions"):
        (tmp_path / folder).mkdir()
    (tmp_path / "id").write_text("grid-20260101T000000Z-abcd\n")
    return RunLayout(str(tmp_path))


def be(monkeypatch: pytest.MonkeyPatch, host: str, boot: str, namespace: str = "1") -> None:
    monkeypatch.setattr(process, "machine", lambda: {"boot": boot, "host": host, "pid_namespace": namespace})


def test_a_run_is_claimed_by_one_machine_until_that_gives_it_up(
    layout: RunLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    be(monkeypatch, "a", "1")
    assert run_owner.claim(layout) is None
    be(monkeypatch, "b", "2")
    found = run_owner.claim(layout)
    assert found
    assert (found.code, found.fields) == (Elsewhere.MACHINE, {"host": "a", "here": "b"})
    assert run_owner.elsewhere(layout) == found
    run_owner.release(layout)
    assert run_owner.elsewhere(layout) == found, "only its owner gives it up"
    be(monkeypatch, "a", "7", "3")
    assert run_owner.claim(layout) is None, "after a restart"
    assert run_owner.ours(layout)
    be(monkeypatch, "a", "7", "4")
    assert run_owner.claim(layout), "another container"
    be(monkeypatch, "a", "7", "3")
    run_owner.release(layout)
    be(monkeypatch, "b", "2")
    assert run_owner.claim(layout) is None


def _claim(path: str, host: str) -> bool:
    process.machine = lambda: {"boot": host, "host": host, "pid_namespace": "1"}
    return run_owner.claim(RunLayout(path)) is None


def test_of_many_claims_at_once_one_succeeds(layout: RunLayout) -> None:
    for _ in range(3):
        with multiprocessing.get_context("fork").Pool(4) as pool:
            claims = pool.starmap(_claim, [(layout.directory, f"m{number}") for number in range(8)], 1)
        assert claims.count(True) == 1
        Path(layout.machine).unlink()


def test_an_attempt_of_another_machine_without_an_owner_of_the_run_is_elsewhere(layout: RunLayout) -> None:
    at = layout.attempt("s", 1)
    Path(at.directory).mkdir(parents=True)
    Path(at.claim).write_text('{"boot": "other", "host": "box", "pid_namespace": "5"}\n')
    found = run_owner.elsewhere(layout)
    assert found
    assert found.text("host") == "box"
    Path(at.claim).write_text('{"boot": "other", "host": "box"}\n')
    assert run_owner.elsewhere(layout) is None, "the former version named no namespace"
