"""Sessions for a part of another's episodes: their names, their content, and what can't be cut."""

from __future__ import annotations

import pytest
from gridtext import plan

from comborun.amendment.resumption import with_smoke
from comborun.errors import UserError
from comborun.model.plan import Session
from comborun.planner.ranges import first_episodes, session_digest

RANGED = "run {policy} --first {first_episode} --episodes {episodes} {output_dir}"


def session(command: str = RANGED, more: str = "episodes: 100\n") -> Session:
    (only,) = plan(f"policies: [flat]\nenvironments: [grass]\ncommand: {command}\n{more}").sessions
    return only


@pytest.mark.parametrize(
    ("command", "counted", "ranged"),
    [
        (RANGED, True, True),
        ("run {first_episode} {last_episode} {output_dir}", True, True),
        ("run {first_episode} {output_dir}", False, False),
        ("run '{{episodes}' '{{first_episode}' {output_dir}", False, False),
    ],
)
def test_a_session_knows_what_its_command_can_be_told(command: str, counted: bool, ranged: bool) -> None:
    told = session(command)
    assert (told.counted, told.ranged) == (counted, ranged)


def test_a_smoke_session_does_the_first_few() -> None:
    few = first_episodes(session(more="episodes: 100\nfirst_episode: 7\n"), 2, "smoke")
    assert (few.name, few.first, few.count) == ("grass_flat_smoke", 7, 2)
    assert few.digest == session_digest(few)


def test_a_command_that_takes_no_number_is_smoke_tested_only_where_that_is_all_of_it() -> None:
    fixed = session("run {output_dir}", more="episodes: 3\n")
    assert first_episodes(fixed, 3, "smoke").count == first_episodes(fixed, 10, "smoke").count == 3
    with pytest.raises(UserError, match=r"can't be told to run 2 of its 3 episodes: .* no \{episodes\}"):
        first_episodes(fixed, 2, "smoke")


def test_a_policy_that_is_called_like_a_smoke_test_of_another_is_refused_with_one() -> None:
    text = "policies: [flat, flat_smoke]\nenvironments: [grass]\nepisodes: 9\ncommand: run {episodes} {output_dir}\n"
    with pytest.raises(UserError, match="both run in the session `grass_flat_smoke`"):
        with_smoke(plan(text), 2)
