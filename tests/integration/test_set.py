"""`combo set`: a run gets other GPUs, another reserve or more sessions while it goes on; and a GPU that is lost."""

from __future__ import annotations

from pathlib import Path

from box import Box, until
from desk import Desk, evaluate
from happened import events
from nvidia import Gpus
from test_admission import running, taking

from comborun.rules.endings.breaker import barred
from comborun.rules.facts import Fact
from comborun.rules.holds import Notice
from comborun.rules.names import RUN


def of_gpus(box: Box) -> dict[str, str]:
    """Running session -> its GPUs."""
    return {name: begin.gpus for name in running(box) if (begin := box.begin(name))}


def test_added_gpus_get_sessions_and_nothing_new_starts_on_those_taken_away(box: Box, tmp_path: Path) -> None:
    Gpus(box, tmp_path / "bin").cards(24576, 24576, 24576)
    box.plan({f"env_p{i}": taking(20000, then=f'--until "$COMBORUN_RUN_DIR/go{i}"') for i in range(4)}, gpus="0")
    box.start()
    until(lambda: of_gpus(box) == {"env_p0": "0"}, "one runs on the only GPU", 30)
    said = box.program("control", "set", "use_gpus=1,2", "because=the training ends")
    assert "running sessions on GPU 0 go on" in said.stdout, said
    until(lambda: of_gpus(box) == {"env_p0": "0", "env_p1": "1", "env_p2": "2"}, "the new ones fill", 30)
    box.write("go0", "")
    until(lambda: box.end("env_p0"), "GPU 0 is free", 30)
    box.write("go1", "")
    until(lambda: "env_p3" in of_gpus(box), lambda: f"the last one does not start: {box.waiting}", 30)
    assert of_gpus(box)["env_p3"] == "1"
    (order,) = [one.fields for one in events(box.directory, "ordered") if one.fields["order"] == "set"]
    assert (order["values"], order["why"]) == ("use_gpus=1,2", "the training ends")
    box.kill_dispatcher()
    box.start()
    until(lambda: box.dispatcher_lives, "another dispatcher", 30)
    assert "1,2" in (box.directory / "dispatch/settings").read_text()
    for number in (2, 3):
        box.write(f"go{number}", "")
    box.await_done(40)


def test_a_reserve_makes_room_for_others(box: Box, tmp_path: Path) -> None:
    Gpus(box, tmp_path / "bin").cards(24576)
    box.plan({f"env_p{i}": taking(8000, then=f'--until "$COMBORUN_RUN_DIR/go{i}"') for i in range(4)}, gpus="0")
    box.start()
    until(lambda: len(running(box)) == 3, "three fit", 30)
    assert box.program("control", "set", "reserve.gpu_memory=9000").returncode == 0
    box.write("go0", "")
    until(lambda: box.end("env_p0"), "one ends", 30)
    until(lambda: box.waits_for("env_p3") == "gpu_memory", "the last one waits", 30)
    assert len(running(box)) == 2
    for number in (1, 2, 3):
        box.write(f"go{number}", "")
    box.await_done(40)
    assert box.done["succeeded"] == "4"


def test_what_would_end_sessions_or_is_not_there_is_refused(box: Box, tmp_path: Path) -> None:
    Gpus(box, tmp_path / "bin").cards(24576, 24576)
    box.plan({"env_two": taking(8000, gpus=2)}, gpus="0,1", policy={"parallel": 1})
    for word, why in (
        ("use_gpus=0,7", "no GPU 7"),
        ("use_gpus=0", "env_two could never start"),
        ("reserve.gpu_memory=20000", "env_two could never start"),
        ("stagger=3", "can't be set"),
        ("parallel=0", "can't be set"),
    ):
        done = box.program("control", "set", word)
        assert done.returncode == 64, word
        assert why in done.stdout + done.stderr
    assert not (box.directory / "dispatch/settings").exists()
    box.write("dispatch/quarantine", '{"gpu": "1", "class": "gpu_fault", "since": "5"}\n')
    said = box.program("control", "set", "use_gpus=1,0").stdout
    assert f"nothing starts there until `combo resume {box.directory.name}`: GPU 1" in said
    assert "quarantine" not in box.program("control", "set", "parallel=2").stdout


def test_on_a_host_without_a_gpu_the_refusal_says_that_none_is_there(box: Box) -> None:
    box.plan({"env_one": taking(0)})
    done = box.program("control", "set", "use_gpus=9")
    assert "there is no GPU 9: nvidia-smi lists none" in done.stdout + done.stderr


def test_on_slurm_the_refusal_says_what_can_be_set_instead(box: Box) -> None:
    box.plan({"env_one": taking(8000)})
    box.write(RUN.engine, "slurm\n")
    done = box.program("control", "set", "use_gpus=0")
    assert done.returncode == 64
    assert "parallel=N" in done.stderr


def test_a_changed_grid_overrides_what_was_set(box: Box, tmp_path: Path) -> None:
    Gpus(box, tmp_path / "bin").cards(24576, 24576)
    box.plan({"env_one": taking(8000)}, gpus="0")
    assert box.program("control", "set", "use_gpus=1").returncode == 0
    box.plan({"env_one": taking(8000)}, gpus="0,1")
    box.start()
    until(lambda: of_gpus(box) == {"env_one": "0"}, "by the grid", 30)
    box.write("go", "")
    box.await_done(40)


def test_a_gpu_that_falls_off_the_bus_gets_nothing_more(box: Box, tmp_path: Path) -> None:
    gpus = Gpus(box, tmp_path / "bin")
    gpus.cards(24576, 24576)
    box.environment["COMBORUN_SEAT_S"] = "0.3"
    box.plan({f"env_p{i}": taking(20000, then=f'--until "$COMBORUN_RUN_DIR/go{i}"') for i in range(4)}, gpus="0,1")
    box.start()
    until(lambda: len(running(box)) == 2, "one on each", 30)
    gpus.fault("missing")
    until(lambda: box.told("^quarantine"), "it is told", 30)
    (told,) = events(box.directory, "quarantine")
    assert (told.fields["gpu"], told.fields["reason"]) == (1, Fact(Notice.GPU_FELL, gpu=1))
    (closed,) = barred((box.directory / "dispatch/quarantine").read_text(), "gpu")
    assert (closed.name, closed.failure) == ("1", Notice.GPU_FELL), "status does not call it a fault again and again"
    for number in (0, 1):
        box.write(f"go{number}", "")
    until(lambda: box.end("env_p0") and box.end("env_p1") and running(box), "one goes on", 30)
    assert list(of_gpus(box).values()) == ["0"]
    for number in (2, 3):
        box.write(f"go{number}", "")
    box.await_done(40)
    assert box.done["succeeded"] == "4"


def test_the_command_sets_and_the_report_names_it(desk: Desk) -> None:
    keys = {"policies": "[good]", "environments": "[maze, hall]", "limits": "{parallel: 1}"}
    run = desk.launched(1, command=evaluate(pace="0.5"), **keys)
    desk.combo("slots", "3", code=0)
    done = desk.combo("set", "parallel=2", "reserve.memory=1GiB", "--because", "nobody else is here", code=0)
    assert "parallel=2" in done.stdout
    assert "use_gpus" in desk.combo("set", "stagger=3 s").stderr
    until((run / "dispatch/done").exists, "its end", 60)
    assert "the run has ended" in desk.combo("set", "parallel=4", code=0).stdout
    desk.combo("report", code=0)
    text = (run / "report/report.md").read_text()
    assert "While it ran" in text
    assert "parallel=2 reserve.memory=1024MiB because nobody else is here" in text
    said = [line for line in text.splitlines() if "set parallel=" in line]
    ends = [("While it ran" in line, line.rpartition("set parallel=")[2]) for line in (said[0], said[-1])]
    assert ends == [(True, "3."), (False, "4.")]
