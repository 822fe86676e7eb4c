"""What the files of an attempt say while it runs and at its end."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
import recorded

from comborun.host.record import end_record, judging, recounts
from comborun.host.record.end_record import Ending
from comborun.host.record.judging import Rules, Watched
from comborun.host.record.log_evidence import LogLine
from comborun.host.record.recounts import live_counts
from comborun.host.system import files
from comborun.rules import records
from comborun.rules.names import AttemptLayout
from comborun.rules.results import counts, videos
from comborun.rules.vocabulary import Completeness
from comborun.words.endings import in_words
from comborun.words.rows import proposed, why_not_counted

JUDGING = {"policy": "mason", "environment": "stairs", "files": ["*.jsonl", "*.json"]}


def attempt(folder: Path, first: int = 0, count: int = 10, **judged: Any) -> AttemptLayout:
    at = AttemptLayout(str(folder / "attempt-1"))
    Path(at.output).mkdir(parents=True)
    rules = Rules(recorded.judging(**{**JUDGING, **judged}), first, count)
    Path(at.claim).write_text(records.render(rules.fields()))
    return at


def row(index: int) -> str:
    return json.dumps({"episode": index, "success": index % 2 == 0}) + "\n"


def write(at: AttemptLayout, text: str, name: str = "r.jsonl") -> Path:
    path = Path(at.output, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", ["", '{"count": "x"}\n', "\0\n", '{"count": 99999999999999999999999}\n', "results"])
def test_a_claim_that_is_torn_is_judged_by_what_it_says(tmp_path: Path, text: str) -> None:
    at = attempt(tmp_path)
    Path(at.claim).write_text(text)
    assert judging.judge(at, 0).completeness is Completeness.COMPLETE  # nothing is asked
    assert judging.judge(at, None).completeness is Completeness.NONE


def test_only_new_bytes_are_read_and_a_file_that_is_written_anew_is_read_anew(tmp_path: Path) -> None:
    at = attempt(tmp_path)
    watched = Watched(at, Rules.of(files.read(at.claim)))
    path = write(at, row(0))
    assert watched.look().records == 1
    with path.open("a") as file:
        file.write(row(1) + '{"episode": 2, "succ')
    assert watched.look().records == 2
    with path.open("a") as file:
        file.write('ess": true}')
    assert watched.look().records == 3
    path.write_text("".join(map(row, range(4, 10))))
    assert sorted(counts.unmarked(watched.look().marks, (0, 10))) == [4, 5, 6, 7, 8, 9]
    path.unlink()
    assert watched.look().records == 0


def test_what_a_supervisor_has_counted_is_there_for_whoever_asks(tmp_path: Path) -> None:
    at = attempt(tmp_path)
    path = write(at, row(0) + '{"episode": 1, "policy": "rough"}\n')
    assert Watched(at, Rules.of(files.read(at.claim))).look().facts
    kept = live_counts(at)
    assert (kept.records, kept.refused) == (1, {"policy": 1})
    with path.open("a") as file:
        file.write(row(2))
    assert live_counts(at).records == 1, "the supervisor reads it, and nobody else"


def test_what_the_grid_does_not_read_is_told_while_it_is_written(tmp_path: Path) -> None:
    at = attempt(tmp_path)
    watched = Watched(at, Rules.of(files.read(at.claim)))
    assert not watched.look().facts
    watched = Watched(at, Rules.of(files.read(at.claim)))
    (Path(at.output) / "r.ndjson").write_text(row(0))
    assert proposed(watched.look().facts[0]) == {"files": "**/*.ndjson"}
    write(at, row(0))
    assert not watched.look().facts


def test_all_records_are_complete_whatever_the_exit_code(tmp_path: Path) -> None:
    at = attempt(tmp_path)
    write(at, "".join(row(index) for index in range(10)))
    judged = judging.judge(at, 139)
    assert judged.completeness is Completeness.COMPLETE
    assert (judged.counts.records, judged.counts.successes) == (10, 5)


def test_a_line_of_the_log_and_files_are_evidence(tmp_path: Path) -> None:
    at = attempt(tmp_path, files=[], line=r"saved {episodes} (videos|results)$", evidence_files=["s*.txt", "deep/**"])
    Path(at.log).write_bytes(b"begin\rsaved 1 results\0saved 10 results\nmore")
    write(at, "x", "summary.txt")
    assert judging.judge(at, 0).completeness is Completeness.NONE
    write(at, "x", "deep/er/file")
    assert judging.judge(at, 0).completeness is Completeness.COMPLETE
    Path(at.log).write_bytes(b"saved 10 resultss\n")
    assert judging.judge(at, 0).completeness is Completeness.NONE
    no_pattern = attempt(tmp_path / "other", files=[], line="(")
    assert judging.judge(no_pattern, 0).completeness is Completeness.NONE


def test_a_line_is_found_wherever_the_log_grows(tmp_path: Path) -> None:
    line = LogLine("all 10 done")
    log = tmp_path / "log"
    assert not line.look(str(log))
    for piece in ("x\nall 10", " done", "\n"):
        with log.open("a") as file:
            file.write(piece)
        found = line.look(str(log))
    assert found


def test_nothing_that_lies_in_the_folder_raises(tmp_path: Path) -> None:
    at = attempt(tmp_path, files=["**/*"])
    out = Path(at.output)
    os.mkfifo(out / "pipe.jsonl")
    (out / "gone.jsonl").symlink_to("nowhere")
    (out / "self").symlink_to(".")
    (out / "wide.jsonl").write_bytes(row(1).encode("utf-16"))
    (out / "marked.jsonl").write_bytes(b"\xef\xbb\xbf" + row(2).encode())
    (out / "packed.jsonl").write_bytes(b"\x1f\x8b" + b"x" * 20)
    (out / "binary.jsonl").write_bytes(bytes(range(256)) * 50)
    (out / "empty.jsonl").touch()
    (out / "deep.json").write_text("[" * 100_000)
    (out / "video.mp4").write_bytes(b"\0" * 100)
    (out / os.fsdecode(b"n\xff\n.jsonl")).write_text(row(3))
    counts = Watched(at, Rules.of(files.read(at.claim))).look()
    assert counts.records == 3
    assert counts.refused["unreadable"] == 3
    assert "\n" not in records.render(counts.pairs()).replace("\n", "", len(counts.pairs()))


def test_an_end_is_complete_and_old_readers_find_their_fields(tmp_path: Path) -> None:
    at = attempt(tmp_path)
    write(at, row(0) + '{"episode": 1, "policy": "rough"}\n')
    assert end_record.reserve(at)
    ending = Ending("exited", "as \x1b[2Jit\nis", 3, 1.5, 2.5)
    assert end_record.write_end(at, ending, judging.judge(at, 3))
    end = files.read(at.end)
    assert (end["attempt"], end["code"], end["class"], end["completeness"]) == ("1", "3", "error", "partial")
    assert (end["records"], end["successes"], end["note"]) == ("1", "1", "as  [2Jit is")
    assert end["refused"] == "policy:1"
    assert "rough" in why_not_counted(counts.Counts.of(end).facts)
    assert not Path(at.directory, ".end").exists()


def test_what_an_end_vouches_for_is_on_the_disk_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a power loss leaves a session that is complete, and whose records are gone."""
    at = attempt(tmp_path, evidence_files=["done"])
    results, done = write(at, row(0)), write(at, "yes", "done")
    calls: list[str] = []
    sync, replace = files.sync, os.replace

    def synced(path: str) -> None:
        calls.append(path)
        sync(path)

    def replaced(source: str, target: str) -> None:
        calls.append(target)
        replace(source, target)

    monkeypatch.setattr(files, "sync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    assert end_record.reserve(at)
    assert end_record.write_end(at, Ending("exited", code=0), judging.judge(at, 0))
    before = set(calls[: calls.index(at.end)])
    assert before >= {str(results), str(done), at.output, at.claim, f"{at.directory}/.end", at.directory}


def test_a_start_with_a_nonce_ends_once(tmp_path: Path) -> None:
    at = attempt(tmp_path)
    assert files.write(at.claim, {**files.read(at.claim), "nonce": "mine", "job": "7_1"}.items())
    Path(at.end).write_text('{"nonce": "another"}\n')
    judged = judging.judge(at, 0)
    assert end_record.write_end(at, Ending("exited", "first", 0), judged, reserved=False)
    assert not end_record.write_end(at, Ending("exited", "second", 0), judged, reserved=False)
    end = files.read(at.end)
    assert (end["note"], end["nonce"], end["job"]) == ("first", "mine", "7_1")
    assert list(Path(at.directory).glob("end-of-another*"))


def mp4(*boxes: tuple[bytes, int]) -> bytes:
    return b"".join(struct.pack(">I4s", 8 + size, kind) + b"\0" * size for kind, size in boxes)


def test_videos_are_listed_with_what_is_wrong(tmp_path: Path) -> None:
    at = attempt(tmp_path, videos=["**/*.mp4", "*.webm"])
    contents = {
        "v/whole.mp4": mp4((b"ftyp", 4), (b"mdat", 9), (b"moov", 3)),
        "cut.mp4": mp4((b"ftyp", 4), (b"moov", 30))[:-5],
        "open.mp4": mp4((b"ftyp", 4), (b"mdat", 9)),
        "text.mp4": b"hello there, this is no video",
        "empty.mp4": b"",
        "some.webm": b"x",
        "tab\there.mp4": b"x",
    }
    for name, content in contents.items():
        path = Path(at.output, name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    judging.judge(at, 0)
    told = {path: word for _, word, path in videos.parse(files.read_text(at.videos))}
    assert told == {
        "out/v/whole.mp4": "ok",
        "out/cut.mp4": "cut",
        "out/open.mp4": "no_moov",
        "out/text.mp4": "no_mp4",
        "out/empty.mp4": "empty",
        "out/some.webm": "ok",
    }


def test_documents_and_lines_of_a_log_are_counted_while_they_are_written(tmp_path: Path) -> None:
    pattern = r"Episode (?P<episode>\d+): (?P<verdict>\w+)"
    at = attempt(tmp_path, files=["*.json"], source="log", pattern=pattern)
    watched = Watched(at, Rules.of(files.read(at.claim)))
    Path(at.log).write_text("Episode 0: success\nEpisode 1: fa")
    assert (watched.look().records, watched.look().successes) == (1, 1)
    with Path(at.log).open("a") as log:
        log.write("il\n")
    episodes = [{"episode": index, "success": True} for index in (2, 3)]
    write(at, json.dumps({"episodes": episodes[:1]}), "r.json")
    assert watched.look().records == 3
    write(at, json.dumps({"episodes": episodes}), "r.json")
    counts = watched.look()
    assert (counts.records, counts.successes, counts.failures) == (4, 3, 1)
    write(at, json.dumps({"episodes": episodes})[:-5], "r.json")
    assert watched.look().records == 2
    write(at, json.dumps({"episodes": [*episodes, {"note": "x" * (5 << 20)}]}), "r.json")
    assert watched.count().records == 2
    assert watched.count(over=True).records == 4


@pytest.mark.parametrize(("last", "found"), [(1000, Completeness.COMPLETE), (300, Completeness.PARTIAL)])
def test_steps_decide_about_a_training_whose_log_is_read_for_its_numbers(
    tmp_path: Path, last: int, found: Completeness
) -> None:
    at = AttemptLayout(str(tmp_path / "attempt-1"))
    Path(at.output).mkdir(parents=True)
    pattern = r"step=(?P<step>\d+) reward=(?P<reward>\S+)"
    results = {"files": [], "source": "log", "pattern": pattern, "success": "none", "episode": "step"}
    judged = {"unit": "step", "results": results, "evidence": {"steps": r"step=(\d+)"}}
    Path(at.claim).write_text(records.render(Rules(judged, 0, 1000).fields()))
    Path(at.log).write_text("".join(f"step={step} reward=0.5\n" for step in range(100, last + 1, 100)))
    assert judging.judge(at, 0).completeness is found


def test_few_rows_of_a_log_do_not_make_a_finished_training_partial(tmp_path: Path) -> None:
    results = {"files": [], "source": "log", "pattern": r"step=(?P<step>\d+)", "success": "none", "episode": "step"}
    at = attempt(tmp_path)
    Path(at.claim).write_text(records.render(Rules({"unit": "step", "results": results}, 0, 1000).fields()))
    Path(at.log).write_text("step=500 reward=1\nstep=1000 reward=2\n")
    assert judging.judge(at, 0).completeness is Completeness.COMPLETE
    assert judging.judge(at, 1).completeness is not Completeness.COMPLETE


def test_how_far_a_training_is_stands_in_its_counts_while_it_runs_and_in_its_end(tmp_path: Path) -> None:
    at = attempt(tmp_path)
    Path(at.claim).write_text(records.render(Rules({"unit": "step", "results": {"files": []}}, 0, 1000).fields()))
    Path(at.log).write_text("total steps: 1000\nstep=500 reward=1\n")
    watched = Watched(at, Rules.of(files.read(at.claim)))
    watched.look()
    running = live_counts(at).trained
    assert running
    assert (running.fields["step"], running.fields["steps"], running.fields["reward"]) == (500, 1000, 1)
    with Path(at.log).open("a") as log:
        log.write("step=1000 reward=2\n")
    judged = judging.judge(at, 0)
    assert end_record.write_end(at, Ending("exited", None, 0), judged, reserved=False)
    ended = counts.Counts.of(files.read(at.end)).trained
    assert ended
    assert (ended.fields["step"], ended.fields["reward"]) == (1000, 2)
    assert json.loads(Path(at.curves).read_text())["curves"][0]["steps"] == [500, 1000]


def test_a_reader_of_curves_that_fails_holds_up_no_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = attempt(tmp_path)
    Path(at.claim).write_text(records.render(Rules({"unit": "step", "results": {"files": []}}, 0, 1000).fields()))
    monkeypatch.setattr("comborun.rules.curves.checkpoints.found", lambda _: 1 / 0)
    assert judging.judge(at, 0).completeness is Completeness.COMPLETE
    assert not Path(at.curves).exists()


def test_a_file_that_is_written_after_the_signal_proves_nothing_by_itself(tmp_path: Path) -> None:
    """A training that is stopped may write its last checkpoint; one that was there before counts, also if it is
    written anew, and records of all planned episodes need no more."""
    alone = attempt(tmp_path / "alone", files=[], evidence_files=["final.*"], unit="step")
    judging.note_signal(alone)
    write(alone, "x", "final.pt")
    assert judging.judge(alone, None).completeness is Completeness.NONE
    end_record.write_end(alone, Ending("stopped"), judging.judge(alone, None), reserved=False)
    files.remove(alone.signalled)
    assert judging.judge(alone, None).completeness is Completeness.NONE, "the end knows it"

    before = attempt(tmp_path / "before", files=[], evidence_files=["final.*"], unit="step")
    write(before, "x", "final.pt")
    judging.note_signal(before)
    write(before, "xy", "final.pt")
    assert judging.judge(before, None).completeness is Completeness.COMPLETE

    recorded_ones = attempt(tmp_path / "records", evidence_files=["final.*"])
    judging.note_signal(recorded_ones)
    write(recorded_ones, "".join(map(row, range(10))))
    write(recorded_ones, "x", "final.pt")
    assert judging.judge(recorded_ones, None).completeness is Completeness.COMPLETE


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("[train] step=120\nTraining finished\n", "without its last step and a file 'final.pt'"),
        ("[train] step=400\n", "without a line of the log like 'Training finished' and a file 'final.pt'"),
    ],
)
def test_an_end_names_the_evidence_that_does_not_hold_and_no_other(tmp_path: Path, log: str, said: str) -> None:
    asked = {"line": "Training finished", "steps": r"step=(\d+)", "evidence_files": ["final.pt"]}
    at = attempt(tmp_path, count=400, files=[], unit="step", **asked)
    Path(at.log).write_text(log)
    end_record.write_end(at, Ending("exited", code=0), judging.judge(at, 0), reserved=False)
    assert in_words("", records.ending(files.read(at.end))) == said


def test_failures_beside_lines_of_the_log_about_memory_are_remarked(tmp_path: Path) -> None:
    at = attempt(tmp_path, count=4)
    write(at, "".join(map(row, range(4))))
    Path(at.log).write_text("[ep 1] torch.OutOfMemoryError: CUDA out of memory.\r[ep 3] CUDA out of memory\n")
    judged = judging.judge(at, 0)
    assert judged.completeness is Completeness.COMPLETE
    (told,) = judged.counts.facts
    assert (told.count("episodes"), told.count("lines")) == (2, 2)
    assert told.text("line").startswith("[ep 1] torch.")
    assert counts.Counts.of(records.parse(records.render(judged.counts.pairs()))).facts == (told,)


def test_the_source_that_a_traceback_quotes_is_no_line_about_memory(tmp_path: Path) -> None:
    at = attempt(tmp_path, count=4)
    write(at, "".join(map(row, range(4))))
    frame = (
        "Traceback (most recent call last):\n"
        '  File "a.py", line 9, in f\n    raise RuntimeError("CUDA out of memory")\n'
    )
    Path(at.log).write_text(f"{frame}RuntimeError: CUDA out of memory\n")
    (told,) = judging.judge(at, 0).counts.facts
    assert (told.count("lines"), told.text("line")) == (1, "RuntimeError: CUDA out of memory")


@pytest.mark.parametrize(
    ("log", "good"),
    [
        ("WARNING: CUDA out of memory, trying a smaller batch\n", False),
        ("KeyError: 'wrist'\n", False),
        ("torch.OutOfMemoryError: CUDA out of memory.\n", True),
    ],
)
def test_warnings_and_bugs_in_a_log_and_errors_without_a_failure_are_not_remarked(
    tmp_path: Path, log: str, good: bool
) -> None:
    at = attempt(tmp_path, count=2)
    write(at, "".join(json.dumps({"episode": one, "success": good}) + "\n" for one in range(2)))
    Path(at.log).write_text(log)
    assert not judging.judge(at, 0).counts.facts


def test_the_rules_of_an_attempt_are_parsed_once_for_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = attempt(tmp_path)
    write(at, row(0))
    parsed = []
    of = judging.ResultRules.of
    monkeypatch.setattr(judging.ResultRules, "of", lambda data: parsed.append(data) or of(data))
    assert end_record.write_end(at, Ending("exited", code=0), recounts.judged(at, 0))
    assert len(parsed) == 1
