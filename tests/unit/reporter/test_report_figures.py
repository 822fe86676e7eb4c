"""What figures show, and what they are made of: read off the SVG that a page holds."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from report_runs import RUN, START, RunDirectory, row

from comborun.reporter.collect import collect_run
from comborun.reporter.counting.measures import PLACES, running
from comborun.reporter.counting.schedule import schedule
from comborun.reporter.figures import NAMES, plate, plates
from comborun.reporter.figures.plate import Drawing, Drawn, Plate, View, draw_all, parts, second_process
from comborun.reporter.figures.sheet import BLACK, Sheet, ink_on, look, ticks
from comborun.reporter.pages.latex import escape
from comborun.reporter.summary import summarize


def everything(run: Path) -> tuple[Plate, ...]:
    collected = collect_run(run)
    return plates(summarize(collected), schedule(collected))


def drawn(run: Path) -> dict[str, Drawn]:
    return {plate.name: plate.draw() for plate in everything(run)}


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
    run.put(RUN.usage, f"{START + 5}\t1\t2\t9\t4\t0:1:8:50\n")
    return run.write()


@pytest.fixture(scope="module")
def figures(whole: Path) -> dict[str, Drawn]:
    return drawn(whole)


def test_what_the_records_support_is_drawn_in_reading_order(figures: dict[str, Drawn]) -> None:
    assert tuple(figures) == NAMES
    for name, one in figures.items():
        assert sorted(one.files) == [f"{name}.pdf", f"{name}.png", f"{name}.svg"]


def test_a_page_gets_the_key_and_one_drawing_per_environment(figures: dict[str, Drawn]) -> None:
    key, grass, stairs = figures["cumulative_success"].svgs
    assert words(key) == ["flat", "rough"]
    assert (words(grass)[0], words(stairs)[0]) == ("grass", "stairs")
    assert len(figures["intervals"].svgs) == 2


def test_intervals_carry_counts_and_letters(figures: dict[str, Drawn]) -> None:
    found = words(figures["intervals"].svgs[0])
    assert found[found.index("flat") :][:3] == ["flat", "2/20", "b"]
    assert found[found.index("rough") :][:3] == ["rough", "18/20", "a"]


def test_kinds_of_failures_carry_their_episodes(figures: dict[str, Drawn]) -> None:
    key, grass, _ = figures["failure_kinds"].svgs
    assert words(key) == ["fall"]
    assert {"18", "2"} <= {*words(grass)}


def test_no_drawing_of_a_page_has_an_id_or_refers_to_one(figures: dict[str, Drawn]) -> None:
    drawings = [ET.fromstring(svg) for one in figures.values() for svg in one.svgs]
    keys = {key for drawing in drawings for part in drawing.iter() for key in part.attrib}
    assert not keys & {"id", "href", "clip-path", "style"}


def test_a_part_of_a_sheet_is_cut_out_with_short_words_for_straight_strokes() -> None:
    text = (
        '<svg xmlns="http://www.w3.org/2000/svg"><g id="axes_1"><g id="part0"><path d="M 1.25 2 L 3.04 2 L 3 9 z"'
        ' style="fill: none; stroke: #010203; stroke-width: 0.7"/></g><g id="part1"><text x="1" y="2"'
        ' style="font-size: 9px; text-anchor: start; fill: #010203">&lt;b&gt;</text></g></g></svg>'
    )
    line, name = parts(text, [View("part0", 0, 0, 1, 0.5), View("part1", 1, 0, 1, 1)])
    assert 'viewBox="0 0 72 36" width="96"' in line
    assert '<path d="M1.2 2H3V9z" fill="none" stroke="currentColor" stroke-width="0.7"' in line
    assert '<text x="1" y="2" font-size="9">&lt;b&gt;</text>' in name


def test_a_long_line_keeps_its_first_places_and_its_last(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.attempt(run.session("flat", "grass", count=1000), "".join(row(i, i % 2 == 0) for i in range(1000)))
    line = running(summarize(collect_run(run.write())).episodes)["flat", "grass"]
    assert line[:3] == ((1, 1), (2, 1), (3, 2))
    assert line[-1] == (1000, 500)
    assert len(line) <= 2 * PLACES


@pytest.mark.parametrize(
    ("limit", "least", "found"),
    [(1.0, 0.0, (0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0)), (2.0, 1.0, (0, 1, 2)), (0.0, 0.0, (0.0,))],
)
def test_ticks_are_round_and_whole_where_they_count(limit: float, least: float, found: tuple[float, ...]) -> None:
    assert ticks(limit, least=least) == found


def test_looks_differ_and_ink_is_legible() -> None:
    assert len({(colour, str(dashes)) for colour, dashes in map(look, range(28))}) == 28
    assert (ink_on((0, 0, 0.3, 1)), ink_on((1, 1, 0, 1))) == ("#ffffff", BLACK)


@pytest.fixture
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plate, "_processors", lambda: 2)


@pytest.mark.usefixtures("two_processors")
@pytest.mark.parametrize("killed", [False, True])
def test_a_second_process_draws_the_same_bytes_and_costs_no_figure_if_it_is_killed(
    whole: Path, figures: dict[str, Drawn], monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    there: list[int] = []
    answers = plate._answers
    monkeypatch.setattr(plate, "_answers", lambda beside: there.append(len(found := answers(beside))) or found)
    with second_process(1000) as beside:
        assert beside
        assert os.getsid(beside.pid) != os.getsid(0), "Ctrl-C is not for it"
        if killed:
            os.kill(beside.pid, signal.SIGKILL)
            beside.wait(30)
        found = draw_all(everything(whole), beside)
    assert there == ([] if killed else [3])
    assert beside.returncode is not None
    assert {one.name: made for one, made in found.items()} == figures
    assert tuple(one.name for one in found) == NAMES


def _broken(sheet: Sheet, x: float, y: float) -> None:
    raise ValueError(f"nothing can be drawn at {x:.2f}, {y:.2f}")


def _nothing(sheet: Sheet, x: float, y: float) -> None:
    """An empty drawing."""


@pytest.mark.usefixtures("two_processors")
@pytest.mark.parametrize("named", [True, False])
def test_an_error_is_told_as_without_a_second_process(named: bool) -> None:
    def unnamed(sheet: Sheet, x: float, y: float) -> None:  # no other process can be told of it
        _broken(sheet, x, y)

    fine = Plate("fine", "", "", (Drawing(2.0, 2.0, _nothing),))
    with second_process(1000) as beside, pytest.raises(ValueError, match=r"nothing can be drawn at 0\.15, 0\.15"):
        draw_all((fine, Plate("broken", "", "", (Drawing(1.0, 1.0, _broken if named else unnamed),))), beside)


def test_a_small_report_and_a_single_processor_get_no_second_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for processors, combos in ((2, 2), (1, 1000)):
        monkeypatch.setattr(plate, "_processors", lambda count=processors: count)
        with second_process(combos) as beside:
            assert beside is None


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
    assert clear.startswith(r"clear & \textbf{100.0 [88.4, 100.0] (30/30)}\textsuperscript{a} & 6.7")
    assert "textbf" not in close
