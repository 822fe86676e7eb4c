"""The folders in which the runs of a user agree, where another user has made one of their names."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from comborun.host.admission.leases import Leases
from comborun.host.dispatch.messages import Fifo
from comborun.host.doctor.machine import Box, folders
from comborun.host.supervise.environment import take_port
from comborun.host.system import files
from comborun.rules.findings import Level

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make folders of another user")


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another user has both folders."""
    for variable, name in (("COMBORUN_LEASES", "leases"), ("COMBORUN_PORTS", "ports")):
        (tmp_path / name).mkdir()
        os.chown(tmp_path / name, 1, 1)
        monkeypatch.setenv(variable, str(tmp_path / name))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_folder_of_another_user_stops_nothing_and_all_our_runs_agree_on_another_one(taken: Path) -> None:
    one, two = Leases("one"), Leases("two")
    assert one.enter() is None
    assert one.write([]) is True
    assert two.enter() is not None, "the first one holds the lock that both use"
    one.leave()
    (first, lock), (second, other) = take_port(), take_port()
    assert first != second
    os.close(lock)
    os.close(other)
    assert [*(taken / "leases").iterdir(), *(taken / "ports").iterdir()] == []
    assert len([*(taken / "comborun").iterdir()]) == 2


def test_a_link_of_another_user_is_not_followed(taken: Path) -> None:
    link = taken / "link"
    link.symlink_to(taken)
    os.lchown(link, 1, 1)
    os.environ["COMBORUN_LEASES"] = str(link)
    assert files.shared_folder(files.LEASES)[0] == files.instead_of(files.LEASES)


def test_doctor_tells_of_a_folder_of_another_user_and_makes_none(taken: Path) -> None:
    found = [one for one in folders(Box(str(taken))) if one.check == "tmp"]
    assert [one.level for one in found] == [Level.NOTE, Level.NOTE]
    assert found[0].fact.text("path") == str(taken / "leases")
    assert not (taken / "comborun").exists()


def test_a_root_on_a_file_system_without_fifos_has_them_on_this_machine(tmp_path, monkeypatch):
    make, local, root = os.mkfifo, tmp_path / "local", tmp_path / "sshfs"
    root.mkdir()
    monkeypatch.setenv("COMBORUN_FIFOS", str(local))

    def refuse(path, *rest):
        if str(path).startswith(str(root)):
            raise PermissionError(errno.EPERM, "Operation not permitted", path)
        make(path, *rest)

    monkeypatch.setattr(os, "mkfifo", refuse)
    monkeypatch.setattr(os, "symlink", None)  # sshfs makes links that lead out, and reads none
    fifo = Fifo(str(root / "fifo"))
    for _ in range(2):  # the second dispatcher finds what the first one left
        fifo.listen()
        assert fifo.whole()
        assert files.tell(str(root / "fifo"), "free lift_act 1")
        assert [one.name for one in fifo.read()] == ["lift_act"]
        fifo = Fifo(str(root / "fifo"))
    assert len(list(local.iterdir())) == 1
    files.remove_fifos(str(root / "fifo"))
    assert [*local.iterdir(), *root.iterdir()] == []


def test_a_fifo_that_can_not_be_made_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as refused:
        files.make_fifo(str(tmp_path / "none/fifo"))
    assert refused.value.filename == str(tmp_path / "none/fifo")
