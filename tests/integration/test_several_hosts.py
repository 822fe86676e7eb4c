"""Several hosts share the sessions of one grid, and it is one run to a person: three real sshd with their own homes."""

from __future__ import annotations

import json
from collections import Counter

from box import until
from boxes import NAMES, Boxes, finished


def test_each_session_runs_on_one_host_and_the_report_counts_it_once(boxes: Boxes) -> None:
    desk = boxes.desk
    said = desk.combo("launch", boxes.grid(), code=0)
    print(said.stdout, said.stderr)
    status = finished(boxes)
    print(desk.combo("status").stdout)
    assert len(status["sessions"]) == 4
    assert {one["name"]: [one["host"]] for one in status["sessions"]} == boxes.hosts_of
    assert set(Counter(one["host"] for one in status["sessions"]).values()) == {1, 2}
    assert status["episodes_done"] == status["episodes_planned"] == 16
    said = desk.combo("report", code=0)
    print(said.stdout, said.stderr)
    report = json.loads((desk.home / desk.json("report")["report"] / "final_benchmark_report.json").read_text())
    assert report["totals"]["completed"] == report["totals"]["planned"] == 16


def test_every_command_finds_the_host_of_a_session(boxes: Boxes) -> None:
    desk = boxes.desk
    desk.combo("launch", boxes.grid(pace=0.1), code=0)
    until(lambda: len(boxes.hosts_of) == 3, "each host runs one")
    status = boxes.status()
    assert {one["host"]: one["counts"] for one in status["hosts"]}.keys() == set(NAMES)
    for name, hosts in boxes.hosts_of.items():
        assert desk.json("explain", name)["session"] == name
        assert desk.json("logs", name)["session"] == name
        shown = desk.combo("attach", name, "--show", code=0).stdout
        assert str(boxes.servers[hosts[0]].port) in shown or hosts[0] in shown
    stopped = next(iter(boxes.hosts_of))
    said = desk.json("stop", stopped)
    assert said["sessions"] == [stopped]
    assert {one["name"]: one["outcome"] for one in boxes.status()["sessions"]}[stopped] == "cancelled"
    print(desk.combo("retry", stopped, code=0).stdout)
    said = desk.combo("stop", code=0)
    print(said.stdout)
    status = boxes.status()
    assert status["stopped"]
    assert not any(one["state"] == "running" for one in status["sessions"])
    print(desk.combo("resume", code=0).stdout)
    until(lambda: sum(one["state"] == "running" for one in boxes.status()["sessions"]) == 3, "they run again")
    assert desk.combo("set", "parallel=2").returncode == 2, "settings are of one host"
    assert desk.combo("set", "parallel=2", "--host", "alpha").returncode == 0
    desk.combo("stop", code=0)


def test_what_a_lost_host_had_not_completed_runs_on_the_others_and_counts_once(boxes: Boxes) -> None:
    desk = boxes.desk
    desk.combo("launch", boxes.grid(pace=0.1, episodes="12"), code=0)
    until(lambda: len(boxes.hosts_of) == 3, "each host runs one")
    mine = {name for name, hosts in boxes.hosts_of.items() if hosts == ["beta"]}
    until(
        lambda: sum(one["episodes_done"] or 0 for one in boxes.status()["sessions"] if one["name"] in mine) > 2, "some"
    )
    desk.combo("report", code=0)
    assert desk.combo("hosts", "lost", "beta", "--yes").returncode == 2, "it answers"
    boxes.cut("beta")  # it goes on, and nobody knows
    print(desk.combo("status").stdout)
    lost = desk.combo("hosts", "lost", "beta", "--yes", code=0)
    print(lost.stdout, lost.stderr)
    boxes.mend("beta")
    boxes.status()
    until(lambda: not boxes.alive("beta"), "a look has stopped what still ran there")
    boxes.gate.touch()
    status = finished(boxes, 90)
    assert {one["host"] for one in status["sessions"]} == {"alpha", "gamma"}
    assert all(len(hosts) == (2 if name in mine else 1) for name, hosts in boxes.hosts_of.items())
    assert status["episodes_done"] == 48
    said = desk.combo("report", code=0)
    print(said.stdout, said.stderr)
    report = json.loads((desk.home / desk.json("report")["report"] / "final_benchmark_report.json").read_text())
    assert report["totals"]["completed"] == report["totals"]["planned"] == 48
