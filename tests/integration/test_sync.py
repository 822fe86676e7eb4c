"""`sync`: the user's own files arrive whole, in LF, with their modes, once; nothing else on the host is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import tracemalloc
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from box import until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comborun.amounts import MIB
from comborun.errors import HostError, UserError
from comborun.grid import Shipped
from comborun.library import library_files
from comborun.transport import Completed
from remote.local import LocalTransport
from remote.shipping.survey import Shipment, survey
from remote.shipping.sync import compare, deliver, lines, stream

SYNC = library_files()["sync.sh"]


@dataclass
class Counting:
    """The local host, under another name, with what it was sent."""

    host: str = "box"
    sent: list[int] = field(default_factory=list)

    def run(
        self, script: str, *args: str, stdin: bytes = b"", timeout: float = 60.0, limit: int = 64 * MIB
    ) -> Completed:
        self.sent.append(len(stdin))
        return LocalTransport().run(script, *args, stdin=stdin, timeout=timeout, limit=limit)


@dataclass
class Desk:
    """A folder here and a folder there."""

    here: Path
    there: Path
    root: Path
    transport: Counting = field(default_factory=Counting)

    def put(self, name: str, content: bytes | str = "x\n", mode: int = 0o644) -> Path:
        path = self.here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(mode)
        return path

    def shipments(self, *exclude: str, max_size: int = MIB, to: str = "") -> tuple[Shipment, ...]:
        return survey([Shipped(".", to or str(self.there), exclude, max_size)], self.here)

    def ship(self, *exclude: str) -> tuple[str, ...]:
        """Ship it as a launch does; what is told of it."""
        deliveries = compare(self.transport, self.shipments(*exclude))
        deliver(self.transport, deliveries, str(self.root))
        return tuple(lines(deliveries))

    def arrived(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.there)): p.read_bytes() for p in self.there.rglob("*") if p.is_file()}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    for name in ("here", "runs"):
        (tmp_path / name).mkdir()
    return Desk(tmp_path / "here", tmp_path / "there", tmp_path / "runs")


def test_a_script_with_crlf_runs_on_the_host(desk: Desk) -> None:
    desk.put("run.sh", '#!/bin/bash\r\nset -euo pipefail\r\necho "ran $1"\r\n', 0o755)
    told = desk.ship()
    ran = subprocess.run([desk.there / "run.sh", "it"], capture_output=True, text=True, check=True)
    assert ran.stdout == "ran it\n"
    assert told[1] == "CRLF became LF in run.sh"


@pytest.mark.parametrize(
    ("content", "arrives"),
    [
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
    ],
)
def test_only_in_text_does_crlf_become_lf(desk: Desk, content: bytes, arrives: bytes) -> None:
    desk.put("f", content)
    desk.transport = Counting()
    deliveries = compare(desk.transport, desk.shipments(max_size=8 * MIB))
    deliver(desk.transport, deliveries, str(desk.root))
    assert (desk.there / "f").read_bytes() == arrives


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
    assert desk.transport.sent[4] < 500
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


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.text(st.characters(exclude_characters="\0/", exclude_categories=("Cs",)), min_size=1, max_size=20).filter(
            lambda name: (
                name not in {".", "..", ".git", "node_modules", ".venv", "__pycache__"} and not name.endswith(".pyc")
            )
        ),
        st.binary(max_size=300).filter(lambda content: b"\r\n" not in content),
        max_size=6,
    )
)
def test_any_files_arrive_byte_for_byte(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> None:
    base = tmp_path_factory.mktemp("any")
    desk = Desk(base / "here", base / "there", base)
    desk.here.mkdir()
    for name, content in files.items():
        desk.put(name, content)
    desk.ship()
    assert desk.arrived() == files


def test_what_is_excluded_stays_here(desk: Desk) -> None:
    kept = ["a.py", "src/b.py", "results.txt"]
    left = [".git/config", "src/__pycache__/b.pyc", "x.pyc", ".venv/bin/python", "web/node_modules/m.js"]
    asked = ["src/deep/model.pt", "results/1.csv", "results/more/2.csv", "notes/x"]
    for name in [*kept, *left, *asked]:
        desk.put(name)
    desk.ship("*.pt", "results/*.csv", "notes/")
    assert sorted(desk.arrived()) == sorted(kept)


def test_a_link_that_stays_inside_is_a_link_there(desk: Desk) -> None:
    desk.put("data/file")
    (desk.here / "latest").symlink_to("data/file")
    (desk.here / "data/up").symlink_to("../data/")
    desk.ship()
    assert (desk.there / "latest").readlink() == Path("data/file")
    assert os.readlink(desk.there / "data/up") == "../data/"  # noqa: PTH115 - with its slash
    assert desk.ship()[0].endswith("nothing had changed")
    (desk.here / "latest").unlink()
    (desk.here / "latest").symlink_to("data")
    desk.ship()
    assert (desk.there / "latest").readlink() == Path("data")


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


def test_a_link_with_no_end_is_shipped_as_it_is(desk: Desk) -> None:
    (desk.here / "a").symlink_to("a")
    desk.ship()
    assert (desk.there / "a").readlink() == Path("a")


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
        compare(desk.transport, desk.shipments())
    assert "nothing is deleted on the host" in refused.value.hint
    assert not list((tmp_path / "elsewhere").iterdir())


def test_the_place_itself_may_be_behind_a_link(desk: Desk, tmp_path: Path) -> None:
    desk.put("x")
    (tmp_path / "disk").mkdir()
    desk.there.symlink_to(tmp_path / "disk")
    desk.ship()
    assert (tmp_path / "disk/x").is_file()


@pytest.mark.parametrize(
    ("theirs", "why"), [("a/", "there/a is a folder"), ("d", "there/d is no folder"), ("a pipe", "there/a is no file")]
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
        compare(desk.transport, desk.shipments())


def test_a_link_of_the_host_at_a_files_place_is_replaced_and_not_followed(desk: Desk, tmp_path: Path) -> None:
    desk.put("x", "mine\n")
    desk.there.mkdir()
    (tmp_path / "theirs").write_text("theirs\n")
    (desk.there / "x").symlink_to(tmp_path / "theirs")
    desk.ship()
    assert (desk.there / "x").read_text() == "mine\n"
    assert (tmp_path / "theirs").read_text() == "theirs\n"


@pytest.mark.parametrize("path", [b"../out", b"/etc/out", b"a/../../out", b"", b".."])
def test_no_path_of_a_stream_leads_out(desk: Desk, path: bytes) -> None:
    data = b"folder " + bytes(desk.there) + b"\0file 644 0 0\0" + path + b"\0over\0"
    done = LocalTransport().run(f'{SYNC}\nsync::receive "$1"\n', str(desk.root), stdin=data)
    assert (done.code, "leads elsewhere" in done.complaint) == (65, True)
    assert not (desk.there.parent / "out").exists()


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.9999])
def test_a_stream_that_is_cut_leaves_nothing_and_changes_nothing(desk: Desk, share: float) -> None:
    desk.put("a", "old\n")
    desk.ship()
    desk.put("a", "new\n")
    desk.put("sub/b", b"b" * 5000)
    data = stream(compare(desk.transport, desk.shipments()))
    cut = data[: int(len(data) * share)]
    done = LocalTransport().run(f'{SYNC}\nsync::receive "$1"\n', str(desk.root), stdin=cut)
    assert done.code
    assert desk.arrived() == {"a": b"old\n"}


def test_one_wrong_byte_on_the_way_changes_nothing(desk: Desk) -> None:
    desk.put("a", "one\n")
    desk.put("b", "two\n")
    data = stream(compare(desk.transport, desk.shipments())).replace(b"two\n", b"twO\n")
    done = LocalTransport().run(f'{SYNC}\nsync::receive "$1"\n', str(desk.root), stdin=data)
    assert (done.code, done.complaint) == (76, "sync: what arrived is not what was sent: nothing was changed")
    assert desk.arrived() == {}


def test_the_next_launch_clears_away_what_a_killed_one_left(desk: Desk) -> None:
    desk.put("sub/a", b"a" * 100_000)
    data = stream(compare(desk.transport, desk.shipments()))
    process = subprocess.Popen(
        ["bash", "-c", f'{SYNC}\nsync::receive "$1"\n', "x", desk.root], stdin=subprocess.PIPE, start_new_session=True
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


def test_files_that_are_where_they_should_go_are_not_touched(desk: Desk) -> None:
    script = desk.put("run.sh", "echo\r\n")
    deliveries = compare(LocalTransport(), desk.shipments(to=str(desk.here)))
    deliver(LocalTransport(), deliveries, str(desk.root))
    assert script.read_bytes() == b"echo\r\n"
    assert list(lines(deliveries)) == [f". -> {desk.here}: 1 file, they are there already"]
    with pytest.raises(UserError, match="would be shipped into itself"):
        compare(LocalTransport(), desk.shipments(to=f"{desk.here}/copy"))


def test_a_file_goes_to_its_new_name_or_into_a_folder(desk: Desk) -> None:
    desk.put("a.py", "a\n")
    entries = [Shipped("a.py", f"{desk.there}/b.py"), Shipped("a.py", f"{desk.there}/sub/")]
    deliver(desk.transport, compare(desk.transport, survey(entries, desk.here)), str(desk.root))
    assert desk.arrived() == {"b.py": b"a\n", "sub/a.py": b"a\n"}


def test_home_is_the_hosts(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.put("x")
    monkeypatch.setenv("HOME", str(desk.there))
    shipments = desk.shipments(to="~/it's here")
    deliver(desk.transport, compare(desk.transport, shipments), str(desk.root))
    assert (desk.there / "it's here/x").is_file()


def test_more_than_the_limit_is_refused_with_the_largest_named(desk: Desk) -> None:
    desk.put("small")
    desk.put("model.pt", b"m" * 3000)
    with pytest.raises(UserError, match=r"holds 3 kB, and max_size is 2 kB") as refused:
        desk.shipments(max_size=2000)
    assert "model.pt (3 kB)" in refused.value.hint
    assert desk.shipments("*.pt", max_size=2000)


def test_what_is_not_there_is_told(desk: Desk) -> None:
    with pytest.raises(UserError, match="there is no scripts"):
        survey([Shipped("scripts", "~/x")], desk.here)


def test_two_entries_may_meet_but_not_differ(desk: Desk) -> None:
    desk.put("a/x", "1\n")
    desk.put("b/x", "2\n")
    entries = [Shipped("a", "~/there"), Shipped("b", "~/there/")]
    with pytest.raises(UserError, match="both ship ~/there/x, and differ"):
        survey(entries, desk.here)
    desk.put("b/x", "1\n")
    assert len(survey(entries, desk.here)) == 2


def test_a_file_that_changes_meanwhile_is_not_sent(desk: Desk) -> None:
    desk.put("a", "one\n")
    deliveries = compare(desk.transport, desk.shipments())
    desk.put("a", "two\n")
    with pytest.raises(UserError, match="changes while it is shipped"):
        deliver(desk.transport, deliveries, str(desk.root))


def test_a_place_that_can_not_be_written_is_told(desk: Desk) -> None:
    desk.put("a")
    deliveries = compare(desk.transport, desk.shipments(to="/proc/nothing"))
    with pytest.raises(HostError) as failed:
        deliver(desk.transport, deliveries, str(desk.root))
    assert failed.value.hint.endswith("can't make the folder /proc/nothing")


def test_a_big_file_is_held_in_memory_once(desk: Desk) -> None:
    size = 64 * MIB
    desk.put("big", b"\xff" * size)
    shipments = desk.shipments(max_size=2 * size)
    deliveries = compare(desk.transport, shipments)
    tracemalloc.start()
    try:
        data = stream(deliveries)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(data) > size
    assert peak < 1.3 * size


def test_hundreds_of_files_are_two_round_trips_and_then_one(desk: Desk) -> None:
    for number in range(300):
        desk.put(f"d{number % 10}/{number}.py", f"print({number})\n")
    desk.ship()
    desk.ship()
    assert len(desk.arrived()) == 300
    assert len(desk.transport.sent) == 3


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
