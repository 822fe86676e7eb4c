"""Holm's correction and the compact letters, against statsmodels and scikit-posthocs, and by what they promise."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comborun.reporter.statistics.difference import holm, letters


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusted_values_are_those_of_statsmodels(ps: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    assert holm(ps) == pytest.approx(multipletests(ps, method="holm")[1], abs=1e-9)


names = st.integers(2, 7).map(lambda count: [f"p{index}" for index in range(count)])


@st.composite
def rankings(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, str]]]:
    ranked = draw(names)
    pairs = [(a, b) for place, a in enumerate(ranked) for b in ranked[place + 1 :]]
    return ranked, draw(st.lists(st.sampled_from(pairs), unique=True))


@given(rankings())
def test_two_policies_share_a_letter_exactly_when_they_are_not_told_apart(
    case: tuple[list[str], list[tuple[str, str]]],
) -> None:
    ranked, different = case
    found = {name: set(marks) for name, marks in letters(ranked, different)}
    for place, a in enumerate(ranked):
        for b in ranked[place + 1 :]:
            assert bool(found[a] & found[b]) == ((a, b) not in different)


@settings(max_examples=40)
@given(rankings())
def test_letters_are_as_many_as_scikit_posthocs_needs(case: tuple[list[str], list[tuple[str, str]]]) -> None:
    import pandas as pd  # with scikit-posthocs, seconds for each worker that only collects
    from scikit_posthocs import compact_letter_display

    ranked, different = case
    table = pd.DataFrame(1.0, index=ranked, columns=ranked)
    for a, b in different:
        table.loc[a, b] = table.loc[b, a] = 0.001
    expected = compact_letter_display(table, alpha=0.05)
    groups = {frozenset(name for name in ranked if mark in expected[name]) for mark in set("".join(expected)) - {" "}}
    ours = dict(letters(ranked, different))
    assert {frozenset(n for n in ranked if mark in ours[n]) for mark in set("".join(ours.values()))} == groups


def test_letters_that_would_explode_are_not_given() -> None:
    ranked = [f"p{index}" for index in range(60)]
    pairs = [(a, b) for place, a in enumerate(ranked) for b in ranked[place + 1 :]]
    assert letters(ranked, pairs) == ()
    assert letters(ranked, [(ranked[place], ranked[place + 1]) for place in range(0, 60, 2)]) == ()
