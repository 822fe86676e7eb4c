"""What preflight says of the runtime of a grid's containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from comborun.host.doctor import preflight
from comborun.rules.host import Lack

REFUSED = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
OF_DOCKER = "Server:\n Security Options:\n  seccomp\n   Profile: builtin\n  rootless\n  cgroupns"
OF_PODMAN = "host:\n  security:\n    rootless: true"


@pytest.mark.parametrize(
    ("program", "user_given", "lacks"),
    [
        ("", False, [Lack.RUNTIME]),
        (f"echo 'Client:'; echo '{REFUSED}' >&2; exit 1", False, [Lack.RUNTIME_FAILS]),
        (f"echo '{OF_DOCKER}'", False, [Lack.ROOTLESS]),
        (f"echo '{OF_DOCKER}'", True, []),
        (f"echo '{OF_PODMAN}'", False, []),
        ("echo Server:", False, []),
    ],
)
def test_a_runtime_that_starts_nothing_is_found_before_the_launch(
    program: str, user_given: bool, lacks: list[Lack], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if program:
        (tmp_path / "docker").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = list(preflight._runtime("docker", user_given=user_given))
    assert [one.code for one in found] == [str(one.value) for one in lacks]
    assert all(one.text("said") in ("", REFUSED) for one in found)
