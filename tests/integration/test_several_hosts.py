"""Several hosts share the sessions of one grid, and it is one run to a person: three real sshd with their own homes."""

from __future__ import annotations

import json
from collections import Counter

from boxes import NAMES, Boxes, finished

def test_each_session_runs_on_one_host_and_the_report_counts_it_once(boxes: Boxes) -> None:
    desk = boxes.desk
    said = desk.combo("launch", boxes.grid(), code=0)
    print(said.stdout, said.stderr)
    status = finished(boxes)
    print(desk.combo("status").stdout)
    assert len(status["sessions"]) == 4
    assert {one["name"]: [one["host"]] for one in status["sessions"]} == boxes.hosts_of
    assert set(Counter(one["host"] for one in status["sessions"]).values()) == {1, 2}
    assert status["episodes_done"] == status["episodes_planned"] == 16
    said = desk.combo("report", code=0)
    print(said.stdout, said.stderr)
    report = json.loads((desk.home / desk.json("report")["report"] / "final_benchmark_report.json").read_text())
    assert report["totals"]["completed"] == report["totals"]["planned"] == 16
