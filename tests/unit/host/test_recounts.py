"""Counts for those who must not wait: results that take long to read, or never end, hold up nobody."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from comborun.host.record import curves_file, end_record, judging, recounts, run_owner, together
from comborun.host.record.run_directory import AttemptState, RunDirectory
from comborun.host.supervise.ending import Finishing
from comborun.host.system import children, files
from comborun.host.verbs import take_over
from comborun.host.verbs.stop import Stopping
from comborun.rules import globs, records
from comborun.rules.curves import training
from comborun.rules.facts import Fact
from comborun.rules.names import AttemptLayout, RunLayout
from comborun.rules.results import result_files
from comborun.rules.results.counts import (
    CHANGED,
    COUNTING_FAILED,
    NOT_IN_TIME,
    NOT_LOOKED_AT,
    NOT_RECOUNTED,
    REFUSED,
    TAKES_LONG,
    TOO_MANY,
    Counts,
)
from comborun.rules.results.result_files import fingerprint
from comborun.rules.vocabulary import Completeness, Life
from comborun.words import say

PATTERNS = ["*.jsonl"]


def never_ends(*_: object) -> str:
    while True:
        time.sleep(60)


@pytest.fixture
def at(tmp_path: Path) -> AttemptLayout:
    """An attempt with one record of three episodes."""
    found = AttemptLayout(str(tmp_path / "a" / "attempt-1"))
    Path(found.output).mkdir(parents=True)
    rules = judging.Rules({"results": {"files": PATTERNS}}, 0, 3)
    files.write(found.claim, rules.fields())
    Path(found.output, "r.jsonl").write_text(json.dumps({"episode": 0, "success": True}) + "\n")
    return found


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has hardly any time left for reading."""
    monkeypatch.setattr(recounts, "AT_ONCE_S", 0.05)
    monkeypatch.setattr(recounts, "_ALLOWED", recounts.Allowance())


def ended(at: AttemptLayout) -> dict[str, object]:
    """Its end; since then it has another record."""
    end = {"records": 1, "successes": 1, "verdicts": 1, "results": fingerprint(at.output, PATTERNS)}
    files.write(at.end, end.items())
    with Path(at.output, "r.jsonl").open("a") as stream:
        stream.write(json.dumps({"episode": 1, "success": False}) + "\n")
    return dict(files.read(at.end))


def codes(counts: Counts) -> list[str]:
    return [one.code for one in counts.facts]


def test_work_in_a_child_answers_with_its_text() -> None:
    assert children.within(20, lambda: "ü" * 200_000) == "ü" * 200_000


@pytest.mark.parametrize("work", [never_ends, lambda: os._exit(3), lambda: str(1 / 0)])
def test_work_that_takes_long_or_fails_gives_nothing(
    work: Callable[[], str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert children.within(0.2 if work is never_ends else 20, work) is None
    assert children.within(0, lambda: "") is None
    capfd.readouterr()


def test_results_that_changed_after_the_end_are_counted_anew(at: AttemptLayout) -> None:
    counts = Counts.of(recounts.as_it_is(at, ended(at)))
    assert (counts.records, counts.successes, codes(counts)) == (2, 1, [CHANGED])


def test_an_end_with_counts_of_now_keeps_the_rest_of_it(at: AttemptLayout) -> None:
    end = {**ended(at), "cause": "exited", "refused": "torn:7", "marks": "old", "ordered": "1"}
    with Path(at.output, "r.jsonl").open("a") as stream:
        stream.write("nonsense\n")
    now = recounts.as_it_is(at, end)
    counts = Counts.of(now)
    assert (now["cause"], counts.refused, counts.marks != "old") == ("exited", {"no_record": 1}, True)
    assert (codes(counts), counts.ordered) == ([CHANGED, REFUSED], False)


def test_an_end_whose_results_have_not_changed_stays_and_they_are_not_opened(
    at: AttemptLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = ended(at)
    assert recounts.as_it_is(at, {"records": 1}) == {"records": 1}
    end["results"] = fingerprint(at.output, PATTERNS)
    os.utime(Path(at.output, "r.jsonl"), (1, 1))
    monkeypatch.setattr(result_files, "fingerprint", lambda *_: 1 / 0)
    assert recounts.as_it_is(at, end) is end


def test_results_that_changed_and_are_too_long_keep_the_counts_of_the_end_and_it_says_so(
    at: AttemptLayout, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "judged", never_ends)
    counts = Counts.of(recounts.as_it_is(at, ended(at)))
    assert (counts.records, counts.successes, codes(counts)) == (1, 1, [NOT_RECOUNTED])


def test_results_that_are_too_long_are_not_counted_at_a_look(
    at: AttemptLayout, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging.Watched, "count", never_ends)
    counts = recounts.live_counts(at)
    assert (counts.countable, codes(counts)) == (False, [TAKES_LONG])


def test_what_can_not_be_counted_at_a_look_is_told(at: AttemptLayout, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> Counts:
        raise OSError("no disk")

    monkeypatch.setattr(judging.Watched, "count", fails)
    assert codes(recounts.live_counts(at)) == [COUNTING_FAILED]
    monkeypatch.setattr(judging, "READ_FILES_MOST", 0)
    assert codes(recounts.live_counts(at)) == [TOO_MANY]


def test_a_look_reads_in_a_child_only_if_there_is_anything(at: AttemptLayout, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(at.output, "r.jsonl").unlink()
    monkeypatch.setattr(children, "within", lambda *_: None)
    assert codes(recounts.live_counts(at)) == []
    rules = judging.Rules({"results": {"files": [], "source": "log", "pattern": "(?P<episode>[0-9])"}}, 0, 3)
    files.write(at.claim, rules.fields())
    assert rules.results.source == "log"
    assert codes(recounts.live_counts(at)) == [TAKES_LONG]


def test_results_are_counted_at_a_look_and_the_supervisors_counts_come_first(at: AttemptLayout) -> None:
    assert recounts.live_counts(at).records == 1
    files.write_text(at.counts, records.render([("records", 3), ("successes", 2)]))
    assert recounts.live_counts(at).records == 3


def test_all_looks_of_a_process_share_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    clock = [0.0]

    def within(seconds: float, _: object) -> None:
        given.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(children, "within", within)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    allowed = recounts.Allowance()
    for _ in range(3):
        assert allowed.text(str) is None
        clock[0] += 10
    assert given == [5, pytest.approx(1.5), pytest.approx(1.15)]
    clock[0] += 10_000
    allowed.text(str)
    assert given[-1] == 5, "not more, however long nothing was read"


@pytest.fixture
def long_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any file takes long, and to judge it never ends."""
    monkeypatch.setattr(recounts, "READ_AT_ONCE", 0)
    monkeypatch.setattr(together, "judge", never_ends)


def test_what_can_not_be_judged_in_time_ends_without_counts_and_says_so(
    at: AttemptLayout, long_files: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = recounts.judged(at, 0, 0.05)
    assert (judged.completeness, judged.counts.countable, codes(judged.counts)) == ("none", False, [NOT_IN_TIME])
    monkeypatch.setattr(together, "Process", lambda _: SimpleNamespace(names=["a", "b"]))
    assert [*recounts.judged(at, 0, 0.05).members] == ["a", "b"], "each session of a process ends"


def test_what_is_judged_in_a_child_is_judged_as_here(at: AttemptLayout, monkeypatch: pytest.MonkeyPatch) -> None:
    here = recounts.judged(at, 0)
    monkeypatch.setattr(recounts, "READ_AT_ONCE", 0)
    there, pid = recounts.judged(at, 0), str(os.getpid())
    assert (there.counts.pairs(), there.completeness) == (here.counts.pairs(), here.completeness)
    here.members, here.now = {"a": there}, Completeness.PARTIAL
    again = judging.Judged.of(json.loads(json.dumps(here.as_data())))
    assert (again.now, again.members["a"].counts.pairs()) == (Completeness.PARTIAL, there.counts.pairs())
    monkeypatch.setattr(together, "judge", lambda *_: judging.Judged(judging.uncounted(OSError(os.getpid())), here.now))
    assert pid not in recounts.judged(at, 0).counts.facts[0].text("error")
    monkeypatch.setattr(recounts, "READ_AT_ONCE", 1 << 20)
    assert pid in recounts.judged(at, 0).counts.facts[0].text("error"), "small files cost no child"
    monkeypatch.setattr(recounts, "LOOKED_AT_MOST", 0)
    assert pid not in recounts.judged(at, 0).counts.facts[0].text("error"), "many files may be large"


def test_a_supervisor_waits_ten_minutes_for_the_files_of_its_session(
    at: AttemptLayout, long_files: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "judge", lambda *_: 1 / 0)
    monkeypatch.setattr(children, "within", lambda seconds, _: given.append(seconds))
    given: list[float] = []
    finishing = object.__new__(Finishing)
    finishing._attempt, finishing._at, finishing._end = SimpleNamespace(), at, end_record.Ending("stopped", code=0)
    finishing.judge(0)
    assert (given, codes(Counts.of(files.read(at.end)))) == ([600], [NOT_IN_TIME])


def test_the_end_of_a_lost_attempt_waits_so_long_for_its_files(tmp_path: Path, long_files: None) -> None:
    files.write(RunLayout(str(tmp_path)).policy, [])
    files.write_text(RunLayout(str(tmp_path)).id, "run-1\n")
    run = RunDirectory(str(tmp_path))
    Path(run.at("s", 1).output).mkdir(parents=True)
    files.write(run.at("s", 1).claim, judging.Rules({"results": {"files": PATTERNS}}, 0, 3).fields())
    Path(run.at("s", 1).log).write_text("long")
    assert run.finalize_lost("s", 1, 0.05)
    assert codes(Counts.of(run.end("s", 1))) == [NOT_IN_TIME]


def test_who_waits_for_the_ends_of_lost_sessions_waits_a_minute_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, given, clock = RunLayout(str(tmp_path)), [], [0.0]
    files.write_text(layout.id, "run-1\n")
    run = RunDirectory(str(tmp_path))

    def finalized(_name: str, _number: int, within_s: float) -> bool:
        given.append(within_s)
        clock[0] += 40
        return True

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(run, "finalize_lost", finalized)
    monkeypatch.setattr(run, "ask", lambda *_, **__: True)
    monkeypatch.setattr(run_owner, "open_attempts", lambda *_, **__: [(name, 1, {}) for name in "abc"])
    monkeypatch.setattr(take_over, "elsewhere", lambda *_: True)
    take_over._end_attempts(run)
    assert given == [60, 20, 1]


def test_a_folder_of_many_files_is_looked_at_in_a_child(at: AttemptLayout, monkeypatch: pytest.MonkeyPatch) -> None:
    end = ended(at)
    monkeypatch.setattr(recounts, "LOOKED_AT_MOST", 1)
    assert codes(Counts.of(recounts.as_it_is(at, end))) == [CHANGED]
    assert recounts.live_counts(at).records == 2
    monkeypatch.setattr(recounts, "_ALLOWED", recounts.Allowance())
    monkeypatch.setattr(recounts, "AT_ONCE_S", 0.05)
    monkeypatch.setattr(recounts, "changed", never_ends)
    monkeypatch.setattr(globs, "are_more", lambda *_: 1 / 0)
    counts = Counts.of(recounts.as_it_is(at, end))
    assert (counts.records, codes(counts)) == (1, [NOT_LOOKED_AT])
    assert codes(recounts.live_counts(at)) == [TAKES_LONG]
    monkeypatch.setattr(recounts, "AT_ONCE_S", 5.0)
    monkeypatch.setattr(recounts, "_ALLOWED", recounts.Allowance())
    monkeypatch.setattr(recounts, "changed", lambda *_: 1 / 0)
    assert codes(Counts.of(recounts.as_it_is(at, end))) == [NOT_LOOKED_AT]


def test_an_end_does_not_wait_for_curves(at: AttemptLayout, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write_text(at.curves, "of before\n")
    monkeypatch.setattr(training, "read", never_ends)
    monkeypatch.setattr(curves_file, "AT_END_S", 0.05)
    files.write(at.claim, judging.Rules({"unit": "step", "results": {"files": []}}, 0, 3).fields())
    judged = judging.judge(at, None)
    assert files.read_text(at.curves) == "of before\n"
    assert judged.counts.trained
    assert say(judged.counts.trained) == "its curves were not read within 0.05 s"


@pytest.mark.parametrize("reads", [never_ends, lambda *_: os._exit(9), lambda *_: os.kill(os.getpid(), signal.SIGKILL)])
def test_a_look_at_curves_holds_no_supervisor_up_and_ends_none(
    at: AttemptLayout, monkeypatch: pytest.MonkeyPatch, reads: Callable[..., object]
) -> None:
    files.write_text(at.curves, "of before\n")
    monkeypatch.setattr(training, "read", reads)
    monkeypatch.setattr(curves_file, "LIVE_S", 0.05 if reads is never_ends else 20)
    assert said(curves_file.LiveCurves(at).look()).startswith("its curves were not read within ")
    assert files.read_text(at.curves) == "of before\n"


def said(fact: Fact | None) -> str:
    return say(fact) if fact else ""


def test_a_look_that_does_not_read_the_curves_in_time_says_how_far_they_were(
    at: AttemptLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(at.log).write_text("step=1000 reward=3\nstep=2000 reward=4\n")
    curves = curves_file.LiveCurves(at)
    before = said(curves.look())
    assert before == "step 2,000: reward 4"
    curves._next = 0.0
    monkeypatch.setattr(training, "read", never_ends)
    monkeypatch.setattr(curves_file, "LIVE_S", 0.05)
    assert said(curves.look()) == f"{before} before; its files were not read again within 0.05 s"


def test_a_look_at_curves_passes_over_what_is_broken_huge_or_a_pipe(at: AttemptLayout) -> None:
    out = Path(at.output)
    os.mkfifo(out / "progress.csv")
    os.mkfifo(out / "x.tfevents.1")
    for name in ("evaluations.npz", "monitor.csv", "metrics.json", "x.tfevents.2", "a.jsonl"):
        (out / name).write_bytes(os.urandom(1000))
    with (out / "b.json").open("wb") as huge:
        huge.truncate(1 << 40)
    Path(at.log).write_text("step=1000 reward=3\nstep=2000 reward=4\n")
    trained = curves_file.LiveCurves(at).look()
    assert trained
    assert trained.number("reward") == 4


def test_a_stop_does_not_read_the_files_of_lost_sessions_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    layout = RunLayout(str(tmp_path))
    files.write_text(layout.id, "grid-1\n")
    stopping = Stopping(layout.directory)
    monkeypatch.setattr(stopping.attempts, "glance", lambda *_: AttemptState(Life.LOST, {}))
    monkeypatch.setattr(stopping.attempts, "look", lambda *_: AttemptState(Life.LOST, {}))
    monkeypatch.setattr(stopping.attempts, "finalize_lost", never_ends)
    monkeypatch.setattr(stopping, "_ladder", lambda: [stopping._all_ended() for _ in range(3)])
    names = [f"a_{number}" for number in range(10)]
    stopping.active = dict.fromkeys(names, 1)
    try:
        assert stopping._round([], named=False) is False
        assert len(stopping._finalizers) == 8
        said = capfd.readouterr().out.splitlines()
        assert said[0] == "a_0: its processes have ended; its files are still read for its end"
        assert said[-1] == "a_9: has not ended"
    finally:
        for child in stopping._finalizers.values():
            child.kill()
            child.wait()
