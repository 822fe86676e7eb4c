"""What a row is, and why it does not count."""

from __future__ import annotations

import json
import random
import time

import pytest

from comborun.rules.facts import Fact
from comborun.rules.results import fields, formats
from comborun.rules.results.candidates import unknown_document
from comborun.rules.results.fields import Identity, RefusedError
from comborun.rules.results.formats import reader
from comborun.rules.results.one_row import read_row
from comborun.rules.results.tally import Rows

MASON = Identity("mason", "stairs")


def fed(*lines: object, identity: Identity = MASON, kind: str = formats.JSONL_ROWS) -> Rows:
    rows = Rows(reader(kind, identity))
    rows.feed("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines).encode())
    return rows.last()


def reason(row: object, identity: Identity = MASON) -> str:
    with pytest.raises(RefusedError) as refused:
        read_row(row, identity)
    return refused.value.reason


def test_a_row_names_its_own_combo_or_none() -> None:
    row = {"episode": 3, "success": True}
    assert read_row(row, MASON).policy == "mason"
    assert read_row(dict(row, policy="mason", environment="stairs"), MASON).index == 3
    assert reason(dict(row, policy="rough")) == fields.POLICY
    assert reason(dict(row, environment=7)) == fields.ENVIRONMENT
    assert read_row(dict(row, policy=7), Identity("7", "stairs")).policy == "7"


def test_rows_of_a_folder_must_name_their_combo_unless_it_is_not_known() -> None:
    nobody = Identity(None, None)
    assert reason({"episode": 1, "success": 1, "environment": "stairs"}, nobody) == fields.POLICY
    assert read_row({"episode": 1, "policy": "a", "environment": "b"}, nobody).environment == "b"
    assert read_row({"episode": 1, "policy": "rough"}, Identity("", "")).policy == "rough"


def test_what_is_an_index_and_what_is_none() -> None:
    for value, index in ((7, 7), (7.0, 7), ("stairs_ep0007", 7), ("0007", 7), (0, 0), (10**30, 10**30)):
        assert read_row({"episode": value, "success": 1}, MASON).index == index, value
    for value in (True, 7.5, -1, None, "seven", [7], {}, float("nan"), float("inf"), 1e400):
        assert reason({"episode": value, "success": 1}) == fields.INDEX, value
    assert reason({"success": 1}) == fields.INDEX


def test_what_is_a_verdict_and_one_that_is_missing_by_mistake_is_told() -> None:
    verdicts = ((True, 1.0, "True"), True), ((0, " false "), False), ((None, 0.5, "done"), None)
    for values, verdict in verdicts:
        for value in values:
            assert read_row({"episode": 1, "success": value}, MASON).verdict is verdict, value
    assert read_row({"episode": 1}, MASON).complaint == Fact("no_verdict_field", field="success")
    assert read_row({"episode": 1, "success": 2}, MASON).complaint == Fact("verdict_no_truth", field="success")
    assert read_row({"episode": 1, "success": None}, MASON).complaint is None


def test_the_first_verdict_of_an_episode_counts_whatever_it_is() -> None:
    rows = fed({"episode": 1}, {"episode": 1, "success": 0}, {"episode": 1, "success": 1})
    assert rows.episodes == {1: False}
    assert (rows.rows, rows.taken) == (3, 3)


def test_a_whole_record_at_the_end_counts_without_its_newline_and_a_torn_one_does_not() -> None:
    rows = Rows(reader(formats.JSONL_ROWS, MASON))
    rows.feed(b'{"episode": 0, "success": true}\n{"episode": 1, "success"')
    assert rows.last().episodes == {0: True}
    assert set(rows.last().refused) == {fields.TORN}
    rows.feed(b": true}")
    assert rows.last().episodes == {0: True, 1: True}
    assert not rows.last().refused
    rows.feed(b"\n")
    assert rows.last().rows == 2


def test_bytes_may_come_in_any_pieces() -> None:
    lines = [{"episode": at, "success": at % 3 == 0, "note": "ä€𐍈"} for at in range(50)]
    data = "\r\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode()
    whole = Rows(reader(formats.JSONL_ROWS, MASON))
    whole.feed(data)
    pieces = Rows(reader(formats.JSONL_ROWS, MASON))
    draw, at = random.Random(4), 0
    while at < len(data):
        step = draw.randint(1, 40)
        pieces.feed(data[at : at + step])
        at += step
    assert pieces.last().episodes == whole.last().episodes == {at: at % 3 == 0 for at in range(50)}


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"a":' * 5000 + "1" + "}" * 5000,
        '{"episode": ' + "9" * 100_000 + "}",
        '{"episode": 1, "x": 1e400, "y": NaN, "success": -Infinity}',
        "\x00\x01\x02",
        '{"episode": {"a": 1}, "success": [[]]}',
        '"text"',
        "nul",
        '{"episode": 1',
    ],
)
def test_no_line_raises_and_none_costs_its_neighbours(line: str) -> None:
    began = time.monotonic()
    rows = fed({"episode": 8, "success": True}, line, {"episode": 9, "success": True})
    assert rows.episodes[8] is True
    assert rows.episodes[9] is True
    assert time.monotonic() - began < 5


def test_a_line_that_is_far_too_long_is_passed_over() -> None:
    rows = Rows(reader(formats.JSONL_ROWS, MASON))
    rows.feed(b'{"episode": 0, "success": true}\n')
    for _ in range(18):
        rows.feed(b"x" * (1 << 20))
    rows.feed(b'\n{"episode": 1, "success": true}\n')
    assert rows.last().episodes == {0: True, 1: True}
    assert rows.last().refused[fields.NO_RECORD].count == 1


def test_a_document_of_no_known_format_is_described() -> None:
    keys = Fact("unknown_document", keys=["episodes", "n"], inner=["deep"])
    assert unknown_document({"episodes": [1, 2], "n": {"deep": 3}}).fact == keys
    assert unknown_document([1, {"a": 2}, 3]).fact == Fact("unknown_list", entries=3, keys=["a"])
    assert unknown_document(None).fact == Fact("unknown_format")
