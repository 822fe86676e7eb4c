"""Sessions that wait move to a host with room while `combo keep` looks: three real sshd with their own homes."""

from __future__ import annotations

import json
import os
import random
import time

import pytest
import quick_combo
from box import until
from boxes import Boxes, finished
from desk import evaluate
from rounds import only_slow


def test_what_waits_moves_to_a_host_that_has_nothing_left_while_somebody_keeps_the_run(boxes: Boxes) -> None:
    desk = boxes.desk
    desk.combo("launch", boxes.grid(pace=0.1), code=0)
    until(lambda: len(boxes.hosts_of) == 3, "each host runs one")
    (waits,) = (one for one in boxes.status()["sessions"] if one["state"] == "queued")
    giver, name = waits["host"], waits["name"]
    followed = desk.start("logs", "-f", name)
    until(lambda: "has not started yet" in followed.text, "it is followed while it waits")
    assert "--host" not in followed.text, "where it waits now may not be where it begins"
    idle, (taker,) = next((one, hosts) for one, hosts in boxes.hosts_of.items() if hosts != [giver])
    desk.combo("stop", idle, code=0)
    until(lambda: any((run / "dispatch/done").exists() for run in boxes.runs(taker)), "its run has ended there")
    desk.combo("drain", "--host", giver, code=0)
    assert "would end earlier on" in desk.combo("status", code=0).stdout, "nothing moves yet"
    keeper = desk.start("keep", "--interval", "2")
    until(lambda: boxes.hosts_of.get(name) == [taker], lambda: "it begins on the host with room: " + keeper.text)
    (listed,) = desk.json("runs")
    counts = {one["host"]: sum(one["counts"].values()) for one in listed["parts"]}
    assert (counts[giver], counts[taker], sum(listed["counts"].values())) == (1, 2, 4)
    explained = desk.json("explain", name)
    assert (explained["session"], "session_is_elsewhere" in json.dumps(explained)) == (name, False)
    assert taker in desk.combo("retry", name).stdout, "orders find it"
    until(lambda: "episode 0" in followed.text, "its log is followed to its new host")
    desk.combo("retry", idle, code=0)
    boxes.gate.touch()
    status = finished(boxes)
    assert keeper.code(60) == 0
    assert followed.code(60) == 0
    assert f"{name}: {giver} -> {taker}" in keeper.text
    assert desk.stream("keep")[-1]["record"] == "done", "there is nothing left to keep"
    assert boxes.hosts_of[name] == [taker]
    said = desk.combo("logs", "-n", "1").stdout
    assert not [one for one in boxes.hosts_of if one not in said], said
    assert {one["name"]: one["host"] for one in status["sessions"]}[name] == taker
    folder = desk.home / desk.json("report")["report"]
    report = json.loads((folder / "final_benchmark_report.json").read_text())
    assert report["totals"]["completed"] == report["totals"]["planned"] == 16
    text = (folder / "report.md").read_text()
    assert f"1 session moved to another host before the first attempt: {name}" in text
    assert f"before the first attempt: {name}" in desk.combo("status").stdout


@only_slow
@pytest.mark.timeout(6 * 3600)
def test_random_faults_while_sessions_move_lose_no_episode_and_count_none_twice(boxes: Boxes) -> None:
    """COMBORUN_ROUNDS, COMBORUN_SECONDS and COMBORUN_SEED choose how many rounds there are, and which faults."""
    chance = random.Random(int(os.environ.get("COMBORUN_SEED", "1")))
    seconds = float(os.environ.get("COMBORUN_SECONDS", "inf"))
    begun, moves = time.monotonic(), 0
    for number in range(int(os.environ.get("COMBORUN_ROUNDS", "200"))):
        if time.monotonic() > begun + seconds:
            break
        moves += storm(boxes, chance, number)
        print(f"round {number + 1}: {time.monotonic() - begun:.0f} s, {moves} moves, lost 0, doubled 0", flush=True)


def storm(boxes: Boxes, chance: random.Random, number: int) -> int:
    """A run whose keepers, dispatchers, hosts and links end at random moments, to its end. Returns how often sessions
    moved.
    """
    desk, away, keepers = boxes.desk, set[str](), list[quick_combo.Call]()
    gate = boxes.gate if chance.random() < 0.7 else None  # with it no session ends before the faults have
    boxes.gate.unlink(missing_ok=True)
    words = evaluate(chance.choice((0.5, 1.5)), gate=gate).split(" --", 1)[1]
    command = f"/usr/bin/python3 ~/evaluator.py --{words}"
    grid = boxes.grid(episodes="5", policies="[good, poor, fair, odd, even]", command=command)
    grid.write_text(grid.read_text().replace("name: little", f"name: storm{number}"))
    begun = time.monotonic()
    desk.combo("launch", grid, code=0)
    slow = max(1.0, (time.monotonic() - begun) / 3)  # on a busy machine commands take longer, too, and die later
    if chance.random() < 0.8:  # something to move from the start
        giver, taker = chance.sample([*boxes.servers], 2)
        desk.combo("drain", "--host", giver)
        desk.combo("set", "parallel=4", "--host", taker)
        if chance.random() < 0.4:
            boxes.power_off(giver)
            away.add(giver)
    for _ in range(chance.randrange(3, 7)):
        keepers = [one for one in keepers if chance.random() < 0.7 or one.kill()]
        while len(keepers) < 2:
            keepers.append(desk.start("keep", "--leave-out", "--interval", "1"))
        fault(boxes, chance, away, slow)
        time.sleep(chance.uniform(0.0, 6.0))
    boxes.gate.touch()
    for host in sorted(away):
        boxes.mend(host)
    lost = {one["host"] for one in boxes.status()["hosts"] if one["lost"]}
    to_its_end(boxes, keepers, number)
    report = json.loads((desk.home / desk.json("report")["report"] / "final_benchmark_report.json").read_text())
    assert report["totals"]["completed"] == report["totals"]["planned"] == 50, number
    for name, hosts in boxes.hosts_of_newest.items():
        assert len({*hosts} - lost) <= 1, (number, name, hosts, lost)
    return sum(len([*run.glob("moves/*.in")]) for host in boxes.servers for run in boxes.runs(host)[-1:])


def to_its_end(boxes: Boxes, keepers: list[quick_combo.Call], number: int) -> None:
    """Resume the run, and let one keeper look, until all is done."""
    for _ in range(20):
        boxes.desk.combo("resume")
        keepers[:] = [one for one in keepers if one.process.is_alive()]
        if not keepers:
            keepers.append(boxes.desk.start("keep", "--interval", "1"))
        time.sleep(2.0)
        status = boxes.status()
        if status["finished"] and not status["hold"]:
            break
    assert status["finished"], (number, status)
    assert not status["hold"], (number, status)
    for one in keepers:
        one.kill()


def fault(boxes: Boxes, chance: random.Random, away: set[str], slow: float) -> None:
    kind = chance.choice(
        ("link", "power", "kill", "kill", "drain", "drain", "set", "set", "stop", "resume", "lose", "lose")
    )
    host = chance.choice(sorted(away) if away and kind == "lose" else [*boxes.servers])
    if kind in {"link", "power"} and host not in away:
        (boxes.cut if kind == "link" else boxes.power_off)(host)
        away.add(host)
    elif kind == "kill":
        boxes.kill_comborun(host, chance)
    elif kind == "drain":
        boxes.killed(chance.uniform(0.5, 4.0), "drain", "--host", host)
    elif kind == "set":
        boxes.killed(chance.uniform(2.0, 6.0), "set", f"parallel={chance.choice((1, 4, 4))}", "--host", host)
    elif kind in {"stop", "resume"}:
        boxes.killed(chance.uniform(0.3, 6.0), kind, *(["--yes"] if kind == "stop" else []))
    elif kind == "lose" and host in away:
        boxes.killed(chance.uniform(0.5, 8.0) * slow, "hosts", "lost", host, "--yes")
    elif away and chance.random() < 0.5:
        away.remove(back := min(away))
        boxes.mend(back)
