"""`sync`, `replaces` and `secrets` in a grid: what they say, and that no message tells a secret."""

from __future__ import annotations

from pathlib import Path

import gridtext
import pytest
from gridtext import HOST

from comborun.errors import GridError
from comborun.grid import Grid, parse_grid
from comborun.planner.laying import lay_out

HEAD = "policies: [a]\nenvironments: [x]\nepisodes: 1\ncommand: run {episodes} {output_dir}\n"
GOLDEN = Path(__file__).parents[2] / "golden" / "grid"


def grid(text: str) -> Grid:
    return gridtext.grid(HEAD + text)


def test_an_entry_of_sync_is_a_place_here_and_a_place_there() -> None:
    entries = "sync:\n- {from: ./a b, to: ~/x, exclude: '*.pt', max_size: 2 MiB}\n- {from: ~/f, to: /srv/}\n"
    read = [(one.source, one.to, one.exclude, one.max_size) for one in grid(entries).sync]
    assert read == [("./a b", "~/x", ("*.pt",), 2 << 20), ("~/f", "/srv/", (), 1 << 30)]


def test_no_message_about_a_grid_tells_what_stands_where_a_secret_was_looked_for() -> None:
    text = (GOLDEN / "launching.yaml").read_text()
    with pytest.raises(GridError) as refused:
        parse_grid(text, Path("launching.yaml"))
    assert "planted" in text
    assert not [word for word in ("planted", "987654", "hots") if word in str(refused.value)]


def test_other_files_and_other_secrets_are_other_work_and_other_sessions_to_replace_are_not() -> None:
    plain, replacing = lay_out(grid(""), HOST), lay_out(grid("replaces: [old]\n"), HOST)
    shipping, secret = lay_out(grid(""), HOST, shipped="d1"), lay_out(grid("secrets: {A: host}\n"), HOST)
    assert plain.digest == replacing.digest
    assert len({plain.digest, shipping.digest, lay_out(grid(""), HOST, shipped="d2").digest, secret.digest}) == 4


NAMED = "policies: [flat, pi0.5]\nenvironments: [a b]\ncommand: run {policy}\nsession_name: "


def test_the_grid_says_how_sessions_are_called() -> None:
    combos = gridtext.grid(f"{NAMED}'eval_{{environment}}_{{policy}}'\n").combos
    assert [one.session for one in combos] == ["eval_a-b_flat", "eval_a-b_pi0-5"]


@pytest.mark.parametrize("name", ["eval", "{environment}", "{policy}{policy}{environment}", "a b{policy}{environment}"])
def test_a_session_name_that_sessions_would_share_is_refused(name: str) -> None:
    with pytest.raises(GridError):
        gridtext.grid(f"{NAMED}'{name}'\n")
