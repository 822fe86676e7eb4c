"""Publishing a run, and amending it: whole or not at all, once for one grid, whoever launches and however often."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from prefaced import Prefaced
from rounds import some

from comborun.amendment.changes import Amended, compare
from comborun.amendment.changes import amend as amended_plan
from comborun.errors import HostError
from comborun.model.command import fill
from comborun.model.plan import After, Limits, Plan, Session
from comborun.remote.publish import Publication, RunContent, publish, put_amendment
from comborun.remote.runs import list_runs
from comborun.remote.transport import LocalTransport
from comborun.rules.results.fields import ResultRules

SESSION = Session("e_p", "p", "e", "episode", 0, 2, None, fill("true", {}), "", None, (), 0, ResultRules(), "d1")
PLAN = Plan("my-grid", (SESSION,), Limits(1, 1, 0.0, 2), (), None, 60.0, "digest-1")
CHANGED = replace(PLAN, digest="digest-2")


def draft(root: Path, plan: Plan = PLAN) -> RunContent:
    return RunContent(plan, "name: my-grid\n", str(root), {})


def put(root: Path, plan: Plan = PLAN, mode: str = "resume") -> Publication:
    return publish(LocalTransport(), draft(root, plan), mode)


def again(root: Path, plan: Plan = PLAN) -> tuple[str, str]:
    """What the same grid is told, and of which run."""
    publication = put(root, plan)
    return publication.state, publication.run


def end(publication: Publication, **outcomes: int) -> None:
    counts = {"succeeded": 0, "cancelled": 0, "lost": 0} | outcomes
    run = Path(publication.directory)
    (run / "dispatch/done").write_text(json.dumps(counts))
    (run / "sessions/e_p/attempt-1").mkdir(parents=True, exist_ok=True)
    (run / "sessions/e_p/attempt-1/end").write_text(json.dumps({"cause": "exited"}))


def test_a_new_run_has_an_id_that_tells_grid_and_time_and_nothing_else_is_left_behind(tmp_path: Path) -> None:
    publication = put(tmp_path)
    assert publication.state == "new"
    assert re.fullmatch(r"my-grid-\d{8}T\d{6}Z-[0-9a-f]{4}", publication.run)
    assert Path(publication.directory, "id").read_text() == publication.run + "\n"
    assert Path(publication.directory) == tmp_path / publication.run
    assert again(tmp_path) == ("resumed", publication.run)
    assert {path.name for path in tmp_path.iterdir()} == {publication.run, ".incoming", ".lock"}
    assert not list((tmp_path / ".incoming").iterdir())
    end(publication, succeeded=1)
    assert again(tmp_path) == ("finished", publication.run)
    assert put(tmp_path, replace(PLAN, grid="my")).state == "new", "a grid whose name begins alike is another grid"


@pytest.mark.parametrize("outcome", ["lost", "cancelled"])
def test_a_run_that_lost_sessions_is_resumed_though_it_had_ended(tmp_path: Path, outcome: str) -> None:
    first = put(tmp_path)
    end(first, **{outcome: 1})
    assert put(tmp_path).state == "resumed"


def test_a_changed_grid_is_given_what_is_there_and_touches_nothing(tmp_path: Path) -> None:
    first = put(tmp_path)
    before = files(first)
    changed = put(tmp_path, CHANGED)
    assert (changed.state, changed.run, changed.root) == ("changed", first.run, str(tmp_path))
    assert changed.found
    assert (changed.found.plan, changed.found.number, changed.found.ended) == (PLAN, 1, False)
    end(first, succeeded=1)
    found = put(tmp_path, CHANGED).found
    assert found
    assert (found.ended, found.whole) == (True, True)
    del before["dispatch/done"]
    assert files(first).items() >= before.items()


def test_another_run_after_one_that_has_ended_is_made_once(tmp_path: Path) -> None:
    first = put(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: put(tmp_path, CHANGED, f"after:{first.run}"), range(4)))
    assert sorted(publication.state for publication in made) == ["new"] + ["resumed"] * 3


def test_a_grid_finds_the_run_of_its_work_whatever_was_launched_later(tmp_path: Path) -> None:
    first = put(tmp_path)
    end(first, succeeded=1)
    other = put(tmp_path, CHANGED, f"after:{first.run}")
    assert again(tmp_path) == ("finished", first.run)
    assert again(tmp_path, CHANGED) == ("resumed", other.run)
    second = put(tmp_path, mode="new")
    assert again(tmp_path) == ("resumed", second.run), "of two with this work the newest"


def test_eight_launches_at_once_are_one_run(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        publications = list(pool.map(lambda _: put(tmp_path), range(8)))
    assert sorted(publication.state for publication in publications) == ["new"] + ["resumed"] * 7
    assert len({publication.run for publication in publications}) == 1


def test_a_root_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError) as caught:
        put(tmp_path / "file")
    assert "none can be made" in caught.value.hint


def test_a_full_disk_leaves_no_run(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "x", tmp_path], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        with pytest.raises(HostError) as caught:
            put(tmp_path)
        assert "No space left" in caught.value.hint
        assert not list(tmp_path.glob("my-grid-*"))
        assert not list((tmp_path / ".incoming").iterdir())
    finally:
        subprocess.run(["umount", tmp_path], check=True)


MORE = replace(SESSION, name="e_q", policy="q", digest="d2")
GROWN = replace(PLAN, sessions=(SESSION, MORE), digest="digest-2")


def files(publication: Publication) -> dict[str, str]:
    run = Path(publication.directory)
    texts = {str(path.relative_to(run)): path.read_text() for path in run.rglob("*") if path.is_file()}
    return {"dispatch/done": "", **texts}


def grown(publication: Publication, plan: Plan = GROWN) -> Amended:
    assert publication.found
    return amended_plan(compare(publication.found.plan, plan))


def test_an_amended_run_is_the_run_of_the_new_grid(tmp_path: Path) -> None:
    first = put(tmp_path)
    end(first, succeeded=1)
    changed = put(tmp_path, GROWN)
    assert put_amendment(LocalTransport(), changed, grown(changed), draft(tmp_path, GROWN)) == ()
    found = put(tmp_path, GROWN)
    assert (found.state, found.run) == ("resumed", first.run)
    assert found.found
    assert (found.found.number, found.found.plan) == (2, GROWN)
    there = files(first)
    rows = [json.loads(row) for row in there["dispatch/queue.jsonl"].splitlines()]
    assert [(row["name"], row["gpus"], row.get("flag")) for row in rows] == [("e_p", 0, None), ("e_q", 0, None)]
    assert there["sessions/e_q/session.sh"].startswith("#!/usr/bin/env bash\n# e_q")
    assert there["grid-2.yaml"] == there["grid.yaml"] == "name: my-grid\n"
    assert not there["dispatch/done"], "a run that got new sessions has not ended"


def test_an_amendment_of_a_run_that_changed_meanwhile_does_nothing(tmp_path: Path) -> None:
    put(tmp_path)
    one, other = put(tmp_path, GROWN), put(tmp_path, CHANGED)
    assert put_amendment(LocalTransport(), one, grown(one), draft(tmp_path, GROWN)) is not None
    before = files(one)
    assert put_amendment(LocalTransport(), other, grown(other, CHANGED), draft(tmp_path, CHANGED)) is None
    assert files(one) == before


def test_what_belongs_to_no_session_is_amended_and_the_run_stays_finished(tmp_path: Path) -> None:
    first = put(tmp_path)
    end(first, succeeded=1)
    plan = replace(PLAN, poll=5.0, digest="digest-2")
    changed = put(tmp_path, plan)
    put_amendment(LocalTransport(), changed, grown(changed, plan), draft(tmp_path, plan))
    assert put(tmp_path, plan).state == "finished"


def test_after_comes_and_goes_with_the_grid(tmp_path: Path) -> None:
    script = Path(put(tmp_path).directory, "sessions/after/session.sh")
    for number, after in enumerate((After(fill("true", {}), "", None, ()), None)):
        plan = replace(PLAN, after=after, digest=f"after-{number}")
        changed = put(tmp_path, plan)
        assert put_amendment(LocalTransport(), changed, grown(changed, plan), draft(tmp_path, plan)) == ()
        assert script.exists() == (after is not None)


@pytest.mark.parametrize("steps", some(range(1, 8), 0, 3, 6))
def test_an_amendment_that_is_cut_off_anywhere_is_mended_by_the_next(tmp_path: Path, steps: int) -> None:
    """The program is killed at its n-th move."""
    first = put(tmp_path)
    end(first, succeeded=1)
    changed = put(tmp_path, GROWN)
    with contextlib.suppress(HostError):
        put_amendment(Prefaced(KILLS % steps), changed, grown(changed), draft(tmp_path, GROWN))
    while (found := put(tmp_path, GROWN)).state == "changed":
        assert put_amendment(LocalTransport(), found, grown(found), draft(tmp_path, GROWN)) is not None
    assert found.state == "resumed", "the new session is still to run"
    assert found.found
    assert found.found.plan == GROWN
    assert files(first)["dispatch/queue.jsonl"].count("\n") == 2
    assert "sessions/e_q/session.sh" in files(first)


KILLS = """
import os
def killing(*places, left=[%d], replace=os.replace):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), 9)
    replace(*places)
os.replace = killing
"""


def test_everything_is_on_the_disk_before_the_run_is_in_its_place(tmp_path: Path) -> None:
    """What a power loss right after the launch may take is seen by the order of the calls to the kernel."""
    traced = tmp_path / "trace"
    first = publish(Prefaced(TRACES.replace("TRACED", str(traced))), draft(tmp_path / "runs"))
    calls = [line.partition(" ")[::2] for line in traced.read_text().splitlines()]
    at = calls.index(("rename", first.directory))
    staged = {path.split("/.incoming/")[1].partition("/")[2] for call, path in calls[:at] if call == "fsync"}
    run = Path(first.directory)
    assert staged >= {path.relative_to(run).as_posix().removeprefix(".") for path in (run, *run.rglob("*"))}
    assert ("fsync", str(tmp_path / "runs")) in calls[at:]


TRACES = """
import os
def traced(call, path, trace=os.open("TRACED", os.O_WRONLY | os.O_CREAT | os.O_APPEND)):
    os.write(trace, ("%s %s\\n" % (call, path)).encode())
def fsync(descriptor, fsync=os.fsync):
    traced("fsync", os.readlink("/proc/self/fd/%d" % descriptor))
    fsync(descriptor)
def rename(source, target, rename=os.rename):
    traced("rename", target)
    rename(source, target)
os.fsync, os.rename = fsync, rename
"""


@pytest.mark.parametrize(("lost", "how"), [("run.json", ""), ("plan-1.json", "\0\0"), ("digest", "\0\0")])
def test_a_run_that_can_not_be_read_is_refused_and_left_alone(tmp_path: Path, lost: str, how: str) -> None:
    first = put(tmp_path)
    Path(first.directory, lost).write_text(how)
    with pytest.raises(HostError) as caught:
        put(tmp_path)
    assert f"{lost} is empty): --new makes another one" in caught.value.hint
    assert Path(first.directory).is_dir()


def test_a_clock_that_was_set_back_hides_no_run(tmp_path: Path) -> None:
    first = put(tmp_path)
    end(first, succeeded=1)
    ahead = Path(first.directory).rename(tmp_path / "my-grid-20990101T000000Z-abcd")
    assert put(tmp_path).state == "finished"
    second = put(tmp_path, mode="new")
    assert second.run < ahead.name
    assert again(tmp_path) == ("resumed", second.run)
    assert [run.id for run in list_runs(LocalTransport(), [str(tmp_path)])] == [second.run, ahead.name]
