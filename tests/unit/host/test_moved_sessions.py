"""Sessions of a grid run that go to another box: who may start them, and who may give and take them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from comborun.host.record import deals
from comborun.host.record.run_directory import RunDirectory
from comborun.host.supervise import supervisor
from comborun.host.supervise.attempt import Attempt, Place
from comborun.host.system import files
from comborun.host.verb_errors import Refusal
from comborun.rules.deal import Deal
from comborun.rules.names import RunLayout


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
    create, at, found = files.create, layout.attempt("s0", 1), list[bool]()

    def give_away() -> None:
        with deals.locked(layout):
            found.append(os.path.exists(at.claim))

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
    assert not os.path.exists(layout.attempt("s0", 1).claim)
