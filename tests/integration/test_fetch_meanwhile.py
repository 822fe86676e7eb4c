"""A fetch while the run goes on: what ends, grows, vanishes or is fetched by another at the same time, and limits."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from fetched_run import Link, Run, contents, get, mirror, run
from prefaced import Prefaced

from comborun.errors import HostError
from comborun.monitor.observe import ANSWER_S
from comborun.remote import fetch as fetching
from comborun.remote.fetch import Fetched
from comborun.remote.mirror import Mirror
from comborun.remote.transport import Completed

__all__ = ["mirror", "run"]


def test_an_end_that_a_mirror_holds_means_that_its_results_are_there(run: Run, mirror: Path) -> None:
    """However the stream is cut: first the results, then the end, and `done` after all ends."""
    for number in range(4):
        run.attempt(f"s{number}_p", {f"{leaf}.jsonl": b"{}\n" * 500 for leaf in "ab"})
        run.end(f"s{number}_p")
    run.end("e_p")
    run.put("dispatch/done", '{"at": 1}\n')
    link = Link()
    get(run, mirror.with_name("whole"), link)
    for cut in range(16, link.received[0], 3989):
        here = mirror / str(cut)
        with pytest.raises(HostError, match=r"cut off|could not be fetched"):
            get(run, here, Link(cut))
        held = contents(here)
        assert held.items() <= run.files().items(), "whole files only"
        ends = [name for name in held if name.endswith("/end")]
        for end in ends:
            assert {f"{end[:-3]}out/{path.name}" for path in (run.path / end).with_name("out").iterdir()} <= held.keys()
        if "dispatch/done" in held:
            assert len(ends) == 5
        get(run, here)
        assert contents(here) == run.files()


ENDING = """
import builtins
def importing(name, *others, load=builtins.__import__):
    module = load(name, *others)
    if name == "comborun.rules" and hasattr(module, "globs") and not hasattr(builtins, "told"):
        builtins.told = module.globs.found
        module.globs.found = ending
    return module
def ending(directory, patterns):  # the session and the whole run end at this very moment
    open(directory[:-3] + "end", "w").write('{"cause": "exited"}')
    open("dispatch/done", "w").write('{"at": 1}')
    return builtins.told(directory, patterns)
builtins.__import__ = importing
"""


def test_what_ends_while_the_host_looks_has_not_ended_yet(run: Run, mirror: Path) -> None:
    get(run, mirror, Prefaced(ENDING))
    assert not {"dispatch/done", "sessions/e_p/attempt-1/end"} & contents(mirror).keys()
    get(run, mirror)
    assert {"dispatch/done", "sessions/e_p/attempt-1/end"} <= contents(mirror).keys()


def test_a_limit_is_kept_by_asking_again_and_a_big_file_comes_in_parts(run: Run, mirror: Path) -> None:
    big = os.urandom(300_000)
    run.attempt("e_q", {"big.jsonl": big, "small.jsonl": b"{}\n" * 5000})
    link = Link()
    fetched = get(run, mirror, link, limit=64_000)
    assert contents(mirror) == run.files()
    assert fetched.files == len(contents(mirror))
    assert len(link.sent) >= 6
    assert max(link.received) < 70_000
    with (run.path / "sessions/e_q/attempt-1/out/big.jsonl").open("ab") as file:
        file.write(big)
    assert get(run, mirror, limit=64_000) == Fetched(1, 300_000)
    assert contents(mirror) == run.files()


def test_who_watches_waits_seconds_for_records_and_each_time_brings_more(
    run: Run, mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.attempt("e_q", {"big.jsonl": os.urandom(600_000), "next.jsonl": os.urandom(600_000)})
    monkeypatch.setattr(fetching, "_WATCHED_S", 0.0)
    monkeypatch.setattr(fetching, "_QUICK_S", 0.0)
    times = 0
    while not get(run, mirror, watched=True).whole:
        held = len(contents(mirror))
        times += 1
        assert times < 20
    assert times > 1
    assert held < len(contents(mirror)), "the last one brought the rest"
    assert contents(mirror) == run.files()


def test_who_watches_gives_up_an_answer_as_soon_as_a_look_would(run: Run, mirror: Path) -> None:
    patience: list[float] = []

    class Slow(Link):
        def run(self, script: str, *args: str, **options: Any) -> Completed:
            patience.append(options["timeout"])
            return super().run(script, *args, **options)

    assert get(run, mirror, Slow(), watched=True).whole
    assert max(patience) <= ANSWER_S


def test_who_watches_leaves_the_mirror_to_a_fetch_that_goes_on(run: Run, mirror: Path) -> None:
    link = Link()
    with Mirror(mirror).locked():
        assert not get(run, mirror, link, watched=True).whole
    assert not link.sent
    assert get(run, mirror, link, watched=True).whole
    assert contents(mirror) == run.files()


def test_a_big_file_that_vanishes_between_two_parts_is_given_up(run: Run, mirror: Path) -> None:
    result = run.attempt("e_q", {"big.jsonl": b"x" * 200_000}) / "out/big.jsonl"

    class Vanishing(Link):
        def run(self, script: str, *args: str, **options: Any) -> Completed:
            done = super().run(script, *args, **options)
            if len(self.sent) == 2:
                result.unlink()
            return done

    get(run, mirror, Vanishing(), limit=50_000)
    assert contents(mirror) == run.files()
    assert not list(mirror.rglob(".fetch-*"))


def test_files_that_are_written_all_the_time_are_taken_as_far_as_they_were(run: Run, mirror: Path) -> None:
    at = run.attempt("e_q", {"a.jsonl": "{}\n"})
    writer = subprocess.Popen(
        [
            "bash",
            "-c",
            'i=0; while ((i < 200000)); do printf "{\\"episode\\": %d}\\n" $((i++)); done >"$0"',
            at / "out/a.jsonl",
        ]
    )
    try:
        sizes = []
        deadline = time.monotonic() + 20
        while len(sizes) < 5 and time.monotonic() < deadline:
            fetched = get(run, mirror)
            assert fetched.skipped == ()
            held = contents(mirror).get("sessions/e_q/attempt-1/out/a.jsonl", b"")
            assert (at / "out/a.jsonl").read_bytes().startswith(held)
            if held and (not sizes or len(held) > sizes[-1]):
                sizes.append(len(held))
        assert len(sizes) == 5
    finally:
        writer.kill()
        writer.wait()
    get(run, mirror)
    assert contents(mirror) == run.files()


def test_two_fetches_at_once_into_one_mirror_do_not_hurt_each_other(run: Run, mirror: Path) -> None:
    for number in range(30):
        run.attempt(f"s{number}_p", {"a.jsonl": os.urandom(20_000)})
    outcomes: list[Fetched] = []
    threads = [threading.Thread(target=lambda: outcomes.append(get(run, mirror))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert contents(mirror) == run.files()
    assert sorted(fetched.files > 0 for fetched in outcomes) == [False, False, False, True]


def test_what_a_resumed_run_took_back_goes_and_what_was_deleted_to_save_room_stays(run: Run, mirror: Path) -> None:
    run.end("e_p")
    run.put("dispatch/done", '{"at": 1}\n')
    run.put("dispatch/stopped")
    get(run, mirror)
    (run.path / "dispatch/done").unlink()
    (run.path / "dispatch/stopped").unlink()
    (run.path / "sessions/e_p/attempt-1/out/a.jsonl").unlink()
    get(run, mirror)
    expected = {**run.files(), "sessions/e_p/attempt-1/out/a.jsonl": b'{"episode": 0}\n'}
    assert contents(mirror) == expected
