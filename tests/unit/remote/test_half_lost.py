"""`combo hosts lost` may be cut off at any step: the next look says so, and the same command ends it either way."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import monitor_stage as stage
import pytest
from hosts_stage import Hosts, Killed, hosts_at

from comborun.api import joint, losing
from comborun.api.joint_look import half_lost
from comborun.api.losing import Loss, give_up, planned_loss
from comborun.api.moving import complete
from comborun.cli import hosts
from comborun.errors import UserError
from comborun.host.verbs.boxes import Box
from comborun.monitor import observe
from comborun.remote import boxes
from comborun.remote.boxes import Answered, BoxState
from comborun.rules.deal import Deal, Era, redealt
from comborun.words import say

STEPS = 18
"""of a loss and the look before it, at most: each is an order, with a kill before or behind it"""


class Losing:
    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts
        self.target: Any = SimpleNamespace(
            run="RUN", boxes=[*hosts.parts.values()], listener=SimpleNamespace(note=lambda _: None)
        )

    def lose(self, *names: str, stop: bool = False) -> None:
        give_up(self.target, planned_loss(self.target, names, stop=stop, ask=lambda _: True))

    def move(self, session: str, to: str) -> None:
        deal = self.deal
        boxes.let_move(*self.hosts.parts["a"].place, deal)
        complete(self.hosts.parts, deal.move(session, to))

    @property
    def there(self) -> dict[str, BoxState]:
        return joint.states(self.target).done

    @property
    def deal(self) -> Deal:
        return joint.newest_of(self.there)[0]

    @property
    def said(self) -> str:
        fact = half_lost(self.there, self.deal, "RUN")
        return say(fact) if fact else ""

    def places(self) -> dict[str, list[str]]:
        """Session -> the hosts that would start it, without those that were given up."""
        lost = self.deal.lost
        return {name: [one for one in found if one not in lost] for name, found in self.hosts.owners().items()}

    def killed_at(self, step: int, *names: str) -> bool:
        """Whether a loss has so many steps."""
        left = [step]

        def trouble() -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed

        self.hosts.trouble = trouble
        with suppress(Killed):
            self.lose(*names)
        self.hosts.trouble = lambda: None
        return left[0] < 0


@pytest.fixture
def losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Losing:
    """Three hosts; the orders to them follow each other."""

    def dealt(_: object, newest: Deal, era: Era, lost: Sequence[str], *__: object) -> Loss:
        moved = redealt(newest, lost, (), {})
        kept: Mapping[str, Any] = {host: {} for host in lost if host not in newest.lost}
        return Loss(newest, (*lost,), next(one for one in newest.left if one not in lost), era, moved, kept)

    def in_turn(acts: Mapping[str, Any], *_: object) -> Answered[Any]:
        found = Answered[Any]({}, {})
        for name, act in acts.items():
            try:
                found.done[name] = act()
            except UserError as error:
                found.failed[name] = error
        return found

    monkeypatch.setattr(losing, "_loss", dealt)
    for module in (losing, joint):
        monkeypatch.setattr(module, "at_once", in_turn)
    monkeypatch.setattr(losing.run_orders, "stop", lambda *_: None)
    return Losing(hosts_at(tmp_path, monkeypatch))


CASES = [(lost, step) for lost in ("a", "c") for step in range(STEPS)]


def cut_off(losses: Losing, lost: str, step: int) -> str:
    """A session moves, and the loss of a host ends at a step. Returns what the next look says."""
    losses.move("s1", "a" if lost != "a" else "c")
    losses.hosts.away = {lost}
    losses.killed_at(step, lost)
    places = losses.places()
    assert all(len(found) <= 1 for found in places.values()), places
    promised = any(Path(one.fence).exists() for one in losses.hosts.layouts.values())
    said = losses.said
    assert bool(said) == (promised and lost not in losses.deal.lost)
    return said


def promised(losses: Losing) -> None:
    for host in ("a", "b"):
        part = losses.hosts.parts[host]
        boxes.fence(*part.place, Era(1, "x"), ["c"])
    assert losses.said


def test_what_was_called_off_stays_so_if_the_first_host_is_cut_off_behind_its_record(
    losses: Losing, monkeypatch: pytest.MonkeyPatch
) -> None:
    promised(losses)

    def dies(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(Box, "_put", dies)
        losses.lose("c")
    assert not losses.said
    assert losses.deal.number == (2, 0)


def test_nothing_is_called_off_if_another_command_was_faster(losses: Losing, monkeypatch: pytest.MonkeyPatch) -> None:
    promised(losses)
    monkeypatch.setattr(boxes, "lose", lambda *_: losses.there["a"]._replace(made=False))
    with pytest.raises(UserError, match="another command has just changed"):
        losses.lose("c")


def test_a_host_that_the_run_does_not_have_is_refused(losses: Losing) -> None:
    with pytest.raises(UserError, match="RUN does not run on z") as found:
        losses.lose("z")
    assert found.value.code == "unknown_host"


@pytest.mark.parametrize("stop", [False, True])
def test_before_a_person_has_agreed_nothing_is_promised_and_nothing_stopped(
    losses: Losing, monkeypatch: pytest.MonkeyPatch, stop: bool
) -> None:
    losses.hosts.away = set() if stop else {"c"}
    losses.move("s1", "a")
    monkeypatch.setattr(hosts.sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(losing.run_orders, "stop", lambda *_: pytest.fail("stopped"))

    def refused(*_: object, **__: object) -> bool:
        raise click.Abort

    monkeypatch.setattr(hosts.click, "confirm", refused)
    command: Any = inspect.unwrap(hosts.lost.callback)  # type: ignore[arg-type]
    with pytest.raises(click.Abort):
        command(("c",), losses.target, as_json=False, stop=stop, dry_run=False, yes=False)
    assert not losses.said


@pytest.mark.parametrize("lost", ["a", "c"])
def test_it_has_so_many_steps(losses: Losing, lost: str) -> None:
    losses.move("s1", "a" if lost != "a" else "c")
    losses.hosts.away = {lost}
    assert not losses.killed_at(STEPS, lost)


@pytest.mark.parametrize(("lost", "step"), CASES)
def test_a_loss_that_was_cut_off_is_told_and_ends_with_the_same_command(losses: Losing, lost: str, step: int) -> None:
    said = cut_off(losses, lost, step)
    assert said in {"", f"`combo hosts lost {lost} --run RUN` was cut off, and nothing moves until it is given again"}
    losses.lose(lost)
    assert not losses.said
    assert [*losses.deal.lost] == [lost]
    places = losses.places()
    assert all(len(found) == 1 for found in places.values()), places


@pytest.mark.parametrize(("lost", "step"), CASES)
def test_if_the_host_answers_again_the_same_command_calls_it_off_and_sessions_move(
    losses: Losing, lost: str, step: int
) -> None:
    before = cut_off(losses, lost, step)
    losses.hosts.away.clear()
    joint.settle(losses.target, joint.states(losses.target).done)
    if lost in losses.deal.lost:
        return
    assert losses.said == (f"{before}; {lost} answers, so it calls this off" if before else "")
    with pytest.raises(UserError, match="is called off" if before else "so it is not lost$"):
        losses.lose(lost)
    assert not losses.said
    assert not losses.deal.lost
    losses.move("s5", "b")
    places = losses.places()
    assert places["s5"] == ["b"]
    assert all(len(found) == 1 for found in places.values()), places


@pytest.mark.parametrize(
    ("looked", "copied", "again", "said"),
    [
        (False, [], None, "! this machine has no copy of the records of b: all its sessions run again; how many"),
        (True, [], 3, "all its sessions run again; its last look showed 3 episodes\n"),
        (True, [[0, 2]], 1, "! b: its last look showed 1 episode more than were copied here: they run again\n"),
        (
            True,
            [[0, 3]],
            0,
            "b: 1 session to run elsewhere\n  a  maze_p\n  3 episodes of these sessions were on record",
        ),
    ],
)
def test_what_a_lost_host_has_done_beyond_the_copy_here_is_told_as_far_as_it_is_known(
    looked: bool,
    copied: list[list[int]],
    again: int | None,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    view = stage.a_view(stage.a_plan([stage.a_session("p", "maze")]), "b")
    if looked:
        observe.save(view, stage.an_answer(stage.Seen("maze_p", counts=(3, 1))))
    part: Any = SimpleNamespace(transport=SimpleNamespace(host="b"), run=view.id, directory=view.directory)
    kept, deal = (
        {"maze_p": copied},
        Deal({"grid_run": "g", "box": "a", "number": [0, 0], "boxes": ["a", "b"], "of": {}}),
    )
    more = losing._more(part, kept)
    loss = Loss(deal, ("b",), "a", Era(), {"maze_p": "a"}, {"b": kept}, () if copied else ("b",), {"b": more})
    assert (loss.again, loss.episodes) == (again, sum(stop - first for first, stop in copied))
    hosts._show(loss)
    assert said in capsys.readouterr().out
