"""A run directory to fetch from, and a way to it that is real and counted."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from box import put_library
from recorded import queue_rows

from comborun.remote.fetch import Fetched, FetchOptions, fetch
from comborun.remote.transport import Completed, LocalTransport


class Link(LocalTransport):
    """The way to this machine as if it were another; counts what travels, and cuts it when told to."""

    host = "far"

    def __init__(self, cut: int | None = None) -> None:
        self.cut = cut
        self.sent: list[int] = []
        self.received: list[int] = []

    def run(self, script: str, *args: str, stdin: bytes = b"", **options: Any) -> Completed:
        done = super().run(script, *args, stdin=stdin, **options)
        assert done.stderr == b""
        self.sent.append(len(stdin) + len(script) + sum(map(len, args)))
        self.received.append(len(done.stdout))
        return Completed(done.code, done.stdout[: self.cut], done.stderr)


@dataclass
class Run:
    """A run directory as the host has it."""

    path: Path
    names: list[str] = field(default_factory=list)

    def put(self, name: str, content: str | bytes = "") -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def attempt(self, name: str, results: dict[str, str | bytes], number: int = 1, rules: str = "*.jsonl") -> Path:
        if name not in self.names and name != "after":
            self.names.append(name)
            self.put("dispatch/queue.jsonl", queue_rows(**dict.fromkeys(self.names, "")))
        at = f"sessions/{name}/attempt-{number}"
        judging = {"results": {"files": rules.split("|")}, "evidence": {"line": "x" * 1000}}
        claim = {"supervisor": 1, "count": 9, "judging": judging}
        self.put(f"{at}/claim", json.dumps(claim))
        self.put(f"{at}/grant", '{"gpus": ""}\n')
        self.put(f"{at}/begin", '{"attempt": 1, "started": 1.5}\n')
        self.put(f"{at}/log", "much\n" * 1000)
        for leaf, content in results.items():
            self.put(f"{at}/out/{leaf}", content)
        return self.path / at

    def end(self, name: str, number: int = 1) -> None:
        self.put(f"sessions/{name}/attempt-{number}/end", '{"attempt": 1, "cause": "exited"}\n')

    def files(self, *ignored: str) -> dict[str, bytes]:
        return contents(self.path, "lib/", "run_parallel.sh", "/log", "/lock", "dispatch/python", *ignored)


def contents(directory: Path, *ignored: str) -> dict[str, bytes]:
    files = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*") if path.is_file()}
    return {
        name: path.read_bytes()
        for name, path in files.items()
        if name != ".fetch.lock" and not any(part in f"{name}/" or name.endswith(part) for part in ignored)
    }


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = Run(tmp_path / "box with space" / "grid-20260101T000000Z-abcd")
    put_library(run.path)
    run.put("id", "grid-20260101T000000Z-abcd\n")
    run.put("digest", "digest=1\n")
    run.put("run.json", "{}\n")
    run.put("plan-1.json", "{}\n")
    run.put("plan-2.json", "{}\n")
    run.put("grid.yaml", "name: grid\n")
    run.put("dispatch/slots", "4\n")
    run.put("dispatch/multiplexer", "tmux\n")
    run.put("dispatch/events.jsonl", '{"at": 1.0, "kind": "granted"}\n')
    run.attempt("e_p", {"a.jsonl": '{"episode": 0}\n'})
    return run


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    return tmp_path / "data" / "mirror"


def get(run: Run, mirror: Path, link: LocalTransport | None = None, **options: Any) -> Fetched:
    return fetch(link or Link(), str(run.path), mirror, FetchOptions(**options))
