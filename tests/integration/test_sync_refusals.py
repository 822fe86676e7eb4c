"""What `sync` refuses and never touches: links that lead out, files in the way, streams that are cut or wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from box import until
from shipping_desk import Desk, desk, receive

from comborun.errors import HostError, UserError
from comborun.grid.keys.launch import SyncKeys
from comborun.remote.shipping import compare_files, deliver, stream, survey

__all__ = ["desk"]


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../outside", "sub/../../outside", "sub/out/../here/x", "../here/x", "HERE/x"]
)
def test_a_link_that_leads_out_is_refused(desk: Desk, target: str) -> None:
    (desk.here / "sub").mkdir()
    (desk.here / "sub/out").symlink_to("/etc")
    desk.put("x")
    (desk.here / "link").symlink_to(target.replace("HERE", str(desk.here)))
    with pytest.raises(UserError, match="outside of what is shipped"):
        desk.shipments("out")


def test_what_is_no_file_is_refused(desk: Desk) -> None:
    os.mkfifo(desk.here / "pipe")
    with pytest.raises(UserError, match="neither a file nor a folder nor a link"):
        desk.shipments()
    assert desk.shipments("pipe")[0].items == ()


def test_nothing_is_written_through_a_link_of_the_host(desk: Desk, tmp_path: Path) -> None:
    desk.put("data/deep/x")
    (tmp_path / "elsewhere").mkdir()
    desk.there.mkdir()
    (desk.there / "data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"there/data is a link, and nothing is written through it") as refused:
        compare_files(desk.transport, desk.shipments())
    assert "nothing is deleted on the host" in refused.value.hint
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize(
    ("theirs", "why"),
    [("a/", "there/a is a folder"), ("d", "there/d is not a folder"), ("a pipe", "there/a is not a file")],
)
def test_what_is_in_the_way_is_named_and_left_alone(desk: Desk, theirs: str, why: str) -> None:
    desk.put("a")
    desk.put("d/x")
    desk.there.mkdir()
    if theirs == "a pipe":
        os.mkfifo(desk.there / "a")
    elif theirs.endswith("/"):
        (desk.there / theirs).mkdir()
    else:
        (desk.there / theirs).write_text("theirs")
    with pytest.raises(UserError, match=why):
        compare_files(desk.transport, desk.shipments())


def test_a_link_of_the_host_at_a_files_place_is_replaced_and_not_followed(desk: Desk, tmp_path: Path) -> None:
    desk.put("x", "mine\n")
    desk.there.mkdir()
    (tmp_path / "theirs").write_text("theirs\n")
    (desk.there / "x").symlink_to(tmp_path / "theirs")
    desk.ship()
    assert (desk.there / "x").read_text() == "mine\n"
    assert (tmp_path / "theirs").read_text() == "theirs\n"


@pytest.mark.parametrize("path", ["../out", "/etc/out", "a/../../out", "", ".."])
def test_no_path_of_a_stream_leads_out(desk: Desk, path: str) -> None:
    entry = {"folder": str(desk.there), "path": path, "mode": 0o644, "size": 0, "sha256": ""}
    done = receive(desk.root, json.dumps([entry]).encode() + b"\n")
    assert (done.code, "leads elsewhere" in done.complaint) == (65, True)
    assert not (desk.there.parent / "out").exists()


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.9999])
def test_a_stream_that_is_cut_leaves_nothing_and_changes_nothing(desk: Desk, share: float) -> None:
    desk.put("a", "old\n")
    desk.ship()
    desk.put("a", "new\n")
    desk.put("sub/b", b"b" * 5000)
    data = stream(compare_files(desk.transport, desk.shipments()))
    cut = data[: int(len(data) * share)]
    done = receive(desk.root, cut)
    assert done.code
    assert desk.arrived() == {"a": b"old\n"}


def test_one_wrong_byte_on_the_way_changes_nothing(desk: Desk) -> None:
    desk.put("a", "one\n")
    desk.put("b", "two\n")
    data = stream(compare_files(desk.transport, desk.shipments())).replace(b"two\n", b"twO\n")
    done = receive(desk.root, data)
    assert (done.code, done.complaint) == (76, "sync: the data arrived changed: nothing was changed")
    assert desk.arrived() == {}


def test_the_next_launch_clears_away_what_a_killed_one_left(desk: Desk) -> None:
    desk.put("sub/a", b"a" * 100_000)
    data = stream(compare_files(desk.transport, desk.shipments()))
    host = [sys.executable, "-c", "import sys; from comborun.host.verbs.sync import main; main(sys.argv[1:])"]
    process = subprocess.Popen(
        [*host, "receive", desk.root], stdin=subprocess.PIPE, start_new_session=True, cwd=Path(__file__).parents[2]
    )
    assert process.stdin
    process.stdin.write(data[:50_000])
    process.stdin.flush()
    until(lambda: list(desk.there.glob("sub/.comborun-sync-*")), "a draft is there")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdin.close()
    assert not (desk.there / "sub/a").exists()
    desk.ship()
    assert sorted(desk.arrived()) == ["sub/a"]


def test_more_than_the_limit_is_refused_with_the_largest_named(desk: Desk) -> None:
    desk.put("small")
    desk.put("model.pt", b"m" * 3000)
    with pytest.raises(UserError, match=r"holds 2.93 KiB, and max_size is 1.95 KiB") as refused:
        desk.shipments(max_size=2000)
    assert "model.pt (2.93 KiB)" in refused.value.hint
    assert desk.shipments("*.pt", max_size=2000)


def test_what_is_not_there_is_told(desk: Desk) -> None:
    with pytest.raises(UserError, match="there is no scripts"):
        survey([SyncKeys.model_construct(source="scripts", to="~/x")], desk.here)


def test_two_entries_may_meet_but_not_differ(desk: Desk) -> None:
    desk.put("a/x", "1\n")
    desk.put("b/x", "2\n")
    entries = [SyncKeys.model_construct(source="a", to="~/there"), SyncKeys.model_construct(source="b", to="~/there/")]
    with pytest.raises(UserError, match="both ship ~/there/x, and differ"):
        survey(entries, desk.here)
    desk.put("b/x", "1\n")
    assert len(survey(entries, desk.here)) == 2


def test_a_file_that_changes_meanwhile_is_not_sent(desk: Desk) -> None:
    desk.put("a", "one\n")
    deliveries = compare_files(desk.transport, desk.shipments())
    desk.put("a", "two\n")
    with pytest.raises(UserError, match="changes while it is shipped"):
        deliver(desk.transport, deliveries, str(desk.root))


def test_a_place_that_can_not_be_written_is_told(desk: Desk) -> None:
    desk.put("a")
    deliveries = compare_files(desk.transport, desk.shipments(to="/proc/nothing"))
    with pytest.raises(HostError) as failed:
        deliver(desk.transport, deliveries, str(desk.root))
    assert failed.value.hint.startswith("sync: there is no folder /proc/nothing, and none can be made")
