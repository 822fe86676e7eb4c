"""What the screens of the page hold, from facts: map, news, episodes, rollouts, GPUs, slots; and what a copy hides."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from monitor_stage import HOST, NOW, Seen, a_hold, a_host, a_plan, a_session, a_view, an_answer, look_at, status_of

from comborun.monitor.causes import run_causes
from comborun.monitor.classify import classify
from comborun.monitor.document import answer as answer_of_status
from comborun.monitor.fleet import FleetRow, together
from comborun.monitor.fullscreen.pane import episode_lines
from comborun.monitor.gpu_samples import samples
from comborun.monitor.observe import RunView
from comborun.monitor.screen import changes
from comborun.monitor.snapshot import Order
from comborun.monitor.states import verdicts_of
from comborun.monitor.view.bundle import Redaction, copy_videos
from comborun.monitor.view.drawing import gpu_chart, slots, strip, times
from comborun.monitor.view.feed import end_words
from comborun.monitor.view.gpus import GpuHistory
from comborun.monitor.view.pages import Site, alerts, coded, news, of_cell, of_hosts, of_run, render, the_map
from comborun.monitor.view.records import ReportSoFar, Rollout, alike, choose
from comborun.monitor.watch import Look
from comborun.remote.runs import Run
from comborun.rules import events
from comborun.rules.facts import Fact
from comborun.rules.results.counts import UNDECIDED
from comborun.words import say
from comborun.words.times import clock

PLAN = a_plan([a_session(policy, place, 10) for policy in ("flat", "rough") for place in ("grass", "stairs")])
VIEW: RunView = a_view(PLAN)
NAMES = [session.name for session in PLAN.sessions]
ANSWER = an_answer(
    Seen(NAMES[0]).ended(records=10, successes=9, ended=NOW - 50),
    Seen(NAMES[1]).ended("exited", "partial", records=4, successes=1, code=1, ended=NOW - 5),
    Seen(NAMES[2], counts=(5, 2), gpus="0"),
    host=a_host((41000, 81559, 90)),
)


def test_the_map_has_a_row_for_each_policy_and_the_mean_of_the_environments_with_a_rate() -> None:
    environments, rows = the_map(status_of(VIEW, ANSWER))
    assert environments == ("grass", "stairs")
    flat, rough = rows
    assert [(cell.successes, cell.recorded, cell.done) for cell in flat.cells if cell] == [(9, 10, 10), (1, 4, 4)]
    assert flat.mean == pytest.approx((0.9 + 0.25) / 2)
    assert (rough.mean, rough.environments) == (pytest.approx(0.4), 1)


def test_what_stands_in_backticks_is_code_and_still_escaped() -> None:
    assert coded("`combo retry` again, <b>`<i>`</b>, one ` alone") == (
        "<code>combo retry</code> again, &lt;b&gt;<code>&lt;i&gt;</code>&lt;/b&gt;, one ` alone"
    )
    history = look_at(
        an_answer(Seen(NAMES[1]).ended("exited", "none", code=1, ended=NOW - 5), dispatcher=None), view=VIEW
    )
    look = Look(1, VIEW, history, classify(VIEW, history))
    for screen, values in (("run", {**of_run(look), "news": []}), ("cell", of_cell(look, NAMES[1]) or {})):
        text = re.sub(r'"[^"]*"', "", render(f"{screen}.html.j2", Site("/x/"), look, screen, **values))
        assert "`" not in text
        assert "<code>combo" in text


def test_a_cell_without_verdicts_says_what_is_done_and_never_looks_like_a_rate() -> None:
    history = look_at(ANSWER, view=VIEW)
    look = Look(1, VIEW, history, classify(VIEW, history))
    page = render("run.html.j2", Site(), look, "run", **of_run(look), news=())
    shown = page.partition('class="map')[2].partition("</table>")[0]
    assert [part.partition("</small>")[0] for part in shown.split("<small>")[1:] if "–" not in part[:12]] == [
        "9/10", "1/4", "2/5", "0 done",
    ]  # fmt: skip


def test_and_more_of_a_cause_leads_to_the_sessions_of_that_cause() -> None:
    sessions = [a_session(policy, f"e{place}") for policy in ("act", "pi0") for place in range(8)]
    view, codes = a_view(a_plan(sessions)), {"act": 1, "pi0": 3}
    ends = [Seen(one.name).ended("exited", "none", code=codes[one.policy], **{"class": "error"}) for one in sessions]
    answer = an_answer(*ends)
    history = look_at(answer, view=view)
    look = Look(1, view, history, classify(view, history))
    page = render("run.html.j2", Site(), look, "run", **of_run(look), news=())
    led = [unescape(words) for words in re.findall(r'href="\?q=([^"]+)">and 2 more', page)]
    found = [{row.session.policy for row in of_run(look, unquote(words))["listed"]} for words in led]
    assert sorted(found, key=str) == [{"act"}, {"pi0"}]
    assert [len(of_run(look, unquote(words))["listed"]) for words in led] == [8, 8]


@pytest.mark.parametrize("made", [0, 1])
def test_episodes_are_counted_once_the_records_are_read(made: int) -> None:
    history = look_at(ANSWER, view=VIEW)
    look = Look(1, VIEW, history, classify(VIEW, history))
    known = {"rows": (), "count": 0, "one": None, "groups": (), "complaint": "", "busy": True, "made": made}
    page = render(
        "rollouts.html.j2",
        Site(),
        look,
        "rollouts",
        wanted=dict.fromkeys(("show", "policy", "environment"), ""),
        **known,
    )
    assert (">0 episodes<" in page) == bool(made)
    assert ("Reading the records" in page) != bool(made)


@pytest.mark.parametrize(("bundled", "where"), [(False, "is on the host"), (True, "is not in this copy")])
def test_a_list_of_episodes_says_where_a_video_is_that_is_not_here(bundled: bool, where: str) -> None:
    history = look_at(ANSWER, view=VIEW)
    look = Look(1, VIEW, history, classify(VIEW, history))
    row = a_rollout("flat", 3, "success")._replace(video="3.mp4")
    known = {"one": None, "groups": (), "complaint": "", "busy": False, "made": 1, "here": lambda _: False}
    known |= {
        "rows": (row,),
        "count": 1,
        "age": {row.key: 0},
        "wanted": dict.fromkeys(("show", "policy", "environment"), ""),
    }
    page = render("rollouts.html.j2", Site(bundled=bundled), look, "rollouts", **known)
    assert [one for one in ("is on the host", "is not in this copy") if one in page] == [where]
    without = render("rollouts.html.j2", Site(bundled=bundled), look, "rollouts", **known)
    assert "None of these episodes has a video" in without, "nothing is left empty"


def test_news_are_what_ended_or_stalled_after_the_last_look_the_most_urgent_first() -> None:
    status = status_of(VIEW, ANSWER)
    assert [(word, [one.name for one in found]) for word, found in news(status, NOW - 20)] == [("partial", [NAMES[1]])]
    assert [word for word, _ in news(status, NOW - 500)] == ["partial", "succeeded"]
    assert news(status, 0.0) == [], "who has never looked gets no news"


def test_the_strip_has_every_planned_episode_with_its_verdict() -> None:
    history = look_at(ANSWER, view=VIEW)
    seen = status_of(VIEW, ANSWER).sessions[2]
    found = strip(PLAN.sessions[2], verdicts_of(PLAN.sessions[2], seen, history.of(NAMES[2])))
    assert [one.state for one in found] == ["success"] * 2 + ["failure"] * 3 + ["open"] * 5


def test_no_strip_shows_verdicts_of_a_session_whose_counts_leave_it_undecided() -> None:
    """Another session of the run shows that the field holds numbers, so its 0 and 1 are no verdicts."""
    why = Fact(UNDECIDED, rows=10, of=10, values=["0", "1", "4"], field="success", numbers=True)
    odd = Seen(NAMES[0]).ended(records=10, verdicts=0, completeness="partial", facts=[why.as_data()])
    history = look_at(an_answer(odd, Seen(NAMES[1]).ended(records=10, successes=6, numeric="success")), view=VIEW)
    look = Look(1, VIEW, history, classify(VIEW, history))
    assert [one.state for one in (of_cell(look, NAMES[1]) or {})["strip"]] == ["errored"] * 10
    lines = episode_lines(look, look.status.sessions[1], 80)
    assert lines[0].plain.split() == ["0", "!" * 10]


def a_rollout(policy: str, episode: int, verdict: str, at: float = 0.0) -> Rollout:
    return Rollout(f"grass_{policy}", policy, "grass", episode, 1, verdict, f"seed {episode}", at)


ROWS = [
    a_rollout("flat", 3, "success", 9), a_rollout("flat", 2, "failure", 8), a_rollout("rough", 3, "failure", 7),
    a_rollout("rough", 2, "success", 6),
]  # fmt: skip


def test_failed_episodes_come_first_and_filters_choose() -> None:
    assert [one.verdict for one in choose(ROWS)[0]] == ["failure", "failure", "success", "success"]
    assert choose(ROWS, "newest")[0] == ROWS
    found, count = choose(ROWS, "failed", "rough", most=5)
    assert ([one.key for one in found], count) == (["grass_rough:3"], 1)
    assert choose(ROWS, most=1)[1] == 4


def test_the_same_start_of_every_policy_stands_side_by_side_in_their_order() -> None:
    assert [one.key for one in alike(ROWS, ROWS[3], ("flat", "rough"))] == ["grass_flat:2", "grass_rough:2"]


def test_events_say_who_held_a_gpu_and_broken_ones_say_nothing() -> None:
    card = {"used": 30, "total": 80, "busy": 1, "sessions": {"grass_flat": 10}, "others": [["ann", "train.py", 15]]}
    lines = [
        {"at": NOW - 60, "kind": "gpu_use", "gpus": {"0": card}},
        {"at": NOW - 50, "kind": "gpu_use", "gpus": {"0": {"used": "much"}, "x": card, "1": 5}},
        {"at": NOW - 40, "kind": "gpu_use", "gpus": [1]},
        {"at": NOW - 35, "kind": "gpu_use", "gpus": {"0": {**card, "used": float("inf")}}},
        {"at": NOW - 30, "kind": "ended", "gpus": {"0": card}},
    ]
    found = [*samples(events.parse("\n".join(map(json.dumps, lines))))]
    assert [(one.at, dict(one.sessions), dict(one.others)) for one in found] == [
        (NOW - 60, {"grass_flat": 10}, {("ann", "train.py"): 15})
    ]
    history = GpuHistory()
    history.add(found[0])
    assert [mib for mib, _ in history.parts(found[0])] == [10, 15, 5], "the rest is of nobody who is known"
    labels = history.labels(NOW - 100)
    assert list(labels) == ["grass_flat", "ann: train.py", "not known whose"]
    assert [colour for _, colour in history.parts(found[0])] == [*labels.values()]
    assert len({*labels.values()}) == 3
    assert history.labels(NOW) == {}


def test_a_chart_and_the_slots_are_drawn_with_what_is_predicted() -> None:
    status, history = status_of(VIEW, ANSWER), look_at(ANSWER, view=VIEW)
    drawn = slots(status, history, NOW - 100, NOW)
    assert drawn
    text = drawn.svg()
    assert "grass_rough" in text
    assert "stairs_rough" in text, "a queued session has a predicted place"
    chart = gpu_chart(GpuHistory(), status.use.gpus[0], NOW - 100, NOW)
    assert "80 GiB" in chart.svg()
    assert slots(status_of(VIEW, an_answer()), look_at(an_answer()), NOW - 100, NOW) is None


def test_a_slot_that_is_too_narrow_for_its_name_has_no_part_of_it_that_says_nothing() -> None:
    names = [f"grass_pi0_libero_finetuned_step_{step}00000" for step in range(9)]
    plan = a_plan([a_session(name.removeprefix("grass_"), "grass", 10) for name in names])
    answer = an_answer(
        *(Seen(name).ended(records=10, successes=9, ended=NOW - 50 + at) for at, name in enumerate(names))
    )
    view = a_view(plan)
    drawn = slots(status_of(view, answer), look_at(answer, view=view), NOW - 1000, NOW)
    assert drawn
    labels = re.findall(r">([^<>]*…[^<>]*)<", drawn.svg())
    assert not [one for one in labels if len(one) < 12]


@pytest.mark.parametrize("span", [1.0, 90.0, 5000.0, 200_000.0, 1e7])
def test_an_axis_of_time_has_a_few_ticks_whatever_its_span(span: float) -> None:
    assert 0 <= len(times(NOW - span, NOW)) <= 9


def test_a_copy_hides_folders_of_users_names_and_addresses() -> None:
    private = Redaction(["/data/runs/walkers-1"], ["ann", "gpu-box", "x"])
    text = private.of(
        'File "/home/ann/eval.py", /data/runs/walkers-1/sessions, ann@10.0.0.5, 192.168.1.7:8080, fe80:0:1:2:3:4:5:6,'
        " gpu-box, annual gpu-box-2 /Users/bob/x /root/y"
    )
    assert text == 'File "~/eval.py", RUN/sessions, …, …, …, …, annual gpu-box-2 ~/x ~/y'


@pytest.mark.parametrize("user", ["main", "video", "title", "index", "cell-x"])
def test_a_copy_hides_words_and_leaves_the_page_whole(user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")
    page = '<main id="main" title="{0} &amp; &lt;b&gt;"><a href="cell-x.html?at=x@3">and/or {0}</a></main>'
    assert Redaction([], [user])(page.format(user)) == page.format("…")


def test_a_copy_names_videos_for_their_episodes_not_as_a_program_of_a_user_did(tmp_path: Path) -> None:
    at = "sessions/grass_flat/attempt-1/out/ann/ep@10.0.0.5.MP4"
    (tmp_path / at).parent.mkdir(parents=True)
    (tmp_path / at).write_bytes(b"x")
    rows = [ROWS[0]._replace(video=at), ROWS[1]._replace(video=at), ROWS[2]]
    (tmp_path / "copy").mkdir()
    shown, left = copy_videos(rows, tmp_path, tmp_path / "copy")
    assert (shown, left) == ({at: "files/0001-grass_flat-3.mp4"}, 0)
    assert Site(bundled=True, files=shown).file(at) == shown[at]
    assert (tmp_path / "copy" / shown[at]).read_bytes() == b"x"


def test_nothing_is_to_come_after_the_end() -> None:
    seen = [Seen(name).ended("exited", "partial", records=4, successes=1, code=1) for name in NAMES]
    for over, word in ((True, "missing"), (False, "to come")):
        answer = an_answer(*seen, done={"at": NOW}) if over else an_answer(Seen(NAMES[0], counts=(4, 1)))
        history = look_at(answer, view=VIEW)
        look = Look(1, VIEW, history, classify(VIEW, history))
        page = render("cell.html.j2", Site(), look, "cell", **(of_cell(look, NAMES[0]) or {}))
        assert f"episode 9: {word}" in page
        told = render("run.html.j2", Site(), look, "run", **of_run(look), news=())
        assert ("so far" in told) is not over
        panel = slots(look.status, history, NOW - 600, NOW)
        assert panel
        assert ["predicted" in panel.svg(), 'stroke-width="1.4' in panel.svg()] == [not over] * 2


def test_a_hold_is_one_alert_with_the_command_that_lifts_it() -> None:
    running = Seen(NAMES[2], counts=(5, 2))
    status = status_of(VIEW, an_answer(running, host=(a_hold("paused", "until noon", NOW - 60),)))
    assert status.advice
    ((kind, words, order),) = alerts(status)
    assert (kind, order) == ("failed", "resume")
    assert "until noon" in words
    assert f"`combo resume {status.run}`" in words


def test_a_stopped_run_says_who_stopped_it_and_can_go_on() -> None:
    answer = an_answer(Seen(NAMES[0]).ended("stopped", "none"), dispatcher=None, stopped=True, done={"at": NOW})
    history = look_at(answer, view=VIEW)
    status = replace(classify(VIEW, history), ordered=Order("stop", "ann", "10.0.0.7", NOW))
    look = Look(1, VIEW, history, status)
    ((_, words, order),) = alerts(look.status)
    assert "stopped" in words
    assert order == "resume"
    sites = (Site(), Site(bundled=True))
    page, copy = (render("run.html.j2", site, look, "run", **of_run(look), news=()) for site in sites)
    assert "ann from 10.0.0.7" in page
    assert "10.0.0.7" not in copy
    who = "stopped by ann from 10.0.0.7"
    assert any(who in line for line in changes(None, status)), "lines without a terminal say it, too"
    assert run_causes(status).advice[0].startswith(who)
    assert any(say(one).startswith(who) for one in answer_of_status(status).facts)


@pytest.mark.parametrize("over", [False, True])
def test_the_host_of_an_ended_run_says_when_it_was_seen(over: bool) -> None:
    seen = [Seen(name).ended(records=10) for name in NAMES]
    history = look_at(an_answer(*seen, dispatcher=None, done={"at": NOW}) if over else ANSWER, view=VIEW)
    look = Look(1, VIEW, history, classify(VIEW, history))
    page = render("host.html.j2", Site(), look, "host", **of_hosts(look, {}, 0.0))
    assert (f"<dt>as of</dt><dd>{clock(NOW)}</dd>" in page) == over


@pytest.mark.parametrize(("how", "halted"), [("none", True), ("complete", False)])
def test_a_halted_run_is_not_called_ended_while_work_is_left(how: str, halted: bool) -> None:
    ended = [Seen(name).ended("exited", how) for name in NAMES]
    holds = (*HOST, a_hold("halted", "three in a row"))
    history = look_at(an_answer(*ended, dispatcher=None, host=holds), view=VIEW)
    said = end_words(Look(1, VIEW, history, classify(VIEW, history)))
    assert said.startswith("halted") == halted


@pytest.mark.parametrize(("hosts", "label"), [(1, "slots"), (2, "slots on each host")])
def test_slots_say_whether_they_are_of_each_host(hosts: int, label: str) -> None:
    history = look_at(ANSWER, view=VIEW)
    look = Look(1, VIEW, history, classify(VIEW, history))
    places = of_hosts(look, {}, 0)["places"] * hosts
    assert f"<label>{label} <input" in render("host.html.j2", Site(acts=True), look, "host", hours=0, places=places)


@pytest.mark.parametrize("part", ["6c1", ""])
def test_a_run_on_several_hosts_is_one_among_the_runs_of_all_hosts_and_opens_as_a_whole(part: str) -> None:
    history = look_at(ANSWER, view=VIEW)
    look = Look(1, VIEW, history, classify(VIEW, history))
    others = "walkers-20260729T101501Z-00aa", "walkers-20260729T101501Z-00bb"
    runs = together(
        FleetRow(host, Run(name, "/r", {}, part={"grid_run": of, "box": host, "hosts": ["a", "b"]} if of else {}))
        for host, name, of in (
            ("a", others[0], "7d2"),
            ("b", others[1], "7d2"),
            ("a", look.status.run, part),
            ("b", "walkers-20260729T101501Z-00cc", part),
            ("c", "walkers-20260729T101502Z-00dd", ""),
        )
    )
    page = render("hosts.html.j2", Site(), look, "hosts", runs=runs, silent={}, busy=False)
    assert page.count("this one") == 1
    assert "--host c" in page
    assert ("--host b" in page) == (not part)
    assert f"combo view {others[0]}" in page
    assert others[1] not in page


@pytest.mark.parametrize(("records", "said"), [(5, "Not final: episodes are missing"), (10, "Not final: the run")])
def test_a_report_so_far_says_what_is_missing(records: int, said: str) -> None:
    history = look_at(an_answer(*(Seen(name).ended(records=records) for name in NAMES)), view=VIEW)
    look = Look(1, VIEW, history, classify(VIEW, history))
    report = ReportSoFar(NOW, {}, "")
    assert said in render("report.html.j2", Site(), look, "report", report=report, busy=False, complaint="")
