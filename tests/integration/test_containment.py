"""Nothing that a program writes breaks its run: a reader that fails on purpose, at each point of a session's life."""

from __future__ import annotations

import io
import os
import signal
import zipfile
from pathlib import Path

import pytest
from box import Box, Script, bash, kill, until
from rounds import some

from comborun.host.system import files
from comborun.reporter.collect import collect_folder
from comborun.rules.results.fields import ResultRules
from comborun.rules.vocabulary import Cause, Completeness, Outcome

ROW = """echo '{"episode": 0, "success": true}' >$COMBORUN_OUTPUT_DIR/good.jsonl; """
BAD = "echo BOOM >$COMBORUN_OUTPUT_DIR/bad.jsonl; "
FAULTS = {
    "a reader": ("rules/results/readers.py", "class JsonLines(Lines):", "def feed"),
    "the recognition": ("rules/results/formats.py", "", "def look("),
    "the tally": ("rules/results/tally.py", "", "def tally("),
    "the judge": ("rules/results/counts.py", "", "def completeness("),
}


def boxed(box: Box, fault: str, **scripts: Script) -> Box:
    """A run whose host program has a function that raises for a file with BOOM in it, or always."""
    box.plan(scripts)
    library = box.own_library()
    module, _, name = FAULTS[fault]
    found = next(library.rglob(module))
    text = found.read_text()
    found.unlink()  # it is shared with other runs
    if fault == "a reader":
        found.write_text(
            text + "\n\n_feed = Lines.feed\ndef _boom(self, data):\n    if b'BOOM' in data: {}['x']\n"
            "    return _feed(self, data)\nLines.feed = _boom\n"
        )
    elif fault == "the recognition":
        found.write_text(
            text + "\n\n_look = look\ndef look(stream, *given):\n    if b'BOOM' in stream.read(99): {}['x']\n"
            "    return _look(stream, *given)\n"
        )
    else:
        plain = name[len("def ") : -1]
        found.write_text(text + f"\n\ndef {plain}(*given, **named):\n    return {{}}['x']\n")
    return box


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_counting_costs_its_file_and_nothing_else(box: Box, fault: str) -> None:
    box.environment |= {"COMBORUN_WATCH_S": "0.2"}
    of_file = fault in {"a reader", "the recognition"}
    boxed(
        box,
        fault,
        env_bad=bash(BAD + ROW + "sleep 1.5", results=("*.jsonl",)),
        env_good=bash(ROW, results=("*.jsonl",)),
    )
    box.start()
    box.begun("env_bad")
    until((box.attempt("env_bad") / "out/good.jsonl").exists, "it has written")
    probed = box.program("probe")
    assert probed.returncode == 0, probed.stderr
    bad, good = box.ended("env_bad"), box.ended("env_good")
    assert box.await_done()
    if of_file:
        assert (bad.outcome, good.outcome) == (Outcome.SUCCEEDED, Outcome.SUCCEEDED)
        assert "bad.jsonl" in (box.attempt("env_bad") / "end").read_text()
        assert "KeyError: 'x'" in (box.attempt("env_bad") / "end").read_text()
    else:
        assert (bad.completeness, good.completeness) == (Completeness.NONE, Completeness.NONE)
        assert "KeyError: 'x'" in (box.attempt("env_good") / "end").read_text()


@pytest.mark.parametrize("fault", some(FAULTS, 0, 3))
def test_a_run_is_stopped_whatever_counting_does(box: Box, fault: str) -> None:
    sleep = bash(BAD + ROW + "sleep 60", results=("*.jsonl",))
    boxed(box, fault, env_bad=sleep, env_two=sleep)
    box.start()
    for name in box.names:
        box.begun(name)
    supervisor = int(files.read(str(box.attempt("env_bad") / "claim"))["supervisor"])
    kill(supervisor, signal.SIGKILL)  # so that the stop itself judges it
    stopped = box.stop()
    assert stopped.returncode == 0, stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert {box.ended(name).outcome for name in box.names} <= {Outcome.CANCELLED, Outcome.SUCCEEDED}
    assert box.marked() == []


@pytest.mark.parametrize("fault", some(FAULTS, 1, 2))
def test_a_dispatcher_finalizes_what_it_cannot_count(box: Box, fault: str) -> None:
    boxed(box, fault, env_bad=bash(BAD + "sleep 4", results=("*.jsonl",)), env_two=bash(ROW, results=("*.jsonl",)))
    box.start()
    begin = box.begun("env_bad")
    kill(int(files.read(str(box.attempt("env_bad") / "claim"))["supervisor"]), signal.SIGKILL)
    os.killpg(begin.pid, signal.SIGKILL)
    assert box.ended("env_bad").cause in {Cause.LOST, Cause.SIGNAL}
    assert box.await_done()


def empty_evaluations() -> bytes:
    """evaluations.npz of an evaluation that has not happened yet, as numpy writes it."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, descr, shape in (
            ("timesteps", "<f8", "(0,)"),
            ("results", "<f8", "(0, 5)"),
            ("ep_lengths", "<f8", "(0, 5)"),
        ):
            header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
    return data.getvalue()


def damaged_log() -> bytes:
    """A log of Inspect with a member whose packed bytes are damaged."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("summaries.json", '[{"id": 1, "epoch": 1, "scores": {}}]' * 50)
    broken = bytearray(data.getvalue())
    at = broken.index(b"summaries.json") + len("summaries.json")
    broken[at + 12 : at + 40] = b"\xff" * 28
    return bytes(broken)


MP4 = b"\0\0\0\x08moov"
INPUTS = {
    "evaluations.npz": (empty_evaluations, ResultRules(("**/*.jsonl", "**/*.npz"))),
    "video.mp4": (lambda: MP4, ResultRules(("**/*.jsonl", "**/*.mp4"), format="filename-encoded")),
    "log.eval": (damaged_log, ResultRules(("**/*.jsonl", "**/*.eval"))),
    "evaluations_cut.npz": (lambda: empty_evaluations()[:80], ResultRules(("**/*.jsonl", "**/*.npz"))),
    "nothing.eval": (lambda: b"", ResultRules(("**/*.jsonl", "**/*.eval"))),
    "plain.npz": (lambda: b"PK\x03\x04" + b"\0" * 500, ResultRules(("**/*.jsonl", "**/*.npz"))),
}


@pytest.mark.parametrize("name", INPUTS)
def test_a_file_that_no_reader_expects_is_named_and_the_run_goes_on(box: Box, name: str, tmp_path: Path) -> None:
    make, rules = INPUTS[name]
    (tmp_path / name).write_bytes(make())
    box.environment |= {"COMBORUN_WATCH_S": "0.2"}
    copy = f"cp {tmp_path / name} $COMBORUN_OUTPUT_DIR/; "
    box.plan({"env_bad": bash(copy + "sleep 1", results=rules), "env_good": bash(ROW, results=("*.jsonl",))})
    box.start()
    until((box.attempt("env_bad") / "out" / name).exists, "it has written")
    assert box.program("probe").returncode == 0
    assert box.ended("env_bad").outcome is Outcome.FAILED
    assert box.ended("env_good").outcome is Outcome.SUCCEEDED
    assert box.await_done()
    assert name in (box.attempt("env_bad") / "end").read_text()
    (tmp_path / "rows.jsonl").write_text('{"policy": "p", "environment": "e", "episode": 0, "success": true}\n')
    assert "rows.jsonl" in {one.path for one in collect_folder(tmp_path).records}
