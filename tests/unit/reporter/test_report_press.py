"""Figures drawn by a second process: the same bytes, whatever becomes of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from report_runs import RUN, START, RunDirectory, row

from comborun.reporter.collect import collect_run
from comborun.reporter.counting.schedule import schedule
from comborun.reporter.figures import NAMES, plates
from comborun.reporter.figures import press as module
from comborun.reporter.figures.plate import Drawing as Part
from comborun.reporter.figures.plate import Drawn, Plate
from comborun.reporter.figures.press import Drawing, Press, second_press
from comborun.reporter.figures.sheet import Sheet
from comborun.reporter.report import report_run
from comborun.reporter.summary import summarize


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With everything that there is a figure for."""
    run = RunDirectory(tmp_path_factory.mktemp("run"))
    for policy, successes in (("flat", 2), ("rough", 18)):
        rows = "".join(
            row(i, i < successes, seed=i, time_s=3.0 + i, termination="goal" if i < successes else "fall")
            for i in range(20)
        )
        run.attempt(run.session(policy, "grass", count=20), rows)
    run.put(RUN.usage, f"{START + 5}\t1\t2\t9\t4\t0:1:8:50\n")
    return run.write()


@pytest.fixture(scope="module")
def drawn_here(run: Path) -> dict[str, Drawn]:
    return {plate.name: plate.draw() for plate in everything(run)}


@pytest.fixture
def press() -> Iterator[Press]:
    press = Press()
    yield press
    press.end()


def everything(run: Path) -> tuple[Plate, ...]:
    collected = collect_run(run)
    return plates(summarize(collected), schedule(collected))


def test_another_process_draws_every_figure_with_the_same_bytes(
    run: Path, drawn_here: dict[str, Drawn], press: Press
) -> None:
    found = {plate.name: press.draw(plate) for plate in everything(run)}
    assert tuple(found) == NAMES
    assert found == drawn_here


def test_two_that_draw_leave_nothing_out_and_keep_the_order(
    run: Path, drawn_here: dict[str, Drawn], press: Press
) -> None:
    found = Drawing(everything(run), press).finish()
    assert {plate.name: drawn for plate, drawn in found.items()} == drawn_here
    assert tuple(plate.name for plate in found) == NAMES


def test_a_second_process_that_is_killed_costs_no_figure(run: Path, drawn_here: dict[str, Drawn], press: Press) -> None:
    os.kill(press._process.pid, signal.SIGKILL)
    found = Drawing(everything(run), press).finish()
    assert {plate.name: drawn for plate, drawn in found.items()} == drawn_here


def _broken(sheet: Sheet, x: float, y: float) -> None:
    raise ValueError(f"nothing can be drawn at {x:.2f}, {y:.2f}")


@pytest.mark.parametrize("where", ["in a module", "in a function"])
def test_an_error_is_told_as_without_a_second_process(press: Press, where: str) -> None:
    def draw(sheet: Sheet, x: float, y: float) -> None:  # no process can be told of it
        _broken(sheet, x, y)

    plate = Plate("broken", "", "", (Part(1.0, 1.0, _broken if where == "in a module" else draw),))
    with pytest.raises(ValueError, match=r"nothing can be drawn at 0\.15, 0\.15"):
        Drawing((plate, replace(plate)), press).finish()


def test_no_second_process_outlives_its_report_or_hears_ctrl_c() -> None:
    with second_press(1000) as press:
        if press is None:
            pytest.skip("one processor")
        pid = press._process.pid
        assert os.getsid(pid) != os.getsid(0)
    assert press._process.returncode is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_small_report_and_a_single_processor_get_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with second_press(2) as press:
        assert press is None
    monkeypatch.setattr(module, "_processors", lambda: 1)
    with second_press(1000) as press:
        assert press is None


def test_a_report_is_the_same_with_and_without(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report_run(run, tmp_path / "alone")
    monkeypatch.setattr(module, "FEWEST", 1)
    monkeypatch.setattr(module, "_processors", lambda: 2)
    report_run(run, tmp_path / "two")
    alone, two = (
        {path.relative_to(at): path.read_bytes() for path in at.rglob("*") if path.is_file()}
        for at in (tmp_path / "alone", tmp_path / "two")
    )
    assert alone == two
