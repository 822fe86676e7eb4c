"""The host's fetch and the mirror together, over a transport that is real and is counted."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from fetched_run import Link, Run, contents, get, mirror, run
from recorded import queue_rows

from comborun.errors import HostError
from comborun.remote import library
from comborun.remote.fetch import Fetched, fetch
from comborun.remote.transport import LocalTransport

__all__ = ["mirror", "run"]


OLD = 1_700_000_000


def test_a_mirror_has_the_records_and_results_and_nothing_else(run: Run, mirror: Path) -> None:
    run.end("e_p")
    run.put("sessions/e_p/attempt-1/out/video.mp4", b"\0" * 1000)
    run.put("sessions/e_p/attempt-1/out/.draft.jsonl", "half")
    run.put("sessions/e_p/lock")
    run.put("dispatch/done", '{"at": 1}\n')
    link = Link()
    fetched = get(run, mirror, link)
    assert contents(mirror) == run.files("video.mp4", ".draft.jsonl")
    assert fetched == Fetched(len(contents(mirror)), sum(map(len, contents(mirror).values())))
    assert len(link.sent) == 1


def test_the_second_time_nothing_travels(run: Run, mirror: Path) -> None:
    run.attempt("e_q", {"a.jsonl": "{}\n"})
    run.end("e_p")
    get(run, mirror)
    link = Link()
    assert get(run, mirror, link) == Fetched(0, 0)
    assert (len(link.received), link.received[0] < 100) == (1, True)


def test_eight_hundred_sessions_that_have_ended_cost_one_small_round_trip(run: Run, mirror: Path) -> None:
    for number in range(800):
        name = f"environment-{number}_policy"
        at = f"sessions/{name}/attempt-1"
        run.names.append(name)
        run.put(f"{at}/claim", '{"count": 1, "files": ["*.jsonl"]}\n')
        run.put(f"{at}/out/a.jsonl", f'{{"episode": {number}}}\n')
        run.put(f"{at}/end", '{"cause": "exited"}\n')
    run.put("dispatch/queue.jsonl", queue_rows(**dict.fromkeys(run.names, "")))
    first = Link()
    assert get(run, mirror, first).files >= 2400
    assert len(first.sent) == 1
    link = Link()
    before = time.monotonic()
    assert get(run, mirror, link).files == 0
    assert time.monotonic() - before < 10
    asked = link.sent[0] - len(library.packed("fetch"))
    assert (len(link.sent), asked < 100_000, link.received[0] < 100) == (1, True, True)


NAMES = (
    "new\nline.jsonl",
    'it\'s "$(touch x)" `id` \\.jsonl',
    "$x [a] *?.jsonl",
    "%0A%25.jsonl",
    "-n.jsonl",
    "ä .jsonl",
    "\udcff\udcfe.jsonl",
)


def test_any_name_and_any_bytes_arrive_unchanged(run: Run, mirror: Path) -> None:
    files = {name: bytes(range(256)) * 9 + b"\0over 0\0" for name in NAMES}
    run.attempt("e_q", files | {f"deep/{name}": b"" for name in NAMES}, rules="**/*.jsonl|*.jsonl")
    for growing in (False, True):
        for name in NAMES if growing else ():
            with (run.path / "sessions/e_q/attempt-1/out" / name).open("ab") as file:
                file.write(b"\r\n\0more")
        get(run, mirror)
        # an empty file is no result
        assert contents(mirror) == {path: data for path, data in run.files().items() if "/out/deep/" not in path}
        assert get(run, mirror) == Fetched(0, 0)
    run.end("e_q")
    get(run, mirror)
    link = Link()
    assert get(run, mirror, link).files == 0
    assert len(link.sent) == 1


def test_of_a_file_that_grows_only_the_new_bytes_travel(run: Run, mirror: Path) -> None:
    result = run.put("sessions/e_p/attempt-1/out/a.jsonl", b"x" * 100_000)
    get(run, mirror)
    with result.open("ab") as file:
        file.write(b"{}\n")
    with (run.path / "dispatch/events.jsonl").open("a") as file:
        file.write("2.0 more\n")
    assert get(run, mirror) == Fetched(2, 12)
    assert contents(mirror) == run.files()


@pytest.mark.parametrize(
    "content", ["y" * 2000, '{"episode": 1}\n', "{}\n"], ids=["longer", "of the same size", "shorter"]
)
def test_a_file_that_was_written_anew_comes_whole(run: Run, mirror: Path, content: str) -> None:
    run.end("e_p")
    get(run, mirror)
    os.utime(run.put("sessions/e_p/attempt-1/out/a.jsonl", content), (OLD, OLD))
    assert get(run, mirror).files == 1
    assert contents(mirror) == run.files()


def test_new_attempts_and_an_after_session_are_found(run: Run, mirror: Path) -> None:
    run.end("e_p")
    get(run, mirror)
    run.attempt("e_p", {"a.jsonl": "{}\n"}, number=2)
    run.attempt("after", {}, rules="")
    run.end("after")
    get(run, mirror)
    assert contents(mirror) == run.files()


def test_a_folder_that_is_no_run_is_told(run: Run, mirror: Path, tmp_path: Path) -> None:
    with pytest.raises(HostError, match="could not be fetched"):
        fetch(LocalTransport(), str(tmp_path), mirror)
    (run.path / "id").unlink()
    with pytest.raises(HostError) as caught:
        fetch(LocalTransport(), str(run.path), mirror)
    assert "is not a run directory" in caught.value.hint
