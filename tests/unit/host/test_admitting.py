"""Questions to a driver that hangs, leases of several runs, and what a run remembers of an out-of-memory."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from happened import events

from comborun.host.admission.admission import Admission, Pick
from comborun.host.admission.leasebook import Measured, Measuring
from comborun.host.admission.leases import Leases
from comborun.host.record.events import Events
from comborun.host.system import driver, files, machine, process
from comborun.rules.facts import Fact
from comborun.rules.holds import Notice
from comborun.rules.host import FolderFlaw
from comborun.rules.names import RunLayout
from comborun.rules.room.capacity import Blocker, Card, Request
from comborun.rules.room.ledger import Lease
from comborun.rules.room.waits import Wait, waits_for

# The driver


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    """An nvidia-smi, and a file that locks it."""
    program = folder / "bin" / "nvidia-smi"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/usr/bin/env bash\n# stand-in, not the real nvidia-smi\n{text}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("COMBORUN_GPU_S", "1")
    lock = folder / "lock"
    lock.touch()
    return str(lock)


def test_nvidia_smi_holds_none_of_our_descriptors_but_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = stand_in(tmp_path, monkeypatch, 'for fd in /proc/$$/fd/*; do readlink "$fd"; done')
    with (tmp_path / "held").open("w") as held:
        os.set_inheritable(held.fileno(), True)
        lines = driver.hear(driver.Question(("-L",), lock))
    assert str(tmp_path / "held") not in lines
    assert lock in lines


def test_while_one_that_no_signal_reaches_hangs_nobody_waits_and_no_other_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung = tmp_path / "hung"
    text = f'printf . >>"{tmp_path}/asked"; setsid sleep 30 >&2 & printf %s "$!" >"{hung}"; wait'
    lock = stand_in(tmp_path, monkeypatch, text)  # what it leaves holds the lock, as it would itself
    began = time.monotonic()
    assert driver.hear(driver.Question(("-L",), lock)) == []
    assert driver.hear(driver.Question(("-L",), lock)) == []
    os.kill(int(hung.read_text()), 9)
    assert (tmp_path / "asked").read_text() == "."
    assert time.monotonic() - began < 15


def test_rows_are_read_as_far_as_they_tell_something() -> None:
    rows = ["0, GPU-1, 00:01, 1234, 80000, 5, 550, A", "1, GPU-2, 00:02, [N/A], 80000, 7, 550, B", "segfault at 0"]
    rows += ["", "0", "0, 12 MiB?, ,,", "x, GPU-a, 1, 2, 3, 4, 5, 6"]
    told = driver.cards(rows, missed=[2])
    assert [(row.index, row.used, row.total, row.utilization) for row in told] == [
        (0, 1234, 80000, 5),
        (1, None, 80000, 7),
        (2, None, None, None),
    ]
    assert (told[0].uuid, told[0].bus) == ("GPU-1", "00:01")


PIDS = """
Attached GPUs                             : 2

GPU 00000000:01:00.0
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 41
            Type                          : C+G
            Name                          : a: b
            Used GPU Memory               : 500 MiB
        Process ID                        : 42
            Used GPU Memory               : 700 MiB
GPU 00000000:02:00.0
    Processes
        Process ID                        : 43
            Used GPU Memory               : N/A
GPU 00000000:03:00.0
    Processes                             : None
"""


def test_a_list_of_processes_counts_where_all_of_them_say_what_they_hold() -> None:
    told = driver.Processes(PIDS.splitlines())
    assert told.held == [("00000000:01:00.0", 41, 500), ("00000000:01:00.0", 42, 700)]
    assert told.listed == {"00000000:01:00.0", "00000000:03:00.0"}


def test_a_measurement_knows_whose_memory_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = subprocess.Popen(["sleep", "60"], env={"COMBORUN_SESSION": "run/one/1", "PATH": os.environ["PATH"]})
    pids = "GPU 00:01\\n        Process ID : %s\\n            Used GPU Memory : 500 MiB\\nGPU 00:02\\n"
    pids += "        Process ID : 999999999\\n            Used GPU Memory : 5 MiB\\n"
    cards = "0, GPU-a, 00:01, 700, 8000, 1, 5, A\\n1, GPU-b, 00:02, 9, 8000, 1, 5, A\\n"
    text = f'[[ $* == *PIDS* ]] && printf "{pids}" {holder.pid} || printf "{cards}"'
    measuring = Measuring(3, stand_in(tmp_path, monkeypatch, text), gpus=True, memory=True)
    told = None
    deadline = time.monotonic() + 10
    while told is None and time.monotonic() < deadline:
        told = measuring.look()
    resident = told.resident.get("run/one/1")
    holder.kill()
    holder.wait()
    assert (told.number, told.held, told.listed) == (3, {("run/one/1", 0): 500}, {0}), "a pid that is not here"
    assert told.cards[0].used == 700
    assert resident is not None
    assert told.memory is not None


def test_cores_are_neighbours_where_it_goes() -> None:
    assert machine.allocate_cores([0, 1, 2, 3, 8], {1}, 2) == (2, 3)
    assert machine.allocate_cores([0, 1, 2, 3, 8], {1}, 3) == (0, 2, 3)
    assert machine.allocate_cores([0, 1, 2, 3, 8], {1}, 5) == ()
    assert machine.allocate_cores([0, 1], (), 0) == ()


# Leases


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMBORUN_LEASES", str(tmp_path / "leases"))
    return tmp_path / "leases"


def attempt(root: Path, run: str, name: str) -> str:
    """The folder of an attempt that is being started."""
    at = root / run / "sessions" / name / "attempt-1"
    at.mkdir(parents=True)
    (root / run / "id").write_text(f"{run}\n")
    (at / "grant").write_text('{"gpus": "0"}\n')
    return str(at)


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"boot": "%s"}', '{"boot": "%s", "promises": [{"who": 1}]}'])
def test_what_is_no_lease_promises_nothing(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "other.lease").write_text(text.replace("%s", process.boot_id()))
    leases = Leases("mine")
    assert leases.enter() is None
    assert leases.others == []
    leases.leave()


def test_two_runs_see_what_the_other_promises_until_it_has_ended(folder: Path, tmp_path: Path) -> None:
    one, two = Leases("one"), Leases("two")
    at = attempt(tmp_path, "one", "env_a")
    lease = Lease("one", "env_a", Request(gpus=1, gpu_memory=500), (0,), at)
    assert one.enter() is None
    assert one.write([lease])
    one.leave()
    assert (folder.stat().st_mode & 0o777, (folder / "one.lease").stat().st_mode & 0o777) == (0o755, 0o644)
    assert two.enter() is None
    assert [(other.who, other.run) for other in two.others] == [("env_a", "one")]
    two.leave()
    two.read()
    files.write(f"{at}/end", [("cause", "exited")])
    two.read()
    assert two.others == []
    assert one.enter() is None
    assert one.write([])
    one.leave()
    assert [file.name for file in folder.iterdir()] == ["lock"]


def test_a_folder_that_others_may_write_is_none(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    leases = Leases("mine")
    flaw = Fact(FolderFlaw.OPEN, path=str(folder), mode="777")
    assert leases.enter() == Fact(Wait.LEASES_UNUSABLE, flaw=flaw.as_data())
    folder.chmod(0o755)
    assert leases.enter() is None
    leases.leave()


def test_while_another_run_holds_the_lock_nothing_is_promised(folder: Path) -> None:
    holder, leases = Leases("one"), Leases("two")
    assert holder.enter() is None
    began = time.monotonic()
    assert leases.enter() == Fact(Wait.LEASES_LOCKED, folder=str(folder))
    waited = time.monotonic()
    assert leases.enter(), "not asked again at once: those that need no lease go on"
    assert time.monotonic() - waited < waited - began
    holder.leave()


# Admission


class Desk:
    """One run, whose GPUs are measured by hand."""

    def __init__(self, folder: Path, *total: int, **policy: int) -> None:
        (folder / "dispatch").mkdir(parents=True, exist_ok=True)
        self.folder, self.total, self.number = folder, total, 0
        self.told: list[Fact] = []
        self.begin(**policy)

    def begin(self, **policy: int) -> None:
        """A dispatcher."""
        tell = lambda kind, who, what: self.told.append(what)  # noqa: E731
        self.admission = Admission(str(self.folder), "run", Events(RunLayout(str(self.folder))), tell)
        words = {key: str(value) for key, value in policy.items()}
        self.admission.configure({"gpus": ",".join(map(str, range(len(self.total)))), **words})
        self.admission.open()
        self.measure({})

    def measure(self, held: dict[str, int], others: int = 0) -> None:
        """Sessions hold so much of GPU 0."""
        self.number += 1
        told = Measured(self.number)
        for gpu, total in enumerate(self.total):
            used = others + (sum(held.values()) if gpu == 0 else 0)
            told.cards[gpu] = Card(gpu, f"GPU-{gpu}", "", total, used, bus=f"bus:{gpu}")
            told.listed.add(gpu)
        told.held = {(f"run/{who}/1", 0): mib for who, mib in held.items()}
        self.admission.book.take_in(told)

    def at(self, name: str) -> str:
        return f"{self.folder}/sessions/{name}/attempt-1"

    def ask(self, name: str, gpus: int, mib: int, program: str = "p") -> None:
        Path(self.at(name)).mkdir(parents=True, exist_ok=True)
        self.admission.register(name, Request(gpus=gpus, gpu_memory=mib), program)

    def pick(self, *names: str) -> Pick | None:
        self.admission.round()
        return self.admission.pick(names, self.at)

    def start(self, name: str) -> str:
        pick = self.pick(name)
        assert pick, self.admission.waits([name])
        self.admission.begun(name, pick.gpus)
        return ",".join(map(str, pick.gpus))

    def fail(self, name: str, failure: str, gpus: tuple[int, ...] = (0,)) -> bool:
        self.admission.give_back(name)
        return self.admission.ended(name, gpus, self.at(name), failure)

    def waits(self, *names: str) -> list[str]:
        assert self.pick(*names) is None
        return [waits_for(fact) for _, fact in self.admission.waits(names)]


@pytest.fixture
def desk(tmp_path: Path, folder: Path) -> Desk:
    return Desk(tmp_path / "run", 10128)


def test_a_pick_is_promised_in_the_lease_file_and_in_the_grant(desk: Desk, folder: Path) -> None:
    desk.ask("a", 1, 4000)
    assert desk.start("a") == "0"
    (lease,) = json.loads((folder / "run.lease").read_text())["promises"]
    assert (lease["who"], lease["gpus"], lease["request"]["gpu_memory"]) == ("a", [0], 4000)
    assert desk.admission.grant("a", (0,)) == {"gpus": "0", "uuids": "GPU-0"}
    desk.admission.give_back("a")
    desk.admission.book.flush()
    assert not (folder / "run.lease").exists()


def test_after_one_ran_out_of_memory_beside_others_one_fewer_runs_there_until_a_resume(desk: Desk) -> None:
    for name in "abc":
        desk.ask(name, 1, 3000)
        desk.start(name)
    assert desk.fail("a", "gpu_memory"), "not alone: it says nothing of the GPU"
    assert [(one.session, one.fields) for one in events(desk.folder, "gpu_cap")] == [("a", {"gpu": 0, "most": 2})]
    assert desk.told == [Fact(Notice.FEWER, gpu=0, most=2, sessions=3)]
    assert desk.waits("a") == ["cap"]
    desk.fail("b", "")
    desk.admission.again("a", alone=True)
    assert desk.waits("a") == ["gpu"], "a second time: it needs an empty GPU"
    desk.fail("c", "")
    desk.measure({})
    desk.start("a")
    assert desk.admission.grant("a", (0,))["alone"] == 1
    assert desk.waits("b") == ["gpu"]
    desk.begin()
    assert desk.admission.book.capacity.most == {0: 2}, "the next dispatcher knows"
    (desk.folder / "dispatch/gpu_caps").unlink()
    desk.admission.open()
    assert desk.admission.book.capacity.most == {}, "lifted"


def test_starts_without_a_gpu_are_apart_and_one_with_a_gpu_is_found_behind_them(tmp_path: Path, folder: Path) -> None:
    desk = Desk(tmp_path / "run", 10128, stagger_ms=60000)
    for name, gpus in (("a", 0), ("b", 0), ("c", 1)):
        desk.ask(name, gpus, 0)
    desk.start("a")
    pick = desk.pick("b", "c")
    assert pick.name == "c"
    assert desk.pick("b") is None
    assert desk.admission.waits(["b"]) == [("b", Fact(Wait.STARTS_APART, seconds=60.0))]
    assert desk.admission.due() < time.monotonic() + 61


def test_what_can_never_start_is_given_up_with_the_reason(desk: Desk) -> None:
    desk.ask("a", 1, 20000)
    pick = desk.pick("a")
    assert pick.never.fields["totals_mib"] == {"0": 10128}
    assert not desk.admission.book.made


def test_what_a_waiting_server_needs_is_kept_unless_another_server_has_it(desk: Desk) -> None:
    for name, mib in (("there", 5000), ("server", 8000), ("small", 1000)):
        desk.ask(name, 1, mib)
    desk.start("there")
    assert isinstance(desk.admission.lease("server", desk.at("server")), Blocker)
    desk.admission.round()
    desk.admission.reserve("server", [])
    assert desk.admission.pick(["small"], desk.at) is None
    assert desk.admission.waits(["small"]) == [("small", Fact(Wait.GPU_KEPT, gpu=0, session="server"))]
    desk.admission.round()
    desk.admission.reserve("server", ["there"])
    assert desk.admission.pick(["small"], desk.at), "that one ends when its clients have"


def test_another_run_that_was_faster_leaves_no_room(desk: Desk, tmp_path: Path) -> None:
    desk.ask("a", 1, 6000)
    other = Leases("other")
    at = attempt(tmp_path, "other", "env_x")
    assert other.enter() is None
    assert other.write([Lease("other", "env_x", Request(gpus=1, gpu_memory=6000), (0,), at)])
    other.leave()
    found = desk.admission.lease("a", desk.at("a"))
    assert found.waits_for == "gpu_memory"
    assert found.fact.count("foreign_mib") == 6000
