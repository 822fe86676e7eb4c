"""Records of a run, as tests write them."""

from __future__ import annotations

from comborun.rules import records


def queue_rows(**flags: str) -> str:
    """Rows of queue.jsonl: sessions without a GPU, and the flag of each."""
    return "".join(record(name=name, flag=flag, gpus=0) for name, flag in flags.items())


def record(**fields: object) -> str:
    """`class_` stands for the field `class`."""
    return records.render((key.rstrip("_"), value) for key, value in fields.items())
