"""`combo recheck`: a run's first episodes once more, alone; the report says when they went differently."""

from __future__ import annotations

import json

from desk import Desk


def test_a_recheck_runs_alone_and_what_went_otherwise_stands_first_in_the_report(desk: Desk) -> None:
    assert desk.combo("run", desk.grid(environments="[maze]")).returncode == 0
    (run,) = desk.runs
    (file,) = run.glob("sessions/maze_good/attempt-1/out/*.jsonl")
    first, second, *rest = map(json.loads, file.read_text().splitlines())
    second["success"] = not second["success"]  # as if a session beside it had got in its way
    file.write_text("".join(json.dumps(record) + "\n" for record in (first, second, *rest)))

    otherwise = desk.combo("recheck", run.name, "--episodes", "2", code=1)
    assert "! 2 episodes run alone once more: another verdict in 1" in otherwise.stdout
    assert "2 episodes run alone once more: all went the same" in otherwise.stdout
    (alone,) = (path for path in desk.runs if path != run)
    assert alone.name.startswith("little_recheck-")
    manifest = json.loads((alone / "run.json").read_text())
    assert manifest["provenance"]["canary_of"] == run.name
    assert [(one["session"], one["count"]) for one in manifest["expected"]] == [
        ("maze_good_recheck", 2),
        ("maze_poor_recheck", 2),
    ]
    assert json.loads((alone / "dispatch/policy.json").read_text())["parallel"] == 1

    desk.combo("report", run.name)
    report = (run / "report/report.md").read_text().splitlines()
    warning = "Warning: of 4 episodes that were run alone once more, some went differently in 1 of 2"
    assert any(line.startswith(warning) for line in report[2:6]), report[:8]
    assert desk.report(run)["quality"]["findings"][0]["what"].startswith(
        "2 episodes run alone once more: another verdict in 1"
    )
