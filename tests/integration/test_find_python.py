"""The first look for Python on a host: shims, old ones, builds that lack something, and one that an upgrade removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from box import put_library

from comborun.errors import HostError
from comborun.remote import program
from comborun.remote.host import host_facts
from comborun.remote.library import finder
from comborun.remote.transport import Completed, LocalTransport

REAL = os.path.realpath(sys.executable)
WITHOUT = """#!/bin/bash
exec {real} -I -S -c "import sys
sys.modules.update(dict.fromkeys({names}))
$4"
"""
OLD = "#!/bin/bash\necho is 3.6.8\n"


class Host(LocalTransport):
    """A host that has these interpreters and no others; a login shell finds the last of them if `login`."""

    host = "gpubox"

    def __init__(self, *places: Path, login: Path | None = None) -> None:
        listed = "".join(f"printf '%s\\n' '{place}'\n" for place in places)
        self.faked = f"python_places() {{ :\n{listed}}}\nbash() {{ printf '%s\\n' '{login or ''}' >&3; }}\n"

    def run(self, script: str, *args: str, **options: Any) -> Completed:
        text = script.replace(finder(), f'{finder()}{self.faked}timeout() {{ "${{@:4}}"; }}\n')
        return super().run(text, *args, **options)


@pytest.fixture
def put(tmp_path: Path) -> Any:
    def put(name: str, text: str) -> Path:
        place = tmp_path / name / "bin/python3"
        place.parent.mkdir(parents=True)
        place.write_text(text)
        place.chmod(0o755)
        return place

    return put


def found(host: LocalTransport, **how: Any) -> str:
    return host_facts(host, **how).python


def test_a_shim_leads_to_the_interpreter_behind_it(put: Any) -> None:
    shim = put("my shims", f'#!/usr/bin/env bash\nset -e\nexec "{sys.executable}" "$@"\n')
    assert found(Host(shim)) == REAL


def test_what_is_too_old_or_lacks_something_is_passed_over(put: Any) -> None:
    lacking = put("minimal", WITHOUT.format(real=REAL, names=["json", "ctypes"]))
    hidden = put("hidden", "not a program").with_name("python3-config")
    assert (
        found(Host(put("old", OLD), lacking, hidden, Path("/nowhere/python3"), Path(REAL).parent / "python3")) == REAL
    )


def test_what_a_login_shell_finds_comes_last(put: Any) -> None:
    shim = put("module", f'#!/bin/bash\nexec "{sys.executable}" "$@"\n')
    assert found(Host(put("old", OLD), login=shim)) == REAL


def test_without_any_every_interpreter_that_was_looked_at_is_named(put: Any) -> None:
    old, lacking = put("old", OLD), put("minimal", WITHOUT.format(real=REAL, names=["json", "ctypes"]))
    broken, nothing = put("broken", "#!/nowhere\n"), Path("/nowhere/python3")
    with pytest.raises(HostError) as caught:
        host_facts(Host(old, lacking, broken, nothing))
    number = ".".join(map(str, sys.version_info[:3]))
    assert caught.value.message.splitlines() == [
        "gpubox has no Python 3.8 or newer with json, ctypes, zlib, select, fcntl and hashlib",
        f"  {old} is 3.6.8",
        f"  {lacking} is {number} and lacks json, ctypes",
        f"  {broken} is no Python 3 that runs",
    ]
    assert "host_python" in caught.value.hint


def test_a_host_without_a_single_one_is_told() -> None:
    with pytest.raises(HostError, match="there is no python3"):
        host_facts(Host())


def test_the_one_that_the_grid_names_is_taken_and_no_other(put: Any) -> None:
    own = put("own", f'#!/bin/bash\nexec "{sys.executable}" "$@"\n')
    assert found(Host(), host_python=str(own)) == REAL
    with pytest.raises(HostError, match="/nowhere/python3 is not there"):
        host_facts(Host(Path(REAL)), host_python="/nowhere/python3")
    with pytest.raises(HostError, match=r"python3 is 3\.6\.8"):
        host_facts(Host(Path(REAL)), host_python=str(put("old", OLD)))


def test_what_another_run_remembers_comes_first(tmp_path: Path) -> None:
    run = tmp_path / "root/grid-20260101T000000Z-abcd"
    (run / "dispatch").mkdir(parents=True)
    (run / "dispatch/python").write_text(f"{REAL}\n")
    roots = program.Python(roots=(str(tmp_path / "root"),))
    assert program.run_packed(Host(), "runs", "list", str(tmp_path), python=roots).code == 0


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / "a root/grid-20260101T000000Z-abcd"
    put_library(run)
    for name, text in {"id": f"{run.name}\n", "dispatch/queue.jsonl": "", "sessions/x/y": ""}.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(text)
    return run


def test_a_remembered_interpreter_that_an_upgrade_removed_is_told_and_another_found(run: Path) -> None:
    (run / "dispatch/python").write_text("/usr/bin/python3.7-gone\n")
    host = LocalTransport()
    for told in (1, 1):
        done = program.run(host, str(run), "probe")
        assert (done.code, done.complaint) == (0, "")
        assert done.stdout.startswith(b"comborun-probe 3\n")
        assert len(host.warnings) == told
    python = (run / "dispatch/python").read_text().strip()
    assert host.warnings == (
        f"/usr/bin/python3.7-gone, the Python of this run, is gone on local; it goes on with {python}",
    )
    assert os.access(python, os.X_OK)


def test_a_run_of_another_version_is_looked_at_by_its_own_program(run: Path) -> None:
    (run / "dispatch/python").write_text(f"{REAL}\n")
    (run / "dispatch/queue.jsonl").write_text('{"name": "x"}\n')
    (run / "sessions/x/attempt-1").mkdir()
    (run / "sessions/x/attempt-1/claim").write_text("{}\n")
    other = "raise OSError('this run counts in its own way')\n"
    (run / "lib/comborun_host/comborun/host/record/judging.py").write_text(other)
    assert "counts in its own way" in program.run(LocalTransport(), str(run), "probe").complaint


def test_a_run_without_any_interpreter_left_is_told(run: Path) -> None:
    (run / "dispatch/python").write_text("/gone\n")
    text = "python_places() { :; }\ntimeout() { :; }\n"
    (run / "lib/find_python.sh").write_text(finder() + text)
    with pytest.raises(HostError, match="has no Python"):
        program.run(LocalTransport(), str(run), "fetch", "1000")
    assert (run / "dispatch/python").read_text() == "/gone\n"


def test_the_script_in_a_run_prints_its_interpreter(run: Path) -> None:
    (run / "dispatch/python").unlink(missing_ok=True)
    shown = subprocess.run(["bash", run / "lib/find_python.sh", run], capture_output=True, text=True, check=True)
    assert os.access(shown.stdout.strip(), os.X_OK)
    assert (run / "dispatch/python").read_text() == shown.stdout
    with Path(shown.stdout.strip()).open("rb") as file:
        assert file.read(4) == b"\x7fELF", "no shim"


def test_a_folder_that_is_no_run_and_one_of_an_older_comborun_have_codes_of_their_own(tmp_path: Path) -> None:
    assert program.run(LocalTransport(), str(tmp_path / "x"), "fetch").code == program.NO_RUN
    assert program.run(LocalTransport(), str(tmp_path), "fetch").code == program.OLD_RUN


def test_a_program_that_did_not_arrive_whole_does_nothing() -> None:
    class Cut(LocalTransport):
        host = "far"

        def run(self, script: str, *args: str, stdin: bytes = b"", **options: Any) -> Completed:
            return super().run(script, *args, stdin=stdin[:-40], **options)

    done = program.run_packed(Cut(), "runs", "list", "/")
    assert (done.code, done.complaint) == (1, "the data arrived changed")
