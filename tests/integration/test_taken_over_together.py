"""A run on several hosts, two of which have become other machines, as a renamed box: only `--take-over` goes on."""

from __future__ import annotations

from box import until
from boxes import Boxes, finished

from comborun.host.system.files import read, write

OTHER = {"host": "oldbox", "boot": "aaaa-1", "pid_namespace": "pid:[1]"}


def rename(boxes: Boxes, host: str) -> None:
    """All that ran there is gone, and its records name another machine."""
    boxes.power_off(host)
    for run in boxes.runs(host):
        for path in (run / "dispatch/machine", *run.glob("sessions/*/attempt-*/begin")):
            write(str(path), {**read(str(path)), **OTHER}.items())
    boxes.mend(host)


def test_a_stop_and_a_resume_take_over_what_another_machine_had(boxes: Boxes) -> None:
    desk = boxes.desk
    desk.combo("launch", boxes.grid(pace=0.1), code=0)
    until(lambda: len(boxes.hosts_of) == 3, "each host runs one")
    name = next(one for one, (host,) in boxes.hosts_of.items() if host == "alpha")
    rename(boxes, "alpha")
    rename(boxes, "beta")
    run = boxes.status()["run"]
    for words in (("stop", name), ("resume", run), ("retry", name)):
        assert "it runs on oldbox" in desk.combo(*words, code=2).stderr, words
    assert "it runs on oldbox" in desk.combo("stop", name, "--take-over", "--dry-run", code=2).stderr
    assert "taken over from oldbox" in desk.combo("stop", name, "--take-over", code=0).stderr
    assert "it runs on oldbox" in desk.combo("resume", run, code=2).stderr, "beta is still that of another machine"
    boxes.gate.touch()
    assert "taken over from oldbox" in desk.combo("resume", run, "--take-over", code=0).stderr
    assert finished(boxes)["episodes_done"] == 16


def test_a_stop_of_the_whole_run_takes_over_what_another_machine_had(boxes: Boxes) -> None:
    desk = boxes.desk
    desk.combo("launch", boxes.grid(pace=0.1), code=0)
    until(lambda: len(boxes.hosts_of) == 3, "each host runs one")
    rename(boxes, "alpha")
    boxes.cut("beta")
    said = desk.combo("stop")
    assert said.returncode == 1
    assert "it runs on oldbox" in said.stdout
    said = desk.combo("stop", "--take-over")
    assert "taken over from oldbox" in said.stderr
    assert "oldbox" not in said.stdout
    assert "beta" in said.stdout, "a host that is away keeps nobody from the others"
    boxes.mend("beta")
    assert desk.combo("stop").returncode == 0
