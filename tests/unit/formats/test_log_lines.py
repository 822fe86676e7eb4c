"""Every match of a line of a log counts, what is painted over counts once, and the last line counts at the end."""

from __future__ import annotations

import io

import pytest

from comborun.reporter.records.files import read as read_for_report
from comborun.reporter.records.reading import Context
from comborun.rules.results.caught import OVERWRITTEN
from comborun.rules.results.fields import Identity, ResultRules
from comborun.rules.results.formats import LOG_PATTERN, reader
from comborun.rules.results.tally import Rows

INDEXED = r"Episode (?P<episode>\d+): (?P<verdict>\w+)"
PLAIN = r"success[: =]+(?P<success>True|False)"
PAIRS = r"\((?P<success>[01]), (?P<episode>\d+)\)"
BAR = "Episode 0: success 1/9\rEpisode 0: success 2/9\rEpisode 1: fail\n"
LONG = " ".join(f"Episode {at}: success," for at in range(300)) + "\n"
CASES: dict[str, tuple[str, str, dict[int, bool]]] = {
    "a list on one line": (
        r"\((?P<success>[01]), (?P<episode>\d+)\)",
        "list: [(1, 0), (0, 1), (1, 2)]\n",
        {0: True, 1: False, 2: True},
    ),
    "a list without indexes": (r"(?P<verdict>ok|fail)", "ok ok fail\nok\n", {0: True, 1: True, 2: False, 3: True}),
    "a long list": (INDEXED, LONG, dict.fromkeys(range(300), True)),
    "records that a carriage return ends": (INDEXED, "Episode 0: success\rEpisode 1: fail\r", {0: True, 1: False}),
    "a bar that is painted again": (
        INDEXED,
        "Episode 0: success 1/9\rEpisode 0: success 2/9\rEpisode 1: fail\n",
        {0: True, 1: False},
    ),
    "the last word of an episode": (INDEXED, "Episode 0: fail\rEpisode 0: success\n", {0: True}),
    "a bar without an index": (PLAIN, "success: False\rsuccess: True\r\nsuccess: False\r\n", {0: True, 1: False}),
    "painted over by other text": (PLAIN, "success: False\r100%|###|\nsuccess=True\n", {0: True}),
    "windows line ends": (PLAIN, "success: True\r\nsuccess: False\r\n", {0: True, 1: False}),
    "two tasks on one line": (r"T(?P<task>\d) E(?P<episode>\d) (?P<verdict>\w+)", "T0 E1 ok T1 E1 fail\n", {1: True}),
}


def host(pattern: str, text: str, over: bool = True, **rules: object) -> Rows:
    rows = Rows(reader(LOG_PATTERN, Identity("p", "e", ResultRules(source="log", pattern=pattern, **rules))))
    rows.feed(text[: len(text) // 2].encode())
    rows.last()
    rows.feed(text[len(text) // 2 :].encode())
    rows.reader.over = over
    return rows.last()


@pytest.mark.parametrize("case", CASES)
def test_each_result_of_a_log_counts_once(case: str) -> None:
    pattern, text, wanted = CASES[case]
    rows = host(pattern, text)
    assert {**rows.episodes, **rows.numbered} == wanted
    assert rows.taken == len(wanted) + (case == "two tasks on one line")
    context = Context("log", "p", "e", rules=ResultRules(source="log", pattern=pattern))
    told = {
        record.episode: record.success
        for record in reversed(read_for_report(io.BytesIO(text.encode()), context).records)
    }
    assert told == wanted


@pytest.mark.parametrize("end", ["", "\r", "\r\n", "\n"])
def test_the_last_line_counts_once_its_program_has_ended(end: str) -> None:
    text = f"Episode 0: success\nEpisode 1: success{end}"
    assert host(INDEXED, text).episodes == {0: True, 1: True}
    assert host(INDEXED, text, over=False).episodes == ({0: True, 1: True} if end else {0: True})
    assert host(PLAIN, f"success: True\nsuccess: True{end}").taken == 2


def test_matches_without_an_index_that_are_painted_over_are_told_of_where_episodes_lack() -> None:
    text = "done: ok\rdone: fail\rdone: ok"
    told = host(r"done: (?P<verdict>\w+)", text)
    assert told.taken == 1
    assert [(fact.code, fact.count("matches")) for fact in told.remarks] == [(OVERWRITTEN, 2)]
    assert not host(INDEXED, BAR).remarks
    rules = ResultRules(source="log", pattern=PLAIN)
    whole = Rows(reader(LOG_PATTERN, Identity("p", "e", rules, 1)))
    whole.feed(b"success: False\rsuccess: True\n")
    whole.reader.over = True
    assert not whole.last().remarks


def test_a_task_and_a_trial_of_a_line_are_one_episode() -> None:
    pattern = r"T(?P<task>\d) E(?P<trial>\d) (?P<verdict>\w+)"
    rows = host(pattern, "T0 E1 ok T1 E1 fail T0 E1 fail\nT0 E0 ok\n", episode=["task", "trial"])
    assert sorted(rows.numbered.values()) == [False, False, True]


def test_results_that_are_painted_over_count_if_with_them_there_are_as_many_as_planned() -> None:
    text = b"done: ok\rdone: fail\rdone: ok\r"
    for planned, taken in ((3, 3), (4, 1), (1, 1)):
        rules = ResultRules(source="log", pattern=r"done: (?P<verdict>\w+)")
        rows = Rows(reader(LOG_PATTERN, Identity("p", "e", rules, planned)))
        rows.feed(text)
        rows.reader.over = True
        rows = rows.last()
        assert rows.taken == taken
        assert [fact.code for fact in rows.remarks] == ([OVERWRITTEN] if planned == 4 else [])


@pytest.mark.parametrize("pattern", [INDEXED, r"Episode \d: (?P<verdict>\w+)"])
def test_a_caught_error_that_is_painted_over_makes_its_episode_errored(pattern: str) -> None:
    rows = host(pattern, "bar 10%\rRuntimeError: simulator died\rEpisode 0: failure\nEpisode 1: failure\n")
    assert {**rows.episodes, **rows.numbered} == {0: None, 1: False}


def test_decimal_commas_are_numbers_and_thousands_are_told_of() -> None:
    pattern = r"Episode (?P<episode>\d+): (?P<verdict>\w+) (?P<distance>[\d.,]+) (?P<return>[\d.,]+)"
    text = "Episode 0: success 8,2 1,234\nEpisode 1: fail 0,125 1.5\n"
    rows = host(pattern, text)
    assert [fact.fields for fact in rows.remarks] == [{"field": "return", "value": "1,234"}]
    context = Context("log", "p", "e", rules=ResultRules(source="log", pattern=pattern))
    reading = read_for_report(io.BytesIO(text.encode()), context)
    assert [record.metric("distance") for record in reading.records] == [8.2, 0.125]
    assert [record.metric("return") for record in reading.records] == [None, 1.5]
