"""Several hosts share the sessions of one grid, and it is one run to a person: three real sshd with their own homes."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable

import pytest
import quick_combo
from box import until
from boxes import NAMES, Boxes, finished, freeze, thaw
from rounds import only_slow


def test_every_command_finds_the_host_of_a_session(boxes: Boxes) -> None:
    desk = boxes.desk
    desk.combo("launch", boxes.grid(pace=0.1), code=0)
    until(lambda: len(boxes.hosts_of) == 3, "each host runs one")
    status = boxes.status()
    assert {one["host"]: one["counts"] for one in status["hosts"]}.keys() == set(NAMES)
    following = desk.start("logs", "-f")
    until(lambda: all(f"{name} " in following.text for name in boxes.hosts_of), "the logs of all hosts")
    following.kill()
    (first, _), (second, _), (third, (host,)) = boxes.hosts_of.items()
    assert desk.json("explain", first)["session"] == first
    assert desk.json("logs", second)["session"] == second
    shown = desk.combo("attach", third, "--show", code=0).stdout
    assert str(boxes.servers[host].port) in shown or host in shown
    asked = f"run.explain({first!r})[0].session, run.logs({second!r})[0].session, run.stop({third!r}).sessions[0]"
    code = f"import comborun; run = comborun.open(); print({asked})"
    python = [sys.executable, "-c", code]
    said = subprocess.check_output(python, env=desk.environment, text=True, cwd=desk.home)
    assert said.split() == [first, second, third]
    desk.combo("retry", third, code=0)
    assert desk.json("stop", first)["sessions"] == [first]
    assert {one["name"]: one["outcome"] for one in boxes.status()["sessions"]}[first] == "cancelled"
    desk.combo("retry", first, code=0)
    assert "gamma" in desk.combo("set", "parallel=3", "--because", "why not", code=0).stdout
    until(lambda: sum(len(boxes.alive(name)) for name in NAMES) == 4, "a place more on each")
    assert sum(one["state"] == "running" for one in boxes.status()["sessions"]) == 4
    assert desk.combo("slots", "2", "--host", "alpha").returncode == 0
    policy = boxes.status()["sessions"][0]["policy"]
    planned = desk.json("stop", "--policy", policy, "--dry-run")
    meant = sorted(one["name"] for one in boxes.status()["sessions"] if one["policy"] == policy)
    assert sorted(name for one in planned for name in one["sessions"]) == meant
    boxes.cut("beta")
    said = desk.combo("slots", "2")
    assert said.returncode == 1
    assert "beta" in said.stdout
    assert "gamma" in said.stdout
    _a_host_that_missed_a_stop_is_stopped_by_the_next_look(boxes)


def _a_host_that_missed_a_stop_is_stopped_by_the_next_look(boxes: Boxes) -> None:
    """Beta is cut off. In the end the run goes on by a call from Python, to its end."""
    desk = boxes.desk
    stopped = desk.combo("stop")
    assert stopped.returncode == 1
    assert "beta" in stopped.stdout
    assert boxes.alive("beta"), "it could not be told"
    assert not boxes.alive("alpha") + boxes.alive("gamma")
    boxes.mend("beta")
    seen = boxes.status()
    assert (seen["stopped"], seen["finished"]) == (True, True), "the look that stops it shows that"
    assert not boxes.alive("beta")
    boxes.gate.touch()
    code = "import comborun; run = comborun.open(); found = run.resume(); print(run.id == found.run, found.done)"
    python = [sys.executable, "-c", code]
    assert subprocess.check_output(python, env=desk.environment, text=True, cwd=desk.home) == "True True\n"
    assert finished(boxes)["episodes_done"] == 16
    for host in NAMES:
        boxes.cut(host)
    away = desk.combo("status", "--json", code=3)
    assert {key: json.loads(away.stdout)[key] for key in ("reachable", "episodes_done")} == {
        "reachable": False,
        "episodes_done": 16,
    }


def test_each_session_runs_on_the_host_that_the_plan_shows_and_the_report_counts_it_once(boxes: Boxes) -> None:
    desk, grid = boxes.desk, boxes.grid()
    planned = desk.json("plan", grid)
    assert {one["host"]: len(one["sessions"]) for one in planned["hosts"]}.keys() == set(NAMES)
    assert sum(len(one["sessions"]) for one in planned["hosts"]) == 4
    assert [one["host"] for one in desk.json("doctor", "--grid", grid)] == [*NAMES]
    assert not any(boxes.home(host).joinpath("comborun").exists() for host in NAMES), "it changes nothing"
    said = desk.combo("plan", grid, code=0).stdout
    assert all(f", on {host}" in said for host in NAMES)
    assert "alpha" in desk.combo("check", grid, code=0).stdout
    desk.combo("launch", grid, code=0)
    status = finished(boxes)
    assert status["episodes_done"] == status["episodes_planned"] == 16
    dealt = {one["name"]: one["host"] for one in status["sessions"]}
    assert {name: one["host"] for one in planned["hosts"] for name in one["sessions"]} == dealt
    assert {name: [host] for name, host in dealt.items()} == boxes.hosts_of
    assert set(Counter(dealt.values()).values()) == {1, 2}
    (listed,) = desk.json("runs")
    assert (listed["run"], listed["counts"], listed["episodes_done"]) == (status["run"], status["counts"], 16)
    assert [one["host"] for one in listed["parts"]] == [*NAMES]
    for command in ("status", "report"):
        said = desk.combo(command, "--host", "beta", code=0).stdout
        assert "beta's part of a run on alpha, beta, gamma" in " ".join(said.split()[:40])
    told = "import comborun; from comborun.cli.mcp import tools; (status, *_, compare), _ = tools(comborun.open())"
    told += "; print(status(), compare('good', 'poor'))"
    said = subprocess.check_output([sys.executable, "-c", told], env=desk.environment, text=True, cwd=desk.home)
    assert all(name in said for name in dealt), "an assistant sees the whole run"
    for folder, *options in (("shared",), ("part", "--host", "beta")):
        bundle = desk.command("view", "--bundle", folder, *options)
        subprocess.run(bundle, env=desk.environment, cwd=desk.home, check=True)
        text = "".join(path.read_text() for path in (desk.home / folder).glob("*.html"))
        assert not [name for name in NAMES if name in text], "names of hosts are taken out"
        assert ("part of a run on" in text) == bool(options)
    assert len([*(desk.home / "shared").glob("cell-*.html")]) == 4
    desk.combo("recheck", "--episodes", "2", code=0, timeout=120)
    report = json.loads((desk.home / desk.json("report")["report"] / "final_benchmark_report.json").read_text())
    assert report["totals"]["completed"] == report["totals"]["planned"] == 16
    assert len(report["canary"]["combos"]) == 4, "what each host has found"
    assert desk.combo("clean", "little", "--yes", code=0)
    assert [len(boxes.runs(host)) for host in NAMES].count(0) == 0, "rechecks stay"


@only_slow
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_one_page_and_the_full_screen_show_the_sessions_of_all_hosts(boxes: Boxes) -> None:
    desk = boxes.desk
    desk.combo("launch", boxes.grid(pace=0.1), code=0)
    until(lambda: len(boxes.hosts_of) == 3, "each host runs one")
    command = desk.command("view", "--no-browser", "--json")
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=desk.environment, cwd=desk.home, text=True) as page:
        assert page.stdout
        address = json.loads(page.stdout.readline())["address"]
        try:
            _look_at(address, boxes)
        finally:
            page.terminate()
    _use_full_screen(boxes)
    boxes.gate.touch()
    finished(boxes)


@only_slow  # tests/unit/remote/test_late_looks.py holds the same of hosts that are made up
def test_a_frozen_host_is_named_and_the_others_do_not_wait_for_it(boxes: Boxes) -> None:
    desk = boxes.desk
    desk.combo("launch", boxes.grid(pace=0.1), code=0)
    until(lambda: len(boxes.hosts_of) == 3, "each host runs one")
    boxes.status()
    freeze(boxes.servers["beta"])
    try:
        begun = time.monotonic()
        said = desk.combo("status", code=0).stdout
        took = time.monotonic() - begun
    finally:
        thaw(boxes.servers["beta"])
    print(f"{took:.1f} s\n{said}")
    assert re.search(r"beta .*no answer yet, seen \d+ s ago", said)
    assert took < 12, "not the 20 s after which a link is given up"
    assert "no answer" not in desk.combo("status", code=0).stdout
    boxes.gate.touch()
    finished(boxes)


def _look_at(address: str, boxes: Boxes) -> None:
    """The page of a run with its key: every screen has what is of its host."""
    base, _, key = address.partition("#")
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    opener.addheaders = [("Origin", base.removesuffix("/").rpartition("/")[0])]
    opener.open(f"{base}key", key.encode(), timeout=20)

    def part(path: str) -> str:
        return str(opener.open(f"{base}{path}", timeout=30).read().decode())

    until(lambda: all(host in part("") for host in NAMES), "the hosts of all sessions")
    assert all(f">{host}" in part("host") for host in NAMES)
    for name, (host,) in boxes.hosts_of.items():
        assert host in part(f"cell/{name}")
        until(lambda name=name: json.loads(part(f"log/{name}/1")) is not None, "its log")  # type: ignore[misc]
    until(lambda: "good" in part("rollouts") and "maze" in part("rollouts"), "episodes of all hosts")


def _use_full_screen(boxes: Boxes) -> None:
    """Its lines are those of all hosts, and its keys reach them: it stops a session."""
    desk = boxes.desk
    tmux = ["tmux", "-S", str(desk.home / "tmux-of-the-screen"), "-f", "/dev/null"]

    def screen(*words: str) -> list[str]:
        done = subprocess.run([*tmux, *words], env=desk.environment, capture_output=True, text=True, check=True)
        return done.stdout.split("\n")

    def until_shown(shown: Callable[[list[str]], bool], what: str) -> None:
        until(
            lambda: shown(screen("capture-pane", "-p")), lambda: f"{what}: " + "\n".join(screen("capture-pane", "-p"))
        )

    try:
        screen("new-session", "-d", "-x", "140", "-y", "40", f"{shlex.join(desk.command('monitor'))}; exec cat")
        until_shown(
            lambda lines: all(any(line.startswith(name) for line in lines) for name in NAMES), "a line for each"
        )
        until_shown(lambda lines: sum("running" in line for line in lines) >= 4, "a session of each host")
        screen("send-keys", "x")
        until_shown(lambda lines: any("Stop " in line for line in lines), "a question")
        screen("send-keys", "y")
        until(lambda: boxes.files("sessions/*/attempt-1/end"), "the session is ended")
        until(lambda: "cancelled" in {one["outcome"] for one in boxes.status()["sessions"]}, "it is told")
        name = next(one["name"] for one in boxes.status()["sessions"] if one["outcome"] == "cancelled")
        screen("send-keys", f":retry {name}", "Enter")
        until_shown(lambda lines: any(f"Start {name} again?" in line for line in lines), "a question")
        screen("send-keys", "y")
        until(lambda: "cancelled" not in {one["outcome"] for one in boxes.status()["sessions"]}, "it is due again")
        screen("send-keys", "q")
        until_shown(lambda lines: any("No longer watching" in line for line in lines), "the last words")
    finally:
        subprocess.run([*tmux, "kill-server"], env=desk.environment, capture_output=True, check=False)


def test_what_a_lost_host_had_not_completed_runs_on_the_others_and_counts_once(boxes: Boxes) -> None:
    desk = boxes.desk
    desk.combo("launch", boxes.grid(pace=0.1, episodes="12"), code=0)
    until(lambda: len(boxes.hosts_of) == 3, "each host runs one")
    mine = {name for name, hosts in boxes.hosts_of.items() if hosts == ["beta"]}
    until(lambda: sum(len(file.read_text().splitlines()) for file in boxes.records("beta")) > 2, "some episodes")
    desk.combo("report", code=0)
    assert desk.combo("hosts", "lost", "beta", "--yes").returncode == 2, "it answers"
    before = boxes.status()
    boxes.cut("beta")  # it goes on, and nobody knows
    lost = desk.combo("hosts", "lost", "beta", "--yes", code=0)
    assert "given up: beta" in lost.stdout
    away = boxes.status()
    assert sorted(one["name"] for one in away["sessions"]) == sorted(one["name"] for one in before["sessions"])
    assert not [one["name"] for one in away["sessions"] if one["host"] == "beta"]
    assert "given up before" in desk.combo("hosts", "lost", "beta", "--yes", code=0).stdout
    assert "beta is left out: given up" in desk.combo("launch", desk.home / "grid.yaml", code=0).stderr
    boxes.mend("beta")
    boxes.status()
    until(lambda: not boxes.alive("beta"), "a look has stopped what still ran there")
    boxes.gate.touch()
    status = finished(boxes, 90)
    assert {one["host"] for one in status["sessions"]} == {"alpha", "gamma"}
    assert all(len(hosts) == (2 if name in mine else 1) for name, hosts in boxes.hosts_of.items())
    assert status["episodes_done"] == 48
    (listed,) = desk.json("runs")
    assert (listed["counts"], listed["episodes_done"]) == (status["counts"], 48)
    report = json.loads((desk.home / desk.json("report")["report"] / "final_benchmark_report.json").read_text())
    assert report["totals"]["completed"] == report["totals"]["planned"] == 48


def test_hosts_that_can_not_be_used_are_named_or_left_out_and_the_same_launch_is_the_same_run(boxes: Boxes) -> None:
    desk, grid = boxes.desk, boxes.grid()
    boxes.cut("gamma")
    refused = desk.combo("launch", grid)
    assert refused.returncode == 2
    assert "gamma: gamma (127.0.0.1" in refused.stderr
    assert not boxes.runs("alpha"), "nothing was started"
    done = desk.combo("launch", grid, "--leave-out", code=0)
    assert "gamma is left out" in done.stderr
    finished(boxes)
    boxes.mend("gamma")
    again = desk.combo("launch", grid, code=0)
    assert "gamma takes no part" in again.stdout + again.stderr
    assert {len(hosts) for hosts in boxes.hosts_of.values()} == {1}
    assert {host for hosts in boxes.hosts_of.values() for host in hosts} == {"alpha", "beta"}
    assert [len(boxes.runs(host)) for host in NAMES] == [1, 1, 0]
    config = desk.home / "config"
    config.write_text(config.read_text() + boxes.servers["alpha"].stanza(alias="twin"))
    twin = desk.combo("launch", grid, "--host", "alpha", "--host", "twin", "--new")
    assert twin.returncode == 2
    assert "one home on two machines" in twin.stderr


def test_a_run_that_one_of_the_hosts_has_alone_is_not_mixed_with_the_run_of_all(boxes: Boxes) -> None:
    desk, grid = boxes.desk, boxes.grid()
    alone = boxes.grid(file="alone.yaml", hosts="[beta, gamma]")
    alone.write_text(alone.read_text().replace("hosts: [beta, gamma]", "host: beta"))
    desk.combo("launch", alone, code=0)
    until(lambda: boxes.attempts("beta"), "it runs")
    desk.combo("launch", grid, code=0)
    assert finished(boxes)["episodes_done"] == 16
    assert [len(boxes.runs(host)) for host in NAMES] == [1, 2, 1]
    assert {len(hosts) for hosts in boxes.hosts_of_newest.values()} == {1}


def test_two_laptops_that_deal_and_stop_at_once_have_one_run(boxes: Boxes) -> None:
    desk, grid = boxes.desk, boxes.grid(pace=0.1)
    other = {**desk.environment, "XDG_STATE_HOME": str(desk.home / "other")}
    for words in (["launch", str(grid)], ["stop", "little", "--yes"]):
        begun = [quick_combo.call(words, env, desk.home, desk.home / "said") for env in (desk.environment, other)]
        codes = [one.code(120) for one in begun]
        assert 0 in codes, (words, codes)
    assert [len(boxes.runs(host)) for host in NAMES] == [1, 1, 1]
    assert {len(hosts) for hosts in boxes.hosts_of.values()} == {1}
    until(lambda: not any(boxes.alive(host) for host in NAMES), "both have stopped it")
    boxes.gate.touch()
    desk.combo("resume", code=0)
    assert finished(boxes)["episodes_done"] == 16


def test_a_machine_that_did_not_launch_finds_the_whole_by_its_hosts_or_the_grid(boxes: Boxes) -> None:
    desk, grid = boxes.desk, boxes.grid(pace=0.1)
    desk.combo("launch", grid, code=0)
    until(lambda: len(boxes.hosts_of) == 3, "each host runs one")
    for name in ("STATE", "DATA"):
        desk.environment[f"XDG_{name}_HOME"] = str(desk.home / f"other-{name}")
    everywhere = [word for host in NAMES for word in ("--host", host)]
    run = desk.json("status", "little", *everywhere)
    assert (len(run["sessions"]), [one["host"] for one in run["hosts"]]) == (4, [*NAMES])
    assert desk.json("status", grid)["run"] == desk.json("status", run["run"], *everywhere)["run"] == run["run"]
    assert "gamma is not known here; name it, too" in desk.combo("status", *everywhere[:4], code=0).stderr
    part = desk.combo("status", "little", "--host", "beta", code=0).stdout
    assert "beta's part of a run on alpha, beta, gamma" in " ".join(part.split())
    name, host = next((one["name"], one["host"]) for one in run["sessions"] if one["host"] != "alpha")
    assert desk.json("explain", name, *everywhere)["session"] == name
    assert f"{host}: " in desk.combo("set", "parallel=1", *everywhere, code=0).stdout
    for words, told in (
        (["status", "nothing", *everywhere], "alpha and beta and gamma share no run 'nothing'"),
        (["doctor", *everywhere], "this is for one host, and alpha and beta and gamma are named"),
    ):
        refused = desk.combo(*words)
        assert (refused.returncode, told in refused.stderr) == (2, True), refused.stderr
    desk.combo("stop", "little", *everywhere, "--yes", code=0)
    assert not [host for host in NAMES if boxes.alive(host)]
    desk.combo("report", grid, code=0)


@only_slow
@pytest.mark.timeout(6 * 3600)
def test_random_faults_lose_no_episode_and_count_none_twice(boxes: Boxes) -> None:
    """COMBORUN_ROUNDS, COMBORUN_SECONDS and COMBORUN_SEED choose how many rounds there are, and which faults."""
    chance = random.Random(int(os.environ.get("COMBORUN_SEED", "1")))
    seconds = float(os.environ.get("COMBORUN_SECONDS", "inf"))
    begun = time.monotonic()
    for number in range(int(os.environ.get("COMBORUN_ROUNDS", "200"))):
        if time.monotonic() > begun + seconds:
            break
        storm(boxes, chance, number)
        print(f"round {number + 1}: {time.monotonic() - begun:.0f} s, lost 0, doubled 0", flush=True)


def storm(boxes: Boxes, chance: random.Random, number: int) -> None:
    """A run with killed laptops, killed dispatchers, cut links and hosts that are given up, until it has ended."""
    desk, away = boxes.desk, set[str]()
    grid = boxes.grid(pace=0.2, episodes="6")
    grid.write_text(grid.read_text().replace("name: little", f"name: round{number}"))
    boxes.gate.touch()  # nothing waits
    for _ in range(chance.randrange(3)):
        boxes.killed(chance.uniform(0.5, 6.0), "launch", grid)
    desk.combo("launch", grid, code=0)
    for _ in range(chance.randrange(1, 6)):
        fault(boxes, chance, away)
    for host in sorted(away):
        boxes.mend(host)
    lost = {one["host"] for one in boxes.status()["hosts"] if one["lost"]}
    for _ in range(20):
        desk.combo("resume")
        if boxes.status()["finished"]:
            break
    status = boxes.status()
    assert status["finished"], (number, status)
    report = json.loads((desk.home / desk.json("report")["report"] / "final_benchmark_report.json").read_text())
    assert report["totals"]["completed"] == report["totals"]["planned"] == 24, number
    for name, hosts in boxes.hosts_of_newest.items():
        assert len({*hosts} - lost) <= 1, (number, name, hosts, lost)


def fault(boxes: Boxes, chance: random.Random, away: set[str]) -> None:
    kind, host = chance.choice(("cut", "kill", "order", "lose", "stop")), chance.choice(NAMES)
    if kind == "cut" and host not in away:
        boxes.cut(host)
        away.add(host)
    elif kind == "kill":
        boxes.kill_comborun(host, chance)
    elif kind == "order":
        boxes.killed(chance.uniform(0.3, 4.0), chance.choice(("status", "resume", "stop")))
    elif kind == "stop":
        boxes.desk.combo("stop")
    elif kind == "lose" and host in away:
        boxes.killed(chance.uniform(0.5, 8.0), "hosts", "lost", host, "--yes")
        boxes.desk.combo("hosts", "lost", host, "--yes")
