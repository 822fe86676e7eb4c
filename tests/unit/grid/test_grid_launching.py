"""`sync`, `replaces` and `secrets` in a grid: what they say, and that no message tells a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from comborun.errors import GridError, UserError
from comborun.grid import Grid, Shipped, parse_grid
from comborun.grid.values import parse_size
from comborun.plan import Plan
from comborun.planner import lay_out
from comborun.resources import HostFacts

HEAD = "policies: [a]\nenvironments: [x]\nepisodes: 1\ncommand: run {episodes} {output_dir}\n"
HOST = HostFacts("h", "h", 4, 0, (), "5", "3", "", ())
GOLDEN = Path(__file__).parents[2] / "golden" / "grid"


def grid(text: str) -> Grid:
    return parse_grid(HEAD + text, Path("grid.yaml"))


def test_an_entry_of_sync_is_a_place_here_and_a_place_there() -> None:
    entries = "sync:\n- {from: ./a b, to: ~/x, exclude: '*.pt', max_size: 2 MiB}\n- {from: ~/f, to: /srv/}\n"
    assert grid(entries).shipped == (Shipped("./a b", "~/x", ("*.pt",), 2 << 20), Shipped("~/f", "/srv/", (), 1 << 30))


def test_one_session_to_replace_needs_no_brackets() -> None:
    assert grid("replaces: eval4env\n").replaces == ("eval4env",)
    assert grid("replaces: [eval4env, eval 2]\n").replaces == ("eval4env", "eval 2")


def test_without_the_keys_nothing_is_shipped_replaced_or_secret() -> None:
    assert (grid("").sync, grid("").replaces, dict(grid("").secrets)) == ((), (), {})


def test_no_message_about_a_grid_tells_what_stands_where_a_secret_was_looked_for() -> None:
    text = (GOLDEN / "launching.yaml").read_text()
    with pytest.raises(GridError) as refused:
        parse_grid(text, Path("launching.yaml"))
    assert "planted" in text
    assert not [word for word in ("planted", "987654", "hots") if word in str(refused.value)]


def test_the_plan_names_secrets_and_survives_its_own_json() -> None:
    plan = lay_out(grid("secrets: {HF_TOKEN: host, KEY: laptop}\nreplaces: [old]\n"), HOST)
    assert (plan.secrets, plan.replaces) == ((("HF_TOKEN", "host"), ("KEY", "laptop")), ("old",))
    assert Plan.from_json(plan.to_json()) == plan


def test_other_files_and_other_secrets_are_other_work_and_other_sessions_to_replace_are_not() -> None:
    plain, replacing = lay_out(grid(""), HOST), lay_out(grid("replaces: [old]\n"), HOST)
    shipping, secret = lay_out(grid(""), HOST, shipped="d1"), lay_out(grid("secrets: {A: host}\n"), HOST)
    assert plain.digest == replacing.digest
    assert len({plain.digest, shipping.digest, lay_out(grid(""), HOST, shipped="d2").digest, secret.digest}) == 4


@pytest.mark.parametrize(
    ("text", "size"), [("12", 12), ("500 MB", 500_000_000), ("2 GiB", 2 << 30), ("1.5KiB", 1536), ("7 B", 7)]
)
def test_a_size_is_a_number_and_a_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "hint"), [("2 gb", "write 2 GB"), ("2 gib", "write 2 GiB"), ("-1 MB", "500 MB, 2 GiB"), ("much", "500 MB")]
)
def test_anything_else_is_no_size(text: str, hint: str) -> None:
    with pytest.raises(UserError, match="is not a size") as refused:
        parse_size(text)
    assert hint in refused.value.hint
