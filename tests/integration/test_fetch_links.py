"""Results behind links, and what among them is no result: what a fetch follows, names and leaves alone."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest
from fetched_run import Run, contents, get, mirror, run

from comborun.remote.fetch import Fetched
from comborun.remote.mirror import Skipped

__all__ = ["mirror", "run"]


def test_results_are_brought_from_wherever_a_link_leads(run: Run, mirror: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    (scratch / "deep").mkdir(parents=True)
    (scratch / "s.jsonl").write_text("{}\n" * 9)
    (scratch / "deep/b.jsonl").write_text("{}\n" * 5)
    output = run.attempt("e_p", {"a.jsonl": '{"episode": 0}\n'}, rules="*.jsonl|sub/*.jsonl") / "out"
    (output / "s.jsonl").symlink_to(scratch / "s.jsonl")
    (output / "in.jsonl").symlink_to("a.jsonl")
    (output / "sub").symlink_to(scratch / "deep")
    for ended in (False, True):
        if ended:
            run.end("e_p")
        assert get(run, mirror).skipped == ()
        copy = mirror / output.relative_to(run.path)
        assert contents(copy) == contents(output) | {"sub/b.jsonl": b"{}\n" * 5}
        assert not any(path.is_symlink() for path in copy.rglob("*"))
    assert get(run, mirror) == Fetched(0, 0)


def test_what_a_link_leads_to_may_grow_after_the_end(run: Run, mirror: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "s.jsonl"
    scratch.write_text("{}\n")
    (run.path / "sessions/e_p/attempt-1/out/s.jsonl").symlink_to(scratch)
    run.end("e_p")
    get(run, mirror)
    with scratch.open("a") as file:
        file.write('{"late": 1}\n')
    assert get(run, mirror) == Fetched(1, 12)
    assert (mirror / "sessions/e_p/attempt-1/out/s.jsonl").read_bytes() == scratch.read_bytes()


def test_a_link_that_leads_nowhere_is_told_each_time(run: Run, mirror: Path, tmp_path: Path) -> None:
    output = run.path / "sessions/e_p/attempt-1/out"
    (output / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    (output / "round.jsonl").symlink_to("round.jsonl")
    (output / ".hidden.jsonl").symlink_to(tmp_path / "nowhere")
    run.end("e_p")
    for _ in range(2):
        at = PurePosixPath("sessions/e_p/attempt-1/out")
        told = {Skipped(at / leaf, "a link that leads nowhere") for leaf in ("gone.jsonl", "round.jsonl")}
        assert set(get(run, mirror).skipped) == told


def test_no_record_is_read_through_a_link(run: Run, mirror: Path, tmp_path: Path) -> None:
    """What the run itself consists of is never elsewhere."""
    (tmp_path / "secret").write_text("secret")
    run.put("digest").unlink()
    (run.path / "digest").symlink_to(tmp_path / "secret")
    get(run, mirror)
    assert "digest" not in contents(mirror)


def test_pipes_and_folders_among_the_results_are_passed_over(run: Run, mirror: Path) -> None:
    output = run.attempt("e_q", {"a.jsonl": "{}\n"}) / "out"
    os.mkfifo(output / "pipe.jsonl")
    (output / "folder.jsonl").mkdir()
    get(run, mirror)
    assert contents(mirror) == run.files()


@pytest.mark.parametrize("rule", ["../log", "../../../../id", "/etc/passwd", ".*", "sub//x.jsonl"])
def test_rules_that_point_elsewhere_bring_nothing_from_there(run: Run, mirror: Path, rule: str) -> None:
    run.attempt("e_q", {"sub/x.jsonl": "{}\n"}, rules=rule)
    get(run, mirror)
    below = [name for name in contents(mirror) if name.startswith("sessions/e_q/") and "/out/" in name]
    assert below == (["sessions/e_q/attempt-1/out/sub/x.jsonl"] if rule == "sub//x.jsonl" else [])
