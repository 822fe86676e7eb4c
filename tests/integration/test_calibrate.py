"""`combo calibrate`: what it measures, the file that plans go by, and that nothing is left when it is interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from box import carrying, until
from desk import Desk, evaluate
from nvidia import Gpus
from quick_combo import Call

if TYPE_CHECKING:
    from box import Box


def test_what_was_measured_tells_a_plan_when_it_ends_and_who_is_long(desk: Desk) -> None:
    pace = evaluate().replace("--pace 0.0", "--pace {environment.pace}")
    grid = desk.grid(
        policies="[good]",
        environments='{maze: {pace: "0.05"}, field: {pace: "0.2"}}',
        episodes="200",
        command=pace,
        limits="{attempts: 1}",
    )
    desk.environment["COMBORUN_CALIBRATE_S"] = "1"
    before = desk.json("plan", grid)["expected"]
    assert before["makespan"] is None
    assert before["unknown"] == ["good in maze", "good in field"]
    unknown = desk.combo("plan", grid).stdout
    assert "unknown: no time is known" in unknown
    assert "to measure" in unknown

    done = desk.json("calibrate", grid, "--episodes", "4", "--most", "2")
    found = {one["environment"]: one for one in done["combos"]}
    assert 0.01 < found["maze"]["episode_s"] < found["field"]["episode_s"] < 1  # at least roughly, on a busy machine
    assert found["field"]["memory_mib"] > 1
    assert done["steps"][0] == {**done["steps"][0], "at_once": 1, "speed": 1.0, "note": ""}
    for level in done["steps"]:
        assert abs(level["one_by_one_s"] / level["seconds"] - level["speed"]) < 0.01  # the row adds up
        assert level["episodes"] >= 2
    assert done["best"] in (1, 2)
    assert not list((desk.home / "comborun").glob("**/run.json"))  # its runs are gone, and none of the grid's is there

    after = desk.json("plan", grid)
    assert [session["environment"] for session in after["sessions"]] == ["field", "maze"]
    expected = after["expected"]
    assert "grid.calibration.json" in expected["told"]
    assert expected["sequential"] > 200 * found["field"]["episode_s"]
    assert expected["makespan"]
    told = desk.combo("plan", grid).stdout
    assert "field_good" in told

    grid.write_text(grid.read_text().replace("--seed", "--pace 0 --seed"))  # other work, of which nothing is known
    assert desk.json("plan", grid)["expected"]["makespan"] is None


def test_gpu_memory_is_measured_and_nothing_is_tried_that_would_take_the_reserve(desk: Desk, tmp_path: Path) -> None:
    gpus = Gpus(cast("Box", desk), tmp_path / "bin")
    gpus.cards(14000)
    held = """bash -c 'hold-gpu 4500 --for 60 & holder=$!; "$@"; code=$?; kill $holder; exit $code' run """
    keys = {"policies": "[good]", "environments": "[maze]", "episodes": "300", "resources": "{gpus: 1}"}
    grid = desk.grid(command=held + evaluate(0.1), reserve="{gpu_memory: 8000 MiB}", limits="{attempts: 1}", **keys)
    desk.environment["COMBORUN_CALIBRATE_S"] = "3"
    done = desk.json("calibrate", grid)
    assert [one["gpu_memory_mib"] for one in done["combos"]] == [4500]
    assert [step["at_once"] for step in done["steps"]] == [1]
    assert done["stopped"] == "only 1 at once fit: the GPUs' memory and its reserve allow no more"
    assert gpus.peak(0) <= 4500
    laid = desk.json("plan", grid)
    assert laid["sessions"][0]["request"]["gpu_memory"] == 4992
    assert laid["expected"]["at_once"] == 1
    assert "gpu_memory 4992 MiB" in laid["expected"]["filled"]


@contextmanager
def interrupted(desk: Desk, grid: Path) -> Iterator[Call]:
    """A calibration that gets Ctrl-C once its session lives."""
    calibrating = desk.start("calibrate", grid)
    try:
        until(lambda: _living(desk), "its session lives", 30)
        calibrating.interrupt()
        yield calibrating
    finally:
        calibrating.kill()


def test_ctrl_c_ends_what_a_calibration_has_started(desk: Desk) -> None:
    grid = desk.grid(command=evaluate(30))
    with interrupted(desk, grid) as calibrating:
        assert calibrating.code(60) == 130, calibrating.text
    assert "Ending what was started" in calibrating.text
    assert not _living(desk)
    assert not list(grid.parent.glob("*.calibration.json"))


def test_a_second_ctrl_c_says_what_is_left_and_the_next_calibration_removes_it(desk: Desk) -> None:
    desk.environment |= {"COMBORUN_LEASES": str(desk.home / "leases"), "COMBORUN_STOP_INT_S": "30"}
    deaf = "bash -c 'trap \"\" INT; sleep 300 & wait; wait' "
    grid = desk.grid(policies="[good]", environments="[maze]", command=deaf + evaluate(30))
    with interrupted(desk, grid) as calibrating:
        stopped = desk.home / "comborun/.calibrate"
        until(lambda: list(stopped.glob("*/dispatch/stopped")), "it is being stopped", 30)
        calibrating.interrupt()
        assert calibrating.code(60) == 130, calibrating.text
    (left,) = stopped.glob("little*")
    assert f"Interrupted again: what is left is in {left}" in calibrating.text

    desk.environment |= {"COMBORUN_STOP_INT_S": "1", "COMBORUN_CALIBRATE_S": "0.1"}
    other = desk.grid("other.yaml", policies="[good]", environments="[maze]", episodes="2")
    assert desk.combo("calibrate", other, "--most", "1").returncode == 0
    assert not [*stopped.glob("little*"), *(desk.home / "leases").glob("*.lease")]
    assert not _living(desk)


def test_a_combo_that_fails_is_told_with_its_run(desk: Desk) -> None:
    grid = desk.grid(policies="[good]", environments="[maze]", command=evaluate(fail="exit3"))
    failed = desk.combo("calibrate", grid, code=2)
    assert "`good in maze` failed in its trial: failed" in failed.stderr
    (kept,) = (desk.home / "comborun/.calibrate").glob("*/run.json")
    assert str(kept.parent) in failed.stderr


def _living(desk: Desk) -> list[int]:
    """Processes of a calibration's sessions."""
    return carrying(f"COMBORUN_RUN_DIR={desk.home}/comborun/.calibrate/")
