"""Rows of queue.jsonl, and the messages at the FIFO."""

from __future__ import annotations

import os
from pathlib import Path

from recorded import record

from comborun.host.dispatch.messages import Fifo
from comborun.host.record.queue import rows
from comborun.rules.room.capacity import Request


def test_rows_are_read_and_what_is_no_row_is_passed_over(tmp_path: Path) -> None:
    amounts = {"gpus": 2, "gpu_memory": 9, "cpus": 2, "memory": 7, "per_gpu": 1, "per_host": 3, "only": [0, 1]}
    asked = record(
        name="env_two", flag="smoke", tokens=["ray", "vulkan"], group="kitchen", servers=["policy", "critic"], kind="k",
        **amounts,
    )  # fmt: skip
    odd = record(
        name="env_three", gpus=1, cpus=0.25, flag="dropped", gpu_memory="many", only="x", tokens=7, group=["y"]
    )
    text = f'{{"name": "env_one"}}\n{asked}\n{{"name": "bad name"}}\n[]\n{{"name": ["env_x"]}}\n{odd}'
    (tmp_path / "queue").write_text(text)
    one, two, three = rows(str(tmp_path / "queue"))
    assert (one.name, one.flag, one.request, one.servers, one.program) == ("env_one", "", Request(), (), "all")
    assert (two.flag, two.servers, two.program) == ("smoke", ("policy", "critic"), "k")
    assert two.request == Request(2, 9, 2, 7, ("ray", "vulkan"), "kitchen", 1, 3, (0, 1))
    assert (three.flag, three.request) == ("dropped", Request(1, cpus=0.25))


def test_messages_come_whole_however_they_were_written(tmp_path: Path) -> None:
    fifo = Fifo(str(tmp_path / "fifo"))
    (tmp_path / "fifo").write_text("somebody's file")
    fifo.listen()
    writer = os.open(tmp_path / "fifo", os.O_WRONLY | os.O_NONBLOCK)
    os.write(writer, b"free\nfree a x\nfree x[$(id)] 1\nFREE a 1\na b 1 2 3\na b 1 x\n")  # no messages
    os.write(writer, b"free a 1 \nwindow b 2 345\nend")
    assert [(one.what, one.name, one.attempt, one.word) for one in fifo.read()] == [
        ("free", "a", 1, ""),
        ("window", "b", 2, "345"),
    ]
    assert fifo.read() == []
    os.write(writer, b"ed c 7\n")
    assert [(one.what, one.name, one.attempt) for one in fifo.read()] == [("ended", "c", 7)]
    os.close(writer)
