"""A model of boxes that share a grid: claims, moves, losses, stops and returns in any order, with the code of hosts.

Laptops act on what they saw last, which may be old. Each of their orders is a step of its own, so those of two laptops
come in every order, with kills between them. A box that can't be reached goes on. A record that was not synced may be
gone after a power cut. In the end all come back, and one look brings each session to one box that starts it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from comborun.api.joint import newest_of
from comborun.api.moving import unfinished
from comborun.host.record import deals
from comborun.host.record.run_directory import RunDirectory
from comborun.host.system import files
from comborun.host.verb_errors import Refusal
from comborun.host.verbs.boxes import Box
from comborun.remote.boxes import BoxState
from comborun.rules.deal import Deal, Era, Move, Stops, begins_era, counting, redealt
from comborun.rules.names import RunLayout
from comborun.rules.run_files import attempts_of

BOXES = ("a", "b", "c", "d")
SESSIONS = tuple(f"s{number}" for number in range(6))
EPISODES = 4
EXAMPLES = 400 if os.environ.get("COMBORUN_SLOW") else 25
box_names, session_names = st.sampled_from(BOXES), st.sampled_from(SESSIONS)
laptops = st.sampled_from(("one", "two"))


class Killed(Exception):  # noqa: N818
    """The process ends here."""


class Laptop:
    """What it saw last, and a loss that it is in the middle of."""

    def __init__(self) -> None:
        self.seen: dict[str, BoxState] = {}
        self.loss: dict[str, Any] = {}
        self.moving: set[tuple[int, int, str]] = set()
        """the deals under which the arbiter has said that sessions may move"""
        self.released: list[Move] = []
        """moves that it may complete, old ones too"""

    @property
    def newest(self) -> Deal:
        return newest_of(self.seen)[0]

    @property
    def stops(self) -> Stops:
        return newest_of(self.seen)[1] if self.seen else Stops()


class SeveralBoxes(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.place = Path(
            tempfile.mkdtemp(prefix="boxes-model-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        )
        of = {name: BOXES[place % len(BOXES)] for place, name in enumerate(SESSIONS)}
        first = Deal({"grid_run": "g", "box": "a", "number": [0, 0], "boxes": list(BOXES), "of": of, "lost": {}})
        for name in BOXES:
            layout = RunLayout(str(self.place / name))
            for folder in (layout.dispatch, f"{layout.directory}/boxes"):
                Path(folder).mkdir(parents=True)
            Path(layout.id).write_text(f"run-{name}\n")
            Path(layout.deal).write_text(first.at(name).text)
        self.away: set[str] = set()
        self.laptops = {"one": Laptop(), "two": Laptop()}
        self.claimed: set[tuple[str, str]] = set()
        self.checked: dict[str, tuple[str, ExitStack]] = {}
        """box -> a session whose claim it has checked, and the lock that it holds"""
        self.unsynced: dict[str, str | None] = {}
        """path -> the text that a power cut leaves there"""
        self.on_disk: dict[str, str] = {}
        """path -> its text when it was last synced"""
        self.dispatching = {*BOXES}
        self.recorded: dict[tuple[str, str], set[int]] = {}
        self.counted: dict[tuple[str, str], set[int]] = {}
        """lost box, session -> its episodes that count"""
        self.stop_number = 0

    def teardown(self) -> None:
        for _, held in self.checked.values():
            held.close()
        try:
            self.all_come_back()
        finally:
            shutil.rmtree(self.place)

    def layout(self, box: str) -> RunLayout:
        return RunLayout(str(self.place / box))

    def call(self, box: str, action: str, *words: Any) -> dict[str, Any] | None:
        """The answer of a box; None if it can't be reached, or refuses."""
        if box in self.away:
            return None
        try:
            with deals.locked(self.layout(box)):
                answer: dict[str, Any] = getattr(Box(str(self.place / box)), action)(*words)
        except Refusal:
            return None
        lives = box in self.dispatching
        return {**answer, "lives": lives, "due": answer["due"] and not lives}

    # What goes on without anybody

    @rule(box=box_names)
    def cut(self, box: str) -> None:
        self.away ^= {box}

    @rule(box=box_names, session=session_names)
    def grant(self, box: str, session: str) -> None:
        """A dispatcher gives a session a slot; that holds no lock."""
        if deals.runs_here(self.layout(box), session):
            at = self.layout(box).attempt(session, 1)
            Path(at.directory).mkdir(parents=True, exist_ok=True)
            Path(at.grant).write_text("{}\n")

    @rule(box=box_names, session=session_names)
    def check(self, box: str, session: str) -> None:
        """A supervisor begins, or a person starts the session on the host itself."""
        if box in self.checked:
            return
        held = ExitStack()
        try:
            held.enter_context(deals.claiming(self.layout(box), session))
            deals.refuse_stopped(self.layout(box))
        except Refusal:
            held.close()
            with suppress(FileNotFoundError):  # the dispatcher takes it back
                Path(self.layout(box).attempt(session, 1).grant).unlink()
            return
        self.checked[box] = session, held

    @rule(box=box_names, killed=st.booleans())
    def create(self, box: str, killed: bool) -> None:
        """It claims the attempt, unless it is killed before."""
        if box not in self.checked:
            return
        session, held = self.checked.pop(box)
        if not killed:
            at = self.layout(box).attempt(session, 1)
            Path(at.directory).mkdir(parents=True, exist_ok=True)
            Path(at.claim).touch()
            self.claimed.add((session, box))
        held.close()

    @rule(box=box_names, session=session_names)
    def claim_for_an_end(self, box: str, session: str) -> None:
        """A retry or a stop on the host itself writes the end of an attempt that never began."""
        if box in self.checked:
            return
        with suppress(Refusal, AssertionError):
            if RunDirectory(self.layout(box).directory).cancel_unstarted(session, 1, "stopped", "because"):
                self.claimed.add((session, box))

    @rule(box=box_names)
    def dispatcher_leaves(self, box: str) -> None:
        """It starts all that it has, and leaves when nothing waits."""
        for session in self.waiting(box):
            self.claim(box, session)
        if not self.waiting(box):
            self.dispatching.discard(box)

    def waiting(self, box: str) -> list[str]:
        layout = self.layout(box)
        return [name for name in SESSIONS if deals.runs_here(layout, name) and not attempts_of(layout, name)]

    def claim(self, box: str, session: str) -> None:
        self.check(box, session)
        self.create(box, killed=False)

    @rule(box=box_names)
    def power_cut(self, box: str) -> None:
        for path in [path for path in self.unsynced if path.startswith(f"{self.place / box}/")]:
            before = self.unsynced.pop(path)
            Path(path).unlink() if before is None else Path(path).write_text(before)

    @rule(box=box_names, session=session_names)
    def record(self, box: str, session: str) -> None:
        if (session, box) in self.claimed:
            done = self.recorded.setdefault((box, session), set())
            done.add(min(len(done), EPISODES - 1))

    # What laptops do, from what they saw last

    @rule(laptop=laptops)
    def look(self, laptop: str) -> None:
        for box in BOXES:
            self.saw(laptop, box, self.call(box, "look"))

    def saw(self, laptop: str, box: str, answer: dict[str, Any] | None) -> None:
        if answer:
            self.laptops[laptop].seen[box] = BoxState.of(answer)

    @rule(laptop=laptops, box=box_names)
    def settle(self, laptop: str, box: str) -> None:
        own = self.laptops[laptop]
        if own.seen:
            self.saw(laptop, box, self.call(box, "take", own.newest.at(box), own.stops))

    @rule(laptop=laptops, box=box_names)
    def start_for_moves(self, laptop: str, box: str) -> None:
        """Start the dispatcher of a box that has got sessions, by what was seen last."""
        state = self.laptops[laptop].seen.get(box)
        if state and (state.gained or state.due) and not state.lives and box not in self.away:
            with suppress(Refusal):
                deals.refuse_stopped(self.layout(box))
                self.dispatching.add(box)

    @rule(laptop=laptops, killed=st.booleans(), place=st.integers(0, 9))
    def complete(self, laptop: str, killed: bool, place: int) -> None:
        """What each look does with a move that somebody else has begun."""
        own = self.laptops[laptop]
        moves = unfinished(own.seen, own.newest) if own.seen else []
        if place < len(moves) and self.ordered(moves[place].giver, "release", moves[place]) and not killed:
            self.saw(laptop, moves[place].taker, self.ordered(moves[place].taker, "receive", moves[place]))

    @rule(laptop=laptops, box=box_names)
    def stop(self, laptop: str, box: str) -> None:
        stops = self.laptops[laptop].stops
        number = max(stops.stop, stops.resumed) + 1
        if self.call(box, "stop", number):
            self.stop_number = max(self.stop_number, number)

    @rule(laptop=laptops, box=box_names)
    def resume(self, laptop: str, box: str) -> None:
        own = self.laptops[laptop]
        if own.seen:
            lifted, before = own.stops.joined(Stops(0, own.stops.stop)), deals.stops_of(self.layout(box))
            self.call(box, "take", own.newest.at(box), lifted)
            if before.in_force and before.stop > lifted.stop:
                assert deals.stops_of(self.layout(box)).in_force, "an older order lifted a newer stop"

    @rule(laptop=laptops, killed=st.booleans())
    def let_move(self, laptop: str, killed: bool) -> None:
        own = self.laptops[laptop]
        if not own.seen:
            return
        arbiter = own.newest.arbiter
        if own.newest.moves:
            own.moving.add(own.newest.rank)  # as moving.Mover does
        elif answer := self.ordered(arbiter, "let_move", own.newest, killed=killed):
            self.saw(laptop, arbiter, answer)
            own.moving.add(Deal(answer).rank)

    @rule(laptop=laptops, session=session_names, to=box_names, again=st.booleans(), killed=st.booleans())
    def release(self, laptop: str, session: str, to: str, again: bool, killed: bool) -> None:
        """Let the box that has it give it to another one, or ask for the answer of its last move once more."""
        own = self.laptops[laptop]
        if not own.seen or own.newest.rank not in own.moving:
            return
        last = own.newest.moves.get(session)
        move = last if again and last else own.newest.move(session, to)
        if answer := self.ordered(move.giver, "release", move, killed=killed):
            own.released.append(Move(answer["move"]))
            self.saw(laptop, move.giver, answer)

    @rule(laptop=laptops, place=st.integers(-1, 9), killed=st.booleans())
    def receive(self, laptop: str, place: int, killed: bool) -> None:
        """Let the box that takes it know, perhaps much later."""
        moves = self.laptops[laptop].released
        if 0 <= place < len(moves):
            taker = moves[place].taker
            self.saw(laptop, taker, self.ordered(taker, "receive", moves[place], killed=killed))

    @rule(laptop=laptops, session=session_names, to=box_names, dies=st.integers(0, 6))
    def move(self, laptop: str, session: str, to: str, dies: int) -> None:
        """All steps of a move in one go, up to the death of whoever takes them. What it saw may be old."""
        steps: list[Callable[[bool], object]] = [
            lambda _: self.look(laptop),
            lambda killed: self.let_move(laptop, killed=killed),
            lambda killed: self.release(laptop, session, to, again=False, killed=killed),
            lambda killed: self.receive(laptop, len(self.laptops[laptop].released) - 1, killed=killed),
            lambda _: self.start_for_moves(laptop, to),
        ]
        for number, step in enumerate(steps):
            if number > dies:
                return
            step(number == dies)

    @rule(laptop=laptops, lost=box_names, dies=st.integers(0, 8), word=st.uuids())
    def lose_in_one_go(self, laptop: str, lost: str, dies: int, word: object) -> None:
        self.look(laptop)
        self.lose(laptop, {lost}, word)
        for number in range(min(dies, len(BOXES))):
            self.go_on(laptop, killed=number == dies - 1)

    def ordered(self, box: str, action: str, *words: Any, killed: bool = False) -> dict[str, Any] | None:
        """The answer; without one if it is killed before its record is surely on the disk."""
        layout = self.layout(box)
        replaced = (layout.moving, layout.fence, layout.deal, layout.stops)
        before = {path: files.read_text(path) for path in replaced if Path(path).exists()}

        def die(path: str) -> None:
            if files.read_text(path) != self.on_disk.get(path):
                self.unsynced.setdefault(path, before.get(path))
            raise Killed

        def sync(path: str) -> None:
            self.on_disk[path] = files.read_text(path)
            self.unsynced.pop(path, None)

        to_disk, deals.to_disk = deals.to_disk, die if killed else sync
        try:
            return self.call(box, action, *words)
        except Killed:
            return None
        finally:
            deals.to_disk = to_disk

    @precondition(lambda self: any(one.seen and not one.loss for one in self.laptops.values()))
    @rule(laptop=laptops, lost=st.sets(box_names, min_size=1, max_size=2), word=st.uuids())
    def lose(self, laptop: str, lost: set[str], word: object) -> None:
        """A person gives up boxes, rightly or not. What follows are steps of their own."""
        own = self.laptops[laptop]
        newest = own.newest if own.seen else None
        if newest is None or own.loss or lost <= {*newest.lost} or not [box for box in newest.left if box not in lost]:
            return
        eras = [state.era for box, state in own.seen.items() if box not in lost]
        moving = any(state.moving for box, state in own.seen.items() if box not in lost)
        if begins_era(newest, lost, eras, moving=moving):
            era = Era(max([newest.number[0], *(one.number for one in eras)]) + 1, str(word))
            left = [box for box in newest.left if box not in lost]
            own.loss = {"lost": lost, "era": era, "asks": left, "promised": []}
        else:
            own.loss = {"lost": lost, "era": Era(*newest.number[:1], newest.maker), "asks": [], "promised": [newest]}

    @precondition(lambda self: any(one.seen and not one.loss for one in self.laptops.values()))
    @rule(laptop=laptops, word=st.uuids())
    def call_off(self, laptop: str, word: object) -> None:
        """A loss was begun and cut off, by what was seen, and the box answers: an era without a loss."""
        own = self.laptops[laptop]
        newest = own.newest if own.seen else None
        eras = [state.era.number for state in own.seen.values()]
        if newest and not own.loss and max(eras) > newest.number[0]:
            era = Era(max(eras) + 1, str(word))
            own.loss = {"lost": set(), "era": era, "asks": [*newest.left], "promised": []}

    @precondition(lambda self: any(one.loss for one in self.laptops.values()))
    @rule(laptop=laptops, killed=st.booleans())
    def go_on(self, laptop: str, killed: bool) -> None:
        """The next step of a loss: a promise of one box, or the record at the arbiter."""
        own = self.laptops[laptop]
        if not own.loss:
            return
        loss = own.loss
        if loss["asks"]:
            answer = self.ordered(loss["asks"].pop(0), "fence", loss["era"], killed=killed)
            if answer is None:
                own.loss = {}
                return
            loss["promised"].append(Deal(answer))
            return
        own.loss = {}
        moves = [move for one in loss["promised"] for move in one.moves.values()]
        newest = max(loss["promised"], key=lambda one: one.rank).moved(moves)
        left = [box for box in newest.left if box not in loss["lost"]]
        gone = [box for box in loss["lost"] if box not in newest.lost]
        if not left or (loss["lost"] and not gone):
            return
        complete = {name for name, box in newest.owners.items() if len(self.recorded.get((box, name), ())) == EPISODES}
        moved = redealt(newest, gone, complete, {})
        records = {box: {name: self.spans(box, name) for name in moved if newest.box_of(name) == box} for box in gone}
        deal = newest.renewed(moved, records, loss["era"])
        self.write(left[0], deal, killed=killed)

    def write(self, arbiter: str, deal: Deal, *, killed: bool) -> None:
        if not killed:
            self.call(arbiter, "lose", deal)
            return
        box = Box(str(self.place / arbiter))
        box._put = self.die  # type: ignore[method-assign]
        if arbiter not in self.away:
            with suppress(Killed, Refusal), deals.locked(box.layout):
                box.lose(deal)

    @staticmethod
    def die(*_: object) -> Any:
        raise Killed

    def spans(self, box: str, session: str) -> list[list[int]]:
        done = self.recorded.get((box, session), set())
        return [[0, len(done)]] if done else []

    def all_come_back(self) -> None:
        """One laptop that looks again and again, and gives up a box again if somebody has begun that and died."""
        self.away.clear()
        for _ in range(3):
            self.look_and_mend()
        newest, stops = newest_of(self.laptops["one"].seen)
        if stops.in_force or any(one.era.number > newest.number[0] for one in self.laptops["one"].seen.values()):
            return
        for session in SESSIONS:
            owners = [box for box in newest.left if deals.runs_here(self.layout(box), session)]
            assert len(owners) == 1, f"{session} would run on {owners}"
        for box in newest.left:
            assert box in self.dispatching or not self.waiting(box), f"nobody starts {self.waiting(box)} on {box}"

    def look_and_mend(self) -> None:
        self.look("one")
        seen = self.laptops["one"].seen
        newest, stops = newest_of(seen)
        if max(state.era.number for state in seen.values()) > newest.number[0]:
            self.lose_again()
            return
        for box, state in [*seen.items()]:
            if state.deal.rank < newest.rank or state.stops.data != stops.data:
                self.settle("one", box)
        if not stops.in_force:
            for place in reversed(range(len(unfinished(seen, newest)))):
                self.complete("one", killed=False, place=place)
            for box in BOXES:
                self.start_for_moves("one", box)

    def lose_again(self) -> None:
        self.laptops["one"].loss = {}
        left = self.laptops["one"].newest.left
        if len(left) > 1:
            self.lose("one", {left[-1]}, "again")
            for _ in range(len(left)):
                self.go_on("one", killed=False)

    # What always holds

    def newest(self) -> Deal:
        found = [deal for box in BOXES if (deal := deals.deal_of(self.layout(box)))]
        for box in BOXES:
            for path in Path(self.layout(box).lost).glob("[a-z]*"):
                found.append(Deal(json.loads(path.read_text())))  # noqa: PERF401
        return max(found, key=lambda one: one.rank)

    @invariant()
    def what_the_guarantee_says(self) -> None:
        deal = self.newest()
        for session in SESSIONS:
            places = {box for name, box in self.claimed if name == session and box not in deal.lost}
            assert len(places) <= 1, f"{session} runs on {sorted(places)}"
            owners = [box for box in deal.left if deals.runs_here(self.layout(box), session)]
            assert len(owners) <= 1, f"{owners} would start {session}"
            chain = counting(deal, session, session)
            assert len({box for box, _ in chain}) == len(chain), "a box stands twice"
            for box, ranges in chain[:-1]:
                mine = {one for first, stop in ranges or () for one in range(first, stop)}
                before = self.counted.setdefault((f"{deal.rank}{box}", session), mine)
                assert before == mine, "what counts of a lost box has changed"
                assert mine <= self.recorded.get((box, session), set())


SeveralBoxes.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestSeveralBoxes = SeveralBoxes.TestCase


@pytest.fixture(autouse=True)
def without_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deals, "to_disk", lambda _: None)
    monkeypatch.setattr(deals, "_LOCK_S", 0.0)


@pytest.fixture
def model() -> Iterator[SeveralBoxes]:
    made = SeveralBoxes()
    yield made
    made.teardown()


def test_of_two_who_give_up_different_boxes_at_once_one_gets_no_promise(model: SeveralBoxes) -> None:
    """Else both would be arbiters' deals of one number, and a session of `a` would run at two places."""
    for laptop, lost, word in (("one", {"a"}, "y"), ("two", {"a", "b"}, "x")):
        model.look(laptop)
        model.lose(laptop, lost, word)
    for laptop in ("one", "two"):
        for _ in range(4):
            model.go_on(laptop, killed=False)
    written = [path for box in BOXES for path in Path(model.layout(box).lost).glob("*")]
    assert len(written) == 1
    for laptop in ("one", "two"):
        model.look(laptop)
        for box in BOXES:
            model.settle(laptop, box)
    for box in BOXES[1:]:
        for session in SESSIONS:
            model.claim(box, session)
    model.what_the_guarantee_says()


def test_a_session_that_is_dealt_elsewhere_is_refused_at_its_claim(model: SeveralBoxes) -> None:
    model.claim("b", "s0")
    model.claim("a", "s0")
    assert model.claimed == {("s0", "a")}


def test_no_deal_takes_a_session_from_a_box_that_is_not_lost(model: SeveralBoxes) -> None:
    model.look("one")
    first = model.laptops["one"].newest
    assert first.of["s1"] == "b"
    given = first.renewed({"s1": "a"}, {"c": {}}, Era())
    assert model.call("b", "take", given, Stops()) is None
    assert deals.runs_here(model.layout("b"), "s1")


def test_a_box_that_knows_of_a_loss_takes_no_deal_from_before_it(model: SeveralBoxes) -> None:
    model.look("one")
    old = model.laptops["one"].newest
    model.lose("one", {"b"}, "x")
    model.go_on("one", killed=False)
    model.look("two")
    model.settle("two", "d")
    assert "b" in deals.deal_of(model.layout("d")).lost  # type: ignore[union-attr]
    assert model.call("d", "take", old, Stops()) is None
    assert "b" in deals.deal_of(model.layout("d")).lost  # type: ignore[union-attr]


def released(model: SeveralBoxes, laptop: str, session: str, to: str, **kill: bool) -> None:
    model.look(laptop)
    model.let_move(laptop, killed=False)
    model.release(laptop, session, to, again=False, killed=kill.get("killed", False))


def test_a_release_that_a_power_cut_takes_back_counts_for_no_loss_that_came_in_between(model: SeveralBoxes) -> None:
    """Whoever gave s1 away died before the record was synced; the promise of the box has told of it."""
    released(model, "one", "s1", "c", killed=True)
    model.look("two")
    model.lose("two", {"d"}, "x")
    for _ in range(4):
        model.go_on("two", killed=False)
    model.power_cut("b")
    model.check("b", "s1")
    model.create("b", killed=False)
    model.look("two")
    for box in BOXES[:3]:
        model.settle("two", box)
        model.claim(box, "s1")
    model.what_the_guarantee_says()


def test_nobody_relies_on_a_word_of_the_first_box_that_a_power_cut_may_take_back(model: SeveralBoxes) -> None:
    """It has said that sessions may move, and was killed before that was synced: then a loss would ask nobody."""
    model.look("one")
    model.let_move("one", killed=True)
    model.look("two")
    model.let_move("two", killed=False)
    model.release("two", "s1", "c", again=False, killed=False)
    model.receive("two", 0, killed=False)
    model.claim("c", "s1")
    model.power_cut("a")
    model.away |= {"b", "c"}
    model.laptops["one"].seen.clear()
    model.look("one")
    model.lose("one", {"d"}, "x")
    for _ in range(4):
        model.go_on("one", killed=False)
    model.away.clear()
    model.look("one")
    for box in BOXES[:3]:
        model.settle("one", box)
        model.claim(box, "s1")
    model.what_the_guarantee_says()
