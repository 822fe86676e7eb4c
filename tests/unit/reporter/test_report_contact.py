"""The contact sheet: the last frames of failed episodes, in front of their videos."""

from __future__ import annotations

import re
from base64 import b64decode
from pathlib import Path

import pytest
from report_runs import row, write_rows

from comborun.reporter.pages.contact import MOST, last_frame
from comborun.reporter.report import report_folder

av = pytest.importorskip("av")


def film(path: Path, grey: int = 200, frames: int = 30) -> None:
    """A video that is black, and of this grey in its last frame."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(frames):
            frame = av.VideoFrame(64, 48, "gray")
            frame.planes[0].update(bytes([grey if number == frames - 1 else 0]) * frame.planes[0].buffer_size)
            for packet in stream.encode(frame.reformat(format="yuv420p")):
                container.mux(packet)
        for packet in stream.encode(None):
            container.mux(packet)


def brightness(jpeg: bytes) -> float:
    codec = av.CodecContext.create("mjpeg", "r")
    (frame,) = codec.decode(av.Packet(jpeg))
    plane = bytes(frame.reformat(format="gray").planes[0])
    return sum(plane) / len(plane)


def test_failed_episodes_are_shown_by_their_last_frame_and_link_to_their_videos(tmp_path: Path) -> None:
    for name in ("a b.mp4", "c.mp4"):
        film(tmp_path / "videos" / name)
    outside = tmp_path.parent / "outside.mp4"
    film(outside)
    rows = (
        row(0, success=False, video="videos/a b.mp4"),
        row(1, success=True, video="videos/c.mp4"),
        row(2, success=False, video="../outside.mp4"),
        row(3, success=False),
    )
    text = "".join(rows).replace('"episode"', '"policy": "flat", "environment": "stairs", "episode"')
    (tmp_path / "rows.jsonl").write_text(text)
    report_folder(tmp_path, tmp_path / "out")
    html = (tmp_path / "out" / "report.html").read_text()
    (link,) = re.findall(r'<li><a href="([^"]*)"><img alt="" src="data:image/jpeg;base64,', html)
    assert link == "../videos/a%20b.mp4"
    (picture,) = re.findall(r"base64,([^\"]+)", html)
    assert brightness(b64decode(picture)) > 150
    assert "1 video not on this machine" in html


def test_a_sheet_is_bounded_and_begins_with_one_episode_of_every_combo(tmp_path: Path) -> None:
    film(tmp_path / "v.mp4")
    rows = (
        row(index, policy=f"p{policy}", environment="e", success=False, video=f"v{policy}_{index}.mp4")
        for policy in range(5)
        for index in range(20)
    )
    write_rows(tmp_path / "rows.jsonl", rows)
    for policy in range(5):
        for index in range(20):
            (tmp_path / f"v{policy}_{index}.mp4").hardlink_to(tmp_path / "v.mp4")
    report_folder(tmp_path, tmp_path / "out")
    html = (tmp_path / "out" / "report.html").read_text()
    shown = re.findall(r">(p\d) × e, episode&nbsp;(\d+)</a>", html)
    assert shown[:6] == [("p0", "0"), ("p1", "0"), ("p2", "0"), ("p3", "0"), ("p4", "0"), ("p0", "1")]
    assert len(shown) == MOST
    assert "52 failed episodes with a video not shown" in html


@pytest.mark.parametrize("content", [b"", b"no video", b"\x00\x00\x00\x18ftypmp42" + b"\xff" * 500])
def test_what_is_no_video_has_no_frame(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "v.mp4").write_bytes(content)
    assert last_frame(tmp_path / "v.mp4") == b""
