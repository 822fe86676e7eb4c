"""What a launch notes of the files and the code that it is about to run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from comborun.host.doctor import preflight
from comborun.host.verbs import facts

MIB = 1 << 20


def of(*paths: Path) -> dict[str, dict[str, object]]:
    return preflight.checkpoints({"checkpoints": {path.stem: str(path) for path in paths}})


def test_a_checkpoint_is_told_from_another_by_its_ends_its_size_and_its_time(tmp_path: Path) -> None:
    first, second = tmp_path / "first.pt", tmp_path / "second.pt"
    first.write_bytes(b"a" * 3 * MIB)
    second.write_bytes(b"a" * (3 * MIB - 1) + b"b")
    os.utime(first, (0, 0))
    huge = tmp_path / "huge.pt"
    with huge.open("wb") as stream:
        stream.truncate(1 << 40)
    found = of(first, second, huge, tmp_path / "gone.pt", tmp_path)
    assert list(found) == ["first", "second", "huge"]
    assert found["huge"]["bytes"] == 1 << 40, "it delays nothing"
    assert found["first"]["bytes"] == 3 * MIB
    assert found["first"]["changed"] == "1970-01-01T00:00:00Z"
    assert found["first"]["sha256_of_ends"] != found["second"]["sha256_of_ends"]


def test_the_folder_of_the_commands_is_known_by_its_commit(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True)

    assert facts.code(str(tmp_path)) == {}
    git("init")
    (tmp_path / "eval.py").write_text("pass")
    git("add", ".")
    git("-c", "user.name=x", "-c", "user.email=x@y", "commit", "-m", "First")
    found = facts.code(str(tmp_path))
    assert (len(found["commit"]), found["uncommitted"]) == (40, False)
    (tmp_path / "eval.py").write_text("fail")
    assert facts.code(str(tmp_path))["uncommitted"]
    wanted = {"programs": [{"folder": str(tmp_path)}, {"folder": "/nowhere"}, {"folder": ""}]}
    assert preflight.folders(wanted) == [str(tmp_path)]
