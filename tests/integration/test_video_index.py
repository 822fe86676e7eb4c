"""`results.videos`: the host lists them with the same eyes as the report has, and the report links them."""

from __future__ import annotations

import json
import shlex
import struct
import subprocess
import sys
from pathlib import Path

from box import until
from desk import CHECKOUT, Desk, desk

from remote.fetch.transfer import fetch
from remote.local import LocalTransport
from reporter.adapters import mp4, videos
from reporter.collect import collect_run
from reporter.summary import summarize

__all__ = ["desk"]


def box(kind: bytes, size: int = 24, *, told: int | None = None, wide: bool = False) -> bytes:
    length = size if told is None else told
    head = struct.pack(">I4sQ", 1, kind, length) if wide else struct.pack(">I4s", length, kind)
    return head + bytes(size - len(head))


FILES = {
    "good.mp4": box(b"ftyp") + box(b"mdat", 3000) + box(b"moov", 200),
    "wide.mp4": box(b"ftyp") + box(b"mdat", 3000, wide=True) + box(b"moov", 200),
    "to the end.mp4": box(b"ftyp") + box(b"moov", 90, told=0),
    "cut.mp4": box(b"ftyp") + box(b"moov", 90, told=900),
    "no index.mp4": box(b"ftyp") + box(b"mdat", 90, told=0),
    "half.MP4": box(b"ftyp") + box(b"mdat", 90, told=900),
    "short.mp4": b"\0\0\0\x18ft",
    "text.mp4": b"this is no video at all, but it is long enough to look like one",
    "nothing.mp4": b"",
    "other.webm": b"x",
}


def test_the_host_finds_the_same_faults_as_the_report(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name, content in FILES.items():
        (tmp_path / "out" / name).write_bytes(content)
    rooms = "base/record attempt/evidence attempt/videos"
    script = f'for file in {rooms}; do source "$1/$file.sh"; done; videos::index "$2" "**/*"'
    subprocess.run(["bash", "-c", script, "bash", str(CHECKOUT / "scripts/lib"), str(tmp_path)], check=True)
    listed = videos.told((tmp_path / "videos.tsv").read_text(), "a")
    assert {video.path: (video.size, video.fault) for video in listed} == {
        f"a/out/{name}": (len(content), fault(tmp_path / "out" / name)) for name, content in FILES.items()
    }
    assert {video.fault for video in listed} == {"", "empty", mp4.CUT, mp4.NO_MOOV, mp4.NO_MP4}


def fault(path: Path) -> str:
    (video,) = videos.index(path.parent, [path.name])
    return video.fault


def test_a_torn_list_costs_its_last_line() -> None:
    assert videos.told("12\tok\tout/a.mp4\n3\tok\n4\twhat\tout/b.mp4\nx", "s") == (videos.Video("s/out/a.mp4", 12, ""),)


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
    assert mp4.NO_MOOV in told
    assert "sessions/b_a/attempt-1/out/ep2.mp4" in told
    rows = (run / "report/episodes.csv").read_text()
    assert "sessions/b_a/attempt-1/out/ep1.mp4" in rows, rows
    assert json.loads((run / "plan-1.json").read_text())["sessions"][0]["results"]["videos"] == ["*.mp4"]
