"""`results.videos`: the host lists them with the same eyes as the report has, and the report links them."""

from __future__ import annotations

import json
import shlex
import sys

from box import until
from desk import Desk

from comborun.remote.fetch import fetch
from comborun.remote.transport import LocalTransport
from comborun.reporter.collect import collect_run
from comborun.reporter.records import videos
from comborun.reporter.summary import summarize
from comborun.rules.results.videos import FAULTS, NO_MOOV


def test_a_torn_list_costs_its_last_line() -> None:
    assert videos.listed("12\tok\tout/a.mp4\n3\tok\n4\twhat\tout/b.mp4\nx", "s") == (
        videos.Video("s/out/a.mp4", 12, ""),
    )


PROGRAM = """
import json, os, pathlib
out = pathlib.Path(os.environ["COMBORUN_OUTPUT_DIR"])
good = bytes.fromhex("00000008") + b"ftyp" + bytes.fromhex("00000008") + b"moov"
for index in range(3):
    (out / f"ep{index}.mp4").write_bytes(good if index < 2 else good[:8])
with open(out / "a.jsonl", "w") as file:
    for index in range(3):
        file.write(json.dumps({"episode": index, "success": True}) + "\\n")
"""


def test_a_report_of_a_copy_names_the_videos_that_stay_on_the_host(desk: Desk) -> None:
    (desk.home / "program.py").write_text(PROGRAM)
    command = shlex.join([sys.executable, f"{desk.home}/program.py"])
    grid = desk.grid(policies="[a]", environments="[b]", episodes="3", command=command, results="{videos: '*.mp4'}")
    assert desk.combo("launch", grid).returncode == 0
    run = desk.runs[-1]
    until((run / "dispatch/done").exists, "the run has ended")
    assert (run / "sessions/b_a/attempt-1/videos.tsv").read_text().splitlines()[0] == "16\tok\tout/ep0.mp4"
    assert desk.combo("report").returncode == 0
    copy = desk.home / "copy"
    fetch(LocalTransport(), str(run), copy)
    assert [*copy.rglob("*.mp4")] == []
    here, there = (summarize(collect_run(directory)).summary for directory in (run, copy))
    assert here == there
    told = (run / "report/final_benchmark_report.json").read_text() + (run / "report/report.md").read_text()
    assert FAULTS[NO_MOOV] in told
    assert "sessions/b_a/attempt-1/out/ep2.mp4" in told
    rows = (run / "report/episodes.csv").read_text()
    assert "sessions/b_a/attempt-1/out/ep1.mp4" in rows, rows
    assert json.loads((run / "plan-1.json").read_text())["sessions"][0]["results"]["videos"] == ["*.mp4"]
