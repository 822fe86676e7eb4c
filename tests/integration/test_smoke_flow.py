"""`--smoke K`: a few episodes of every combo first; the rest begins only when each has left a record."""

from __future__ import annotations

from pathlib import Path

from box import until
from desk import Desk, evaluate
from happened import granted


def halted(run: Path) -> bool:
    hold = run / "dispatch/hold"
    return hold.exists() and '"kind": "halted"' in hold.read_text()


def test_a_smoke_test_that_passes_lets_the_rest_begin_and_counts_for_nothing(desk: Desk) -> None:
    ended = desk.combo("run", desk.grid(), "--smoke", "2", code=0)
    assert "4 of 4 combos have left a record" in ended.stdout
    totals = desk.report()["totals"]
    assert totals["completed"] == totals["planned"] == 16
    assert desk.report()["totals"]["attempts"] == 4
    (run,) = desk.runs
    assert len(desk.records(run)["maze_good_smoke"]) == 2
    assert "_smoke" not in (run / "report/report.md").read_text(), "it is no finding"
    launched = granted(run)
    assert all(name.endswith("_smoke") for name in launched[:4])
    assert "smoke" not in " ".join(launched[4:])


def test_a_combo_without_a_record_stops_the_launch_and_mended_it_alone_is_tried_again(desk: Desk) -> None:
    (desk.home / "broken").touch()
    command = f"""bash -c '[ "$0" = good ] || [ ! -e ~/broken ] || exit 3; exec "$@"' {{policy}} {evaluate()}"""
    grid = desk.grid(command=command)
    refused = desk.combo("launch", grid, "--smoke", "1", code=1)
    assert "2 of 4 combos have left a record" in refused.stdout
    assert "✗  poor" in refused.stdout
    until(lambda: halted(desk.runs[-1]), "the run is halted", 10)
    assert desk.begun == {f"{place}_{policy}_smoke" for place in ("maze", "field") for policy in ("good", "poor")}
    (desk.home / "broken").unlink()
    launched = desk.combo("launch", grid, "--smoke", "1", code=0)
    assert "no longer halted: " in launched.stdout
    (run,) = desk.runs
    until((run / "dispatch/done").exists, "the rest runs", 40)
    assert len(list(run.glob("sessions/maze_poor_smoke/attempt-*/end"))) == 2
    assert len(list(run.glob("sessions/maze_good_smoke/attempt-*/end"))) == 1
    assert sum(len(lines) for name, lines in desk.records(run).items() if not name.endswith("_smoke")) == 16


def test_leaving_while_it_waits_ends_nothing(desk: Desk) -> None:
    front = desk.start("launch", desk.grid(command=evaluate(pace=1.0)), "--smoke", "2")
    until(lambda: desk.runs and desk.begun, "the smoke test begins", 30)
    until(lambda: "0 of 4 combos" in front.text, "it shows what it waits for")
    front.interrupt()
    assert front.code(20) == 130
    assert "The smoke test goes on" in front.text
    until((desk.runs[-1] / "dispatch/done").exists, "the rest runs", 40)


def test_a_program_that_takes_no_number_is_refused_with_a_reason(desk: Desk) -> None:
    refused = desk.combo("launch", desk.grid(command=evaluate().replace("{episodes}", "4")), "--smoke", "1", code=2)
    assert "its command takes no {episodes}" in refused.stderr
    assert not desk.runs
