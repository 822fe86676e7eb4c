"""How much is done and what was said last, from logs as real programs write them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import gridtext
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from monitor_stage import BY_ITSELF, NOW, Seen, a_plan, a_session, a_view, an_answer, status_of

from comborun.model.judging import ProgressRules
from comborun.monitor.observe import RunView
from comborun.monitor.progress import NOTHING, LogProgress, Observation, Workload, counted
from comborun.monitor.status import SessionStatus
from comborun.rules import counting
from comborun.rules.vocabulary import Life

DOCUMENT = (Path(__file__).parents[3] / "docs" / "grid.md").read_text()
HUNDRED = Workload(0, 100)
ISAAC = (
    "\x1b[3g\r\x1bH\n  Stabilize step 80/80\n"
    "  [   6/100] stairs_rough_ep0005  COMPLETE  progress= 50.0m  zone=5  time=61.0s\n"
    "    step 500/30000  x=1.2m  cmd=[0.50,0.00,0.00]\n"
    "  [   7/100] stairs_rough_ep0006  FELL      progress= 12.3m  zone=2  time=98.7s\n"
    "    step 29500/30000  x=1.3m  cmd=[0.50,0.00,0.00]\n"
    "Saved 50 episodes to D/stairs_rough_episodes.jsonl\n"
)
TQDM = (
    "Episodes:   6%|\x1b[32m▌         \x1b[0m| 6/100 [08:01<2:05:30, 80.1s/it]\r"
    "Episodes:   7%|\x1b[32m▋         \x1b[0m| 7/100 [09:21<2:04:19, 80.2s/it]"
)
LEROBOT = (
    "Stepping through eval batches:  60%|██████    | 3/5 [07:31<05:01, 150.4s/it, running_success_rate=16.7%]\r"
    "Running rollout with at most 280 steps:  55%|█████▌    | 154/280 [00:31<00:25, 4.9it/s]\r"
    "Stepping through eval batches:  80%|████████  | 4/5 [10:02<02:30, 150.5s/it, running_success_rate=17.5%]"
)
COSMOS = "--- Starting Episode 54 ---\n--- Step 7 ---\nCalling VLM...\nVLM responded.\nEpisode 53 complete.\n"


BATCH = ProgressRules(r"eval batches:.*\| (\d+)/(\d+) \[")


def count(before: LogProgress, log: str, rules: ProgressRules = BY_ITSELF, workload: Workload = HUNDRED) -> LogProgress:
    return counted(before, counting.lines(log.encode(), cut=False), rules, workload)


def told(log: str, rules: ProgressRules = BY_ITSELF, workload: Workload = HUNDRED) -> int | None:
    return count(NOTHING, log, rules, workload).done


@pytest.mark.parametrize(
    ("log", "rules", "workload", "done"),
    [
        (LEROBOT, BATCH, Workload(0, 5), 4),
        (LEROBOT, BATCH, Workload(0, 50), 40),
        (LEROBOT, BATCH, Workload(0, 49), 39),
        (COSMOS, ProgressRules(r"--- Starting Episode (\d+) ---", 0), Workload(50, 25), 4),
        (COSMOS, ProgressRules(r"^Episode (\d+) complete\.", -1), Workload(50, 25), 4),
        (COSMOS, ProgressRules(r"--- Starting Episode (\d+) ---", 1), Workload(0, 60), 53),
        ("[ 200/100]", ProgressRules(r"(\d+)/"), HUNDRED, 100),
        ("at 7", ProgressRules(r"at (\d+)"), Workload(0, 0), 7),
        ("first of 50", ProgressRules(r"of (\d+)", 1), Workload(50, 50), 0),
        ("3/0", ProgressRules(r"(\d+)/(\d+)"), HUNDRED, None),
        ("3/", ProgressRules(r"(\d+)/(\d+)?"), HUNDRED, 3),
        ("x/5 nan/7", ProgressRules(r"(\S+)/(\d)"), HUNDRED, None),
        ("9" * 400, ProgressRules(r"(\d+)"), HUNDRED, None),
        ("at 7", ProgressRules("("), HUNDRED, None),
        (LEROBOT, replace(BATCH, each=50), Workload(0, 500), 40),
        (LEROBOT, replace(BATCH, each=50), Workload(0, 30), 30),
        (LEROBOT, replace(BATCH, each=50), Workload(0, 0), 40),
        ("3/ 2/5 7/5 1/0", ProgressRules(r"(\d+)/(\d+)?", each=10), HUNDRED, 10),
    ],
)
def test_the_pattern_of_a_grid_finds_the_number(
    log: str, rules: ProgressRules, workload: Workload, done: int | None
) -> None:
    assert told(log, rules, workload) == done


@pytest.mark.parametrize(
    ("log", "workload", "done"),
    [
        (ISAAC, HUNDRED, 7),
        (TQDM, HUNDRED, 7),
        (" 7%|▋         | 7/100 [00:12<02:33,  1.65s/it]", HUNDRED, 7),
        (ISAAC, Workload(0, 1000), None),
        (TQDM, Workload(0, 50), None),
        ("Loading checkpoint shards: 100%|██████████| 4/4 [00:02<00:00]", Workload(0, 4), None),
        ("    step 7/100  x=1.2m", HUNDRED, None),
        ("| scored | 7/100 [points] |", HUNDRED, None),
        ("see figures [7/100] and [8/100]", HUNDRED, None),
        (LEROBOT, Workload(0, 280), 154),
        ("Starting episode 3\nSuccess: True\n# episodes so far: 12\nstep=2048 of 4096", HUNDRED, None),
        ("[ 107/100]", HUNDRED, None),
    ],
)
def test_without_a_pattern_only_a_counter_up_to_the_planned_number_is_believed(
    log: str, workload: Workload, done: int | None
) -> None:
    assert told(log, workload=workload) == done
    assert told(log, ProgressRules(guess=False), workload) is None


def test_a_bar_that_starts_again_counts_no_episodes_and_is_never_believed_again() -> None:
    bars = [f"{done}%|▋ | {done}/100 [00:12<02:33, 1.65s/it]\r" for done in (98, 99, 100, 1, 2)]
    counter = count(NOTHING, "".join(bars[:3]))
    assert counter == LogProgress(100)
    later = count(counter, "".join(bars[3:]))
    assert later == count(NOTHING, "".join(bars)) == LogProgress(doubted=True)
    assert count(later, bars[2]) == later


@example(b"\x1c0", False, 0)
@given(st.binary(max_size=300), st.booleans(), st.integers(0, 200))
def test_any_bytes_are_counted_without_complaint_and_never_beyond_what_is_planned(
    log: bytes, cut: bool, count: int
) -> None:
    for rules in (
        ProgressRules(),
        ProgressRules(r"(\d+)/(\d+)"),
        ProgressRules(r"(?P<done>.+)", -1),
        ProgressRules(r"(\d+)/(\d+)", each=7),
    ):
        done = counted(NOTHING, counting.lines(log, cut=cut), rules, Workload(0, count)).done
        assert done is None or 0 <= done <= (count or done)


def rows() -> list[tuple[str, str]]:
    """The examples of docs/grid.md: what a program prints, and its `progress`."""
    table = DOCUMENT.split("| program prints | `progress` |\n|---|---|\n")[1].split("\n\n")[0]
    cells = [re.split(r"(?<!\\)\|", line)[1:3] for line in table.replace("\\|", "\0").splitlines()]
    return [(printed.replace("\0", "|").strip(), rule.replace("\0", "|").strip()) for printed, rule in cells]


def test_the_examples_of_the_document_work() -> None:
    found = {}
    for printed, rule in rows():
        line = re.search(r"`(.*?)`(?:,|$)", printed)
        written = f"progress: {rule.strip('`')}\n" if rule.startswith("`") else ""
        head = "policies: [a]\nenvironments: [x]\nepisodes: 100\ncommand: run {episodes} {output_dir}\n"
        (session,) = gridtext.plan(head + written).sessions
        count = 50 if "batches" in printed else 100_000 if "train" in printed else 100
        found[printed] = told(line[1], session.progress, Workload(0, count)) if line else told("", session.progress)
    assert list(found.values()) == [12, 3, 40, 8, 4096]


# From the probe to the status


def seen_of(view: RunView, *looks: bytes) -> SessionStatus:
    return status_of(view, *looks).sessions[0]


def one(progress: ProgressRules = BY_ITSELF, files: tuple[str, ...] = ("*.jsonl",), count: int = 100) -> RunView:
    return a_view(a_plan([a_session("act", "grass", count, files, progress)]))


def look(log: bytes, counts: tuple[int, int] = (0, 0), passed: float = 0.0, size: int | None = None) -> bytes:
    return an_answer(Seen("grass_act", counts=counts, log=log, size=size), now=NOW + passed)


BY_PATTERN = one(ProgressRules(r"so far: (\d+)"))


def test_a_program_without_records_is_told_by_its_log_alone() -> None:
    silent, telling = one(files=()), one(ProgressRules(r"so far: (\d+)"), files=())
    status = seen_of(telling, look(b"so far: 62\n"))
    assert (status.done, status.recorded, status.successes) == (62, None, None)
    assert status.expected, "an estimate follows from the log, too"
    assert seen_of(telling, look(b"starting\n")).done == 0
    assert seen_of(silent, look(b"starting\n")).done is None
    assert seen_of(silent, look(b"  [  62/100] ok\n")).done == 62


def test_what_the_log_said_stays_when_newer_lines_push_it_out_and_when_the_session_ends() -> None:
    first, second = look(b"so far: 62\n"), look(b"step 3\n" * 9, passed=60, size=99_999)
    assert seen_of(BY_PATTERN, first, second).done == 62
    by_log = one(ProgressRules(r"so far: (\d+)"), files=())
    ended = Seen("grass_act", log=b"x\n").ended("signal", "none", code=139, signal=11, log=b"so far: 63\nCrash\n")
    status = seen_of(by_log, first, an_answer(ended, now=NOW + 120))
    assert (status.life, status.done, status.last_line) == (Life.ENDED, 63, "Crash")
    assert seen_of(BY_PATTERN, first, an_answer(ended, now=NOW + 120)).done == 0  # none of them has a record


def test_another_attempt_begins_to_count_anew_and_a_piece_that_the_tail_cut_through_is_no_number() -> None:
    lost = Seen("grass_act").ended("lost", "none", records=0, log=b"so far: 62\n")
    again = Seen("grass_act", 2, log=b"so far: 3\n")
    assert seen_of(BY_PATTERN, an_answer(lost), an_answer(lost, again)).done == 3
    view = one(ProgressRules(r"(\d+)$"))
    assert seen_of(view, look(b"99\n12\n", size=5000)).done == 12
    assert seen_of(view, look(b"99\n12\n")).done == 99


def test_it_is_remembered_when_more_was_seen_to_be_done() -> None:
    looks = [look(f"so far: {done}\n".encode(), passed=20.0 * at) for at, done in enumerate((0, 3, 3, 5))]
    progressed = [seen_of(BY_PATTERN, *looks[:count]).latest.progressed for count in (1, 2, 3, 4)]
    assert progressed == [None, NOW + 20, NOW + 20, NOW + 60]


# A bar that starts again for each part of the work: never more than was done, never less than was seen

TASK = 50
BATCHES = 5
RULES = ProgressRules(r"eval batches:.*?(\d+)/(\d+) \[", each=TASK)
PREAMBLE = b"Making policy.\n" * 300
"""more of a log than a look at its end shows"""


def bars(*numbers: int) -> bytes:
    drawn = (
        f"\rStepping through eval batches:  0%|      | {number}/{BATCHES} [00:10<00:10, 2.0s/it]\n"
        f"\rRunning rollout with at most 280 steps:  1%|      | 2/280 [00:00<00:40]\x1b[A"
        for number in numbers
    )
    return "".join(drawn).encode()


@given(
    batches=st.integers(1, 7),
    parts=st.integers(1, 6),
    looks=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 900)), max_size=12),
)
def test_however_it_is_looked_at_it_is_never_more_than_was_done_and_never_goes_back(
    batches: int, parts: int, looks: list[tuple[int, int]]
) -> None:
    drawn = [(part, number) for part in range(parts) for number in range(batches + 1)]
    lines = [f"\rStepping through eval batches: | {number}/{batches} [00:10".encode() for _, number in drawn]
    counter = NOTHING
    for until, tail in sorted(looks):
        log = b"".join(lines[: until + 1])
        part, number = drawn[min(until, len(drawn) - 1)]
        seen = counting.lines(log[-tail:] if tail else b"", cut=tail < len(log))
        later = counted(counter, seen, RULES, Workload(0, parts * TASK), Observation(float(until)))
        assert (counter.done or 0) <= (later.done or 0) <= part * TASK + number * TASK // batches
        counter = later


def at(age: float, log: bytes) -> bytes:
    """A look at a log with this end, `age` seconds after the attempt began."""
    return look(log, passed=age - 100, size=99_999 if age else None)


IN_PARTS = one(RULES, files=(), count=500)
WATCHED = tuple(at(100.0 * number, bars(number)) for number in range(BATCHES + 1))
LATE = at(60_000, PREAMBLE + bars(0, 1))
ASLEEP = at(9_000, bars(3))


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        (WATCHED, (50, 500 * 9)),
        ((*WATCHED, at(600, bars(5, 0, 1))), (60, pytest.approx(600 / 60 * 440))),
        ((*WATCHED[:4], at(500, bars(5))), (50, 500 * 9)),
        ((LATE,), (10, None)),
        ((LATE, at(60_100, bars(2)), at(60_400, bars(5)), at(60_500, bars(0))), (50, None)),
        ((*WATCHED[:4], ASLEEP), (30, None)),
        ((*WATCHED[:4], ASLEEP, at(9_100, bars(4)), at(9_300, bars(0))), (50, None)),
    ],
    ids=[
        "watched from the beginning",
        "into the next part",
        "a link lost for less than a part",
        "who comes later is told the least",
        "and no end while it watches",
        "a part may have passed out of sight",
        "and then no end is told",
    ],
)
def test_an_end_is_told_only_where_no_part_can_have_been_missed(
    looks: tuple[bytes, ...], told: tuple[int, float | None]
) -> None:
    status = status_of(IN_PARTS, *looks)
    expected = status.sessions[0].expected
    in_seconds = expected.likeliest - (status.now or 0) if expected else None
    assert (status.sessions[0].done, in_seconds) == told


def test_whose_evidence_is_complete_has_done_all_and_who_was_cut_short_what_was_seen() -> None:
    def ended(completeness: str) -> int | None:
        seen = Seen("grass_act").ended(completeness=completeness, records=0, log=bars(5))
        return seen_of(IN_PARTS, at(60_000, PREAMBLE + bars(2)), an_answer(seen)).done

    assert (ended("complete"), ended("partial")) == (500, 50)
    assert seen_of(IN_PARTS, an_answer(Seen("grass_act").ended(records=0))).done == 500
