"""`combo docs` and the words that a shell completes: every key, run, session, host and preset that there is."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from comborun.api.named import HostChoice
from comborun.cli.options import offers
from comborun.errors import HostError, UserError
from comborun.grid.draft import keys_of, section_of
from comborun.grid.keys.grid_file import GridFile
from comborun.reference import key_reference, pages, reference_keys
from comborun.remote.launches import Launch, remember

DOCUMENT = pages()["grid"].read_text("utf-8")


def test_every_key_of_a_grid_has_a_reference_with_its_own_keys_and_its_section() -> None:
    for key in keys_of(GridFile):
        assert key_reference(DOCUMENT, key).startswith(f"{key}\n  what ")
    for section in ("limits", "resources", "results", "notify", "slurm"):
        told = key_reference(DOCUMENT, section)
        assert all(f"{section}.{key}\n" in told for key in keys_of(section_of(GridFile, [section])))
    assert key_reference(DOCUMENT, "servers.ready").startswith("servers.ready\n  what ")
    assert "## Shards" in key_reference(DOCUMENT, "shards")
    assert "](" not in key_reference(DOCUMENT, "shards")
    assert key_reference(DOCUMENT, "per_gpu").count("per_gpu\n") == 2, "each of that name, where it is said of which"


def test_an_unknown_key_gets_the_closest_one() -> None:
    with pytest.raises(UserError) as refused:
        key_reference(DOCUMENT, "limits.paralel")
    assert refused.value.hint == "did you mean `limits.parallel`?"


def test_a_host_that_nobody_named_is_explained_when_it_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    remember(Launch("walk-1", "gpubox.invalid", "/r", "/r/walk-1", "walk", "ssh"))
    for host, told in ((None, True), ("gpubox.invalid", False)):
        with pytest.raises(HostError) as refused:
            HostChoice(host=host).find(None)
        assert ("--host local" in refused.value.hint) is told


def test_a_shell_completes_hosts_runs_presets_and_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    remember(Launch("walk-1", "gpubox", "/r", "/r/walk-1", "walk", "ssh"))
    context, parameter = click.Context(click.Command("x")), click.Option(["--x"])

    def offered(what: str, begun: str = "") -> list[str]:
        return offers(what)(context, parameter, begun)

    assert offered("hosts") == ["local", "gpubox"]
    assert offered("runs", "w") == ["walk-1"]
    assert "openpi" in offered("presets", "open")
    assert offered("topics", "limits.p") == ["limits.parallel", "limits.per_gpu"]
    assert "report" in offered("topics")
    assert offered("sessions") == []
    assert {*reference_keys(DOCUMENT)} <= {*offered("topics")}
