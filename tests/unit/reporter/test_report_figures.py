"""What figures show, and what they are made of: read off the SVG that a page holds."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from report_runs import RunDirectory, row, summarized

from comborun.reporter.collect import collect_folder, collect_run
from comborun.reporter.counting.measures import POINTS, running
from comborun.reporter.figures.figure import (
    COLUMN,
    PAGE,
    PANELS,
    SERIES,
    STYLES,
    Axes,
    Figure,
    Panel,
    Text,
    series,
    ticks,
    untitled,
)
from comborun.reporter.figures.files import files
from comborun.reporter.figures.labels import measure
from comborun.reporter.figures.makers import MAKERS
from comborun.reporter.figures.makers import figures as figures_of
from comborun.reporter.figures.rates import heat_map
from comborun.reporter.pages.page import TEMPLATES
from comborun.reporter.summary import summarize

DRAWN = tuple(name for name in MAKERS if name not in {"trends", "pairs", "training"})
"""the run has no checkpoints, one pair of policies, and no training"""


def everything(run: Path) -> tuple[Figure, ...]:
    return figures_of(summarize(collect_run(run)))


def svgs(figure: Figure) -> tuple[str, ...]:
    """Its legend, if there is one, and its panels."""
    return tuple(panel.svg() for panel in (figure.legend, *figure.panels) if panel)


def words(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter() if element.tag.endswith("text")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has everything that there is a figure for."""
    run = RunDirectory(tmp_path_factory.mktemp("run"))
    for policy, successes in (("flat", 2), ("rough", 18)):
        for environment in ("grass", "stairs"):
            rows = "".join(
                row(i, i < successes, seed=i, time_s=3.0 + i, termination="goal" if i < successes else "fall")
                for i in range(20)
            )
            run.attempt(run.session(policy, environment, count=20), rows)
    return run.write()


@pytest.fixture(scope="module")
def figures(whole: Path) -> dict[str, tuple[str, ...]]:
    return {figure.name: svgs(figure) for figure in everything(whole)}


def test_single_combos_of_a_huge_grid_are_drawn_for_files_only(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comborun.reporter.figures.makers.MOST_COMBOS", 3)
    report = summarize(collect_run(whole))
    assert [figure.name for figure in figures_of(report)] == ["ranking", "success_rates", "differences", "sessions"]
    assert tuple(figure.name for figure in figures_of(report, files=True)) == DRAWN


def test_a_long_value_at_the_end_of_an_axis_is_not_cut_off() -> None:
    panel = Panel("", COLUMN, 1.0)
    Axes(0.5, 0.0, COLUMN - 0.62, 0.5, x_limit=5e5).x_ticks(panel, [(5e5, "500,000")], "")
    (label,) = (mark for mark in panel.marks if isinstance(mark, Text))
    assert label.place[0] + measure("500,000", label.style.size) / 2 <= COLUMN


def test_a_drawing_below_a_heading_repeats_no_name(whole: Path) -> None:
    panel = next(figure for figure in everything(whole) if figure.name == "intervals").panels[0]
    assert set(words(panel.svg())) - set(words(untitled(panel).svg())) == {"grass"}


def test_a_page_gets_the_key_and_one_drawing_per_environment(figures: dict[str, tuple[str, ...]]) -> None:
    key, grass, stairs = figures["cumulative_success"]
    assert words(key) == ["flat", "rough"]
    assert (words(grass)[0], words(stairs)[0]) == ("grass", "stairs")
    assert len(figures["intervals"]) == 2


def test_intervals_carry_counts_and_letters(figures: dict[str, tuple[str, ...]]) -> None:
    found = words(figures["intervals"][0])
    assert found[found.index("flat") :][:3] == ["flat", "2/20", "b"]
    assert found[found.index("rough") :][:3] == ["rough", "18/20", "a"]


def test_kinds_of_failures_carry_their_episodes(figures: dict[str, tuple[str, ...]]) -> None:
    key, grass, _ = figures["failure_kinds"]
    assert words(key) == ["fall"]
    assert {"18", "2"} <= {*words(grass)}


def test_no_drawing_of_a_page_has_an_id_or_refers_to_one(figures: dict[str, tuple[str, ...]]) -> None:
    drawings = [ET.fromstring(svg) for one in figures.values() for svg in one]
    keys = {key for drawing in drawings for part in drawing.iter() for key in part.attrib}
    assert not keys & {"id", "href", "clip-path", "style"}


def test_a_long_line_keeps_its_first_places_and_its_last(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.attempt(run.session("flat", "grass", count=1000), "".join(row(i, i % 2 == 0) for i in range(1000)))
    line = running(run.report().episodes)["flat", "grass"]
    assert line[:3] == ((1, 1), (2, 1), (3, 2))
    assert line[-1] == (1000, 500)
    assert len(line) <= 2 * POINTS


@pytest.mark.parametrize(
    ("limit", "least", "found"),
    [(1.0, 0.0, (0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0)), (2.0, 1.0, (0, 1, 2)), (0.0, 0.0, (0.0,))],
)
def test_ticks_are_round_and_whole_where_they_count(limit: float, least: float, found: tuple[float, ...]) -> None:
    assert ticks(limit, least=least) == found


def test_looks_differ() -> None:
    assert len({(style.colour, style.dashes) for style in map(series, range(STYLES))}) == STYLES == 28


def test_a_figure_of_many_environments_is_bounded_and_says_so(tmp_path: Path) -> None:
    names = [f"environment{number:03}" for number in range(PANELS + 3)]
    rows = "".join(row(index, policy="flat", environment=name) for name in names for index in range(2))
    (tmp_path / "rows.jsonl").write_text(rows)
    found = {figure.name: figure for figure in figures_of(summarize(collect_folder(tmp_path)))}
    for name in ("intervals", "cumulative_success"):
        assert len(found[name].panels) == PANELS
        assert "3 drawings beyond the first 60 not shown" in found[name].note


def test_a_heat_map_of_many_policies_is_as_wide_as_a_page(tmp_path: Path) -> None:
    rows = (
        row(index, policy=f"policy{policy:02}", environment=f"environment{environment}", success=index < policy)
        for policy in range(12)
        for environment in range(13)
        for index in range(12 if environment else 11)
    )
    map_ = heat_map(summarized(tmp_path, rows))
    assert map_
    (panel,) = map_.panels
    assert panel.width <= PAGE + 0.01
    assert {"5/12", "11/11", "policy11"} <= {*words(panel.svg())}


def test_figures_are_files_as_wide_as_a_column_or_two(whole: Path) -> None:
    made = files(everything(whole), ("svg",))
    assert sorted(made) == sorted(f"{name}.svg" for name in DRAWN)
    for name in DRAWN:
        width = float(ET.fromstring(made[f"{name}.svg"]).get("width", "").removesuffix("pt")) / 72
        assert width <= PAGE + 0.01, name


def test_lines_are_legible_on_light_paper_and_on_dark() -> None:
    css = (TEMPLATES / "report.css").read_text()
    on_dark = dict(re.findall(r'\[stroke="(#\w{6})"\] \{ stroke: (#\w{6}); \}', css))
    assert {*on_dark} == {*SERIES}
    for light, dark in on_dark.items():
        assert contrast(light, "#ffffff") >= 4.5
        assert contrast(dark, "#13161a") >= 4.5


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def test_only_a_policy_that_is_better_than_all_others_is_bold(tmp_path: Path) -> None:
    from comborun.reporter.pages.latex import latex

    run = RunDirectory(tmp_path)
    for environment, counts in (("clear", (30, 2)), ("close", (20, 19))):
        for policy, successes in zip(("flat", "rough"), counts, strict=True):
            rows = "".join(row(i, i < successes, seed=i) for i in range(30))
            run.attempt(run.session(policy, environment, count=30), rows)
    lines = latex(run.report().summary).splitlines()
    clear, close = (next(line for line in lines if line.startswith(name)) for name in ("clear", "close"))
    assert clear.startswith(r"clear & \boldmath$100.0^{+0.0}_{-11.6}$\unboldmath{} (30/30)\textsuperscript{a} & $6.7")
    assert "boldmath" not in close
    assert any(line.startswith("mean & $83.3^") for line in lines)
