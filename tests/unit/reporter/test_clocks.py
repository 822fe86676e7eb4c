"""A run on several hosts of which one has a wrong clock: the report has all times on one clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from report_runs import START, RunDirectory, row

from comborun.remote.joint_copy import Part, joint_copy
from comborun.remote.mirror import Mirror
from comborun.reporter.collect import collect_run
from comborun.reporter.summary import Summary, summarize
from comborun.rules.deal import Deal, Era
from comborun.rules.events import Event, Kind
from comborun.rules.names import RUN
from comborun.words import times

HOURS = 3600.0


def reported(folder: Path, ahead: float) -> Summary:
    """Of two hosts that worked side by side for a minute; the clock of the second one is so far ahead."""
    parts = []
    for host, clock in (("a", 0.0), ("b", ahead)):
        run = RunDirectory(folder / host)
        for environment in ("on_a", "on_b"):
            session = run.session("flat", environment, 2, name=environment)
            if environment == f"on_{host}":
                run.attempt(session, row(0) + row(1), started=START + clock)
        run.write()
        deal = {"grid_run": "g", "box": host, "number": [0, 0], "boxes": ["a", "b"], "of": {"on_a": "a", "on_b": "b"}}
        run.put(RUN.deal, Deal(deal).text)
        manifest = json.loads((run.path / RUN.manifest).read_text())
        cards = {"cards": ["H100" if host == "a" else "RTX 5090"], "gpus": [0], "driver": "550"}
        (run.path / RUN.manifest).write_text(json.dumps({**manifest, "provenance": {"host": cards}}))
        Mirror(run.path).ahead = clock
        parts.append(Part(host, "quadruped-20260509T073525-1a2b", (run.path, ())))
    return summarize(collect_run(joint_copy("quadruped-20260509T073525-1a2b", parts)[0])).summary


@pytest.mark.parametrize("ahead", [-5 * HOURS, 5 * HOURS])
def test_a_wrong_clock_of_one_host_makes_no_run_longer_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    found = reported(tmp_path, ahead)
    assert [span.started for span in found.timing.spans] == [START, START]
    assert found.timing.finished == START + 60
    (told,) = [one for one in found.quality.findings if one.where == "b"]
    assert told.what.startswith(f"its clock was 5.0 h {'ahead' if ahead > 0 else 'behind'}")


def test_a_host_that_was_given_up_is_named_with_the_time_and_what_of_it_was_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether its rows were written before or after that moment is not known, and not said."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    parts = []
    deal = Deal({"grid_run": "g", "box": "a", "number": [0, 0], "boxes": ["a", "b"], "of": {"maze": "b"}})
    deal = deal.renewed({"maze": "a"}, {"b": {"maze": [[0, 1]]}}, Era())
    for host in ("a", "b"):
        run = RunDirectory(tmp_path / host)
        run.attempt(run.session("flat", "maze", 3, name="maze"), row(0) + row(1) + row(2), started=START)
        run.write()
        run.put(RUN.deal, deal.at(host).text)
        run.put(RUN.events, Event(START + 30, Kind.DEALT, lost=["b"]).line())
        parts.append(Part(host, "quadruped-20260509T073525-1a2b", (run.path, ())))
    found = summarize(collect_run(joint_copy("quadruped-20260509T073525-1a2b", parts)[0])).summary
    (told,) = [one.what for one in found.quality.findings if one.where == "b"]
    assert told == (
        f"given up at {times.clock(START + 30)}: what it had not completed went to other hosts;"
        " this machine had no copy of 2 rows by then, so these episodes ran elsewhere"
    )


def test_what_hosts_are_is_told_of_each_where_they_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    cards = {"host.cards.a": '["H100"]', "host.cards.b": '["RTX 5090"]'}
    told = {key: value for key, value in reported(tmp_path, 0.0).provenance.items() if key.startswith("host.")}
    assert told == {**cards, "host.gpus": "[0]", "host.driver": "550"}


def test_clocks_that_agree_are_left_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    found = reported(tmp_path, 1.0)
    assert [span.started for span in found.timing.spans] == [START, START + 1]
    assert not [one for one in found.quality.findings if one.where == "b"]
