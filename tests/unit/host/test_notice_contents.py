"""What a notice says, and how often news of one kind are told."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from comborun.host.dispatch.notices import Throttle, last_lines
from comborun.host.record.totals import Span, sums
from comborun.rules import records


def test_news_of_a_kind_wait_and_are_named_with_the_next_of_it() -> None:
    throttle = Throttle(60.0)
    assert not throttle.waits("failed", 100.0)
    assert throttle.send("failed", 100.0) == []
    assert throttle.waits("failed", 159.0)
    assert not throttle.waits("host", 159.0)
    throttle.hold_back("failed", "env_one")
    throttle.hold_back("failed", "")
    assert throttle.due(159.0) == []
    assert throttle.due(160.0) == ["failed"]
    assert throttle.send("failed", 160.0) == ["env_one", "-"]
    assert throttle.due(999.0) == []


def test_what_was_held_back_outlives_the_dispatcher() -> None:
    before = Throttle(60.0)
    before.send("failed", 100.5)
    before.hold_back("failed", "env_one")
    odd = [{"kind": "garbage", "at": "1"}, {"kind": "stalled", "at": "no time"}, {"held": ["x"]}]
    text = "".join(records.render(row.items()) for row in [*before.rows(), *odd])
    after = Throttle(60.0, [*map(records.parse, text.splitlines()), {"kind": "host", "at": 7.5, "held": "env_x"}])
    assert after.waits("failed", 160.0)
    assert after.send("failed", 161.0) == ["env_one"]
    assert set(after.sent_at) == {"failed"}
    assert not Throttle(60.0, [{"kind": "failed", "at": "5000.0"}]).waits("failed", 100.0), "a clock was set back"


def test_the_last_notice_is_told_in_any_case_and_names_all_that_was_held_back() -> None:
    throttle = Throttle(60.0)
    throttle.send("failed", 100.0)
    for kind, who in (("failed", "env_two"), ("stalled", "env_two"), ("failed", "env_three")):
        throttle.hold_back(kind, who)
    assert throttle.send("finished", 110.0) == ["env_two", "env_three"]
    assert not throttle.waits("finished", 110.0)
    assert {row["kind"] for row in throttle.rows()} == {"failed"}
    assert throttle.due(200.0) == []


def test_an_episode_counts_once_and_never_more_than_were_planned() -> None:
    spans = [
        Span("maze_good_e0-4", 0, 5, 5, 2),
        Span("maze_good_e3-9", 3, 7, 7, 7),
        Span("field_good_e0-9", 0, 10, 4, 1),
        Span("field_good_e10-19", 10, 10, 0, 0, needed=False),
    ]
    assert sums(spans) == {"records": 14, "planned": 20, "successes": None}
    assert sums([Span("a_b", 0, 0, 3, 1)]) == {"records": 3, "planned": 0, "successes": 1}, "the program decides it"
    assert sums([]) == {"records": 0, "planned": 0, "successes": 0}


def test_millions_of_steps_are_counted_without_a_list_of_them() -> None:
    tracemalloc.start()
    assert sums([Span("a_b", 0, 1_000_000, 3, 1), Span("a_b", 5, 10, 3, 1)])["planned"] == 1_000_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntorn", ["one", "torn"]),
        (b"10%\r55%\r99%\r\n", ["99%"]),
        (b'one \\ "two"\ttab\n\033[31mred\033[0m \377\376 \303\251\n', ['one \\ "two"\ttab', "[31mred[0m  é"]),
        (b"caf\303\251 \342\202\254 \360\237\244\226\ntorn \303", ["café € 🤖", "torn "]),
        (b"bad\300\200 \355\240\200surrogate\a\177\0", ["bad surrogate"]),
        (b"x" * 600, ["x" * 500]),
        (b"\n".join(b"%d" % i for i in range(30)), [str(i) for i in range(10, 30)]),
    ],
)
def test_the_last_lines_of_a_log_hold_what_is_seen(data: bytes, expected: list[str]) -> None:
    assert last_lines(data) == expected
    assert json.loads(json.dumps(last_lines(data))) == expected
