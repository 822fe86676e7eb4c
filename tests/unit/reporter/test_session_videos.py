"""How many videos each session left, against how many were expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from report_runs import RUN, RunDirectory, row

from comborun.model.placement import Component
from comborun.reporter.collect import collect_folder
from comborun.reporter.pages.combo_tables import videos
from comborun.reporter.summary import Summary, summarize
from comborun.rules.facts import Fact
from comborun.rules.results.counts import keys_of
from comborun.rules.results.fields import ResultRules
from comborun.rules.results.videos import APART, NO_MOOV, NOT_NAMED, WHOLE, apart, render
from comborun.rules.results.videos import told as of_trial
from comborun.words import say

FILMED = ResultRules(videos=("**/*.mp4",))
ROWS = "".join(map(row, range(4)))


def filmed(folder: Path, names: dict[str, dict[str, str]], components: tuple[Component, ...] = ()) -> Summary:
    """Of sessions in one environment: policy -> path of a video -> its word in videos.tsv."""
    run = RunDirectory(folder)
    for policy, found in names.items():
        session = run.session(policy, "stairs", count=4, results=FILMED, components=components)
        run.attempt(session, ROWS)
        rows = ((1000, word, f"out/{path}") for path, word in found.items())
        run.put(RUN.attempt(session.name, 1).videos, render(rows))
    return run.report().summary


def told(summary: Summary) -> list[tuple[str, str]]:
    return [(one.where, one.what) for one in summary.quality.findings if "video" in one.what]


def test_workers_of_whose_videos_one_is_missing_are_told_and_the_whole_one_is_listed(tmp_path: Path) -> None:
    env = Component("env", "0-1", "", ((0,), (1,)), videos=1)
    summary = filmed(tmp_path, {"vla": {"seed_1/0.mp4": WHOLE}}, (env,))
    (one,) = summary.videos
    assert (one.whole, one.found, one.expected, one.size) == (1, 1, 2, 1000)
    assert one.apart == ("sessions/stairs_vla/attempt-1/out/seed_1/0.mp4",)
    assert told(summary) == [("stairs_vla", "1 of 2 videos are missing")]


def test_a_session_with_fewer_videos_than_another_of_its_environment_is_told(tmp_path: Path) -> None:
    several = {f"clip{at}.mp4": WHOLE for at in range(3)}
    summary = filmed(tmp_path, {"a": several, "b": {"clip0.mp4": WHOLE, "clip1.mp4": NO_MOOV}})
    places = dict(told(summary))
    assert "left 3" in places["stairs_b"]
    assert "stairs_a" not in places
    assert any("no moov box" in what for what in places.values())
    table = videos(summary.videos)
    assert table
    assert [cells[3] for cells in table.rows] == ["3", "1"]


def test_nothing_is_told_of_sessions_that_left_as_many_as_expected_or_none_at_all(tmp_path: Path) -> None:
    env = Component("env", "0", "", ((0,),), videos=1)
    assert told(filmed(tmp_path / "whole", {"a": {"0.mp4": WHOLE}}, (env,))) == []
    assert told(filmed(tmp_path / "none", {"a": {}, "b": {}})) == []
    assert videos(filmed(tmp_path / "no", {"a": {}}).videos) is None


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        ([f"worker{at}_rank0.mp4" for at in (0, 1, 3)], "worker*_rank0.mp4: 2"),
        ([f"{camera}/episode_{at}.mp4" for camera in ("front", "wrist") for at in (0, 1, 2, 4)], "*.mp4: 3"),
        ([f"ep_{at:03d}/rollout.mp4" for at in (7, 8, 10, 12)], "ep_*/rollout.mp4: 9, 11"),
        ([f"step_{at}000.mp4" for at in (1, 3, 5)], ""),
        ([f"{at}.mp4" for at in (0, 4)], ""),
    ],
)
def test_a_number_that_is_missing_between_names_that_are_alike_is_told(
    tmp_path: Path, names: list[str], missing: str
) -> None:
    found = [
        (place, what) for place, what in told(filmed(tmp_path, {"a": dict.fromkeys(names, WHOLE)})) if "*" in place
    ]
    assert bool(found) == bool(missing)
    for place, what in found:
        name, _, numbers = missing.partition(": ")
        assert place.endswith(name)
        assert f"the number {numbers}, between" in what


def test_a_video_that_its_episode_or_its_neighbours_tell_is_missing_is_told_once(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    named = "".join(row(at, video=f"clip{at}.mp4") for at in range(4))
    for policy, rows, lacking in (("all", named, 9), ("claimed", named, 1), ("numbered", ROWS, 2)):
        session = run.session(policy, "stairs", count=4, results=FILMED)
        run.attempt(session, rows)
        name = "ep{}.mp4" if rows is ROWS else "clip{}.mp4"
        there = ((1000, WHOLE, f"out/{name.format(at)}") for at in range(4) if at != lacking)
        run.put(RUN.attempt(session.name, 1).videos, render(there))
    assert told(run.report().summary) == [
        ("clip1.mp4", "the video of episode 1 is missing"),
        ("numbered × stairs", "no video of 2, between episodes that have one"),
    ]


def test_the_last_video_is_told_missing_once_its_attempt_has_listed_its_videos(tmp_path: Path) -> None:
    for listed, finding in (2, [("flat × stairs", "no video of episode 4, the last one")]), (1, []):
        run = RunDirectory(tmp_path / str(listed))
        session = run.session("flat", "stairs", count=5, results=FILMED)
        run.attempt(session, "".join(map(row, range(4))))
        run.attempt(session, row(4), number=2)
        clips = [(1000, WHOLE, f"out/ep{at}.mp4") for at in range(4)]
        for number in range(1, listed + 1):
            run.put(RUN.attempt(session.name, number).videos, render(clips if number == 1 else []))
        assert told(run.report().summary) == finding


def test_of_an_attempt_that_has_not_listed_its_videos_none_is_told_to_be_missing(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for policy in ("ended", "runs"):
        session = run.session(policy, "stairs", count=4, results=FILMED)
        run.attempt(session, "".join(row(at, video=f"clip{at}.mp4") for at in range(4)))
        if policy == "ended":
            run.put(RUN.attempt(session.name, 1).videos, render((1000, WHOLE, f"out/clip{at}.mp4") for at in range(3)))
    assert told(run.report().summary) == [("clip3.mp4", "the video of episode 3 is missing")]


def test_videos_that_show_no_known_episode_are_told_with_what_links_them(tmp_path: Path) -> None:
    summary = filmed(tmp_path, {"a": {"eval_episode_0.mp4": WHOLE, "run_0.mp4": WHOLE, "eval_episode_9.mp4": WHOLE}})
    ((_, what),) = told(summary)
    assert "2 of 3 videos (run_0.mp4, eval_episode_9.mp4)" in what
    assert "eval_episode_0.mp4`" in what
    assert "field `video`" in what
    none = filmed(tmp_path / "linked", {"a": {f"eval_episode_{at}.mp4": WHOLE for at in range(4)}})
    assert told(none) == []


def test_a_folder_tells_them_too(tmp_path: Path) -> None:
    for name in ("clip", "eval_episode_1"):
        (tmp_path / f"{name}.gif").write_bytes(b"GIF89a")
    (tmp_path / "rows.jsonl").write_text("".join(row(at, policy="a", environment="b") for at in range(4)))
    assert [
        one.what for one in summarize(collect_folder(tmp_path)).summary.quality.findings if "video" in one.what
    ] == [say(apart(2, ["clip.gif"]) or Fact(""))]


@pytest.mark.parametrize(
    ("there", "taken", "rows", "code", "count"),
    [
        (["a.mp4", "r.csv"], [], [], NOT_NAMED, 1),
        (["a.mp4", "b.webm"], ["a.mp4"], [], NOT_NAMED, 1),
        (["a.mp4", "x/ep3.mp4"], ["a.mp4", "x/ep3.mp4"], [{"episode": 3}], APART, 1),
        (["x/a.mp4"], ["x/a.mp4"], [{"video": "/elsewhere/a.mp4"}], "", 0),
        (["a.mp4"], ["a.mp4"], [{"videos": ["a.mp4", 3]}, [1]], "", 0),
        (["success_obj_episode_7.mp4"], ["success_obj_episode_7.mp4"], [], "", 0),
        (["rollout_pick_success.mp4"], ["rollout_pick_success.mp4"], [], "", 0),
        (["r.csv"], [], [], "", 0),
    ],
)
def test_what_a_trial_says_of_videos(
    there: list[str], taken: list[str], rows: list[Any], code: str, count: int
) -> None:
    fact = of_trial(there, taken, rows)
    assert (fact.code if fact else "", fact.count("videos") if fact else 0) == (code, count)
    if not taken and fact:
        assert keys_of(fact) == {"videos": "**/*.mp4"}
