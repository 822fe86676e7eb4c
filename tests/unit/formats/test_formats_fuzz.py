"""Nothing that can stand in a file makes a reader raise, no valid record is lost by a bad neighbour, and the host
counts what the report counts.
"""

from __future__ import annotations

import io
import json
import os
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest
from adapter_samples import OURS, SAMPLES
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import rounds

from comborun.reporter.records.files import read, read_names
from comborun.reporter.records.reading import Context
from comborun.rules.results.fields import RefusedError, ResultRules
from comborun.rules.results.filename_results import FILE, groups
from comborun.rules.results.formats import FORMATS, LOG_PATTERN, NAMED, look
from comborun.rules.results.log_patterns import LOG_PATTERNS
from comborun.rules.results.tally import Rows
from comborun.words import say

MANY = int(os.environ.get("COMBORUN_FUZZ", rounds(2000)))
SEED = int(os.environ.get("COMBORUN_FUZZ_SEED", "11"))
"""inputs over all formats; 100,000 take half an hour: `COMBORUN_FUZZ=100000 pytest --timeout=0 -n 0` with this file"""
ONLY = os.environ.get("COMBORUN_FUZZ_ONLY", "").split(",")
"""parts of samples' names: only these are mangled"""
SOME = {path.relative_to(SAMPLES).as_posix(): path.read_bytes() for path in SAMPLES.rglob("*") if path.is_file()}
SOME |= {
    "r.jsonl": b'{"episode": 1, "success": true, "r": NaN}\n{"episode": "ep_2", "success": 0, "x": 1e400}\n',
    "r.json": b'{"pick": {"success": [true, false], "return": [1.5, null]}, "place": {"success": [0]}}',
    "deep/r.json": b'{"a": [{"runs": [{"episode": 0, "metrics": {"success": 1}}]}], "note": "x"}',
    "deep.json": json.dumps([{"success": 1, "x": json.loads("[" * 98 + "]" * 98)}, {"success": 0}]).encode(),
    "flat/r.json": b'{"a": {"0": true, "1": false}, "b": [[0, "ok"], [1, "ko"]], "returns": [1.5, 2]}',
    "split/r.json": b'{"columns": ["episode", "success"], "data": [[0, true], [1, false]], "index": [0, 1]}',
    "counts/r.json": b'{"n": 10, "success_rate": "60%", "tasks": [{"success": 3, "fail": 2}, {"sr": 0.6, "n": "5"}]}',
    "counts/r.jsonl": b'{"task": "a", "success": 3, "total": 5}\n{"task": "b", "success": 4, "total": 5}\n',
    "counts/r.csv": b"task;num_success;num_trials;x\nopen;3;5;8,2\nlift;4;5;1,5\n",
    "lists/r.jsonl": b'{"task": "a", "successes": [true, false]}\n{"seeds": [1, 2], "out": {"success": [1, 0]}}\n',
    "sums/r.csv": b"task,episode,success\na,0,1\na,1,0\nTOTAL,,0.5\nmean,x,y,z\n",
    "sums/r.jsonl": b'{"episode": 0, "failed": true}\n{"episode": 1, "failed": [false]}\n{"success_rate": 0.5}\n',
    "words/r.json": b'{"meta": {"a": 1}, "0": {"result": "PASS"}, "1": {"result": "tensor(0.)"}}',
    "fraction/r.json": b'{"open": "3/5", "close": {"success": "2 of 5"}, "bits": [1, 0, 1], "numSuccess": 3, "n": 5}',
    "ids/r.json": b'{"failed_episodes": [3, 7], "n": 10, "open": [3, 5], "success": [4, 5], "failed_ids": ["a", 1.5]}',
    "pairs/r.json": b'{"open": [3, 5], "close": [4, 5], "success": {"a": [1, 2], "b": [0, 3]}, "success_ids": [1]}',
    "tasks/r.json": b'{"s": {"t0": {"ep0": {"success": true}}, "t1": {"ep0": {"success": false}}}}',
    "wide/r.csv": "episode,success\n0,1\n1,0\n".encode("utf-16"),
    "wide/r.jsonl": '{"episode": 0, "success": true}\n{"episode": 1, "success": false}\n'.encode("utf-16-le"),
    "tables/r.csv": b'0,1,0.5\nepisode,success\n0,1\n1,0\nepisode,success,note\n2,1,"a\n3,0,b\n',
    "python/r.jsonl": b"{'episode': 0, 'success': True}\n{\"episode\": 1, \"success\": false}\n",
    "steps/r.json": b'{"success": true, "steps": {"0": {"success": false}, "1": {"success": true}}, "frames": [{}]}',
    "bare/r.json": b'{"mug": {"success": 1}, "bowl": {"success": 0}, "cfg": {"env": {"success": true}}}',
    "pattern/y.txt": b"[1/2] success: True\nTrial 1: FAILURE\nEpisode 1 raised ValueError, skipping\nsucc 1/2\n",
    "pattern/z.log": "Episode 1: ✅\nEpisode 2 ❌\ntrial 3: S\nSuccess rate so far: 2/3 = 66.7%\n".encode(),
    "pattern/x.log": b"Episode 1: success, return 2.5\nEpisode 2: fail, return nan\n",
}
BAD = (
    *(b"NaN", b"1e400", b"-Infinity", b"9" * 5000, b"null", b"[]", b"{}", b'"', b"\\", b",", b"\xff\xfe", b"\x00"),
    *(b"[" * 150, b"]" * 150, b'{"a":' * 120 + b"0" + b"}" * 120, b"\n", b"\r\n", b"true", b"-1", b"0.5", b"\x1b[3g"),
    *(
        b"SQLite format 3\0",
        b"PK\x03\x04",
        b"\x93NUMPY",
        b"(" * 200,
        b"inf",
        b"1e-400",
        b"\xf0\x9f",
        b"1/2",
        b"x" * 3000,
    ),
)
PATTERNS = (
    r"Episode (?P<episode>\d+).*?(?P<verdict>success|fail)",
    r"(?P<verdict>success|fail).*?(?P<score>[\d.,]+)",
    r"(?P<successes>\d+)\D+(?P<episodes>\d+)",
    *LOG_PATTERNS,
)


def mangled(draw: random.Random, data: bytes) -> bytes:
    """Torn, swollen, with a piece of another file, or with a value of another type in the middle."""
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(data) + 1)
        way = draw.randrange(5)
        if way == 0:
            data = data[:at]
        elif way == 1:
            data = data[:at] + draw.choice(BAD) + data[at:]
        elif way == 2:
            data = data[:at] + draw.choice(BAD) + data[at + draw.randint(1, 12) :]
        elif way == 3:
            other = draw.choice(list(SOME.values()))
            start = draw.randrange(len(other) + 1)
            data = data[:at] + other[start : start + draw.randint(1, 200)] + data[at:]
        else:
            data = data[:at] + data[max(0, at - draw.randint(1, 200)) : at] * draw.randint(1, 4) + data[at:]
    return data[:20_000]


def counted(data: bytes, stream: BinaryIO, context: Context) -> dict[int, bool | None] | None:
    """What the host counts, fed in pieces; None where it reads nothing."""
    asked = LOG_PATTERN if context.rules.pattern else context.rules.format
    try:
        file = look(stream, context.path, context.identity, asked)
    except RefusedError:
        return None
    rows = Rows(file.reader(context.identity, context.path))
    if file.content:  # what was packed, or has two bytes for each character
        file.content.seek(0)
    rest = (file.content.read() if file.content else data)[file.start :]
    rows.feed(rest[: len(rest) // 2])
    rows.last()
    rows.feed(rest[len(rest) // 2 :])
    rows.reader.over = True
    rows = rows.last()
    assert all(one.why and say(one.why) for one in rows.refused.values())
    assert all(0 <= one.successes <= one.episodes > 0 for one in rows.counted)
    return None if rows.numbered.keys() & rows.episodes.keys() else {**rows.episodes, **rows.numbered}


def reported(stream: BinaryIO, context: Context) -> dict[int, bool | None]:
    stream.seek(0)
    reading = read(stream, context)
    assert all(one.episode >= 0 and one.policy and one.environment for one in reading.records)
    assert all(one.reason and one.path == context.path for one in (*reading.rejects, *reading.defects))
    assert all(0 <= one.successes <= one.episodes > 0 for one in reading.aggregates)
    assert any((*reading.entries, reading.rejects, reading.defects)) or not reading.format
    told: dict[int, bool | None] = {}
    for record in reading.records:
        if told.get(record.episode) is None:
            told[record.episode] = record.success
    return told


def check(data: bytes, context: Context, stream: BinaryIO) -> None:
    """Read the data from a file, since SQLite opens a file."""
    stream.seek(0)
    stream.truncate()
    stream.write(data)
    stream.seek(0)
    found = counted(data, stream, context)
    told = reported(stream, context)
    assert found is None or told == found, (context.path, context.rules.format, data)


def test_no_file_raises_whatever_stands_in_it_and_host_and_report_count_alike(tmp_path: Path) -> None:
    draw, names = random.Random(SEED), sorted(name for name in SOME if any(part in name for part in ONLY))
    with (tmp_path / "x").open("w+b", buffering=0) as stream:
        for _ in range(MANY):
            name = draw.choice(names)
            format_ = draw.choice(("", "", draw.choice(OWN)))
            rules = ResultRules(format=format_)
            if name.startswith("pattern"):
                rules = ResultRules(source="log", pattern=draw.choice(PATTERNS))
            planned = draw.choice((0, 1, 2, 5, 10))
            check(mangled(draw, SOME[name]), replace(OURS, path=name, rules=rules, planned=planned), stream)


OWN = [name for name in FORMATS if name != NAMED]


@pytest.mark.parametrize("kind", OWN)
def test_no_file_takes_long_because_it_is_odd(kind: str) -> None:
    """Lines without an end, quotes, brackets and marks that are opened again and again: time grows with the bytes."""
    opened = (b'"', b"[", b"{", b'{"a":', b"(", b"results:  (\n", b"results:  ([1],\n", b"Metrics: {\r", b"\x1b[")
    others = (b"\x1b]", b",\n", b'"\n', b"0/", b"Average Rollout Stats\n{\n}\n", b"[Rank 0/2] Metrics: {'a': [[[[\n")
    for piece in (*opened, *others):
        whole, quarter = (seconds(kind, piece, size) for size in (30_000, 7_500))
        if whole > max(0.05, 8 * quarter):  # a quadratic reader takes 16 times as long as for a quarter
            whole, quarter = (min(seconds(kind, piece, size) for _ in range(3)) for size in (30_000, 7_500))
            assert whole < 8 * quarter, piece


def seconds(kind: str, piece: bytes, size: int) -> float:
    """How long a file of this size is computed on."""
    began = time.process_time()
    read(io.BytesIO(piece * (size // len(piece))), replace(OURS, path="a/x.log", rules=ResultRules(format=kind)))
    return time.process_time() - began


@settings(max_examples=rounds(30))
@given(st.lists(st.text(max_size=30) | st.from_regex(FILE, fullmatch=True), max_size=6))
def test_no_name_of_a_file_is_too_strange(names: list[str]) -> None:
    for folder, paths in groups(names).items():
        reading = read_names(paths, Context(folder))
        assert len(reading.records) + len(reading.rejects) >= 1
