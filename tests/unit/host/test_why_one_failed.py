"""Why an attempt failed: what was seen, then what the host knows, last what its log says."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from comborun.host.record.end_record import Ending
from comborun.host.supervise import ending
from comborun.host.supervise.attempt import Attempt
from comborun.host.supervise.ending import explain
from comborun.rules.endings.evidence import Evidence, fact


@pytest.fixture
def failed(tmp_path):
    """Says why an attempt with this log failed."""

    def explained(*log, cause="exited", code=1, reason=None, count=0, served_by="", **data):
        (tmp_path / "id").write_text("grid-1\n")
        of = Attempt(str(tmp_path), "env_one", "1")
        Path(of.at.output).mkdir(parents=True, exist_ok=True)
        Path(of.at.log).write_text("".join(f"{line}\n" for line in log))
        of.data, of.count, of.grant = data, count, {"served_by": served_by}
        ending = Ending(cause, reason, code)
        explain(of, ending)
        return ending

    return explained


def told(ending):
    return ending.cause, ending.signature


def test_a_class_that_leaves_traces_in_a_log_only_is_a_cause_and_others_keep_it(failed):
    assert told(failed("CUDA out of memory")) == ("gpu_memory", "gpu_memory")
    assert told(failed("Segmentation fault", cause="signal", code=139)) == ("signal", "crashed")
    assert told(failed("fine")) == ("exited", "")
    assert told(failed()) == ("exited", "")


def test_what_its_supervisor_saw_comes_before_what_its_log_says_which_is_told(failed):
    seen = fact(Evidence.STALLED, seconds=60, core=0)
    why = failed("CUDA out of memory", cause="stalled", code=130, reason=seen)
    assert (why.cause, why.signature) == ("stalled", "")
    assert why.facts == [seen, fact(Evidence.LOG_SAYS, said="CUDA out of memory")]


def test_the_answer_to_our_own_signal_is_not_why_it_ended(failed):
    log = ("Traceback (most recent call last):", '  File "eval.py", line 3, in <module>', "KeyboardInterrupt")
    seen = fact(Evidence.STALLED, seconds=60, core=0)
    assert failed(*log, cause="stalled", code=130, reason=seen).facts == [seen]
    assert failed(*log, code=130).facts == [fact(Evidence.LOG_SAYS, said="KeyboardInterrupt")], "by a person"


def test_what_a_program_has_survived_is_not_why_it_ended(failed):
    assert told(failed("CUDA out of memory. Trying half", "[  9/40] stairs FELL", count=40)) == ("exited", "")


def test_a_pattern_that_takes_for_ever_is_given_up(failed, monkeypatch):
    monkeypatch.setattr(ending, "_SEARCH_S", 0.2)
    began = time.monotonic()
    why = failed("CUDA out of memory", "a" * 60, signatures=[("error", r"(a+)+ \d$")])
    assert time.monotonic() - began < 10
    assert (why.cause, fact(Evidence.PATTERNS_SLOW) in why.facts) == ("gpu_memory", True)


def test_a_kill_for_memory_is_the_cause_where_the_signal_says_so(failed, monkeypatch):
    monkeypatch.setattr(ending.machine, "kills_since", lambda before: (2, "machine"))
    one = failed(cause="signal", code=137)
    assert (one.cause, one.facts[0].code, one.facts[0].count("count")) == ("host_memory", Evidence.KILLED_FOR_MEMORY, 2)
    other = failed("CUDA out of memory", cause="signal", code=139)
    assert (other.cause, other.facts[0].code) == ("gpu_memory", Evidence.KILLED_FOR_MEMORY)


def test_a_full_file_system_is_the_cause(failed, monkeypatch):
    monkeypatch.setattr(ending.machine, "kills_since", lambda before: (0, ""))
    monkeypatch.setattr(ending.machine, "disk_kib", lambda path: (1000, 12))
    why = failed("CUDA out of memory")
    assert (why.cause, why.signature) == ("disk_full", "")
    assert why.facts[0] == fact(Evidence.OUTPUT_DISK_FULL, free_kib=12)
    monkeypatch.setattr(ending.machine, "disk_kib", lambda path: (None, None))
    assert told(failed("fine")) == ("exited", "")


@pytest.mark.parametrize(
    ("cause", "log", "lost", "silent", "expected"),
    [
        ("exited", "ValueError", "it ended", "", "server_lost"),
        ("exited", "ValueError", "", "no answer", "server_lost"),
        ("exited", "CUDA out of memory", "", "no answer", "gpu_memory"),
        ("exited", "Connection refused", "", "", "server_lost"),
        ("stalled", "", "", "no answer", "stalled"),
        ("stalled", "", "it ended", "", "server_lost"),
        ("timed_out", "", "it ended", "", "timed_out"),
    ],
)
def test_without_its_model_server_it_could_not_work(failed, monkeypatch, cause, log, lost, silent, expected):
    lost, silent = (fact(Evidence.SERVER_ENDED, server=why) if why else None for why in (lost, silent))
    monkeypatch.setattr(ending.clients, "lost", lambda run, by: lost)
    monkeypatch.setattr(ending.clients, "silent", lambda run, by, within: silent)
    why = failed(log, cause=cause, served_by="tiny/1")
    assert why.cause == expected
    if expected == "server_lost" and (lost or silent):
        assert (lost or silent) in why.facts


def test_a_good_exit_code_without_results_after_an_out_of_memory_is_one_of_memory(failed):
    """It has swallowed the exception, and another try may mend it: nothing else tells why it has no results."""
    log = ("Traceback (most recent call last):", '  File "x.py"', "torch.OutOfMemoryError: CUDA out of memory")
    assert told(failed(*log, "done", code=0)) == ("gpu_memory", "gpu_memory")
    assert told(failed(*log, "done", cause="signal", code=137)) == ("signal", ""), "something else ended it"


def test_an_account_without_money_is_no_fault_of_the_network_and_so_not_tried_again(failed):
    line = "openai.RateLimitError: Error code: 429 - {'error': {'code': '%s'}}"
    assert told(failed(line % "insufficient_quota")) == ("exited", "error")
    assert failed(line % "rate_limit_exceeded").signature == "network_fault"
