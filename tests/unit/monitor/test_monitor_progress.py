"""How much is done, from logs as real programs write them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from monitor_stage import NOW, Seen, a_plan, a_session, a_view, an_answer

from comborun.grid import parse_grid
from comborun.judging import ProgressRules
from comborun.monitor.answer import parse_snapshot
from comborun.monitor.classify import classify
from comborun.monitor.observe import LONG_TAIL, LONGEST_TAIL, MOST_MARKS, TAIL, History, RunView, fold
from comborun.monitor.progress import NOTHING, Counter, Share, counted
from comborun.monitor.status import SessionStatus
from comborun.planner import lay_out
from comborun.resources import HostFacts
from comborun.rules import counting
from comborun.rules.words import Life

DOCUMENT = (Path(__file__).parents[3] / "docs" / "grid.md").read_text()
HUNDRED = Share(0, 100)
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
OPENPI = (
    "INFO:root:Starting episode 3...\nINFO:root:Success: True\nINFO:root:# episodes completed so far: 12\n"
    "INFO:root:# successes: 9 (75.0%)\nINFO:root:Current total success rate: 0.75\n"
)
EMBODIED = (
    "[2026-01-02 03:04:05,678][INFO] - Evaluating episode 3 ...\n[2026-01-02 03:04:06,1][INFO] - step 12 reward 0.5\n"
)
COSMOS = "--- Starting Episode 54 ---\n--- Step 7 ---\nCalling VLM...\nVLM responded.\nEpisode 53 complete.\n"
EMBODICHAIN = (
    "[train] step=2048 sps=801 avgReward(100)=0.1\n[train] step=4096 sps=812 avgReward(100)=nan avgLength(100)=7.0\n"
)
RLINF = "Generated 4 placements: [Placement(0), Placement(1)]\n"


def told(log: str, rules: ProgressRules = ProgressRules(), share: Share = HUNDRED) -> int | None:  # noqa: B008
    return counted(NOTHING, counting.lines(log.encode(), cut=False), rules, share).done


@pytest.mark.parametrize(
    ("log", "rules", "share", "done"),
    [
        (ISAAC, ProgressRules(r"^\s*\[\s*(\d+)/(\d+)\]\s+\S+\s+(?:COMPLETE|FLIP|FELL|TIMEOUT)"), HUNDRED, 7),
        (TQDM, ProgressRules(r"Episodes:.*\| (?P<done>\d+)/(?P<total>\d+) \["), HUNDRED, 7),
        (LEROBOT, ProgressRules(r"eval batches:.*\| (\d+)/(\d+) \["), Share(0, 5), 4),
        (LEROBOT, ProgressRules(r"eval batches:.*\| (\d+)/(\d+) \["), Share(0, 50), 40),
        (LEROBOT, ProgressRules(r"eval batches:.*\| (\d+)/(\d+) \["), Share(0, 49), 39),
        (OPENPI, ProgressRules(r"# episodes completed so far: (\d+)"), Share(0, 500), 12),
        (EMBODIED, ProgressRules(r"Evaluating episode (\d+) \.\.\.", 0), Share(0, 60), 3),
        (COSMOS, ProgressRules(r"--- Starting Episode (\d+) ---", 0), Share(50, 25), 4),
        (COSMOS, ProgressRules(r"^Episode (\d+) complete\.", -1), Share(50, 25), 4),
        (COSMOS, ProgressRules(r"--- Starting Episode (\d+) ---", 1), Share(0, 60), 53),
        (EMBODICHAIN, ProgressRules(r"\[train\] step=(\d+)"), Share(0, 100_000), 4096),
        (RLINF, ProgressRules(silent=True), HUNDRED, None),
        ("[ 200/100]", ProgressRules(r"(\d+)/"), HUNDRED, 100),
        ("at 7", ProgressRules(r"at (\d+)"), Share(0, 0), 7),
        ("first of 50", ProgressRules(r"of (\d+)", 1), Share(50, 50), 0),
        ("3/0", ProgressRules(r"(\d+)/(\d+)"), HUNDRED, None),
        ("3/", ProgressRules(r"(\d+)/(\d+)?"), HUNDRED, 3),
        ("x/5 nan/7", ProgressRules(r"(\S+)/(\d)"), HUNDRED, None),
        ("9" * 400, ProgressRules(r"(\d+)"), HUNDRED, None),
        ("at 7", ProgressRules("("), HUNDRED, None),
        (LEROBOT, ProgressRules(r"eval batches:.*\| (\d+)/(\d+) \[", each=50), Share(0, 500), 40),
        (LEROBOT, ProgressRules(r"eval batches:.*\| (\d+)/(\d+) \[", each=50), Share(0, 30), 30),
        (LEROBOT, ProgressRules(r"eval batches:.*\| (\d+)/(\d+) \[", each=50), Share(0, 0), 40),
        ("3/ 2/5 7/5 1/0", ProgressRules(r"(\d+)/(\d+)?", each=10), HUNDRED, 10),
    ],
)
def test_the_pattern_of_a_grid_finds_the_number(log: str, rules: ProgressRules, share: Share, done: int | None) -> None:
    assert told(log, rules, share) == done


@pytest.mark.parametrize(
    ("log", "share", "done"),
    [
        (ISAAC, HUNDRED, 7),
        (TQDM, HUNDRED, 7),
        (" 7%|▋         | 7/100 [00:12<02:33,  1.65s/it]", HUNDRED, 7),
        (ISAAC, Share(0, 1000), None),
        (TQDM, Share(0, 50), None),
        ("Loading checkpoint shards: 100%|██████████| 4/4 [00:02<00:00]", Share(0, 4), None),
        ("    step 7/100  x=1.2m", HUNDRED, None),
        ("| scored | 7/100 [points] |", HUNDRED, None),
        ("see figures [7/100] and [8/100]", HUNDRED, None),
        (LEROBOT, Share(0, 280), 154),
        (OPENPI + EMBODIED + EMBODICHAIN + RLINF, HUNDRED, None),
        ("[ 107/100]", HUNDRED, None),
    ],
)
def test_without_a_pattern_only_a_counter_up_to_the_planned_number_is_believed(
    log: str, share: Share, done: int | None
) -> None:
    assert told(log, share=share) == done
    assert told(log, ProgressRules(guess=False), share) is None


def test_a_bar_that_starts_again_counts_no_episodes_and_is_never_believed_again() -> None:
    rules = ProgressRules()
    bars = [f"{done}%|▋ | {done}/100 [00:12<02:33, 1.65s/it]\r" for done in (98, 99, 100, 1, 2)]
    counter = counted(NOTHING, counting.lines("".join(bars[:3]).encode(), cut=False), rules, HUNDRED)
    assert counter == Counter(100)
    at_once = counted(NOTHING, counting.lines("".join(bars).encode(), cut=False), rules, HUNDRED)
    later = counted(counter, counting.lines("".join(bars[3:]).encode(), cut=False), rules, HUNDRED)
    assert at_once == later == Counter(doubted=True)
    assert counted(later, counting.lines(bars[2].encode(), cut=False), rules, HUNDRED) == later


def test_a_tail_that_repeats_what_the_last_one_held_has_not_gone_back() -> None:
    first = counted(NOTHING, counting.lines(b"[ 6/100]\n[ 7/100]\n", cut=False), ProgressRules(), HUNDRED)
    again = counted(first, counting.lines(b"[ 6/100]\n[ 7/100]\n[ 8/100]\n", cut=False), ProgressRules(), HUNDRED)
    assert (first, again) == (Counter(7), Counter(8))


def test_the_highest_number_stays_when_it_has_left_the_tail() -> None:
    rules = ProgressRules(r"done (\d+)")
    before = counted(NOTHING, counting.lines(b"done 12\n", cut=False), rules, HUNDRED)
    assert counted(before, counting.lines(b"step 1\nstep 2\n", cut=False), rules, HUNDRED) == before
    assert counted(before, counting.lines(b"done 3\n", cut=False), rules, HUNDRED) == before


def test_the_first_piece_of_a_cut_tail_is_not_whole_and_is_left_out() -> None:
    assert list(counting.lines(b"2/100\r93/100\nrest", cut=True)) == ["93/100", "rest"]
    assert list(counting.lines(b"2/100\r\x1b[1m93/100\x1b[0m", cut=False)) == ["2/100", "93/100"]


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
        done = counted(NOTHING, counting.lines(log, cut=cut), rules, Share(0, count)).done
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
        here = HostFacts("h", "h", 4, 0, (), "5", "3", "", ())
        (session,) = lay_out(parse_grid(head + written, Path("grid.yaml")), here).sessions
        count = 50 if "batches" in printed else 100_000 if "train" in printed else 100
        found[printed] = told(line[1], session.progress, Share(0, count)) if line else told("", session.progress)
    assert list(found.values()) == [7, 7, 12, 3, 40, 8, 4096, None]


# From the probe to the status


def seen_of(view: RunView, *looks: bytes) -> SessionStatus:
    history = History()
    for look in looks:
        sessions = {session.name: session for session in view.plan.sessions}
        history = fold(history, parse_snapshot(look), sessions)
    return classify(view, history).sessions[0]


def one(progress: ProgressRules = ProgressRules(), files: tuple[str, ...] = ("*.jsonl",)) -> RunView:  # noqa: B008
    return a_view(a_plan([a_session("act", "grass", files=files, progress=progress)]))


def look(log: bytes, counts: tuple[int, int] = (0, 0), passed: float = 0.0, size: int | None = None) -> bytes:
    return an_answer(Seen("grass_act", counts=counts, log=log, size=size), now=NOW + passed)


BY_PATTERN = one(ProgressRules(r"so far: (\d+)"))


def test_the_larger_of_records_and_log_is_done_and_successes_are_the_records() -> None:
    ahead = seen_of(BY_PATTERN, look(b"so far: 62\n", (50, 45)))
    behind = seen_of(BY_PATTERN, look(b"so far: 49\n", (50, 45)))
    assert [(status.done, status.recorded, status.successes) for status in (ahead, behind)] == [
        (62, 50, 45),
        (50, 50, 45),
    ]


def test_a_program_without_records_is_told_by_its_log_alone() -> None:
    silent, telling = one(files=()), one(ProgressRules(r"so far: (\d+)"), files=())
    status = seen_of(telling, look(b"so far: 62\n"))
    assert (status.done, status.recorded, status.successes) == (62, None, None)
    assert seen_of(telling, look(b"starting\n")).done == 0
    assert seen_of(silent, look(b"starting\n")).done is None
    assert seen_of(silent, look(b"  [  62/100] ok\n")).done == 62


def test_an_estimate_follows_from_the_log_too() -> None:
    status = seen_of(one(ProgressRules(r"so far: (\d+)"), files=()), look(b"so far: 50\n"))
    assert status.expected
    assert status.expected.likeliest == NOW + 100


def test_what_the_log_said_stays_when_newer_lines_push_it_out_and_when_the_session_ends() -> None:
    first, second = look(b"so far: 62\n"), look(b"step 3\n" * 9, passed=60, size=99_999)
    assert seen_of(BY_PATTERN, first, second).done == 62
    by_log = one(ProgressRules(r"so far: (\d+)"), files=())
    ended = Seen("grass_act", log=b"x\n").ended("signal", "none", code=139, signal=11, log=b"so far: 63\nCrash\n")
    status = seen_of(by_log, first, an_answer(ended, now=NOW + 120))
    assert (status.life, status.done, status.last_line) == (Life.ENDED, 63, "Crash")
    assert seen_of(BY_PATTERN, first, an_answer(ended, now=NOW + 120)).done == 0  # none of them has a record


def test_another_attempt_begins_to_count_anew() -> None:
    lost = Seen("grass_act").ended("lost", "none", records=0, log=b"so far: 62\n")
    again = Seen("grass_act", 2, log=b"so far: 3\n")
    assert seen_of(BY_PATTERN, an_answer(lost), an_answer(lost, again)).done == 3


def test_a_piece_that_the_tail_cut_through_is_no_number() -> None:
    view = one(ProgressRules(r"(\d+)$"))
    assert seen_of(view, look(b"99\n12\n", size=5000)).done == 12
    assert seen_of(view, look(b"99\n12\n")).done == 99


def test_it_is_remembered_when_more_was_seen_to_be_done() -> None:
    looks = [look(f"so far: {done}\n".encode(), passed=20.0 * at) for at, done in enumerate((0, 3, 3, 5))]
    assert [seen_of(BY_PATTERN, *looks[:count]).progressed for count in (1, 2, 3, 4)] == [
        None,
        NOW + 20,
        NOW + 20,
        NOW + 60,
    ]


def test_only_so_many_moments_are_remembered() -> None:
    history = History()
    for done in range(1, 2 * MOST_MARKS):
        history = fold(history, parse_snapshot(look(b"", (done, 0), passed=done)))
    assert [mark.done for mark in history.of("grass_act")[0].marks] == list(range(MOST_MARKS, 2 * MOST_MARKS))


def test_more_of_the_logs_is_asked_for_where_a_pattern_wants_it() -> None:
    starting_again = one(ProgressRules(r"(\d+)/(\d+)", each=5))
    assert (one().tail, BY_PATTERN.tail, starting_again.tail) == (TAIL, LONG_TAIL, LONGEST_TAIL)


def test_a_silent_program_is_known_to_be_silent() -> None:
    assert seen_of(one(ProgressRules(silent=True)), look(b"")).silent
    assert not seen_of(one(), look(b"")).silent


@pytest.mark.parametrize("blank", [" ", "\t", "\x1c", "\u2003"])
def test_a_number_counts_with_whatever_blanks_its_group_takes_along(blank: str) -> None:
    line = f"done{blank}12{blank}of 100".encode()
    assert counted(NOTHING, counting.lines(line, cut=False), ProgressRules(r"done(\s+\d+\s+)"), HUNDRED).done == 12
