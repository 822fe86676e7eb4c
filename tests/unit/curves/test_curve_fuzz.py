"""Nothing in a log or in a file of scalars makes a reader of curves raise, or gives a curve that is none."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import curve_samples as samples
from test_curve_files import FILES

from comborun.rules.curves import record, training
from comborun.rules.curves.checkpoints import step_in

MANY, SEED = int(os.environ.get("COMBORUN_FUZZ", "400")), int(os.environ.get("COMBORUN_FUZZ_SEED", "7"))
"""inputs over all formats; 100,000 take some minutes: `COMBORUN_FUZZ=100000 pytest --timeout=0 -n 0` with this file"""
LOGS = ("RSL_RL", "RSL_RL_5", "RL_GAMES", "SB3", "RLINF", "EMBODICHAIN", "MANISKILL", "CLEANRL", "LEROBOT")
SOME = {name: content.encode() if isinstance(content, str) else content for name, (content, _) in FILES.items()}
SOME |= {f"{name.lower()}.log": getattr(samples, name).encode() for name in LOGS}
SOME |= {name: content.encode() for name, content in samples.MONITORS.items()}
BAD = (
    *(
        b"NaN",
        b"1e400",
        b"-Infinity",
        b"9" * 5000,
        b"null",
        b"[]",
        b"{}",
        b'"',
        b"\\",
        b",",
        b";",
        b"\xff\xfe",
        b"\x00",
    ),
    *(b"[" * 3000, b'{"a":' * 3000, b"\n", b"\r", b"true", b"-1", b"0.5", b"\x1b[3", b"1,234", b"-", b"=", b": ", b"|"),
    *(
        b"PK\x03\x04",
        b"\x93NUMPY",
        b"(" * 500,
        b"1e-400",
        b"\xf0\x9f",
        b"1/0",
        b"x" * 5000,
        b"----------\n",
        b"\xff" * 12,
    ),
    *(b"step", b"step=", b"reward=", b"1e308", b"-1e308", b"1.2M", b"[rank9999999999]: ", b"\xe2\x94\x80" * 20),
)


def mangled(draw: random.Random, data: bytes) -> bytes:
    """Torn, swollen, with a piece of another file, or with another value in the middle."""
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data) + 1)
        kind = draw.randrange(6)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data = data[:at] + draw.choice(BAD) + data[at:]
        elif kind == 2:
            data = data[:at] + draw.choice(BAD) + data[at + draw.randrange(20) :]
        elif kind == 3:
            other = draw.choice([*SOME.values()])
            start = draw.randrange(len(other))
            data = data[:at] + other[start : start + draw.randrange(400)] + data[at:]
        elif kind == 4:
            data = data[:at] + data[max(0, at - draw.randrange(300)) :]
        else:
            data = bytes(byte ^ (1 << draw.randrange(8)) if draw.random() < 0.01 else byte for byte in data)
    return data[:200_000]


def test_no_content_makes_a_reader_raise_and_every_curve_is_one(tmp_path: Path) -> None:
    draw, names = random.Random(SEED), sorted(SOME)
    out = tmp_path / "out"
    for number in range(MANY):
        name = draw.choice(names)
        data = mangled(draw, SOME[name if draw.random() < 0.9 else draw.choice(names)])
        place = out / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        log = tmp_path / "log"
        log.write_bytes(mangled(draw, SOME["sb3.log"]) if number % 10 == 0 else b"")
        found = training.read(str(log), str(out))
        place.unlink()
        assert not [fact for fact in found["facts"] if fact["code"] == "curves_not_read"], (number, name)
        text = json.dumps(found, allow_nan=False)
        read = record.parse(text)
        assert len(read["curves"]) == len(found["curves"]), (number, name)
        for one in found["curves"]:
            assert one["steps"] == sorted(set(one["steps"])), (number, name)
            assert len(one["steps"]) <= training.SHOWN
            assert all(0 <= step < 1e18 for step in one["steps"])
        record.newest(record.joined([(1, read), (2, read)]))


def test_no_name_of_a_checkpoint_makes_its_reader_raise() -> None:
    draw = random.Random(SEED)
    parts = (
        "step",
        "ep",
        "_",
        "-",
        "=",
        ".",
        "/",
        "10k",
        "1e9",
        "9" * 40,
        "rew_-3.5",
        "of",
        "²",
        "٣",
        "model",
        ".pt",
        "",
    )
    for _ in range(20 * MANY):
        step, _unit = step_in("".join(draw.choice(parts) for _ in range(draw.randint(1, 8))))
        assert step is None or 0 <= step < 1e15
