"""What is told to fetch.sh and what is made of its answer; no processes here."""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comborun.amounts import MIB
from comborun.errors import HostError, UserError
from comborun.transport import Completed
from remote.fetch.answer import Piece, Skipped, parse_answer, safe_path
from remote.fetch.request import Held, Request, digest
from remote.fetch.transfer import Fetched, fetch, mirror_directory

MARK = b"0123456789abcdef"
ID = PurePosixPath("id")
RESULT = PurePosixPath("sessions/e_p/attempt-1/out/a.jsonl")
END = PurePosixPath("sessions/e_p/attempt-1/end")
DONE = PurePosixPath("dispatch/done")


def announced(path: PurePosixPath | str, content: bytes, start: int = 0, changed: int = 5) -> bytes:
    total = hashlib.sha256(content).hexdigest()
    return f"file {len(content)},{changed},{start},{len(content) - start},{total} {path}\0".encode()


def batch(*files: tuple[PurePosixPath | str, bytes]) -> bytes:
    heads = b"".join(announced(path, content) for path, content in files)
    return heads + b"data\0" + b"".join(content for _, content in files) + MARK


def stream(*parts: bytes, over: bytes = b"over 0\0") -> bytes:
    return b"comborun-fetch 1\0" + b"".join(parts) + over


class Host:
    """Answers with prepared streams, one per question, and keeps the questions."""

    host = "gpubox"

    def __init__(self, *answers: bytes, code: int = 0) -> None:
        self.answers = list(answers)
        self.code = code
        self.asked: list[bytes] = []

    def run(self, script: str, *args: str, stdin: bytes = b"", timeout: float = 60, limit: int = 64 * MIB) -> Completed:
        self.asked.append(stdin)
        return Completed(self.code, self.answers.pop(0).replace(MARK, args[1].encode()), b"disk gone\n")


def contents(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file() and path.name != ".fetch.lock")
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    "name",
    [
        b"",
        b"/etc/passwd",
        b"..",
        b"../id",
        b"sessions/e_p/attempt-1/out/../../../../../x",
        b"sessions/e_p/attempt-1/out/a/./b",
        b"sessions/e_p/attempt-1/out//a",
        b"sessions/e_p/attempt-1/out/",
        b"sessions/e_p/attempt-1/out/.hidden/a.jsonl",
        b"sessions/e_p/attempt-0/end",
        b"sessions/e_p/attempt-1/begin/x",
        b"sessions/../attempt-1/end",
        b"sessions/e p/attempt-1/end",
        b"sessions/e_p/attempt-1/out/a\0b",
        b"id\n",
        b"run_parallel.sh",
        b"lib/fetch.sh",
        b"dispatch/lock",
        b"report/report.html",
    ],
)
def test_a_name_that_no_run_has_is_refused(name: bytes) -> None:
    with pytest.raises(HostError, match="no run has"):
        safe_path(name)


@pytest.mark.parametrize("leaf", ["a b.jsonl", "line\nend", "'\"$(x)`*", "täst/ä.json", "-n", "%0A", "a..b", "\\"])
def test_every_other_name_below_an_output_folder_is_fine(leaf: str) -> None:
    assert safe_path(f"sessions/e_p/attempt-12/out/{leaf}".encode()) == PurePosixPath(
        "sessions/e_p/attempt-12/out", leaf
    )


@given(st.binary(max_size=60) | st.builds(lambda tail: b"sessions/e_p/attempt-1/out/" + tail, st.binary(max_size=40)))
def test_no_name_that_gets_through_leaves_the_run(name: bytes) -> None:
    try:
        path = safe_path(name)
    except HostError:
        return
    assert not path.is_absolute()
    assert ".." not in path.parts
    assert b"\0" not in name


@given(st.lists(st.binary(max_size=300), max_size=6), st.integers(0, 2000))
def test_any_bytes_survive_the_frames_and_a_cut_leaves_only_whole_files(bodies: list[bytes], cut: int) -> None:
    files = [(PurePosixPath(f"plan-{number}.json"), body) for number, body in enumerate(bodies)]
    whole = stream(*(batch(file) for file in files))
    answer = parse_answer(whole, MARK)
    assert [(piece.path, piece.data) for piece in answer.pieces] == files
    assert answer.complete
    part = whole[: min(cut, len(whole) - 1)]
    if part.startswith(b"comborun-fetch 1\0"):
        answer = parse_answer(part, MARK)
        assert not answer.complete
        assert [(piece.path, piece.data) for piece in answer.pieces] == files[: len(answer.pieces)]


def test_a_batch_that_is_longer_or_shorter_than_announced_spoils_only_itself() -> None:
    for wrong in (b"has grown", b""):
        spoilt = announced("id", b"four") + announced("digest", b"x") + b"data\0" + wrong + MARK
        answer = parse_answer(stream(spoilt, batch((RESULT, b"{}\n"))), MARK)
        assert [(str(piece.path), piece.data) for piece in answer.pieces] == [
            ("id", None),
            ("digest", None),
            (str(RESULT), b"{}\n"),
        ]


@pytest.mark.parametrize(
    "answer",
    [b"", b"bash: no such file", b"comborun-fetch 2\0over 0\0", stream(b"what is this\0"), stream(b"file 1 x\0")],
)
def test_what_is_no_answer_is_told_as_that(answer: bytes) -> None:
    with pytest.raises(HostError, match=r"can't be read|nobody knows"):
        parse_answer(answer, MARK)


def test_links_and_files_that_are_not_sent_are_told_with_the_reason() -> None:
    told = b"".join(b"skipped %s %s\0" % (word, bytes(RESULT)) for word in (b"broken", b"unreadable", b"tired"))
    assert parse_answer(stream(told), MARK).skipped == (
        Skipped(RESULT, "a link that leads nowhere"),
        Skipped(RESULT, "can't be read: Permission denied"),
        Skipped(RESULT, "not sent"),
    )


@pytest.mark.parametrize("name", [b"/etc/passwd", b"sessions/e_p/attempt-1/out/../../x", b"\x1b[31m"])
def test_a_file_that_no_run_has_is_not_told_as_left_out_either(name: bytes) -> None:
    with pytest.raises(HostError, match="no run has"):
        parse_answer(stream(b"skipped broken " + name + b"\0"), MARK)


def test_one_digest_stands_for_all_attempts_that_have_their_end() -> None:
    open_end = PurePosixPath("sessions/e_q/attempt-2/begin")
    final = {RESULT: Held(9, 1_000_001), END: Held(5, 2_000_000)}
    held = {ID: Held(3, 7), open_end: Held(1, 1), **final}
    words = Request(held, ("e_p", "e_q"), {}).encode(trusting=True).split(b"\n")
    assert words[0] == b"known 1,0,0"
    assert words[1] == b"closed " + digest(final).encode()
    assert sorted(words[2:]) == sorted([b"have 3,7 id", b"have 1,1 " + bytes(open_end), b".", b""])
    told = Request(held, ("e_p", "e_q"), {}).encode(trusting=False)
    assert told.count(b"have ") == 4
    assert b"known" not in told


def test_the_digest_is_of_the_text_that_stat_prints() -> None:
    lines = b"5 2.000000 " + bytes(END) + b"\x009 1.000001 " + bytes(RESULT) + b"\0"
    held = {RESULT: Held(9, 1_000_001), END: Held(5, 2_000_000)}
    assert digest(held) == hashlib.sha256(lines).hexdigest()
    assert digest({ID: Held(1, -1_500_000)}) == hashlib.sha256(b"1 -1.500000 id\0").hexdigest()


def test_names_with_newlines_are_told_on_one_line() -> None:
    path = PurePosixPath("sessions/e_p/attempt-1/out/a\nb%0A.jsonl")
    piece = Piece(path, 10, 4, 0, "-", b"")
    request = Request({path: Held(1, 2)}, (), {path: "whole"}, (piece, 6)).encode(trusting=True)
    name = b"sessions/e_p/attempt-1/out/a%0Ab%250A.jsonl"
    assert request.split(b"\n") == [b"have 1,2 " + name, b"again whole " + name, b"part 6,10,4 " + name, b".", b""]


def test_what_was_sent_lies_in_the_mirror_with_its_time(tmp_path: Path) -> None:
    host = Host(stream(announced("id", b"run-1\n", changed=1_700_000_000_123_456) + b"data\0run-1\n" + MARK))
    assert fetch(host, "/run", tmp_path / "m") == Fetched(1, 6, 0)
    assert contents(tmp_path / "m") == {"id": b"run-1\n"}
    assert (tmp_path / "m/id").stat().st_mtime_ns == 1_700_000_000_123_456_000


def test_a_cut_off_answer_is_an_error_and_whole_files_stay(tmp_path: Path) -> None:
    answer = stream(batch((ID, b"run-1\n")), batch((RESULT, b"{}\n" * 40)), over=b"")
    with pytest.raises(HostError, match="cut off") as caught:
        fetch(Host(answer[:-30], code=1), "/run", tmp_path)
    assert caught.value.hint == "disk gone"
    assert contents(tmp_path) == {"id": b"run-1\n"}


def test_a_file_that_is_not_what_was_announced_is_asked_for_again_and_its_end_waits(tmp_path: Path) -> None:
    wrong = announced(RESULT, b"right\n") + b"data\0wrong\n" + MARK
    host = Host(stream(wrong, batch((END, b"e=1\n"), (DONE, b"at=1\n"))), stream(batch((RESULT, b"right\n"))), stream())
    fetch(host, "/run", tmp_path)
    assert b"again whole " + bytes(RESULT) in host.asked[1]
    assert contents(tmp_path) == {str(RESULT): b"right\n"}, "the end came before its results, so it was not taken"


def test_a_file_that_never_holds_still_is_told_and_neither_end_nor_done_is_taken(tmp_path: Path) -> None:
    wrong = stream(announced(RESULT, b"right\n") + b"data\0wrong\n" + MARK, batch((END, b"e=1\n"), (DONE, b"at=1\n")))
    host = Host(wrong, wrong, wrong, stream())
    fetched = fetch(host, "/run", tmp_path)
    assert fetched == Fetched(0, 18, 0, (Skipped(RESULT, "it does not hold still"),))
    assert len(host.asked) == 3
    assert contents(tmp_path) == {}


def test_the_old_version_stays_while_the_new_one_does_not_come_through(tmp_path: Path) -> None:
    fetch(Host(stream(batch((RESULT, b"old\n")))), "/run", tmp_path)
    wrong = stream(announced(RESULT, b"right\n") + b"data\0wrong\n" + MARK)
    fetch(Host(wrong, wrong, wrong), "/run", tmp_path)
    assert contents(tmp_path) == {str(RESULT): b"old\n"}


def test_new_bytes_are_put_behind_the_old_ones_only_if_both_together_are_right(tmp_path: Path) -> None:
    fetch(Host(stream(batch((RESULT, b"one\n")))), "/run", tmp_path)
    grown = stream(announced(RESULT, b"one\ntwo\n", start=4) + b"data\0two\n" + MARK)
    assert fetch(Host(grown), "/run", tmp_path) == Fetched(1, 4, 0)
    assert contents(tmp_path) == {str(RESULT): b"one\ntwo\n"}
    other = announced(RESULT, b"eins\nzwo\ndrei\n", start=8) + b"data\0" + b"\ndrei\n" + MARK
    host = Host(stream(other), stream(batch((RESULT, b"eins\nzwo\ndrei\n"))))
    fetch(host, "/run", tmp_path)
    assert contents(tmp_path) == {str(RESULT): b"eins\nzwo\ndrei\n"}


def test_what_the_dispatcher_took_back_goes_and_what_an_attempt_left_stays(tmp_path: Path) -> None:
    fetch(Host(stream(batch((DONE, b"at=1\n"), (RESULT, b"{}\n"), (END, b"x=1\n"), (ID, b"r\n")))), "/run", tmp_path)
    gone = b"".join(b"gone - %s\0" % bytes(path) for path in (DONE, RESULT, END, ID))
    assert fetch(Host(stream(gone)), "/run", tmp_path).kept == 2
    assert sorted(contents(tmp_path)) == sorted(map(str, (RESULT, END, ID)))


def test_a_host_that_promises_more_and_sends_nothing_is_not_asked_for_ever(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="sends nothing"):
        fetch(Host(stream(over=b"over 1\0")), "/run", tmp_path)


def test_a_host_without_the_script_is_told_by_its_complaint(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="could not be fetched") as caught:
        fetch(Host(b"", code=127), "/run", tmp_path)
    assert caught.value.hint == "disk gone"


def test_nothing_is_written_through_a_link_out_of_the_mirror(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "m").mkdir()
    (tmp_path / "m/sessions").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="leads out"):
        fetch(Host(stream(batch((RESULT, b"{}\n")))), "/run", tmp_path / "m")
    assert not [path for path in (tmp_path / "elsewhere").rglob("*") if path.is_file()]


def test_what_a_killed_fetch_left_is_cleared_away(tmp_path: Path) -> None:
    folder = (tmp_path / RESULT).parent
    folder.mkdir(parents=True)
    (folder / ".fetch-0123").write_text("half")
    fetch(Host(stream()), "/run", tmp_path)
    assert contents(tmp_path) == {}


def test_a_mirror_that_cannot_be_written_is_the_users_to_mend(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="can't be written"):
        fetch(Host(stream()), "/run", tmp_path / "file/mirror")


def test_a_mirror_lies_with_the_users_data_below_a_clean_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert mirror_directory("ada@gpubox:2222", "grid-1") == Path("/data/comborun/ada-gpubox-2222/grid-1")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert mirror_directory("h", "grid-1") == Path.home() / ".local/share/comborun/h/grid-1"
    for run in ("..", "a/b", ""):
        with pytest.raises(HostError, match="no run's name"):
            mirror_directory("h", run)
