"""What figures show, and what they are made of: read off the SVG that a page holds."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from report_runs import RunDirectory, row

from comborun.reporter.collect import collect_folder, collect_run
from comborun.reporter.counting.measures import PLACES, running
from comborun.reporter.figures import NAMES
from comborun.reporter.figures import figures as figures_of
from comborun.reporter.figures.figure import LOOKS, ON_PAGE, PAGE, PANELS, SERIES, Figure, look
from comborun.reporter.figures.rates import heat_map
from comborun.reporter.pages.latex import escape
from comborun.reporter.summary import summarize

DRAWN = tuple(name for name in NAMES if name != "trends")
"""the run has no checkpoints"""


def everything(run: Path) -> tuple[Figure, ...]:
    return figures_of(summarize(collect_run(run)))


def svgs(figure: Figure) -> tuple[str, ...]:
    """Its legend, if there is one, and its panels."""
    return (*((figure.key,) if figure.legend else ()), *figure.drawings())


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


def test_what_the_records_support_is_drawn_in_reading_order(figures: dict[str, tuple[str, ...]]) -> None:
    assert tuple(figures) == DRAWN


def test_single_combos_of_a_huge_grid_are_drawn_for_files_only(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comborun.reporter.figures.MOST_COMBOS", 3)
    report = summarize(collect_run(whole))
    assert [figure.name for figure in figures_of(report)] == ["success_rates", "sessions"]
    assert tuple(figure.name for figure in figures_of(report, files=True)) == DRAWN


def test_a_drawing_below_a_heading_repeats_no_name(whole: Path) -> None:
    figure = next(figure for figure in everything(whole) if figure.name == "intervals")
    titled, plain = figure.drawings()[0], figure.drawings(titled=False)[0]
    assert set(words(titled)) - set(words(plain)) == {"grass"}


def test_a_page_gets_the_key_and_one_drawing_per_environment(figures: dict[str, tuple[str, ...]]) -> None:
    key, grass, stairs = figures["cumulative_success"]
    assert words(key) == ["flat", "rough"]
    assert "grass" in words(grass)
    assert "stairs" in words(stairs)
    assert len(figures["intervals"]) == 2


def test_intervals_carry_counts_and_letters(figures: dict[str, tuple[str, ...]]) -> None:
    found = words(figures["intervals"][0])
    for name, beside in (("flat", "2/20 b"), ("rough", "18/20 a")):
        assert {name, beside} <= {*found}


def test_kinds_of_failures_carry_their_episodes(figures: dict[str, tuple[str, ...]]) -> None:
    key, grass, _ = figures["failure_kinds"]
    assert words(key) == ["fall"]
    assert {"18", "2"} <= {*words(grass)}


def test_a_drawing_of_a_page_refers_to_itself_alone(figures: dict[str, tuple[str, ...]]) -> None:
    seen: set[str] = set()
    for svg in (svg for one in figures.values() for svg in one):
        ids = re.findall(r' id="([^"]*)"', svg)
        assert {*re.findall(r"""(?:url\(#|href="#)([^")]*)""", svg)} <= {*ids}
        assert len({*ids} - seen) == len(ids)
        seen |= {*ids}
    assert seen


def test_a_long_line_keeps_its_first_places_and_its_last(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.attempt(run.session("flat", "grass", count=1000), "".join(row(i, i % 2 == 0) for i in range(1000)))
    line = running(summarize(collect_run(run.write())).episodes)["flat", "grass"]
    assert line[:3] == ((1, 1), (2, 1), (3, 2))
    assert line[-1] == (1000, 500)
    assert len(line) <= 2 * PLACES


def test_lines_differ_and_are_legible_on_light_paper_and_on_dark_as_is_white_on_them() -> None:
    assert len({tuple(look(index).values()) for index in range(LOOKS)}) == LOOKS == 28
    for colour in SERIES:
        assert min(contrast(colour, "#ffffff"), contrast(colour, "#13161a")) >= 4


def test_a_figure_of_many_environments_is_bounded_and_says_so(tmp_path: Path) -> None:
    names = [f"environment{number:03}" for number in range(PANELS + 3)]
    rows = "".join(row(index, policy="flat", environment=name) for name in names for index in range(2))
    (tmp_path / "rows.jsonl").write_text(rows)
    found = {figure.name: figure for figure in figures_of(summarize(collect_folder(tmp_path)))}
    for name in ("intervals", "cumulative_success"):
        assert len(found[name].panels) == PANELS
        assert "3 drawings beyond the first 60 not shown" in found[name].note
    assert len(found["cumulative_success"].drawings()) == ON_PAGE


def test_a_heat_map_of_many_policies_is_as_wide_as_a_page(tmp_path: Path) -> None:
    rows = (
        row(index, policy=f"policy{policy:02}", environment=f"environment{environment}", success=index < policy)
        for policy in range(12)
        for environment in range(13)
        for index in range(12 if environment else 11)
    )
    (tmp_path / "rows.jsonl").write_text("".join(rows))
    map_ = heat_map(summarize(collect_folder(tmp_path)).summary)
    assert map_
    (drawing,) = map_.drawings()
    assert map_.panels[0].width <= PAGE + 0.01
    assert {"5/12", "11/11", "policy11"} <= {*words(drawing)}


def test_figures_are_files_where_they_are_asked_for_as_wide_as_a_column_or_two(whole: Path, tmp_path: Path) -> None:
    made = {name: content for figure in everything(whole) for name, content in figure.files(("pdf", "svg")).items()}
    assert sorted(made) == sorted(f"{name}.{form}" for name in DRAWN for form in ("pdf", "svg"))
    assert all(made[f"{name}.pdf"].startswith(b"%PDF") for name in DRAWN)
    for name in DRAWN:
        width = float(ET.fromstring(made[f"{name}.svg"]).get("width", "").removesuffix("pt")) / 72
        assert width <= PAGE + 0.01, name


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a_b%&$#{}", r"a\_b\%\&\$\#\{\}"),
        (r"\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
        ("x~^<y>|", r"x\textasciitilde{}\textasciicircum{}\textless{}y\textgreater{}\textbar{}"),
        ("a\n% b", r"a\textbackslash{}n\% b"),
        ("--``", r"{-}{-}\textasciigrave{}\textasciigrave{}"),
    ],
)
def test_text_in_latex_is_text(text: str, shown: str) -> None:
    assert escape(text) == shown


def test_only_a_policy_that_is_better_than_all_others_is_bold(tmp_path: Path) -> None:
    from comborun.reporter.pages.latex import latex

    run = RunDirectory(tmp_path)
    for environment, counts in (("clear", (30, 2)), ("close", (20, 19))):
        for policy, successes in zip(("flat", "rough"), counts, strict=True):
            rows = "".join(row(i, i < successes, seed=i) for i in range(30))
            run.attempt(run.session(policy, environment, count=30), rows)
    lines = latex(summarize(collect_run(run.write())).summary).splitlines()
    clear, close = (next(line for line in lines if line.startswith(name)) for name in ("clear", "close"))
    assert clear.startswith(r"clear & \boldmath$100.0^{+0.0}_{-11.6}$\unboldmath{} (30/30)\textsuperscript{a} & $6.7")
    assert "boldmath" not in close
    assert any(line.startswith("mean & $83.3^") for line in lines)
