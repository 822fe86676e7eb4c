"""Records of a run, as tests write them."""

from __future__ import annotations

from typing import Any

from comborun.rules import records


def queue_rows(**flags: str) -> str:
    """Rows of queue.jsonl: sessions without a GPU, and the flag of each."""
    return "".join(record(name=name, flag=flag, gpus=0) for name, flag in flags.items())


def judging(line: str = "", evidence_files: tuple[str, ...] = (), **rules: Any) -> dict[str, Any]:
    """The key `judging` of session.json; `rules` are those of `results`, and what a session is besides."""
    names = ("policy", "environment", "unit", "ranged")
    evidence = {"line": line, "files": list(evidence_files)}
    evidence.update({key: rules.pop(key) for key in ("records", "any_files", "steps") if key in rules})
    return {**{key: rules.pop(key) for key in names if key in rules}, "results": rules, "evidence": evidence}


def record(**fields: object) -> str:
    """`class_` stands for the field `class`."""
    return records.render((key.rstrip("_"), value) for key, value in fields.items())
