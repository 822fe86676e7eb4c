"""What a host counts of the files of an attempt, and what the report counts of the same files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from report_runs import RUN, RunDirectory

from comborun.generate.bundle import judging as judging_data
from comborun.host.record import judging
from comborun.reporter.collect import collect_run
from comborun.reporter.counting.combo import EpisodeCounts
from comborun.reporter.summary import summarize
from comborun.rules import records
from comborun.rules.names import AttemptLayout
from comborun.rules.results.counts import Counts
from comborun.rules.results.fields import Identity, ResultRules
from comborun.rules.results.result_files import Folder
from comborun.rules.results.tally import tally
from comborun.rules.results.unread import name_unread


def host_counts(folder: Path, rules: ResultRules, planned: int) -> Counts:
    """The counts of the files below a folder, with what is said of files that are not read."""
    identity, span = Identity("p", "e", rules, planned), (0, planned)
    held = Folder(str(folder), rules.files, identity, rules.format)
    counts = tally(held.read(), identity, span, over=True)
    name_unread(counts, held, span)
    return counts


def both_sides(
    folder: Path, files: Mapping[str, str], planned: int, rules: ResultRules, log: str = ""
) -> tuple[judging.Judged, EpisodeCounts]:
    """What the host says of an attempt that wrote these files, and what the report does."""
    run = RunDirectory(folder)
    session = run.session("mason", "stairs", count=planned, results=rules)
    run.attempt(session)
    run.write()
    at = AttemptLayout(str(run.path / RUN.attempt(session.name, 1).directory))
    Path(at.output).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        Path(at.output, name).parent.mkdir(parents=True, exist_ok=True)
        Path(at.output, name).write_bytes(text.encode("utf-8", "surrogateescape"))
    if log:
        Path(at.log).write_text(log)
    Path(at.claim).write_text(records.render(judging.Rules(judging_data(session), 0, planned).fields()))
    (combo,) = summarize(collect_run(run.path)).summary.combos
    assert combo.counts
    return judging.judge(at, 0), combo.counts
