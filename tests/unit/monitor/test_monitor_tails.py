"""Logs that try to look like something else: the declared sizes decide, not what the bytes say."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from monitor_stage import Seen, a_tail

from monitor.answer.tails import split_tails

TAIL = 400
RUN = "/home/u/comborun/walkers-1"


def split(*seen: Seen, stream: bytes | None = None) -> list[bytes | None]:
    sizes = {path(one): len(one.log or b"") for one in seen}
    pieces = split_tails(a_tail(*seen) if stream is None else stream, sizes, dict.fromkeys(sizes, TAIL))
    return [pieces.get(path(one)) for one in seen]


def path(one: Seen) -> str:
    return f"sessions/{one.session}/attempt-{one.attempt}/log"


def header(name: str) -> bytes:
    return f"==> {RUN}/sessions/{name}/attempt-1/log <==\n".encode()


LOG = st.one_of(
    st.binary(max_size=500),
    st.lists(
        st.sampled_from([b"\n", b"x", header("a_b"), header("c_d"), header("e_f"), b"tails\n", b"==> ", b"\r50%"])
    ).map(b"".join),
)


@given(st.tuples(LOG, LOG, LOG))
def test_every_log_gets_exactly_its_own_last_bytes(logs: tuple[bytes, bytes, bytes]) -> None:
    seen = [Seen(name, log=log) for name, log in zip(("a_b", "c_d", "e_f"), logs, strict=True)]
    assert split(*seen) == [log[-TAIL:] for log in logs]


def test_a_log_that_has_grown_since_it_was_measured_shows_what_it_grew_by() -> None:
    before = (Seen("a_b", log=b"one\n"), Seen("c_d", log=b"three\n"))
    after = a_tail(Seen("a_b", log=b"one\ntwo\n"), Seen("c_d", log=b"three\nfour\n"))
    assert split(*before, stream=after) == [b"one\ntwo\n", b"three\nfour\n"]


def test_a_log_that_was_cut_shorter_since_does_not_swallow_its_neighbour() -> None:
    before = (Seen("a_b", log=b"x" * 300), Seen("c_d", log=b"y" * 200))
    after = a_tail(Seen("a_b", log=b"x"), Seen("c_d", log=b"y" * 200))
    assert split(*before, stream=after) == [b"x", b"y" * 200]


def test_a_log_that_could_not_be_read_is_left_out() -> None:
    seen = (Seen("a_b", log=b"one"), Seen("c_d", log=b"two"), Seen("e_f", log=b"three"))
    assert split(*seen, stream=a_tail(seen[0], seen[2])) == [b"one", None, b"three"]


def test_a_run_in_a_folder_with_blanks_and_relative_paths_are_understood() -> None:
    seen = Seen("a_b", log=b"one")
    sizes = {path(seen): 3}
    assert split_tails(a_tail(seen, run="/home/a user/my runs/r"), sizes, {path(seen): TAIL}) == {path(seen): b"one"}
    assert split_tails(b"==> " + path(seen).encode() + b" <==\none", sizes, {path(seen): TAIL}) == {path(seen): b"one"}


@given(st.binary(max_size=600))
@example(b"x" * 600)
def test_any_bytes_are_split_without_complaint(stream: bytes) -> None:
    pieces = split(Seen("a_b", log=b"x" * 50), Seen("c_d", log=b""), stream=header("a_b") + stream)
    assert all(piece is None or len(piece) <= TAIL for piece in pieces)
