"""What may start on a host and what has to wait, with the real dispatcher and processes that really take memory."""

from __future__ import annotations

import contextlib
import getpass
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from box import Box, Script, bash, make_box, until
from happened import events
from nvidia import Gpus, uuid
from traces import HOLD

from comborun.rules.facts import Fact
from comborun.rules.room.capacity import Request
from comborun.rules.room.waits import Wait


def taking(mib: int, steps: int = 4, then: str = '--until "$COMBORUN_RUN_DIR/go"', **asked: object) -> Script:
    """A session that takes so much of each of its GPUs, and asks for that unless `gpu_memory` says otherwise."""
    gpus = int(str(asked.pop("gpus", 1)))
    request = Request(**{"gpu_memory": mib, **asked})  # type: ignore[arg-type]
    return bash(f"exec hold-gpu {mib} --steps {steps} --every 0.1 {then}", gpus=gpus, request=request)


def running(box: Box) -> set[str]:
    return {name for name in box.names if box.begin(name) and not box.end(name)}


def reason(box: Box, name: str) -> str:
    return box.waits_for(name)


def test_sessions_are_packed_beside_a_job_and_no_gpu_is_ever_over_its_budget(box: Box, tmp_path: Path) -> None:
    gpus = Gpus(box, tmp_path / "bin")
    gpus.cards(81559, 24576)
    gpus.taken(39000, 0)
    sessions = {f"env_p{i}": taking(4608) for i in range(16)}
    box.plan(sessions, parallel=20, gpus="0,1", policy={"reserve_gpu_mib": 12000})
    box.start()
    until(lambda: len(running(box)) == 11, "what fits runs", 30)  # 9 beside the job, 2 beside the reserve
    until(lambda: reason(box, "env_p15") == "gpu_memory", "the others are told why they wait")
    assert box.waiting["env_p15"].count("needs_mib") == 4608
    until(lambda: gpus.used_now(0) == 39000 + 9 * 4608, "all of them hold what they asked for")
    gpus.taken(60000, 0)  # the job takes more than it had
    box.write("go", "")
    until(lambda: len(box.told("^ended .*outcome=succeeded")) >= 12, "some end, and some start", 30)
    box.await_done(40)
    assert box.done["succeeded"] == "16"
    assert gpus.peak(0) <= 81559
    assert gpus.peak(1) <= 24576 - 12000
    grant = box.fields("sessions/env_p0/attempt-1/grant")
    assert grant["uuids"] == uuid(int(grant["gpus"]))


def test_the_stand_in_for_nvidia_smi_counts_nothing_of_a_process_that_is_gone(box: Box, tmp_path: Path) -> None:
    gpus = Gpus(box, tmp_path / "bin")
    gpus.cards(24576, 24576)
    lives = subprocess.Popen([gpus.folder / "hold-gpu", "700", "--gpu", "0", "--for", "60"], stdout=subprocess.DEVNULL)
    until(lambda: gpus.used_now(0) == 700, "it holds memory")
    (held,) = (gpus.folder / "held").iterdir()
    (held.parent / "99999999-1").write_text(held.read_text())  # it began in the same hundredth of a second
    asked = [gpus.folder / "nvidia-smi", "--query-gpu=index,memory.used"]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "0, 700\n1, 0\n"
    lives.kill()
    lives.wait()


def test_who_uses_the_gpus_is_an_event_now_and_then(box: Box, tmp_path: Path) -> None:
    """Ours by session, others by user and program: never by their arguments."""
    gpus = Gpus(box, tmp_path / "bin")
    gpus.used(0)
    other = subprocess.Popen(
        [gpus.folder / "hold-gpu", "700", "--gpu", "0", "--for", "60"], env={**os.environ, **box.environment}
    )
    box.environment |= {"COMBORUN_SEAT_S": "0.3", "COMBORUN_GPU_USE_S": "0.5"}
    box.plan({"env_one": taking(4608)}, gpus="0")
    box.start()
    seen = lambda: [one.fields["gpus"]["0"] for one in events(box.directory, "gpu_use")]  # noqa: E731
    until(lambda: any(one["sessions"] for one in seen()), "the session is named", 50)
    (last, *_), user = reversed(seen()), getpass.getuser()
    assert (last["sessions"], last["total"]) == ({"env_one": 4608}, 80000)
    assert [[whose, mib] for whose, _, mib in last["others"]] == [[user, 700]]
    assert "--for" not in (box.directory / "dispatch/events.jsonl").read_text()
    box.write("go", "")
    box.await_done(40)
    other.kill()
    other.wait()


@pytest.mark.parametrize("fault", ["fail", "hang", "na"])
def test_what_nvidia_smi_does_not_tell_is_never_free(box: Box, tmp_path: Path, fault: str) -> None:
    gpus = Gpus(box, tmp_path / "bin")
    gpus.cards(24576)
    gpus.fault(fault)  # type: ignore[arg-type]
    box.environment["COMBORUN_GPU_S"] = "1"
    box.plan({"env_big": taking(4000, then="--for 0"), "env_cpu": bash("true")}, gpus="0")
    box.start()
    assert box.ended("env_cpu").clean, "the others go on"
    until(lambda: box.waiting.get("env_big") == Fact(Wait.GPU_USE_UNKNOWN, gpu=0), "it is told")
    assert reason(box, "env_big") == "unknown"
    assert not box.told("^granted env_big")
    gpus.fault("")
    assert box.await_done()["succeeded"] == "2"


def test_without_gpus_the_cores_and_the_memory_are_shared_out(box: Box) -> None:
    cores = sorted(os.sched_getaffinity(0))
    most = len(cores)
    total = int(Path("/proc/meminfo").read_text().split()[1]) // 1024
    asks = {
        "env_a": Request(cpus=most - 1, tokens=("ray",)),
        "env_b": Request(cpus=1, tokens=("ray",)),
        "env_c": Request(cpus=2 if most > 1 else 1),
        "env_d": Request(memory=total),
        "env_e": Request(cpus=1),
        "env_f": Request(group="kitchen", per_host=1),
        "env_g": Request(group="kitchen", per_host=1),
        "env_never": Request(cpus=most + 1),
    }
    box.plan({name: bash(HOLD, request=asked) for name, asked in asks.items()}, parallel=20, policy={"cpus": most})
    box.start()
    until(lambda: len(box.waiting) == 4, f"four wait: {box.waiting}")
    assert {name: reason(box, name) for name in box.waiting} == {
        "env_b": "token", "env_c": "cpus", "env_d": "host_memory", "env_g": "cap",
    }  # fmt: skip
    assert box.waiting["env_b"] == Fact(Wait.TOKEN_TAKEN, token="ray", session="env_a", run="")
    assert box.waiting["env_c"] == Fact(Wait.CORES_TAKEN, needs=2, held=most, of=most, foreign=0, kept=0)
    assert box.ended("env_never").note == f"it asks for {most + 1} cores, and may use {most}"
    given = [box.fields(f"sessions/{name}/attempt-1/grant")["cores"].split(",") for name in ("env_a", "env_e")]
    assert sorted(int(core) for part in given for core in part) == cores
    box.stop("env_d")
    box.write("go", "")
    assert box.await_done()["succeeded"] == "6"


@contextlib.contextmanager
def beside(box: Box, folder: Path) -> Iterator[Box]:
    """Another run of the same user on the same host."""
    folder.mkdir()
    with make_box(folder, "tmux") as other:
        shared = ("PATH", "COMBORUN_LEASES", "COMBORUN_MEMORY_ASK_MS")
        other.environment |= {key: box.environment[key] for key in shared}
        yield other


def test_two_runs_of_one_user_promise_nothing_twice_whoever_is_killed(box: Box, tmp_path: Path) -> None:
    gpus = Gpus(box, tmp_path / "bin")
    gpus.cards(24576)
    slow = taking(10000, steps=1, then='--until "$COMBORUN_RUN_DIR/go"', tokens=("ray",), cpus=1)
    slow = bash("sleep 1; " + slow.command[2].strip("'").removeprefix("exec "), gpus=1, request=slow.request)
    box.plan({"env_one": slow}, gpus="0", policy={"cpus": 2})
    with beside(box, tmp_path / "other") as other:
        wanted = {"env_big": taking(16000), "env_ray": bash("true", request=Request(tokens=("ray",)))}
        other.plan({**wanted, "env_fits": taking(8000, then="--for 0")}, gpus="0", policy={"cpus": 2})
        box.start()
        box.begun("env_one")
        other.start()  # while the first one holds nothing yet
        until(lambda: (reason(other, "env_big"), reason(other, "env_ray")) == ("gpu_memory", "token"), "both wait")
        assert other.waiting["env_big"].count("foreign_mib") == 10000
        assert (other.waiting["env_ray"].text("session"), other.waiting["env_ray"].text("run")) == ("env_one", box.id)
        assert other.ended("env_fits").clean, "there is room for it beside the promise"
        box.kill_dispatcher()  # its session lives, and so does the promise
        until(lambda: gpus.used_now(0) == 10000, "the session has what it was promised")
        (lease,) = Path(box.environment["COMBORUN_LEASES"]).glob(f"{box.id}.lease")
        assert stat.S_IMODE(lease.stat().st_mode) == 0o644
        assert stat.S_IMODE(lease.parent.stat().st_mode) == 0o755
        assert reason(other, "env_big") == "gpu_memory"
        box.write("go", "")  # nobody writes the lease anew
        other.begun("env_big")
        assert other.ended("env_ray").clean
        other.write("go", "")
        other.await_done()
    assert gpus.peak(0) <= 24576


def test_what_was_promised_and_not_begun_for_long_is_admitted_anew(box: Box) -> None:
    box.plan({"env_ray": bash("true", request=Request(tokens=("ray",)))})
    grant = box.write("sessions/env_ray/attempt-1/grant", '{"gpus": ""}\n')
    os.utime(grant, (1e9, 1e9))
    box.start()
    box.await_done()
    assert box.ended("env_ray", 1).cause == "lost"
    assert box.ended("env_ray", 2).clean
