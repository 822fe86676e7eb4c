"""dispatch/usage.tsv: how busy the machine was, as the dispatcher writes it down while a run lasts."""

from __future__ import annotations

import os
import re
from pathlib import Path

from box import Box, bash, until
from nvidia import Gpus

from comborun.reporter.records.usage import Gpu, Sample, parse_usage

HOLD = bash('until [[ -e "$COMBORUN_RUN_DIR/go" ]]; do sleep 0.1; done')
HOLD_GPU = bash(HOLD.command[2].strip("'"), gpus=1)


def text(box: Box) -> str:
    file = box.directory / "dispatch/usage.tsv"
    return file.read_text() if file.exists() else ""


def samples(box: Box) -> tuple[Sample, ...]:
    return parse_usage(text(box))[0]


def often(box: Box) -> None:
    box.environment["COMBORUN_USAGE_MS"] = "50"


def test_a_run_without_gpus_writes_load_and_memory_and_asks_nobody(box: Box, tmp_path: Path) -> None:
    often(box)
    gpus = Gpus(box, tmp_path / "bin")
    (gpus.folder / "nvidia-smi").write_text(
        f"#!/bin/bash\n# stand-in, not the real nvidia-smi\n: >{gpus.folder}/asked\n"
    )
    box.run({"env_one": bash("true")})
    first = samples(box)[0]
    assert first.cpus == len(os.sched_getaffinity(0))
    assert first.load is not None
    assert first.memory_kib
    assert first.available_kib
    assert 0 < first.available_kib < first.memory_kib
    assert first.gpus == ()
    assert not (gpus.folder / "asked").exists()


def test_the_gpus_of_the_run_are_in_it_and_no_others(box: Box, tmp_path: Path) -> None:
    often(box)
    Gpus(box, tmp_path / "bin").used(100, 40000, 7)
    box.plan({"env_one": HOLD_GPU}, gpus="1,5")
    box.start()
    until(lambda: any(sample.gpus for sample in samples(box)), "a line with the GPUs")
    box.write("go", "")
    box.await_done()
    told = {sample.gpus for sample in samples(box)} - {()}  # lines don't wait for an answer that takes its time
    assert told == {(Gpu(1, 40000, 80000, 5), Gpu(5, None, None, None))}


def test_a_driver_that_hangs_leaves_gpus_unknown_and_holds_up_nothing(box: Box, tmp_path: Path) -> None:
    often(box)
    gpus = Gpus(box, tmp_path / "bin")
    (gpus.folder / "nvidia-smi").write_text("#!/bin/bash\n# stand-in, not the real nvidia-smi\nsleep 60\n")
    box.environment["COMBORUN_GPU_S"] = "1"
    box.plan({"env_one": bash("true"), "env_two": HOLD}, gpus="0", parallel=1)
    box.start()
    until(lambda: len(samples(box)) > 1, "lines while the driver hangs")
    assert box.ended("env_one").clean
    until(lambda: any(sample.gpus for sample in samples(box)), "the line of the look that hung")
    assert {gpu for sample in samples(box) for gpu in sample.gpus} == {Gpu(0, None, None, None)}
    box.write("go", "")
    box.await_done()


def test_a_new_dispatcher_goes_on_with_the_file_of_the_old_one(box: Box) -> None:
    often(box)
    box.plan({"env_one": HOLD})
    box.start()
    until(lambda: samples(box), "a line")
    box.kill_dispatcher()
    before = text(box)
    box.write("dispatch/usage.tsv", before + "1778312125.25\t0.5")  # as a full disk leaves it
    box.start()
    until(lambda: len(samples(box)) > len(before.splitlines()), "another line")
    box.write("go", "")
    box.await_done()
    assert text(box).startswith(before + "1778312125.25\t0.5\n")
    assert [defect.line for defect in parse_usage(text(box))[1]] == [len(before.splitlines()) + 1]


def test_the_time_between_two_lines_doubles_every_500(box: Box) -> None:
    box.environment["COMBORUN_USAGE_MS"] = "10"
    box.plan({"env_one": bash("true")})
    box.write("dispatch/usage.tsv", "1\t\t\t\t\n" * 8000)  # 10 ms by now are 11 minutes
    box.start()
    box.await_done()
    assert len(text(box).splitlines()) == 8001
    assert re.fullmatch(r"\d+\.\d{6}\t[\d.]+\t\d+\t\d+\t\d+", text(box).splitlines()[-1])
