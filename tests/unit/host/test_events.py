"""dispatch/events.jsonl: whole lines, read whatever else is in the file, and bounded without losing what people did."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from comborun.host.record.events import Events
from comborun.rules.events import Event, Kind
from comborun.rules.facts import Fact
from comborun.rules.names import FETCHED, FETCHED_STATE, RUN, RunLayout


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    (tmp_path / "dispatch").mkdir()
    return RunLayout(str(tmp_path))


def kinds(events: Events) -> list[str]:
    return [event.kind for event in events.read()]


def test_an_event_comes_back_as_it_was_written(layout: RunLayout) -> None:
    name = 'o\'neill "1": 100 % \u202e\U0001f916\udcff\n'  # a surrogate is a byte that is no UTF-8
    Events(layout).write(Kind.GRANTED, name, 2, gpus=[0, 1])
    Events(layout).write(Kind.HALTED, reason=Fact("disk_full", path=name))
    granted, halted = Events(layout).read()
    assert (granted.kind, granted.session, granted.attempt, granted.fields) == ("granted", name, 2, {"gpus": [0, 1]})
    assert (halted.session, halted.attempt, halted.fields) == ("", 0, {"reason": Fact("disk_full", path=name)})
    assert 0 <= halted.at - granted.at < 60


def test_torn_and_foreign_lines_hide_no_other_event(layout: RunLayout) -> None:
    path = Path(layout.events)
    foreign = ["[]", "7", '{"kind": "x"}', '{"at": "1", "kind": "x"}', '{"at": 1, "kind": 2}', "\udcff{", "[" * 9999]
    foreign += ['{"at": 1, "kind": "x", "attempt": "1"}', '{"at": 1, "kind": "x", "session": null}', '{"at": NaN}']
    path.write_text("\n".join([*foreign, '{"at": 1.5, "kind": "of_a_later_version", "new": 1}', '{"at": 2, "ki']),
                    errors="surrogateescape")  # fmt: skip
    events = Events(layout)
    events.write(Kind.DONE)
    later, done = events.read()
    assert (later.at, later.kind, later.fields) == (1.5, "of_a_later_version", {"new": 1})
    assert done.kind == "done", "the line that a full disk has cut off takes no other along"


def test_a_file_that_cannot_be_written_stops_nothing(layout: RunLayout) -> None:
    Path(layout.events).mkdir()
    Path(layout.people).mkdir()
    Events(layout).write(Kind.DONE)
    Events(layout).order("pause")
    assert Events(layout).read() == []


def test_who_ordered_something_stays_out_of_what_is_fetched(layout: RunLayout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.7 50022 192.0.2.1 22")
    Events(layout).order("retry", names=[f"env_{number}" for number in range(30)])
    monkeypatch.delenv("SSH_CONNECTION")
    Events(layout).by_person(Kind.AMENDED, plan=2)
    retry, amended = Events(layout).read()
    assert (retry.fields["order"], retry.fields["sessions"], retry.fields["names"][-1]) == ("retry", 30, "env_19")
    assert (retry.fields["from"], amended.fields["from"]) == ("192.0.2.7", "local")
    assert retry.fields["user"] == amended.fields["user"] != ""
    fetched = Path(layout.events).read_text()
    assert "192.0.2.7" not in fetched
    assert "user" not in fetched
    assert RUN.events in FETCHED_STATE
    assert RUN.people not in {*FETCHED, *FETCHED_STATE}


def test_old_events_become_a_summary_and_what_people_did_stays(layout: RunLayout) -> None:
    events = Events(layout, most=4000)
    events.order("pause", why="lunch")
    for number in range(300):
        events.write(Kind.STARTED if number % 3 else Kind.ENDED, "env_one", number)
    events.by_person(Kind.AMENDED, plan=2)
    for number in range(300, 600):
        events.write(Kind.STARTED if number % 3 else Kind.ENDED, "env_one", number)
    found = events.read()
    summary = found[0]
    rest = [event.kind for event in found[1:]]
    assert Path(layout.events).stat().st_size < 4200
    assert summary.kind == "summary"
    assert summary.fields["counts"]["ended"] + rest.count("ended") == 200
    assert summary.fields["counts"]["started"] + rest.count("started") == 400
    assert found[1].at < summary.at < summary.fields["until"] < found[-1].at
    people = [(event.kind, event.fields.get("why"), event.fields["from"]) for event in found if "from" in event.fields]
    assert people == [("ordered", "lunch", people[0][2]), ("amended", None, people[0][2])]
    assert [event.attempt for event in found[-20:]] == [*range(580, 600)]


def test_a_file_of_orders_alone_is_kept_whole(layout: RunLayout) -> None:
    events = Events(layout, most=2000)
    for number in range(100):
        events.order("slots", slots=number)
    assert [event.fields["slots"] for event in events.read()] == [*range(100)]


def test_an_order_is_not_lost_while_another_process_shortens_the_file(layout: RunLayout) -> None:
    with ProcessPoolExecutor(4) as pool:
        list(pool.map(_write, [(layout.directory, number) for number in range(4)]))
    lines = [json.loads(line) for line in Path(layout.events).read_text().splitlines()]
    ordered = sorted(line["slots"] for line in lines if line["kind"] == Kind.ORDERED)
    assert ordered == sorted([*range(12)] * 4)


def _write(what: tuple[str, int]) -> None:
    events = Events(RunLayout(what[0]), most=900)
    for number in range(12):
        events.write(Kind.STARTED, f"env_{number}", 1)
        events.order("slots", slots=number)


def test_a_foreign_summary_does_no_harm(layout: RunLayout) -> None:
    lines = [Event(5.0, Kind.SUMMARY, until="x", counts=[1]), Event(6.0, Kind.SUMMARY, counts={"done": "x"})]
    Path(layout.events).write_text("".join(event.line() for event in lines) * 20)
    Events(layout, most=500).write(Kind.DONE)
    assert kinds(Events(layout))[-1] == "done"
