"""The first sentence of the report of a folder: what only paths say, and why nothing can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from report_runs import write_rows

from comborun.reporter.collect import collect_folder
from comborun.reporter.pages.answer import answer
from comborun.reporter.summary import summarize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ONLY_PATHS = " Only paths say that these are policies."


def verdicts(won: int, n: int = 40, **fields: Any) -> Iterator[dict[str, Any]]:
    return ({"episode": at, "success": at * 7 % n < won, **fields} for at in range(n))


def returns(mean: float, n: int = 20, **fields: Any) -> Iterator[dict[str, Any]]:
    return ({"episode": at, "return": mean + at * 7 % n / n, **fields} for at in range(n))


def said(folder: Path, files: Mapping[str, Iterator[dict[str, Any]]]) -> str:
    for path, rows in files.items():
        write_rows(folder / path, rows)
    return answer(summarize(collect_folder(folder)).shown.summary)


@pytest.mark.parametrize(
    ("files", "begins"),
    [
        ({"pi0/pick/rows.jsonl": verdicts(36), "act/pick/rows.jsonl": verdicts(8)}, "pi0 beats act by"),
        ({"pi0/pick/rows.jsonl": verdicts(20), "act/pick/rows.jsonl": verdicts(21)}, "act and pi0 are not told apart"),
        (
            {"pi0/pick/rows.jsonl": verdicts(20), "act/place/rows.jsonl": verdicts(21)},
            "2 policies are not compared",
        ),
        (
            {"ppo/hopper/rows.jsonl": returns(3), "sac/hopper/rows.jsonl": returns(5)},
            "sac beats ppo by return in hopper",
        ),
        (
            {
                f"{name}/rows.jsonl": verdicts(won, policy="act", environment="pick")
                for name, won in (("old", 8), ("new", 36))
            },
            "act (new) beats act (old)",
        ),
    ],
    ids=["decided", "not told apart", "not compared", "returns", "folders apart"],
)
def test_policies_that_only_paths_name_are_called_so_in_every_answer(
    files: Mapping[str, Iterator[dict[str, Any]]], begins: str, tmp_path: Path
) -> None:
    told = said(tmp_path, files)
    assert told.startswith(begins)
    assert told.endswith(ONLY_PATHS)
    assert told.count("Only paths") == 1


@pytest.mark.parametrize(("a", "b"), [("act_seed0", "act_seed1"), ("act_run1", "act_run2"), ("pi0-s1", "pi0-s2")])
@pytest.mark.parametrize("won", [20, 38])
def test_names_of_runs_are_doubted_in_the_first_sentence(a: str, b: str, won: int, tmp_path: Path) -> None:
    told = said(tmp_path, {f"{a}/pick/rows.jsonl": verdicts(20), f"{b}/pick/rows.jsonl": verdicts(won)})
    assert told.endswith(f" {a} and {b} may be runs of one policy.")
    assert "Only paths" not in told


@pytest.mark.parametrize("won", [20, 38])
def test_names_that_are_spelled_alike_are_doubted_in_the_first_sentence(won: int, tmp_path: Path) -> None:
    files = {"a.jsonl": named("Pi0", "x"), "b.jsonl": named("pi0", "x", won)}
    assert said(tmp_path, files).endswith(" Pi0 and pi0 may be one policy.")


@pytest.mark.parametrize(
    "files",
    [
        {f"{name}.jsonl": verdicts(won, policy=name, environment="pick") for name, won in (("pi0", 36), ("act", 8))},
        {f"policy={name}/env=pick/rows.jsonl": verdicts(won) for name, won in (("pi0", 36), ("act", 8))},
        {"act/pick/rows.jsonl": verdicts(20), "act/place/rows.jsonl": verdicts(30)},
    ],
    ids=["rows say it", "folders say it", "one policy"],
)
def test_where_policies_are_told_or_nothing_is_compared_no_path_is_doubted(
    files: Mapping[str, Iterator[dict[str, Any]]], tmp_path: Path
) -> None:
    assert ONLY_PATHS not in said(tmp_path, files)


def apart(ran: str, need: str) -> str:
    why = "since no two have completed episodes in the same environment"
    return f"2 policies are not compared, {why} ({ran}): {need} would make them comparable."


FEW = "without pairs of equal starts it takes 10 values of each, or one `seed` for the same start."


def named(policy: str, environment: str, won: int = 20) -> Iterator[dict[str, Any]]:
    return verdicts(won, policy=policy, environment=environment)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            {"a.jsonl": named("A", "x"), "b.jsonl": named("B", "y")},
            apart("A ran in x and B ran in y", "episodes of B in x"),
        ),
        (
            {"a.jsonl": named("A", "Stairs"), "b.jsonl": named("B", "stairs ")},
            apart("A ran in Stairs and B ran in 'stairs '", "one spelling of 'Stairs' and 'stairs '"),
        ),
        (
            {
                "a.jsonl": named("A", "x"),
                "b.jsonl": named("B", "y"),
                "c.jsonl": verdicts(0, policy="B", environment="x", success=None),
            },
            apart("A ran in x and B ran in y", "verdicts of B in x"),
        ),
        (
            {"a.jsonl": named("A", "x"), "b.jsonl": verdicts(0, policy="B", environment="x", success=None)},
            "A succeeds in x in 20/40 = 50.0 % [33.8, 66.2] of episodes; B has no verdict, so nothing is compared.",
        ),
        (
            {f"{name}.jsonl": returns(3, 4, policy=name, environment="x") for name in "AB"},
            f"2 policies are not compared by return: {FEW}",
        ),
        (
            {f"{name}.jsonl": returns(3, policy=name, environment=f"of {name}") for name in "AB"},
            apart("A ran in of A and B ran in of B", "episodes of B in of A"),
        ),
    ],
    ids=["apart", "spelled", "no verdicts", "one has verdicts", "few returns", "returns apart"],
)
def test_where_nothing_is_compared_the_first_sentence_says_why_and_what_would_help(
    files: Mapping[str, Iterator[dict[str, Any]]], told: str, tmp_path: Path
) -> None:
    assert said(tmp_path, files) == told


@pytest.mark.parametrize(
    ("clocks", "decided"),
    [(("2026-01-05 10:00:11", "2026-01-05T11:30"), True), (("2026-01-05 10:00", "2026-01-06 10:00"), False)],
)
def test_a_date_with_a_time_is_of_its_day(clocks: tuple[str, str], decided: bool, tmp_path: Path) -> None:
    files = {
        f"{name}.jsonl": verdicts(won, policy=name, environment="x", date=clock, operator="ann")
        for (name, won), clock in zip((("A", 36), ("B", 8)), clocks, strict=True)
    }
    assert said(tmp_path, files).startswith("A beats B" if decided else "A and B are not told apart")
