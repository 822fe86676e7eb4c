"""What is told to host/verbs/fetch.py and what is made of its answer; no processes here."""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comborun.errors import HostError, UserError
from comborun.remote.fetch import Fetched, FetchOptions, fetch, mirror_directory
from comborun.remote.mirror import Mirror, Skipped, parse_answer, safe_path
from comborun.remote.transport import Completed
from comborun.text import GIB, MIB

ID = PurePosixPath("id")
RESULT = PurePosixPath("sessions/e_p/attempt-1/out/a.jsonl")
END = PurePosixPath("sessions/e_p/attempt-1/end")
DONE = PurePosixPath("dispatch/done")


def announced(path: PurePosixPath | str, content: bytes, start: int = 0, changed: int = 5) -> tuple[list[Any], bytes]:
    total = hashlib.sha256(content).hexdigest()
    return [str(path), len(content), changed, start, len(content) - start, total], content[start:]


def batch(*files: tuple[PurePosixPath | str, bytes]) -> list[tuple[list[Any], bytes]]:
    return [announced(path, content) for path, content in files]


def stream(*pieces: tuple[list[Any], bytes], **said: Any) -> bytes:
    head = {"pieces": [head for head, _ in pieces], "gone": [], "skipped": [], "more": False}
    return json.dumps(head | said).encode() + b"\n" + b"".join(data for _, data in pieces)


def wrong(path: PurePosixPath, content: bytes, arrives: bytes) -> tuple[list[Any], bytes]:
    """A file that does not hold what its sum says."""
    assert len(content) == len(arrives)
    return announced(path, content)[0], arrives


class Host:
    """Answers with prepared streams, one per question, and keeps the questions."""

    host = "gpubox"

    def __init__(self, *answers: bytes, code: int = 0) -> None:
        self.answers = list(answers)
        self.code = code
        self.asked: list[bytes] = []

    def run(self, script: str, *args: str, stdin: bytes = b"", timeout: float = 60, limit: int = 64 * MIB) -> Completed:
        size, _, rest = stdin.partition(b"\n")  # of the program, which goes before
        self.asked.append(rest[int(size) :])
        return Completed(self.code, self.answers.pop(0), b"disk gone\n")


def contents(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file() and path.name != ".fetch.lock")
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    "name",
    [
        "sessions/e_p/attempt-1/out/../../../../../x",
        "sessions/e_p/attempt-1/out/.hidden/a.jsonl",
        "sessions/e_p/attempt-0/end",
        "sessions/../attempt-1/end",
        "sessions/e p/attempt-1/end",
        "run_parallel.sh",
        "dispatch/lock",
        "report/report.html",
    ],
)
def test_a_name_that_no_run_has_is_refused(name: str) -> None:
    with pytest.raises(HostError, match="no run has"):
        safe_path(name)


@pytest.mark.parametrize("leaf", ["a b.jsonl", "line\nend", "'\"$(x)`*", "täst/ä.json", "-n", "%0A", "a..b", "\\"])
def test_every_other_name_below_an_output_folder_is_fine(leaf: str) -> None:
    assert safe_path(f"sessions/e_p/attempt-12/out/{leaf}") == PurePosixPath("sessions/e_p/attempt-12/out", leaf)


@given(st.binary(max_size=60) | st.builds(lambda tail: b"sessions/e_p/attempt-1/out/" + tail, st.binary(max_size=40)))
def test_no_name_that_gets_through_leaves_the_run(name: bytes) -> None:
    try:
        path = safe_path(os.fsdecode(name))
    except HostError:
        return
    assert not path.is_absolute()
    assert ".." not in path.parts
    assert b"\0" not in name


@given(st.lists(st.binary(max_size=300), max_size=6), st.integers(0, 3000))
def test_any_bytes_survive_and_a_cut_leaves_only_whole_files(bodies: list[bytes], cut: int) -> None:
    files = [(PurePosixPath(f"plan-{number}.json"), body) for number, body in enumerate(bodies, 1)]
    whole = stream(*batch(*files))
    answer = parse_answer(whole)
    assert [(piece.path, piece.data) for piece in answer.pieces] == files
    assert answer.complete
    part = whole[: min(cut, len(whole) - 1)]
    answer = parse_answer(part)
    there = len(part) - len(whole.partition(b"\n")[0]) - 1
    assert answer.complete == (there >= sum(map(len, bodies)))
    assert [(piece.path, piece.data) for piece in answer.pieces] == files[: len(answer.pieces)]


@pytest.mark.parametrize(
    "head",
    [
        b"bash: no such file",
        b"[]",
        b"{}",
        b"[" * 100_000,
        stream(([], b"")),
        stream((["id", -1, 0, 0, 0, "-"], b"")),
        stream((["id", 1 << 70, 0, 0, 1 << 70, "-"], b"")),
        stream((["id", 1, 0, 0, 1, "x"], b"")),
        stream(gone=7),
        stream(skipped=[1]),
    ],
)
def test_what_is_no_answer_is_told_as_that(head: bytes) -> None:
    with pytest.raises(HostError, match=r"can't be read"):
        parse_answer(head.rstrip(b"\n") + b"\n")


def test_a_cut_off_answer_is_an_error_and_whole_files_stay(tmp_path: Path) -> None:
    answer = stream(*batch((ID, b"run-1\n"), (RESULT, b"{}\n" * 40)))
    with pytest.raises(HostError, match="cut off") as caught:
        fetch(Host(answer[:-30], code=1), "/run", tmp_path)
    assert caught.value.hint == "disk gone"
    assert contents(tmp_path) == {"id": b"run-1\n"}


def test_a_file_that_is_not_what_was_announced_is_asked_for_again_and_its_end_waits(tmp_path: Path) -> None:
    broken = wrong(RESULT, b"right\n", b"wrong\n")
    first = stream(broken, *batch((END, b"e=1\n"), (DONE, b"at=1\n")))
    host = Host(first, stream(*batch((RESULT, b"right\n"))), stream())
    fetch(host, "/run", tmp_path)
    assert json.loads(zlib.decompress(host.asked[1]))["again"] == {str(RESULT): "whole"}
    assert contents(tmp_path) == {str(RESULT): b"right\n"}, "the end came before its results, so it was not taken"


def test_a_file_that_never_holds_still_is_told_and_neither_end_nor_done_is_taken(tmp_path: Path) -> None:
    answer = stream(wrong(RESULT, b"right\n", b"wrong\n"), *batch((END, b"e=1\n"), (DONE, b"at=1\n")))
    host = Host(answer, answer, answer, stream())
    fetched = fetch(host, "/run", tmp_path)
    assert fetched == Fetched(0, 18, (Skipped(RESULT, "it kept changing while it was copied"),))
    assert len(host.asked) == 3
    assert contents(tmp_path) == {}


def test_new_bytes_are_put_behind_the_old_ones_only_if_both_together_are_right(tmp_path: Path) -> None:
    fetch(Host(stream(*batch((RESULT, b"one\n")))), "/run", tmp_path)
    grown = stream(announced(RESULT, b"one\ntwo\n", start=4))
    assert fetch(Host(grown), "/run", tmp_path) == Fetched(1, 4)
    assert contents(tmp_path) == {str(RESULT): b"one\ntwo\n"}
    other = announced(RESULT, b"eins\nzwo\ndrei\n", start=8)
    host = Host(stream(other), stream(*batch((RESULT, b"eins\nzwo\ndrei\n"))))
    fetch(host, "/run", tmp_path)
    assert contents(tmp_path) == {str(RESULT): b"eins\nzwo\ndrei\n"}


def test_a_host_that_promises_more_and_sends_nothing_is_not_asked_for_ever(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="sends nothing"):
        fetch(Host(stream(more=True)), "/run", tmp_path)


def test_nothing_is_written_through_a_link_out_of_the_mirror(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "m").mkdir()
    (tmp_path / "m/sessions").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="leads out"):
        fetch(Host(stream(*batch((RESULT, b"{}\n")))), "/run", tmp_path / "m")
    assert not [path for path in (tmp_path / "elsewhere").rglob("*") if path.is_file()]


def test_no_more_is_brought_than_the_user_allows_and_what_came_stays(tmp_path: Path) -> None:
    files = batch((ID, b"run-1\n"), (RESULT, b"x" * 9000))
    with pytest.raises(
        UserError, match=r"are more than 9.77 KiB, .* next file is sessions/e_p/attempt-1/out/a.jsonl"
    ) as caught:
        fetch(Host(stream(*files)), "/run", tmp_path, FetchOptions(most=10_000))
    assert "--max-size" in caught.value.hint
    assert contents(tmp_path) == {"id": b"run-1\n"}
    fetch(Host(stream(*files)), "/run", tmp_path, FetchOptions(most=20_000))
    fetch(Host(stream(*files)), "/run", tmp_path, FetchOptions(most=20_000))


@pytest.mark.parametrize(("other", "files"), [(True, MIB // 4096), (False, 1)])
def test_a_host_that_sends_small_files_or_the_same_one_for_ever_is_stopped(
    tmp_path: Path, other: bool, files: int
) -> None:
    class Endless:
        host = "gpubox"
        count = 0

        def run(self, script: str, *args: str, **_: Any) -> Completed:
            self.count += 1
            path = RESULT.with_name(f"{self.count}.jsonl") if other else RESULT
            return Completed(0, stream(announced(path, b"x", changed=self.count), more=True), b"")

    with pytest.raises(UserError, match="are more than"):
        fetch(Endless(), "/run", tmp_path, FetchOptions(most=MIB))
    assert len(contents(tmp_path)) == files


def test_some_of_the_disk_is_left_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=GIB // 2 + 100))
    with pytest.raises(UserError, match=r"would leave less than 512 MiB"):
        fetch(Host(stream(*batch((RESULT, b"x" * 200)))), "/run", tmp_path)
    assert contents(tmp_path) == {}


def test_a_result_that_becomes_a_folder_and_a_file_again_is_brought(tmp_path: Path) -> None:
    inside = RESULT / "part.jsonl"
    fetch(Host(stream(*batch((RESULT, b"one\n")))), "/run", tmp_path)
    fetch(Host(stream(*batch((inside, b"two\n")))), "/run", tmp_path)
    assert (tmp_path / inside).read_bytes() == b"two\n"
    fetch(Host(stream(*batch((RESULT, b"three\n")))), "/run", tmp_path)
    assert (tmp_path / RESULT).read_bytes() == b"three\n"
    kept = sorted(path.read_bytes() for path in (tmp_path / RESULT).parent.rglob(".was-*") if path.is_file())
    assert kept == [b"one\n"], "nothing that came is lost"


def test_a_mirror_lies_with_the_users_data_below_a_clean_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert mirror_directory("ada@gpubox:2222", "grid-1") == Path("/data/comborun/ada-gpubox-2222/grid-1")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert mirror_directory("h", "grid-1") == Path.home() / ".local/share/comborun/h/grid-1"
    for run in ("..", "a/b", ""):
        with pytest.raises(HostError, match="not a run's name"):
            mirror_directory("h", run)


@pytest.mark.parametrize(("off", "kept"), [(-18000.0, -18000.0), (0.0, 0.0), (18000.0, 18000.0)])
def test_by_how_much_the_clock_of_the_host_is_wrong_is_kept_beside_the_copy(
    tmp_path: Path, off: float, kept: float
) -> None:
    fetch(Host(stream(*batch((ID, b"r\n")), now=time.time() + off)), "/r", tmp_path)
    assert Mirror(tmp_path).ahead == pytest.approx(kept, abs=5)
    for said in ({}, {"now": None}, {"now": "soon"}, {"now": float("nan")}, {"now": 10**400}):
        fetch(Host(stream(**said)), "/r", tmp_path)
        assert Mirror(tmp_path).ahead == pytest.approx(kept, abs=5)
