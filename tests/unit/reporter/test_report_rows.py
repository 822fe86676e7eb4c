"""Result files to records: what is taken, what is refused, and that nothing else is lost by it."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_runs import row

from comborun.attempt import EpisodeRecord, Verdict
from comborun.judging import ResultRules
from comborun.reporter.adapters import Context, Reading, RejectKind, jsonl_rows

OURS = Context(path="out/rows.jsonl", policy="flat", environment="stairs", session="stairs_flat", attempt=2)


def read(content: str | bytes, context: Context = OURS) -> Reading:
    return jsonl_rows.read(io.BytesIO(content.encode() if isinstance(content, str) else content), context)


def only(reading: Reading) -> EpisodeRecord:
    assert len(reading.records) == 1, reading
    return reading.records[0]


def reasons(reading: Reading) -> list[tuple[int, str]]:
    return [(reject.line, reject.reason) for reject in reading.rejects]


def complaints(reading: Reading) -> list[tuple[int, str]]:
    return [(defect.line, defect.reason) for defect in reading.defects]


def test_a_record_has_its_verdict_metrics_and_everything_else_that_stood_there() -> None:
    line = row(7, True, seed=1007, distance_m=8.25, steps=400, termination="goal", path=[1, {"x": 2}], fell=False)
    record = only(read(line))
    assert record.key == ("flat", "stairs", 7)
    assert record.verdict is Verdict.SUCCESS
    assert record.seed == 1007
    assert record.metrics == {"distance_m": 8.25, "steps": 400.0}
    assert record.extra == {"termination": "goal", "path": [1, {"x": 2}], "fell": False}
    assert (record.session, record.attempt, record.source) == ("stairs_flat", 2, "out/rows.jsonl:1")


@pytest.mark.parametrize("value", [True, 1, 1.0, "true", "True", " TRUE "])
def test_what_means_success(value: Any) -> None:
    assert only(read(row(0, value))).verdict is Verdict.SUCCESS


@pytest.mark.parametrize("value", [False, 0, 0.0, "false", "False"])
def test_what_means_failure(value: Any) -> None:
    assert only(read(row(0, value))).verdict is Verdict.FAILURE


def test_null_is_an_errored_episode_without_further_complaint() -> None:
    reading = read(row(0, None))
    assert only(reading).verdict is Verdict.ERRORED
    assert only(reading).success is None
    assert reading.defects == ()


@pytest.mark.parametrize("value", [0.5, 2, -1, "yes", "", "1", [], [True], {"a": 1}, float("nan"), float("inf")])
def test_whatever_else_stands_for_success_is_errored_and_named(value: Any) -> None:
    reading = read(row(0, value))
    assert only(reading).verdict is Verdict.ERRORED
    assert (1, "the field 'success' is neither true nor false: errored") in complaints(reading)


def test_a_missing_verdict_is_errored_and_named() -> None:
    reading = read('{"episode": 3}\n')
    assert only(reading).verdict is Verdict.ERRORED
    assert complaints(reading) == [(1, "no field 'success': errored")]


@pytest.mark.parametrize(("value", "index"), [(4, 4), (4.0, 4), ("4", 4), ("stairs_rough_ep0006", 6)])
def test_what_is_an_episode_index(value: Any, index: int) -> None:
    assert only(read(row(value))).episode == index


@pytest.mark.parametrize("value", [None, True, 4.5, -1, "four", "", [4], float("nan"), float("inf")])
def test_what_is_no_episode_index(value: Any) -> None:
    assert reasons(read(row(value))) == [(1, "the field 'episode' holds no episode index")]


def test_the_grid_names_the_fields_of_a_program_with_words_of_its_own() -> None:
    rules = ResultRules(success="completion", episode="episode_id", metrics=("progress",))
    line = '{"episode_id": "stairs_flat_ep0012", "completion": true, "progress": 12, "zone": 3, "success": false}\n'
    record = only(read(line, Context("f", "flat", "stairs", rules)))
    assert (record.episode, record.verdict) == (12, Verdict.SUCCESS)
    assert record.metrics == {"progress": 12.0}
    assert record.extra == {"episode_id": "stairs_flat_ep0012", "zone": 3, "success": False}


def test_a_record_may_repeat_the_combo_but_not_contradict_it() -> None:
    reading = read(row(0, policy="flat", environment="stairs") + row(1, policy="rough") + row(2, environment="grass"))
    assert [record.episode for record in reading.records] == [0]
    assert [(reject.line, reject.kind) for reject in reading.rejects] == [
        (2, RejectKind.FOREIGN),
        (3, RejectKind.FOREIGN),
    ]
    assert reading.rejects[0].reason == "of another policy: 'rough', where 'flat' ran"


def test_without_a_session_a_record_must_name_its_combo() -> None:
    alone = Context("some.jsonl")
    reading = read(row(0, policy="a", environment="b") + row(1, policy="a") + row(2, environment="b"), alone)
    assert only(reading).key == ("a", "b", 0)
    assert reasons(reading) == [(2, "names no environment"), (3, "names no policy")]


def test_numbers_that_are_none_are_left_out_and_named() -> None:
    line = '{"episode": 0, "success": true, "a": NaN, "b": 1e400, "c": -Infinity, "d": 1, "e": [NaN, 2]}\n'
    reading = read(line)
    assert only(reading).metrics == {"d": 1.0}
    assert only(reading).extra == {"e": [None, 2]}
    assert [reason for _, reason in complaints(reading)] == [
        f"the field '{name}' is not a finite number: left out" for name in "abc"
    ]


def test_an_integer_beyond_all_floats_is_no_metric() -> None:
    reading = read('{"episode": 0, "success": true, "big": 1' + "0" * 400 + "}\n")
    assert only(reading).metrics == {}
    assert len(reading.defects) == 1


def test_a_torn_last_line_is_named_and_costs_nothing_else() -> None:
    reading = read(row(0) + row(1)[:-9])
    assert [record.episode for record in reading.records] == [0]
    assert [(reject.line, reject.kind) for reject in reading.rejects] == [(2, RejectKind.TORN)]


def test_a_whole_record_counts_although_its_newline_is_missing() -> None:
    reading = read(row(0) + row(1).rstrip("\n"))
    assert [record.episode for record in reading.records] == [0, 1]
    assert complaints(reading) == [(2, "the last line lacks its newline; its record is whole and counts")]


def test_records_glued_together_are_taken_apart() -> None:
    reading = read(row(0).strip() + row(1).strip() + " " + row(2))
    assert [record.episode for record in reading.records] == [0, 1, 2]
    assert complaints(reading) == [(1, "more than one record on a line")]


def test_a_record_glued_to_the_front_of_a_broken_one_is_kept() -> None:
    reading = read(row(0).strip() + '{"episode": 1, "suc\n' + row(2))
    assert [record.episode for record in reading.records] == [0, 2]
    assert reasons(reading) == [(1, "not JSON after a whole record")]


def test_nothing_is_dug_out_of_a_broken_record() -> None:
    """What looks like a record may be a part of the one that broke."""
    reading = read('{"episode": 1, "before": {"episode": 9, "success": true}\n')
    assert reading.records == ()
    assert reasons(reading) == [(1, "not JSON")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Traceback (most recent call last):", "not JSON"),
        ("[1, 2]", "not a JSON object"),
        ("null", "not a JSON object"),
        ("{}", "no field 'episode' with the episode's index"),
        ("[" * 100_000, "nested too deeply"),
        ('{"episode": 0, "success": true, "a": ' + "[" * 200 + "]" * 200 + "}", "nested too deeply"),
    ],
    ids=["text", "list", "null", "empty object", "very deep", "deep"],
)
def test_a_line_that_is_no_record_is_named_with_its_place(line: str, reason: str) -> None:
    reading = read(row(0) + line + "\n" + row(1))
    assert [record.episode for record in reading.records] == [0, 1]
    assert reasons(reading) == [(2, reason)]


def test_marks_and_line_ends_of_other_systems_are_no_trouble() -> None:
    reading = read(b"\xef\xbb\xbf" + row(0).strip().encode() + b"\r\n\r\n  \n" + row(1).encode())
    assert [record.source for record in reading.records] == ["out/rows.jsonl:1", "out/rows.jsonl:4"]
    assert reading.rejects == reading.defects == ()


def test_bytes_that_are_no_text_spoil_only_their_own_field() -> None:
    record = only(read(b'{"episode": 0, "success": true, "note": "\xff\xfe"}\n'))
    assert record.extra == {"note": "��"}


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_without_records_is_named(content: bytes) -> None:
    assert complaints(read(content)) == [(0, "the file holds no records")]


class Endless(io.RawIOBase):
    """A line of `size` bytes, then a record; counts how much anybody wanted at once."""

    def __init__(self, size: int) -> None:
        self.left = size
        self.tail = io.BytesIO(b"\n" + row(1).encode())
        self.largest = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert size > 0, "an unbounded read"
        self.largest = max(self.largest, size)
        if self.left:
            taken = min(size, self.left)
            self.left -= taken
            return b"x" * taken
        return self.tail.readline(size)


def test_a_huge_line_is_passed_over_without_being_held() -> None:
    stream = Endless(100 << 20)
    reading = jsonl_rows.read(stream, OURS)  # type: ignore[arg-type]
    assert stream.largest <= jsonl_rows.LINE_LIMIT
    assert [record.episode for record in reading.records] == [1]
    assert reasons(reading) == [(1, "longer than 16 MiB")]


@given(st.binary(max_size=400))
def test_no_bytes_make_the_reader_raise(content: bytes) -> None:
    read(content)
    read(content, Context("f"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["episode", "success", "seed", "policy", "environment", "x"])


@given(st.lists(st.dictionaries(KEYS, JSON, max_size=6), max_size=5))
def test_no_json_makes_the_reader_raise_and_every_line_is_accounted_for(values: list[dict[str, Any]]) -> None:
    reading = read("".join(json.dumps(value) + "\n" for value in values))
    assert len(reading.records) + len(reading.rejects) == len(values)
    for record in reading.records:
        assert record.episode >= 0
        json.dumps([dict(record.metrics), dict(record.extra)], allow_nan=False)


@given(st.lists(st.binary(max_size=60), max_size=6), st.data())
def test_no_valid_record_is_lost_because_of_a_bad_neighbour(noise: list[bytes], data: st.DataObject) -> None:
    lines = [line.replace(b"\n", b" ") + b"\n" for line in noise]
    good = [row(1000 + index, index % 2 == 0).encode() for index in range(data.draw(st.integers(1, 4)))]
    mixed = data.draw(st.permutations([*lines, *good]))
    reading = read(b"".join(mixed))
    found = {record.episode for record in reading.records}
    assert {1000 + index for index in range(len(good))} <= found
