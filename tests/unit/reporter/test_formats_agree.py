"""The same numbers in every format of one report: they are read back, and held against JSON."""

from __future__ import annotations

import csv
import json
import random
import re
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from report_runs import write_rows

from comborun.reporter.pages.latex import escape
from comborun.reporter.report import report_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RATES = {"pi0": (0.8, 40), "act": (0.5, 40), "dp": (0.2, 30)}
PLACES = ("pick", "place", "pour")


def rows() -> Iterator[dict[str, object]]:
    """Starts that repeat in one environment, and a policy with fewer records."""
    drawn = random.Random(9)
    for place in PLACES:
        for policy, (rate, n) in RATES.items():
            went = [drawn.random() < rate for _ in range(n)]
            for at in range(n):
                seed = at % 10 if place == "pick" else at
                told = {"success": went[seed], "reward": round(drawn.gauss(3, 1), 3)}
                yield {"policy": policy, "environment": place, "episode": at, "seed": seed, **told}


@dataclass(frozen=True)
class Made:
    folder: Path
    numbers: dict[str, Any]

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("agree")
    write_rows(folder / "rows.jsonl", rows())
    report_folder(folder, folder / "report", ())
    return Made(folder / "report", json.loads((folder / "report/final_benchmark_report.json").read_text()))


def per_cent(*values: float) -> list[str]:
    return [f"{100 * value:.1f}" for value in values]


def signed(value: float) -> str:
    return f"{100 * value:+.1f}".replace("-", "−")


def limits(interval: list[float]) -> str:
    return f"[{', '.join(per_cent(*interval))}]"


def signed_limits(interval: list[float]) -> str:
    return f"[{', '.join(map(signed, interval))}]"


def markdown_tables(text: str) -> list[list[dict[str, str]]]:
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    split = [[[cell.strip() for cell in line.strip("|").split(" |")] for line in one.splitlines()] for one in found]
    return [[dict(zip(head, line, strict=True)) for line in lines] for head, _, *lines in split]


def page_tables(text: str) -> list[list[dict[str, str]]]:
    found = []
    for table in re.findall(r"<table.*?</table>", text, re.DOTALL):
        lines = [
            [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL)]
            for line in re.findall(r"<tr.*?</tr>", table, re.DOTALL)
        ]
        head = [unescape(one) for one in lines[0]]
        found.append([dict(zip(head, map(unescape, line), strict=False)) for line in lines[1:]])
    return found


def tables(made: Made, name: str) -> list[list[dict[str, str]]]:
    text = made.text(name)
    return page_tables(text) if name.endswith("html") else markdown_tables(unescape(text))


def with_columns(found: list[list[dict[str, str]]], *names: str) -> list[dict[str, str]]:
    return [row for table in found for row in table if {*names} <= row.keys()]


FORMS = pytest.mark.parametrize("name", ["report.md", "report.html"])


@FORMS
def test_rates_and_their_limits(made: Made, name: str) -> None:
    told = with_columns(tables(made, name), "k/n", "95 % interval")
    for one in made.numbers["combos"]:
        cells = [row for row in told if (row["policy"], row["environment"]) == (one["policy"], one["environment"])]
        assert cells
        for row in cells:
            assert row["k/n"] == f"{one['successes']}/{one['completed']}"
            assert row["rate"] == f"{100 * one['success_rate']:.1f} %"
            assert row["95 % interval"].startswith(limits(one["interval"]))
            assert row["at least"] == per_cent(one["at_least"])[0]


@FORMS
def test_means_and_their_limits(made: Made, name: str) -> None:
    told = with_columns(tables(made, name), "mean", "95 % interval")
    assert len(told) >= len(RATES)
    means = {one["policy"]: one for one in made.numbers["means"]}
    assert [place["policy"] for place in made.numbers["standing"]["places"]] == ["pi0", "act", "dp"]
    for place in made.numbers["standing"]["places"]:
        assert (place["value"], place["interval"]) == (
            means[place["policy"]]["mean"],
            means[place["policy"]]["interval"],
        )
    for row in told:
        one = means[row["policy"]]
        assert [row["mean"], row["95 % interval"]] == [*per_cent(one["mean"]), limits(one["interval"])]


@FORMS
def test_differences_and_their_limits(made: Made, name: str) -> None:
    told = with_columns(tables(made, name), "a − b", "p (Holm)")
    for one in made.numbers["comparisons"]:
        rows = [row for row in told if (row["a"], row["b"]) == (one["a"], one["b"])]
        assert [signed(one["difference"]), signed_limits(one["interval"])] in [
            [row["a − b"], row["95 % interval"]] for row in rows
        ]
    assert len(told) == len(made.numbers["comparisons"])


def test_the_matrix_of_pairs(made: Made) -> None:
    found = with_columns(markdown_tables(made.text("report.md")), "row minus column")
    order = [row["row minus column"].partition(" ")[2] for row in found]
    for one in made.numbers["overall"]:
        a, b = order.index(one["a"]), order.index(one["b"])
        for cell, value in ((found[a][f"{b + 1}"], one["difference"]), (found[b][f"{a + 1}"], -one["difference"])):
            assert cell.strip("()") == signed(value)
            assert cell.startswith("(") is (one["better"] is None)


def test_the_table_of_combos_for_programs(made: Made) -> None:
    told = [*csv.DictReader(made.text("summary.csv").splitlines())]
    for one, row in zip(made.numbers["combos"], told, strict=True):
        assert (row["policy"], row["environment"]) == (one["policy"], one["environment"])
        assert [float(row[name]) for name in ("success_rate", "low", "high")] == [one["success_rate"], *one["interval"]]
        reward = one["metrics"]["reward"]
        assert [float(row[f"reward.{name}"]) for name in ("mean", "low", "high")] == [
            reward["mean"],
            *reward["interval"],
        ]


def test_the_paper_has_the_same_limits_as_distances(made: Made) -> None:
    text = made.text("report.tex")
    for one in (*made.numbers["combos"], *made.numbers["means"]):
        rate, (low, high) = one.get("success_rate", one.get("mean")), one["interval"]
        assert f"{100 * rate:.1f}^{{+{100 * (high - rate):.1f}}}_{{-{100 * (rate - low):.1f}}}" in text
    for one in made.numbers["means"]:
        shown = f"\\textbf{{{per_cent(one['mean'])[0]}}} & {limits(one['interval'])}"
        assert f"{one['policy']} & {shown}" in text


def drawn(made: Made, label: str) -> list[str]:
    """The texts of a figure of the page."""
    (figure, *_) = re.findall(f'<svg[^>]*aria-label="{label}".*?</svg>', made.text("report.html"), re.DOTALL)
    return [unescape(re.sub(r"<[^>]+>", "", one)) for one in re.findall(r"<text.*?</text>", figure, re.DOTALL)]


def test_the_map_and_the_pairs_of_the_page(made: Made) -> None:
    in_map, in_pairs = drawn(made, "Success rates of all combos"), drawn(made, "Pairs of policies")
    for one in made.numbers["combos"]:
        assert f"{one['successes']}/{one['completed']}" in " ".join(in_map)
        assert limits(one["interval"]) in " ".join(in_map)
    for one in made.numbers["overall"]:
        assert signed(one["difference"]) in in_pairs
        assert signed(-one["difference"]) in in_pairs


@FORMS
def test_the_first_sentence_and_the_claims(made: Made, name: str) -> None:
    text = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", made.text(name))))
    for told in (made.numbers["answer"], *made.numbers["claims"], *made.numbers["undecided"]):
        assert told in text
    assert escape(made.numbers["answer"]) in made.text("report.tex")
