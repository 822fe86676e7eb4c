"""Which run a person means, and what this machine remembers of launches."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from monitor_stage import a_plan, a_session

from comborun.api.named import HostChoice
from comborun.errors import UserError
from comborun.host.verbs.runs import newest_plan_of
from comborun.monitor.fleet import FleetRow
from comborun.remote.launches import Launch, host_of, parts_of, remember, remembered
from comborun.remote.library import digest, library_files
from comborun.remote.runs import Run, choose_run, find_runs, list_runs, look_at_host, plan_of, read_plan
from comborun.remote.transport import Completed, LocalTransport
from comborun.reporter import run_records
from comborun.rules.deal import Deal

NEWEST = Run("maze-20260102T000000Z-00aa", "/r/maze-20260102T000000Z-00aa", {})
OLDER = Run("maze-2-20260101T000000Z-00bb", "/r/maze-2-20260101T000000Z-00bb", {})
CANARY = Run("maze_canary-20260103T000000Z-00cc", "/r/maze_canary-20260103T000000Z-00cc", {}, canary=True)
RUNS = (NEWEST, OLDER)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "comborun" / "launches.jsonl"


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [(None, NEWEST), ("maze", NEWEST), ("maze-2", OLDER), ("maze-2026", NEWEST), (OLDER.id, OLDER), ("00bb", OLDER)],
)
def test_a_run_is_meant_by_its_id_its_beginning_its_end_or_its_grid(wanted: str | None, meant: Run) -> None:
    assert choose_run(RUNS, wanted, "local") == meant


@pytest.mark.parametrize(("wanted", "meant"), [(None, NEWEST), ("maze", NEWEST), ("maze_canary", CANARY)])
def test_a_canary_is_not_the_newest_run_unless_it_is_named(wanted: str | None, meant: Run) -> None:
    assert choose_run((CANARY, *RUNS), wanted, "local") == meant
    assert choose_run((CANARY,), None, "local") == CANARY
    named_so = replace(CANARY, canary=False)
    assert choose_run((named_so, *RUNS), None, "local") == named_so, "a grid may be called like a canary"


def test_a_run_that_is_not_there_names_the_newest() -> None:
    with pytest.raises(UserError) as caught:
        choose_run(RUNS, "other", "h100")
    assert NEWEST.id in caught.value.hint
    with pytest.raises(UserError) as caught:
        choose_run(RUNS, "mase", "h100")
    assert "`maze`" in caught.value.hint
    with pytest.raises(UserError, match=r"no run in the folder '/nope/' on h100"):
        choose_run(RUNS, "/nope/", "h100")
    with pytest.raises(UserError, match="no runs on h100"):
        choose_run((), None, "h100")


@pytest.mark.usefixtures("state")
def test_only_a_run_that_is_not_there_any_more_was_removed() -> None:
    for run in (OLDER, NEWEST):
        remember(Launch(run.id, "local", "/r", run.directory, run.grid))
    with pytest.raises(UserError, match=f"2 runs: {NEWEST.id}, {OLDER.id}"):
        choose_run(RUNS, "ma", "local")
    with pytest.raises(UserError, match=f"{NEWEST.directory} was removed"):
        choose_run((OLDER,), "maze-2026", "local")


def test_the_latest_launch_comes_last_also_when_it_was_made_before(state: Path) -> None:
    far = Launch("a-1", "h100", "/r", "/r/a-1", "a", "openssh")
    near = Launch("b-1", "local", "/r", "/r/b-1", "b")
    for launch in (far, near, far, far):
        remember(launch)
    assert remembered() == (far, near, far)


@pytest.mark.usefixtures("state")
def test_a_whole_name_is_taken_before_the_beginning_of_a_newer_one_and_a_grid_file_names_all_parts(
    tmp_path: Path,
) -> None:
    for host, place in (("beta", 1), ("alpha", 0)):
        name = f"lo-20260102T000000Z-{host}"
        remember(Launch(name, host, "/r", f"/r/{name}", "lo", grid_run="6c1", place=place))
    remember(Launch("lo2-20260103T000000Z-0001", "gamma", "/r", "/r/lo2", "lo2"))
    assert [one.host for one in parts_of("lo")] == ["alpha", "beta"]
    assert (host_of("lo"), host_of("lo2"), host_of("lo-2026")) == ("alpha", "gamma", "alpha")
    (tmp_path / "grid.yaml").write_text("name: lo\n")
    found = HostChoice().find(str(tmp_path / "grid.yaml"))
    assert [one.transport.host for one in found.boxes] == ["alpha", "beta"]


def test_a_memory_of_an_earlier_version_and_torn_lines_are_understood(state: Path) -> None:
    state.parent.mkdir()
    old = {"run": "a-1", "host": "local", "root": "/r", "directory": "/r/a-1", "grid": "a"}
    state.write_text(json.dumps(old) + '\n{"run": "torn\n[1]\n' + json.dumps({**old, "unknown": 1}) + "\n")
    assert remembered() == (Launch(**old),)


def test_a_root_that_is_reached_by_two_names_lists_its_runs_once(tmp_path: Path) -> None:
    run = tmp_path / "root" / NEWEST.id
    (run / "dispatch").mkdir(parents=True)
    (run / "run.json").write_text('{"provenance": {"canary_of": "maze-20260101T000000Z-00bb"}}')
    (run / "dispatch/done").write_text('{"succeeded": 2, "not_needed": 1}\n')
    (tmp_path / "link").symlink_to("root")
    (found,) = list_runs(LocalTransport(), [str(tmp_path / "link"), str(tmp_path / "root"), str(tmp_path / "none")])
    assert (found.id, found.directory, found.canary) == (NEWEST.id, str(run), True)
    assert found.counts == {"succeeded": 2, "not_needed": 1}


def test_a_run_that_is_held_says_by_what(tmp_path: Path) -> None:
    held = {
        "a": '{"kind": "halted", "at": 5, "why": "three in a row: gpu=0"}\n',
        "b": "",
        "c": '{"kind": "paused", "at": 5, "why": "until noon"}\n',
    }
    for name, hold in held.items():
        dispatch = tmp_path / f"{name}-20260102T000000Z-00aa" / "dispatch"
        dispatch.mkdir(parents=True)
        (dispatch.parent / "run.json").write_text("{}")
        if hold:
            (dispatch / "hold").write_text(hold)
    (tmp_path / "c-20260102T000000Z-00aa/dispatch/stopped").touch()
    found = {run.id[0]: dict(run.held) for run in list_runs(LocalTransport(), [str(tmp_path)])}
    assert (found["a"]["kind"], found["a"]["why"]) == ("halted", "three in a row: gpu=0")
    assert found["b"] == {}
    assert (found["c"]["kind"], found["c"]["why"]) == ("stopped", "")


LIBRARY = {f"lib/{name}": text for name, text in library_files().items()}


class Far(LocalTransport):
    """This machine, as if it were a host."""

    def __init__(self) -> None:
        super().__init__()
        self.host = "h100"
        self.asked: list[str] = []

    def run(self, script: str, *arguments: str, stdin: bytes = b"", timeout: float = 60.0) -> Completed:
        self.asked.append(script)
        return super().run(script, *arguments, stdin=stdin, timeout=timeout)


def test_a_run_is_found_with_its_plan_in_one_question_and_the_plan_is_used_once(tmp_path: Path) -> None:
    run = tmp_path / NEWEST.id
    for folder in (run, tmp_path / OLDER.id):
        folder.mkdir()
        for name, text in (("run.json", "{}"), ("plan-1.json", "{}"), ("id", folder.name)):
            (folder / name).write_text(text)
    host = Far()
    there, sent = find_runs(host, [str(tmp_path)], NEWEST.id[-4:])
    assert {one.id for one in there} == {NEWEST.id, OLDER.id}
    assert len(host.asked) == 1
    assert sent
    assert sent.take(str(tmp_path / OLDER.id)) is None
    _, again = find_runs(host, [str(tmp_path)], None)
    assert again
    taken = again.take(str(run))
    assert taken
    assert (taken["id"], taken["number"]) == (NEWEST.id, 1)
    assert again.take(str(run)) is None


def test_a_run_with_the_program_that_would_be_sent_is_known_by_it(tmp_path: Path) -> None:
    run = tmp_path / NEWEST.id
    run.mkdir()
    for name, text in {"run.json": "{}", "plan-1.json": "{}", "id": run.name, **LIBRARY}.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(text)
    (run / "lib/comborun_host/__pycache__").mkdir()
    (run / "lib/comborun_host/__pycache__/x.pyc").write_bytes(b"\xff")

    def program() -> str:
        _, sent = find_runs(Far(), [str(tmp_path)], None)
        assert sent
        return sent.program

    assert program() == digest()
    (run / "lib/comborun_host/comborun/words/times.py").write_text("")
    assert program() != digest()


@pytest.mark.parametrize(("ahead", "told"), [(5 * 3600.0, True), (-7200.0, True), (0.4, False)])
def test_a_run_that_has_ended_has_its_times_on_the_clock_of_this_machine(ahead: float, told: bool) -> None:
    there = time.time() + ahead
    name = time.strftime("maze-%Y%m%dT%H%M%SZ-00aa", time.gmtime(there))
    entry = {"directory": f"/r/{name}", "done": {"at": str(there)}, "held": {}, "canary": False, "left": False}

    class Host:
        host = "far"

        def run(self, *_: object, **__: object) -> Completed:
            answer = {"runs": [[entry]], "users": [], "now": time.time() + ahead}
            return Completed(0, json.dumps(answer).encode(), b"")

    (run,), _ = look_at_host(Host(), ["~/comborun"])
    assert ("ahead" in run.now) == told
    row = FleetRow("far", run, ahead=run.now.get("ahead", 0.0))
    assert abs(row.started - time.time()) < 5


def test_a_session_that_moved_runs_where_it_went_for_whoever_reads_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for commands about one host, and the report of its part: none knows more than is in that folder."""
    of = {"maze_p0": "a", "maze_p1": "b"}
    deal = Deal({"grid_run": "g", "box": "a", "number": [0, 0], "boxes": ["a", "b"], "of": of, "lost": {}})
    move = deal.move("maze_p0", "b")
    text = a_plan([a_session("p0", "maze"), a_session("p1", "maze")]).to_json()
    for box, kind, here in (("a", "out", []), ("b", "in", ["maze_p0", "maze_p1"])):
        run = tmp_path / box
        for name, content in (
            ("plan-1.json", text),
            ("id", "run-1"),
            ("boxes/deal.json", deal.at(box).text),
            (f"moves/maze_p0.0.0.1.{kind}", move.text),
        ):
            (run / name).parent.mkdir(exist_ok=True, parents=True)
            (run / name).write_text(content)
        there = LocalTransport()
        monkeypatch.setattr(there, "host", "far")
        monkeypatch.setattr("comborun.remote.runs._run_verb", lambda _, __, ___, path: newest_plan_of(path))
        plans = plan_of(run)[0], read_plan(there, str(run))[1], run_records.plan_of(run)
        assert [[one.name for one in plan.current] for plan in plans] == [here] * 3
