"""The fast way through rows that look alike finds what the rules find, whatever stands between them."""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rounds import rounds

from comborun.reporter.records import plain
from comborun.reporter.records.files import read
from comborun.reporter.records.reading import Context, Reading
from comborun.rules.results.fields import ResultRules

USUAL = {
    "policy": "flat",
    "environment": "stairs",
    "episode": 3,
    "seed": 7,
    "success": True,
    "progress": 1.5,
    "steps": 12,
    "termination": "fall",
}
INFINITE = json.dumps(USUAL).replace("1.5", "1e999").encode()
ODD = st.sampled_from(
    (
        *(None, True, False, 0, 1, -1, 7.0, 7.5, 1e300, 1e308, -1e308, float("nan"), float("inf"), 10**18, 10**19),
        *(10**400, "", "7", "true", "other", "x_ep0007", "\ud800", [], [1], {}, {"a": 1}),
    )
)
changes = st.dictionaries(st.sampled_from([*USUAL, "more", "time.s"]), ODD, max_size=2)
rows = st.builds(lambda changed: {**USUAL, **changed}, changes)
usual = st.builds(lambda episode, done: {**USUAL, "episode": episode, "success": done}, st.integers(), st.booleans())
lines = st.lists(
    (rows | usual).map(lambda row: json.dumps(row).encode("utf-8", "replace"))
    | st.sampled_from([b"", b"{", b'{"episode": 1}{"episode": 2}', b"[" * 120, b'\xff{"episode": 1}', INFINITE]),
    max_size=12,
)
contexts = st.builds(
    lambda named, rules: replace(Context("x.jsonl", "flat", "stairs") if named else Context("x.jsonl"), rules=rules),
    st.booleans(),
    st.sampled_from(
        [
            ResultRules(),
            ResultRules(metrics=("progress", "time.s")),
            ResultRules(success="none", seed="ignore"),
            ResultRules(success="progress", episode="seed"),
            ResultRules(success='{"field": "steps", "at_least": 12}', policy="ignore", episode="line"),
            ResultRules(environment="policy", policy="environment"),
            ResultRules(seed="more", episode='{"field": "episode", "from": 1}'),
        ]
    ),
)


def found(content: bytes, context: Context, layouts: int) -> Reading:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain, "MOST_LAYOUTS", layouts)
        return read(io.BytesIO(content), replace(context, keys={}, lines=Counter()))


def values_of(key: str, *values: Any) -> list[bytes]:
    return [json.dumps({**USUAL, key: value}).encode() for value in values]


@settings(max_examples=rounds(300), deadline=None)
@given(content=lines, context=contexts)
@example(content=values_of("seed", 7.5, 7.0, 7.5), context=Context("x.jsonl"))
@example(content=values_of("success", 1, 2, 0), context=Context("x.jsonl"))
@example(content=values_of("episode", "x7", "x", 4), context=Context("x.jsonl"))
@example(content=values_of("policy", "flat", "", "other"), context=Context("x.jsonl", "flat", "stairs"))
def test_rows_are_read_as_the_rules_read_each_of_them(content: list[bytes], context: Context) -> None:
    text = b"\n".join(content)
    fast, exact = (found(text, context, layouts) for layouts in (plain.MOST_LAYOUTS, 0))
    assert fast == exact
    assert [list(one.metrics) for one in fast.records] == [list(one.metrics) for one in exact.records]
    assert [[type(value) for value in one.extra.values()] for one in fast.records] == [
        [type(value) for value in one.extra.values()] for one in exact.records
    ]
