"""`sync`: the user's own files arrive whole, in LF, with their modes, once; nothing else on the host is touched."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest
from shipping_desk import Counting, Desk, desk

from comborun.errors import UserError
from comborun.grid.keys.launch import SyncKeys
from comborun.remote.shipping import compare_files, deliver, shipped_lines, stream, survey
from comborun.remote.transport import LocalTransport
from comborun.text import MIB

__all__ = ["desk"]


ARRIVES = (
    (b"a\r\nb\r\n", b"a\nb\n"),
    (b"a\rb\n", b"a\rb\n"),
    (b"\r", b"\r"),
    ("ü\r\n".encode(), "ü\n".encode()),
    (b"\x89PNG\r\n\x1a\n\0\0", b"\x89PNG\r\n\x1a\n\0\0"),
    (b"ply\r\nend_header\r\n" + b"\xff\xfe\r\n", b"ply\r\nend_header\r\n" + b"\xff\xfe\r\n"),
    (b"a" * 9000 + b"\r\n\0", b"a" * 9000 + b"\r\n\0"),
    (b"\r\n" * (1 << 20) + b"z", b"\n" * (1 << 20) + b"z"),
    (b"x" * ((1 << 20) - 1) + b"\r\n", b"x" * ((1 << 20) - 1) + b"\n"),
    (b"ok\r\n" + "ü".encode()[:1], b"ok\r\n" + "ü".encode()[:1]),
    (b"", b""),
)


def test_only_in_text_does_crlf_become_lf(desk: Desk) -> None:
    for number, (content, _) in enumerate(ARRIVES):
        desk.put(f"f{number}", content)
    desk.transport = Counting()
    deliveries = compare_files(desk.transport, desk.shipments(max_size=16 * MIB))
    deliver(desk.transport, deliveries, str(desk.root))
    for number, (_, arrives) in enumerate(ARRIVES):
        assert (desk.there / f"f{number}").read_bytes() == arrives


def test_modes_are_kept_but_for_the_right_of_others_to_write(desk: Desk) -> None:
    for name, mode in {"a.sh": 0o755, "b": 0o644, "key": 0o600, "wide": 0o777}.items():
        desk.put(name, mode=mode)
    desk.ship()
    modes = {path.name: path.stat().st_mode & 0o777 for path in desk.there.iterdir()}
    assert modes == {"a.sh": 0o755, "b": 0o644, "key": 0o600, "wide": 0o755}


def test_only_what_changed_travels_the_second_time(desk: Desk) -> None:
    desk.put("big", b"b" * 200_000)
    desk.put("small", "one\r\n")
    desk.put("mode", "same\n")
    desk.ship()
    assert desk.transport.sent[1] > 200_000
    inode = (desk.there / "big").stat().st_ino
    assert desk.ship() == (f". -> {desk.there}: 3 files, nothing had changed", "CRLF became LF in small")
    assert len(desk.transport.sent) == 3, "nothing to send is one round trip"
    desk.put("small", "two\r\n")
    desk.put("mode", "same\n", 0o755)
    desk.ship()
    assert len(desk.transport.sent) == 5
    assert desk.transport.sent[4] - desk.transport.sent[3] < 500, "but for the program"
    assert (desk.there / "big").stat().st_ino == inode
    assert desk.arrived() == {"big": b"b" * 200_000, "small": b"two\n", "mode": b"same\n"}
    assert os.access(desk.there / "mode", os.X_OK)


def test_what_was_edited_on_the_host_comes_back_and_what_is_only_there_stays(desk: Desk) -> None:
    desk.put("src/a.py", "a\n")
    desk.ship()
    (desk.there / "src/a.py").write_text("edited")
    (desk.there / "src/theirs.py").write_text("theirs")
    desk.ship()
    assert desk.arrived() == {"src/a.py": b"a\n", "src/theirs.py": b"theirs"}


def test_names_with_anything_in_them_survive(desk: Desk) -> None:
    names = ["a b", "it's", 'q"q', "new\nline", "back\\slash", "$HOME `x` *", "-rf", "ümläut 走", "tab\t", "'", "\x7f"]
    raw = os.fsdecode(b"not \xff utf-8")
    for name in [*names, raw]:
        desk.put(f"folder {name}/{name}", name.encode("utf-8", "surrogateescape"))
    told = desk.ship()
    assert desk.arrived() == {f"folder {n}/{n}": os.fsencode(n) for n in [*names, raw]}
    assert desk.ship()[0].endswith("12 files, nothing had changed"), told


def test_what_is_excluded_stays_here(desk: Desk) -> None:
    kept = ["a.py", "src/b.py", "results.txt"]
    left = [".git/config", "src/__pycache__/b.pyc", "x.pyc", ".venv/bin/python", "web/node_modules/m.js"]
    left += [".DS_Store", "src/._a.py", ".idea/workspace.xml", "src/.ipynb_checkpoints/a.ipynb", "src/.a.py.swp"]
    asked = ["src/deep/model.pt", "results/1.csv", "results/more/2.csv", "notes/x"]
    for name in [*kept, *left, *asked]:
        desk.put(name)
    desk.ship("*.pt", "results/*.csv", "notes/")
    assert sorted(desk.arrived()) == sorted(kept)


def test_a_link_that_stays_inside_is_a_link_there(desk: Desk) -> None:
    desk.put("data/file")
    (desk.here / "latest").symlink_to("data/file")
    (desk.here / "data/up").symlink_to("../data/")
    (desk.here / "endless").symlink_to("endless")
    desk.ship()
    assert (desk.there / "latest").readlink() == Path("data/file")
    assert os.readlink(desk.there / "data/up") == "../data/"  # noqa: PTH115 - with its slash
    assert (desk.there / "endless").readlink() == Path("endless")
    assert desk.ship()[0].endswith("nothing had changed")
    (desk.here / "latest").unlink()
    (desk.here / "latest").symlink_to("data")
    desk.ship()
    assert (desk.there / "latest").readlink() == Path("data")


def test_the_place_itself_may_be_behind_a_link(desk: Desk, tmp_path: Path) -> None:
    desk.put("x")
    (tmp_path / "disk").mkdir()
    desk.there.symlink_to(tmp_path / "disk")
    desk.ship()
    assert (tmp_path / "disk/x").is_file()


def test_files_that_are_where_they_should_go_are_not_touched(desk: Desk) -> None:
    script = desk.put("run.sh", "echo\r\n")
    deliveries = compare_files(LocalTransport(), desk.shipments(to=str(desk.here)))
    deliver(LocalTransport(), deliveries, str(desk.root))
    assert script.read_bytes() == b"echo\r\n"
    assert list(shipped_lines(deliveries)) == [f". -> {desk.here}: 1 file, they are there already"]
    with pytest.raises(UserError, match="would be shipped into itself"):
        compare_files(LocalTransport(), desk.shipments(to=f"{desk.here}/copy"))


def test_a_file_goes_to_its_new_name_or_into_a_folder(desk: Desk) -> None:
    desk.put("a.py", "a\n")
    entries = [SyncKeys.model_construct(source="a.py", to=f"{desk.there}/{to}") for to in ("b.py", "sub/")]
    deliver(desk.transport, compare_files(desk.transport, survey(entries, desk.here)), str(desk.root))
    assert desk.arrived() == {"b.py": b"a\n", "sub/a.py": b"a\n"}


def test_a_big_file_is_held_in_memory_twice_at_most(desk: Desk) -> None:
    size = 64 * MIB
    desk.put("big", b"\xff" * size)
    shipments = desk.shipments(max_size=2 * size)
    deliveries = compare_files(desk.transport, shipments)
    tracemalloc.start()
    try:
        data = stream(deliveries)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(data) > size
    assert peak < 2.1 * size


def test_the_digest_is_of_paths_modes_and_bytes(desk: Desk) -> None:
    desk.put("a", "1\n")
    digests = [desk.shipments()[0].digest]
    for change in ({"content": "2\n"}, {"content": "1\n", "mode": 0o755}):
        desk.put("a", **change)  # type: ignore[arg-type]
        digests.append(desk.shipments()[0].digest)
    desk.put("a", "1\r\n")
    assert desk.shipments()[0].digest == digests[0], "as it is shipped"
    desk.put("b")
    assert len({*digests, desk.shipments()[0].digest}) == 4
