"""Sessions of a grid run that go to another box: who may start them, and who may give and take them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from comborun.host.dispatch.launching import Launcher, starting
from comborun.host.dispatch.sessions import Dropped, Session, Starting
from comborun.host.record import deals, queue
from comborun.host.record.run_directory import RunDirectory
from comborun.host.supervise import supervisor
from comborun.host.supervise.attempt import Attempt, Place
from comborun.host.system import files, process
from comborun.host.verb_errors import Refusal
from comborun.host.verbs import start
from comborun.host.verbs.boxes import Box
from comborun.rules.deal import Deal, Era, Move, Stale, Stops
from comborun.rules.facts import Fact
from comborun.rules.host import Denial
from comborun.rules.names import DROPPED, RunLayout
from comborun.words import say


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    """Box `a` of two, whose session is s0."""
    return box(tmp_path, "a")


def box(place: Path, name: str) -> RunLayout:
    found = RunLayout(str(place / name))
    for folder in (found.dispatch, f"{found.directory}/boxes", found.session("s0")):
        Path(folder).mkdir(parents=True)
    Path(found.id).write_text("run-1\n")
    Path(found.queue).write_text('{"name": "s0"}\n')
    Path(found.session_json("s0")).write_text(json.dumps({"first": 0, "count": 1}))
    Path(found.deal).write_text(deal({"s0": "a"}).at(name).text)
    return found


def deal(of: dict[str, str]) -> Deal:
    return Deal({"grid_run": "g", "box": "a", "number": [0, 0], "boxes": ["a", "b"], "of": of, "lost": {}})


def claimed_by_supervisor(layout: RunLayout) -> None:
    one = object.__new__(supervisor.Supervisor)  # the usual way makes this process the reaper of others
    one.attempt = Attempt(layout.directory, "s0", "1")
    one.place, one._identity = Place(one.attempt, "none"), {"pid": "1", "start": "1"}
    one.place.make_files()
    one.claim()


def claimed_for_an_end(layout: RunLayout) -> None:
    assert RunDirectory(layout.directory).cancel_unstarted("s0", 1, "stopped", "because")


@pytest.mark.parametrize("claim", [claimed_by_supervisor, claimed_for_an_end])
def test_between_the_check_of_a_claim_and_the_claim_nobody_gives_the_session_away(
    layout: RunLayout, monkeypatch: pytest.MonkeyPatch, claim: Callable[[RunLayout], None]
) -> None:
    """Whoever gives it away looks for a claim, under the same lock, and finds it."""
    create, at = files.create, layout.attempt("s0", 1)
    found: list[bool] = []

    def give_away() -> None:
        with deals.locked(layout):
            found.append(Path(at.claim).exists())

    giver = threading.Thread(target=give_away)

    def slow(path: str, text: str = "") -> bool:
        if path == at.claim:
            giver.start()
            giver.join(0.3)
        return create(path, text)

    monkeypatch.setattr(files, "create", slow)
    claim(layout)
    giver.join()
    assert found == [True]


@pytest.mark.parametrize("claim", [claimed_by_supervisor, claimed_for_an_end])
def test_a_session_of_another_box_is_never_claimed(layout: RunLayout, claim: Callable[[RunLayout], None]) -> None:
    Path(layout.deal).write_text(deal({"s0": "b"}).text)
    with pytest.raises((Refusal, AssertionError)):
        claim(layout)
    assert not Path(layout.attempt("s0", 1).claim).exists()


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(Refusal) as found:
        act()
    return str(found.value.fact.code)


class Two:
    """Boxes a and b; s0 is dealt to a."""

    def __init__(self, place: Path) -> None:
        self.a, self.b = (Box(box(place, name).directory) for name in ("a", "b"))
        self.deal = deals.deal_of(self.a.layout)
        assert self.deal

    @property
    def first(self) -> Move:
        assert self.deal
        return self.deal.move("s0", "b")


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


@pytest.mark.parametrize("text", ["", '{"grid_run": "g", "bo', "[]"])
@pytest.mark.parametrize("claim", [claimed_by_supervisor, claimed_for_an_end])
def test_a_deal_that_can_not_be_read_lets_nothing_start(
    layout: RunLayout, claim: Callable[[RunLayout], None], text: str
) -> None:
    assert [row.flag for row in queue.rows(layout.queue)] == [""]
    Path(layout.deal).write_text(text)
    assert [row.flag for row in queue.rows(layout.queue)] == [DROPPED]
    assert not deals.runs_here(layout, "s0")
    with pytest.raises((Refusal, AssertionError)):
        claim(layout)
    assert not Path(layout.attempt("s0", 1).claim).exists()
    assert refusal(lambda: Box(layout.directory)) == Denial.DEAL_UNREADABLE


def test_a_released_session_is_refused_at_the_giver_and_starts_at_the_taker_only_with_its_record(two: Two) -> None:
    Path(two.b.layout.done).touch()
    answer = two.a.release(two.first)
    assert not deals.runs_here(two.a.layout, "s0")
    assert not deals.runs_here(two.b.layout, "s0"), "it has no record yet"
    two.b.receive(Move(answer["move"]))
    assert deals.runs_here(two.b.layout, "s0")
    assert not Path(two.b.layout.done).exists(), "the run goes on there"
    for claim in (claimed_by_supervisor, claimed_for_an_end):
        with pytest.raises((Refusal, AssertionError)):
            claim(two.a.layout)
    claimed_by_supervisor(two.b.layout)


def test_the_same_order_again_is_answered_and_another_one_is_refused(two: Two) -> None:
    first = two.first
    again = [two.a.release(first)["move"] for _ in range(2)]
    assert again == [first.data] * 2
    assert [two.b.receive(first)["gained"] for _ in range(2)] == [["s0"]] * 2
    other = Move({**first.data, "to": "c"})
    assert refusal(lambda: two.a.release(other)) == Stale.OTHER_MOVE
    known = deals.deal_of(two.b.layout)
    assert known
    back = known.move("s0", "a")
    assert back.epoch == 2
    two.b.release(back)
    two.a.receive(back)
    assert deals.runs_here(two.a.layout, "s0")
    assert refusal(lambda: two.b.receive(Move({**first.data, "epoch": 3, "number": [1, 0]}))) == Stale.OTHER_TIME
    for order, act in ((first, two.a.release), (first, two.b.receive)):
        act(order)  # done long ago
    assert deals.runs_here(two.a.layout, "s0"), "an old order changes nothing"


def test_what_may_not_move_stays(two: Two) -> None:
    first, release = two.first, two.a.release
    assert refusal(lambda: release(Move({**first.data, "epoch": 2}))) == Stale.EPOCH
    assert refusal(lambda: release(Move({**first.data, "grid_run": "h"}))) == Stale.OTHER_RUN
    assert refusal(lambda: release(Move({**first.data, "to": "c"}))) == Stale.NO_PLACE
    assert refusal(lambda: release(Move({**first.data, "to": "a"}))) == Stale.NO_PLACE
    assert refusal(lambda: two.b.release(first)) == Stale.OTHER_MOVE
    two.a.stop(1)
    assert refusal(lambda: release(first)) == Denial.GRID_RUN_STOPPED
    two.a._know(Stops(1, 1))
    at = two.a.layout.attempt("s0", 1)
    Path(at.output).mkdir(parents=True)
    Path(at.grant).write_text("{}\n")
    assert refusal(lambda: release(first)) == Stale.HAS_BEGUN
    Path(at.grant).unlink()
    two.a.fence(Era(1, "x"))
    assert refusal(lambda: release(first)) == Stale.FENCED


def test_a_record_that_could_not_be_synced_is_synced_before_it_is_answered_again(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut of the giver could undo what the taker has."""
    synced: list[str] = []
    broken = [True]

    def sync(path: str) -> None:
        if broken[0]:
            raise OSError(5, "Input/output error")
        synced.append(path)

    monkeypatch.setattr(files, "sync", sync)
    assert refusal(lambda: two.a.release(two.first)) == Denial.UNWRITABLE
    broken[0] = False
    two.a.release(two.first)
    record = two.a.layout.move("s0", (0, 0), 1, "out")
    assert synced == [record, two.a.layout.moves, two.a.layout.directory]


def test_no_record_gets_its_name_before_its_content_is_on_the_disk(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a power cut leaves an empty one, which nobody can read."""
    synced, named = set(), []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.add(os.fstat(fd).st_ino), sync(fd)))
    for way in ("link", "replace"):
        name = getattr(os, way)

        def checked(draft: str, path: str, name: Callable[..., None] = name) -> None:
            assert Path(draft).stat().st_ino in synced, path
            named.append(Path(path).name)
            name(draft, path)

        monkeypatch.setattr(os, way, checked)
    assert two.deal
    two.a.let_move(two.deal)
    two.a.release(two.first)
    two.b.receive(two.first)
    two.a.stop(1)
    two.a.fence(Era(1, "x"))
    assert named == ["moving.json", "s0.0.0.1.out", "s0.0.0.1.in", "stops.json", "fence.json"]


def test_a_record_of_what_was_taken_that_is_torn_is_written_again(two: Two) -> None:
    two.a.release(two.first)
    two.b.receive(two.first)
    record = Path(two.b.layout.move("s0", (0, 0), 1, "in"))
    record.write_text("")
    assert not deals.runs_here(two.b.layout, "s0")
    two.b.receive(two.first)
    assert deals.runs_here(two.b.layout, "s0")


def test_once_sessions_may_move_a_loss_needs_the_promises_of_all_that_are_left(two: Two) -> None:
    assert two.deal
    made = two.deal.renewed({}, {"b": {}}, Era())
    two.a.let_move(two.deal)
    assert not two.a.lose(made)["made"], "whoever made it does not know the moves"
    two.a.fence(Era(1, "x"))
    assert two.a.lose(two.deal.renewed({}, {"b": {}}, Era(1, "x")))["made"]


def test_the_next_deal_leaves_moved_sessions_where_they_are(two: Two) -> None:
    two.a.release(two.first)
    two.b.receive(two.first)
    known = Deal(two.b.look())
    after = known.renewed({}, {}, Era(1, "x"))
    assert after.of == {"s0": "b"}
    assert not after.moves
    for one in (two.a, two.b):
        one.take(after, Stops())
    assert deals.runs_here(two.b.layout, "s0")
    assert not deals.runs_here(two.a.layout, "s0")


def test_a_box_whose_run_was_removed_learns_again_what_has_gone_from_there(two: Two) -> None:
    two.a.release(two.first)
    two.b.receive(two.first)
    known = Deal(two.b.look())
    for path in Path(two.a.layout.moves).iterdir():
        path.unlink()
    assert deals.runs_here(two.a.layout, "s0")
    two.a.take(known, Stops())
    assert not deals.runs_here(two.a.layout, "s0")
    assert two.a.release(two.first)["move"] == two.first.data
    two.b.take(known, Stops())
    assert deals.runs_here(two.b.layout, "s0")


def test_an_older_move_and_one_of_other_boxes_leave_no_record(two: Two) -> None:
    assert two.deal
    first = two.first
    two.a.release(first)
    two.b.receive(first)
    old = Deal(two.b.look())
    back = old.move("s0", "a")
    two.b.release(back)
    two.a.receive(back)
    before = sorted(Path(two.a.layout.moves).iterdir())
    two.a.take(old, Stops())
    assert sorted(Path(two.a.layout.moves).iterdir()) == before
    assert deals.runs_here(two.a.layout, "s0")
    for path in Path(two.b.layout.moves).iterdir():
        path.unlink()
    two.b.take(two.deal.moved([Move({**first.data, "to": "c"})]), Stops())
    assert not [*Path(two.b.layout.moves).iterdir()], "s0 was never there"


def test_what_has_begun_there_since_stays(two: Two) -> None:
    """Its record was never surely on the disk, so nobody has taken it."""
    assert two.deal
    at = Path(two.a.layout.attempt("s0", 1).claim)
    at.parent.mkdir(parents=True)
    at.touch()
    two.a.take(two.deal.moved([two.first]), Stops())
    assert deals.runs_here(two.a.layout, "s0")


def test_what_a_lost_box_had_is_due_until_it_begins(two: Two) -> None:
    assert two.deal
    assert not two.b.look()["due"]
    two.b.take(two.deal.renewed({"s0": "b"}, {"a": {"s0": []}}, Era(1, "x")), Stops())
    assert two.b.look()["due"], "whoever gave it may have died before the dispatcher was started"
    at = Path(two.b.layout.attempt("s0", 1).claim)
    at.parent.mkdir(parents=True)
    at.touch()
    assert not two.b.look()["due"]


def test_nothing_is_due_where_it_can_not_begin_or_begins_by_itself(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    assert two.deal
    lost = {"a": {"s0": [], "one_of_its_combos": []}}
    two.b.take(two.deal.renewed({"s0": "b"}, lost, Era(1, "x")), Stops())
    layout = two.b.layout
    for path, text in ((layout.stopped, ""), (layout.hold, '{"kind": "paused"}\n')):
        Path(path).write_text(text)
        assert not two.b.look()["due"], path
        Path(path).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(process, "named", lambda _: True)
        assert not two.b.look()["due"], "its dispatcher lives"
    assert two.b.look()["due"]
    at = Path(layout.attempt("s0", 1).claim)
    at.parent.mkdir(parents=True)
    at.touch()
    assert not two.b.look()["due"], "a combo begins with its process"


def test_what_came_and_went_on_is_not_due(two: Two) -> None:
    two.a.release(two.first)
    two.b.receive(two.first)
    two.b.release(Deal(two.b.look()).move("s0", "a"))
    assert not two.b.look()["due"]


def test_a_session_that_came_under_a_former_deal_is_due_until_it_begins(two: Two) -> None:
    two.a.release(two.first)
    two.b.receive(two.first)
    assert two.b.look()["due"]
    two.b.take(Deal(two.b.look()).renewed({}, {}, Era(1, "x")), Stops())
    assert two.b.look()["due"], "whoever moved it may have died before"


class Taking:
    """A dispatcher that has just granted s0, without its loop."""

    def __init__(self, layout: RunLayout) -> None:
        self.released: list[tuple[Session, object]] = []
        self.launcher = object.__new__(Launcher)
        self.launcher._run = SimpleNamespace(layout=layout, attempts=RunDirectory(layout.directory))  # type: ignore[assignment]
        self.launcher._windows = SimpleNamespace(forget=lambda _: None, give_up=lambda _: None)  # type: ignore[assignment]
        release = self.released.append
        self.launcher._ends = SimpleNamespace(release=lambda *what: release(what))  # type: ignore[assignment]
        self.session = Session("s0", 0)
        self.session.attempt, self.session.state = 1, starting(())
        at = layout.attempt("s0", 1)
        Path(at.directory).mkdir(parents=True)
        self.grant, self.claim = Path(at.grant), Path(at.claim)
        self.grant.write_text("{}\n")

    def told(self, how: str) -> None:
        assert isinstance(self.session.state, Starting)
        self.session.state.due = 0.0
        why = Fact("supervisor_left")
        if how == "refused":
            self.launcher.refused(self.session, why)
        else:
            self.launcher.overdue(self.session, self.session.state)


@pytest.mark.parametrize("how", ["refused", "overdue"])
def test_a_grant_that_came_too_late_is_taken_back(layout: RunLayout, how: str) -> None:
    """Else its attempt would be on record here, and nobody could move it on."""
    late = Taking(layout)
    Path(layout.deal).write_text(deal({"s0": "b"}).text)
    late.told(how)
    assert not late.grant.exists()
    assert late.session.attempt == 0
    assert [type(state) for _, state in late.released] == [Dropped]
    assert not RunDirectory(layout.directory).latest("s0")


def test_what_was_claimed_is_not_taken_back(layout: RunLayout) -> None:
    late = Taking(layout)
    late.claim.touch()
    Path(layout.deal).write_text(deal({"s0": "b"}).text)
    late.told("refused")
    assert late.grant.exists()
    assert not late.released


def test_a_start_for_moves_lifts_no_stop_and_tells_the_dispatcher(
    layout: RunLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, ...]] = []
    for name in ("_choose", "_leave"):
        monkeypatch.setattr(start.Start, name, lambda *_: None)
    monkeypatch.setattr(start.Start, "_signed", lambda _: "1")
    monkeypatch.setattr(start.Start, "_dispatcher", lambda _, *words: told.append(words))
    monkeypatch.setattr(start.secrets, "gather", lambda *_: None)
    monkeypatch.setattr(start, "replace", lambda _: None)
    monkeypatch.setattr(start, "say", lambda _: None)
    for options, stays in (({"--for": "moves"}, True), ({}, False)):
        Path(layout.stopped).touch()
        start.Start(layout.directory).start(options)
        assert Path(layout.stopped).exists() == stays
    assert told == [("moves",), ()]


@pytest.mark.parametrize(
    ("number", "kind", "known"),
    [((0, 0), "out", False), ((0, 0), "in", True), ((0, 1), "out", True)],
)
def test_where_a_record_of_what_has_gone_is_torn_nothing_starts(
    layout: RunLayout, number: tuple[int, int], kind: str, known: bool
) -> None:
    path = Path(layout.move("s0", number, 1, kind))
    path.parent.mkdir()
    path.write_text('{"grid_run": "g", "sess')
    assert deals.runs_here(layout, "s0") == known
    if known:
        deals.readable_deal_of(layout)
    else:
        with pytest.raises(Refusal) as refused:
            deals.readable_deal_of(layout)
        assert refused.value.fact.fields == {"path": str(path), "session": "s0", "taken": "moves/s0.0.0.1.in"}
        assert f"`rm {path}` keeps s0 here" in say(refused.value.fact)


def test_a_deal_that_comes_while_it_is_read_is_not_unreadable(
    layout: RunLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path(layout.deal).read_text()
    Path(layout.deal).unlink()

    def read(*_: object) -> str:
        Path(layout.deal).write_text(text)
        return ""

    monkeypatch.setattr(files, "read_text", read)
    assert deals.deal_of(layout) is None
