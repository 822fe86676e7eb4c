"""The parts of a supervisor: signals and children, what a command leaves behind, its window, its GPUs, its ports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from comborun.host.supervise import environment as given
from comborun.host.supervise.ending import why_no_container, why_not_started
from comborun.host.supervise.supervisor import graphics
from comborun.host.system import drawing
from comborun.rules.endings.evidence import Evidence, MissingResource, fact
from comborun.rules.host import FolderFlaw
from comborun.rules.names import RunLayout
from comborun.rules.records import render

ROOT = str(Path(__file__).resolve().parents[3])


def run(text):
    """What a program that imports the host program prints."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COMBORUN_")}
    words, environment["PYTHONPATH"] = [sys.executable, "-c", text], ROOT
    return subprocess.check_output(words, env=environment, timeout=60, text=True)


REMAINS = """
import os, sys, time
from comborun.host.system import process
from comborun.host.system.events import Events
from comborun.host.system.descendants import Leftovers
process.become_subreaper()
events = Events()
remains = Leftovers("none/such/%d" % os.getpid(), events.until)
command = os.fork()
if not command:
    os.setsid()
    {command}
    os._exit(0)
events.until(30, lambda: command in events.status)
"""


def test_a_double_fork_without_the_marker_in_its_environment_is_still_ours():
    command = (
        "child = os.fork()\n    if child == 0:\n        os.setsid()\n        if os.fork() == 0:\n"
        '            os.execve("/bin/sleep", ["sleep", "600"], {})\n        os._exit(0)\n    os.waitpid(child, 0)'
    )
    text = "left = remains.find()\nprint(len(left), remains.end(0.2, 5), remains.find())"
    assert run(REMAINS.format(command=command) + text) == "1 (1, []) []\n"


def test_what_forks_quickly_into_new_sessions_and_ignores_term_can_not_run_away():
    fork = "import os,signal,time\nsignal.signal(15, signal.SIG_IGN)\n"
    fork += "while 1:\n time.sleep(0.02)\n os.fork() and os._exit(0)\n os.setsid()"
    command = f"os.fork() or os.execv({sys.executable!r}, [{sys.executable!r}, '-c', {fork!r}])"
    text = "time.sleep(0.5)\nprint(remains.end(0.1, 0.3)[1], remains.find())"
    assert run(REMAINS.format(command=command) + text) == "[] []\n"


@pytest.mark.parametrize(
    ("pin", "seen"),
    [
        ("cvd", {"COMBORUN_GPUS": "2,5", "CUDA_VISIBLE_DEVICES": "GPU-aaaaaaaa,GPU-bbbbbbbb"}),
        ("both", {"COMBORUN_GPUS": "0,1", "CUDA_VISIBLE_DEVICES": "GPU-aaaaaaaa,GPU-bbbbbbbb"}),
        ("device-arg", {"COMBORUN_GPUS": "2,5"}),
        ("none", {"COMBORUN_GPUS": "2,5", "CUDA_VISIBLE_DEVICES": "7"}),
    ],
)
def test_each_pin_mode_tells_of_the_gpus_in_its_own_way(pin, seen):
    environment = {"CUDA_VISIBLE_DEVICES": "7"}
    given.Gpus(pin, "2,5", "GPU-aaaaaaaa,GPU-bbbbbbbb").fill(environment)
    order = {} if pin == "none" else {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    first = {"COMBORUN_GPU": seen["COMBORUN_GPUS"][0], "COMBORUN_GPU_COUNT": "2"}
    assert environment == {**seen, **order, **first}


@pytest.mark.parametrize(("gpus", "uuids", "visible"), [("2,5", "GPU-aaaaaaaa", "2,5"), ("2;rm", "", "")])
def test_a_grant_that_is_torn_names_no_gpu_that_is_not_there(gpus, uuids, visible):
    assert given.Gpus("cvd", gpus, uuids).visible == visible


def test_two_starts_never_have_the_same_port_and_a_foreign_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("COMBORUN_PORTS", str(tmp_path / "ports"))
    taken = [given.take_port() for _ in range(20)]
    assert len({port for port, _ in taken}) == 20
    for _, lock in taken:
        os.close(lock)
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setenv("COMBORUN_PORTS", str(tmp_path / "link"))
    with pytest.raises(MissingResource) as refused:
        given.take_port()
    assert refused.value.reason.code == Evidence.NO_PORT
    assert refused.value.reason.fields["said"]["code"] == FolderFlaw.NO_FOLDER


def test_a_missing_secret_and_a_missing_device_are_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = RunLayout(str(tmp_path))
    Path(run.dispatch).mkdir()
    Path(run.wanted_secrets).write_text(render([("O'NEILL_TOKEN", "laptop"), ("HF_TOKEN", "laptop")]))
    monkeypatch.delenv("HF_TOKEN", raising=False)

    def without_device(_gpus: str, _uuid: str) -> tuple[str, str]:
        raise MissingResource(Evidence.GPU_NOT_SEEN)

    monkeypatch.setattr(drawing, "vulkan_device", without_device)
    for data, why in (
        ({}, fact(Evidence.SECRET_MISSING, name="HF_TOKEN")),
        ({"draws": ["vulkan"]}, fact(Evidence.GPU_NOT_SEEN)),
    ):
        with pytest.raises(MissingResource) as refused:
            given.CommandEnvironment(run, data, {}, {}).open()
        assert refused.value.reason == why


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("one\n\nEnvironmentNameNotFound: nope\nYou can list them.\n", "EnvironmentNameNotFound: nope"),
        ("only this\n", "only this"),
        ("/r/sessions/a/session.sh: line 40: cd: /x: No such file or directory\n", "cd: /x: No such file or directory"),
        ("", None),
    ],
)
def test_a_setup_that_failed_is_told_with_the_line_of_its_output_that_says_most(tmp_path, log, said):
    fields = {"number": "2", "exit": "1", "line": 'conda activate "it\'s" {x}'}
    record = "\0".join(["setup_failed", *(word for pair in fields.items() for word in pair), ""])
    (tmp_path / "failure").write_text(record)
    (tmp_path / "log").write_text(log)
    found = why_not_started(str(tmp_path / "failure"), str(tmp_path / "log"))
    assert found == fact(Evidence.SETUP_FAILED, **fields, said=said)


def test_the_sentence_of_a_script_of_the_former_version_is_shown_as_it_is(tmp_path):
    (tmp_path / "log").write_text("")
    (tmp_path / "failure").write_text("./x could not be run in /home\n")
    found = why_not_started(str(tmp_path / "failure"), str(tmp_path / "log"))
    assert found == fact(Evidence.NOT_STARTED, said="./x could not be run in /home")
    (tmp_path / "failure").write_text("")
    assert why_not_started(str(tmp_path / "failure"), str(tmp_path / "log")) is None


WHY = "docker: Cannot connect to the Docker daemon. Is the docker daemon running?"


@pytest.mark.parametrize(
    ("runtime", "code", "log", "said"),
    [
        ("docker", 125, WHY + "\n\nRun 'docker run --help' for more\n", WHY),
        ("docker", 126, "x\n", "x"),
        ("docker", 1, WHY, None),
        ("apptainer", 255, "FATALITY\n", None),
        ("apptainer", 255, "FATAL: no image\n", "FATAL: no image"),
        ("apptainer", 255, "the program's own\n", None),
        ("apptainer", 127, "FATAL: no image\n", None),
    ],
)
def test_codes_of_a_runtime_mean_something_only_where_it_says_so(tmp_path, runtime, code, log, said):
    (tmp_path / "log").write_text(log)
    found = fact(Evidence.CONTAINER_FAILED, runtime=runtime, exit=code, said=said) if said else None
    assert why_no_container(str(tmp_path / "log"), runtime, code) == found


def test_the_record_of_a_start_names_the_driver_and_the_models_of_its_gpus(tmp_path):
    (tmp_path / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\nGCC\n")
    for bus, model in (("0000:01:00.0", "NVIDIA H100 PCIe"), ("0000:02:00.0", "NVIDIA A100")):
        (tmp_path / "gpus" / bus).mkdir(parents=True)
        (tmp_path / "gpus" / bus / "information").write_text(f"Model: \t\t {model}\nIRQ: 1\n")
    assert graphics("1", str(tmp_path)) == {"driver": "550.54.15", "gpu_models": "NVIDIA A100"}
    assert graphics("0,1", str(tmp_path))["gpu_models"] == "NVIDIA A100, NVIDIA H100 PCIe"
    assert graphics("", str(tmp_path)) == {}
    assert graphics("0", str(tmp_path / "none")) == {"driver": "", "gpu_models": ""}
