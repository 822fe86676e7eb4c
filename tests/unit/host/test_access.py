"""Publishing, amending, fetching and reading logs, as the host does them; no laptop here."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import sys
import zlib
from pathlib import Path

import pytest

from comborun.host import verb_errors
from comborun.host.record.events import Events
from comborun.host.system import files
from comborun.host.verb_errors import Refusal
from comborun.host.verbs import amend, control, fetch, logs, publish, reread
from comborun.host.verbs.publish import received
from comborun.rules.events import Kind
from comborun.rules.facts import Fact
from comborun.rules.host import Denial
from comborun.rules.names import RunLayout

FILES = [
    ["run.json", "{}\n", False],
    ["plan-1.json", "{}\n", False],
    ["run_parallel.sh", "#!/bin/bash\n", True],
    ["dispatch/queue.jsonl", '{"name": "e_p", "gpus": 0}\n', False],
    ["dispatch/policy.json", '{"parallel": 1}\n', False],
    ["sessions/e_p/session.sh", "#!/bin/bash\n", False],
]


def order(root, digest="d1", mode="resume", **more):
    return dict({"root": str(root), "grid": "g", "digest": digest, "mode": mode, "files": FILES}, **more)


class Stream:
    """Standard input of bytes."""

    def __init__(self, data):
        self.buffer = io.BytesIO(data)


def test_a_run_is_put_there_whole_and_found_again(tmp_path):
    first = publish.publish(order(tmp_path))
    run = first["directory"]
    assert first["state"] == "new"
    assert os.access(f"{run}/run_parallel.sh", os.X_OK)
    assert Path(run, "dispatch/python").read_text().strip() == os.path.realpath(sys.executable)
    again = publish.publish(order(tmp_path))
    assert (again["state"], again["run"], again["plan"]) == ("resumed", first["run"], "{}\n")
    assert publish.publish(order(tmp_path, digest="d2"))["state"] == "changed"
    assert publish.publish(order(tmp_path, mode="new"))["run"] != first["run"]


def test_what_did_not_arrive_as_it_was_sent_is_refused(monkeypatch):
    data = zlib.compress(b"[1]")
    monkeypatch.setattr(sys, "stdin", Stream(data))
    assert received(hashlib.sha256(data).hexdigest()) == [1]
    monkeypatch.setattr(sys, "stdin", Stream(data[:-1]))
    with pytest.raises(Refusal) as caught:
        received(hashlib.sha256(data).hexdigest())
    assert (caught.value.exit_code, caught.value.fact) == (76, Fact(Denial.DATA_CHANGED))


def test_a_refusal_is_a_fact_for_the_laptop_and_words_for_a_person(tmp_path, monkeypatch, capsys):
    assert control.main([str(tmp_path / "o'neill"), "pause"]) == 66
    assert "o'neill" in capsys.readouterr().err
    monkeypatch.setattr(verb_errors, "_JSON_LINES", True)
    assert control.main([str(tmp_path / "o'neill"), "pause"]) == 66
    said = json.loads(capsys.readouterr().err)
    assert said.pop("comborun")
    assert said == {"refused": 66, "fact": {"code": Denial.NO_RUN, "path": str(tmp_path / "o'neill")}}


@pytest.mark.parametrize("words", [("set", "parallel=2"), ("decided",)])
def test_an_order_names_the_lock_that_another_process_holds(tmp_path, monkeypatch, capsys, words):
    run = publish.publish(order(tmp_path))["directory"]
    lock = RunLayout(run).settings_lock if words[0] == "set" else RunLayout(run).decided_lock
    monkeypatch.setattr(control, "_LOCK_S", 0.0)
    monkeypatch.setattr(sys, "stdin", Stream(b""))
    held = files.lock(lock)
    assert control.main([run, *words]) == 75
    assert lock in capsys.readouterr().err
    os.close(held)
    assert control.main([run, *words]) == 0
    assert files.lock(lock) >= 0, "it is free again"
    Path(lock).unlink()
    Path(lock).mkdir()
    assert control.main([run, *words]) == 73
    assert f"can't write {lock}: Is a directory" in capsys.readouterr().err


def test_an_amendment_is_for_the_run_as_it_was_found(tmp_path, monkeypatch):
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    run = publish.publish(order(tmp_path))["directory"]
    more = [["plan-2.json", "{}\n", False], ["sessions/e_q/session.sh", "x\n", False]]
    said = {"run": run, "found": "d1", "number": 1, "added": 1, "after": False, "dropped": ["e_p"], "files": more}
    assert amend.amend(order(tmp_path, digest="d2", **said)) == {"state": "amended", "running": []}
    assert Path(run, "sessions/e_q/session.sh").exists()
    assert amend.amend(order(tmp_path, digest="d3", **said)) == {"state": "overtaken"}
    (event,) = Events(RunLayout(run)).read()
    assert event.kind == Kind.AMENDED
    assert {key: event.fields[key] for key in ("plan", "added", "dropped", "from")} == {
        "plan": 2, "added": 1, "dropped": 1, "from": "local"
    }  # fmt: skip


def test_a_disk_that_fails_while_attempts_are_judged_anew_is_not_called_full(tmp_path, monkeypatch):
    claim = tmp_path / "sessions/e_p/attempt-1/claim"
    claim.parent.mkdir(parents=True)
    claim.write_text('{"judging": {}}\n')
    (tmp_path / "id").write_text("g\n")

    def fails(_fd):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(Refusal) as caught:
        reread.apply(str(tmp_path), {"e_p": {"environment": "e"}})
    assert caught.value.fact == Fact(Denial.UNWRITABLE, path=str(claim))
    assert claim.read_text() == '{"judging": {}}\n'


def asked(**said):
    return dict({"have": {}, "again": {}, "part": None}, **said)


def test_an_answer_announces_what_it_holds_in_the_order_of_its_promises(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = {
        "id": "g\n",
        "dispatch/queue.jsonl": '{"name": "e_p", "gpus": 0}\n',
        "dispatch/done": '{"at": 1}\n',
        "sessions/e_p/attempt-1/claim": '{"files": ["*.jsonl"]}\n',
        "sessions/e_p/attempt-1/out/a.jsonl": "{}\n",
        "sessions/e_p/attempt-1/end": '{"cause": "exited"}\n',
    }
    for path, text in texts.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    head, pieces = fetch.Answer(asked(), 1 << 20).give()
    paths = [piece[0] for piece in head["pieces"]]
    result, end = paths.index("sessions/e_p/attempt-1/out/a.jsonl"), paths.index("sessions/e_p/attempt-1/end")
    assert result < end < paths.index("dispatch/done") == len(paths) - 1
    assert dict(zip(paths, map(bytes.decode, pieces))) == texts
    have = {path: [size, changed] for path, size, changed, *_ in head["pieces"]}
    assert fetch.Answer(asked(have=have), 1 << 20).give()[0]["pieces"] == []
    Path(paths[result]).write_text("{}\n[]\n")
    head, pieces = fetch.Answer(asked(have=have), 1 << 20).give()
    assert ([piece[:2] + piece[3:5] for piece in head["pieces"]], pieces) == ([[paths[result], 6, 3, 3]], [b"[]\n"])
    json.dumps(head)


@pytest.mark.parametrize(
    ("text", "lines", "at"),
    [("", 5, 0), ("a\nb\nc\n", 1, 4), ("a\nb\nc", 1, 4), ("a\nb\nc\n", 2, 2), ("a\nb\n", 9, 0), ("a\nb\n", 0, 4)],
)
def test_the_last_lines_of_a_log_are_found(tmp_path, text, lines, at):
    log = tmp_path / "log"
    log.write_text(text)
    assert logs.start(str(log), str(lines)) == at
    long = "x" * 200_000 + "\n"
    log.write_text(long + text)
    assert logs.start(str(log), str(lines)) in {len(long) + at, 0}
