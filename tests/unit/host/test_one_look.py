"""A look at a run while it changes."""

from __future__ import annotations

import json
import os

from comborun.host.record.run_directory import RunDirectory
from comborun.host.system import files, process
from comborun.host.verbs.probe import Probe
from comborun.rules.facts import Fact

END = (
    '{"attempt": 1, "started": 1, "ended": 2, "code": 0, "cause": "exited", "completeness": "complete", "records": 0}\n'
)
DEAD = '{"supervisor": 2, "supervisor_start": 1, "pid": 2, "pid_start": 1, "boot": "gone"}\n'


def run(path, **written):
    """A run of one session, with these files of its first attempt."""
    at = path / "sessions/env_one/attempt-1"
    at.mkdir(parents=True)
    (path / "dispatch").mkdir()
    (path / "id").write_text("grid-20260101T000000Z-ab12\n")
    (path / "dispatch/queue.jsonl").write_text('{"name": "env_one"}\n')
    for name, text in written.items():
        (at / name).write_text(text)
    return at


def look(path, tail=400):
    document, tails = Probe(str(path), tail).look([0])
    (told,) = document["attempts"]
    return told, b"".join(tails)


def test_a_session_that_ends_between_two_questions_is_told_as_ended(tmp_path, monkeypatch):
    at = run(tmp_path, claim=DEAD, begin=DEAD, log="all done\n")

    def ends_meanwhile(path):
        (at / "end").write_text(END)
        return False

    monkeypatch.setattr(files, "held", ends_meanwhile)
    told, tail = look(tmp_path)
    assert (told["life"], told["end"]["completeness"], tail) == ("ended", "complete", b"all done\n")


def test_a_session_that_begins_while_it_is_looked_at_is_starting_and_not_dead(tmp_path, monkeypatch):
    at = run(tmp_path, grant='{"gpus": ""}\n')
    look_at = RunDirectory.look

    def begins_meanwhile(self, name, number):
        seen = look_at(self, name, number)
        pid, start, boot = (process.identity()[key] for key in ("pid", "start", "boot"))
        (at / "begin").write_text(f'{{"supervisor": "{pid}", "supervisor_start": "{start}", "boot": "{boot}"}}\n')
        return seen

    monkeypatch.setattr(RunDirectory, "look", begins_meanwhile)
    told, _ = look(tmp_path)
    assert (told["life"], told["claimed"], "begin" in told) == ("starting", False, False)


def test_a_dispatcher_that_leaves_during_a_look_at_its_last_session_is_not_gone_before_the_end(tmp_path, monkeypatch):
    own = process.identity()
    begin = {**own, "supervisor": own["pid"], "supervisor_start": own["start"], "pid": "2", "pid_start": "1"}
    at = run(tmp_path, claim=DEAD, begin=json.dumps(begin), log="all done\n")
    (tmp_path / "dispatch/dispatcher").write_text(json.dumps(own))
    tails = Probe._tails

    def leaves_meanwhile(self):
        (at / "end").write_text(END)
        (tmp_path / "dispatch/done").write_text("{}\n")
        (tmp_path / "dispatch/dispatcher").write_text(json.dumps({**own, "start": "1"}))
        return tails(self)

    monkeypatch.setattr(Probe, "_tails", leaves_meanwhile)
    document, _ = Probe(str(tmp_path), 9).look([0])
    (told,) = document["attempts"]
    assert (told["life"], told["closing"], document["dispatcher"]) == ("running", True, os.getpid())


def test_tails_are_as_long_as_is_said_and_not_longer_than_was_asked_for(tmp_path):
    run(tmp_path, end=END, log="0123456789")
    assert look(tmp_path, 4)[1] == b"6789"
    told, tail = look(tmp_path)
    assert (told["log_size"], told["tail"], tail) == (10, 10, b"0123456789")


def test_files_that_are_garbage_are_passed_over(tmp_path):
    run(tmp_path, claim="\x00=\n=\n", begin="started\n", stalled="x", log="")
    for name in ("slots", "waiting", "quarantine", "hold", "done", "servers.jsonl", "dispatcher", "multiplexer"):
        (tmp_path / "dispatch" / name).write_bytes(b"\xff\x00\t\t\n\n=\t")
    (tmp_path / "plan-1.json").mkdir()
    told, _ = look(tmp_path)
    assert told["life"] == "lost"


def test_very_many_result_files_of_a_running_session_do_not_make_a_look_long(tmp_path):
    at = run(tmp_path, claim='{"count": 9000, "judging": {"results": {"files": ["**/*.json"]}}}\n', begin=DEAD)
    (at / "out").mkdir()
    for number in range(3000):
        (at / "out" / f"{number}.json").write_text(f'{{"episode": {number}, "success": true}}')
    told, _ = look(tmp_path)
    assert told["live"]["countable"] == "0"
    assert told["live"]["facts"] == (Fact("too_many_files", most=2000),)
    (at / ".counts").write_text('{"records": 2990, "successes": 2000, "verdicts": 2990}\n')
    told, _ = look(tmp_path)
    assert (told["live"]["records"], "facts" in told["live"]) == (2990, False)
