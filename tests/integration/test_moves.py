"""Sessions that wait move to a host with room while `combo keep` looks: three real sshd with their own homes."""

from __future__ import annotations

import json

from box import until
from boxes import Boxes, finished


def test_what_waits_moves_to_a_host_that_has_nothing_left_while_somebody_keeps_the_run(boxes: Boxes) -> None:
    desk = boxes.desk
    desk.combo("launch", boxes.grid(pace=0.1), code=0)
    until(lambda: len(boxes.hosts_of) == 3, "each host runs one")
    (waits,) = (one for one in boxes.status()["sessions"] if one["state"] == "queued")
    giver, name = waits["host"], waits["name"]
    idle, (taker,) = next((one, hosts) for one, hosts in boxes.hosts_of.items() if hosts != [giver])
    desk.combo("stop", idle, code=0)
    until(lambda: any((run / "dispatch/done").exists() for run in boxes.runs(taker)), "its run has ended there")
    desk.combo("drain", "--host", giver, code=0)
    print(desk.combo("status").stdout)
    assert "would end earlier on" in desk.combo("status", code=0).stdout, "nothing moves yet"
    keeper = desk.start("keep", "--interval", "1")
    until(lambda: boxes.hosts_of.get(name) == [taker], lambda: "it begins on the host with room: " + keeper.text)
    assert desk.json("explain", name)["session"] == name
    assert taker in desk.combo("retry", name).stdout, "orders find it"
    desk.combo("retry", idle, code=0)
    boxes.gate.touch()
    status = finished(boxes)
    assert keeper.code(60) == 0
    assert f"{name}: {giver} -> {taker}" in keeper.text
    assert boxes.hosts_of[name] == [taker]
    assert {one["name"]: one["host"] for one in status["sessions"]}[name] == taker
    desk.combo("report", code=0)
    report = json.loads((desk.home / desk.json("report")["report"] / "final_benchmark_report.json").read_text())
    assert report["totals"]["completed"] == report["totals"]["planned"] == 16
