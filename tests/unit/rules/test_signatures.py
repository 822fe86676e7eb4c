"""The class of a failure, as the lines of a log tell it."""

from __future__ import annotations

import re

from comborun.rules.endings.failures import Failure
from comborun.rules.endings.signatures import BUILTIN, Ended, find
from comborun.rules.patterns import compiled


def told(*log: str, own: tuple[tuple[str, str], ...] = (), records: int = 0, served: bool = True) -> tuple[str, str]:
    return find(log, own, Ended(records=records, served=served))


def test_the_signature_that_comes_first_wins_with_the_last_line_that_matches_it() -> None:
    log = ("step 1", "Segmentation fault", "CUDA out of memory: 1", "CUDA out of memory: 2", "bye")
    assert told(*log) == ("gpu_memory", "CUDA out of memory: 2")
    assert told(*log, own=(("error", "^bye$"),)) == ("error", "bye")
    assert told("a MemoryError") == ("", ""), "no line of Python's own"
    assert told("MemoryError") == ("host_memory", "MemoryError")


def test_what_is_ignored_is_looked_at_by_no_other_pattern_whatever_comes_first() -> None:
    assert told("vkCreateInstance failed: GPU is lost") == ("", "")
    own = (("gpu_fault", "GPU is lost"), ("ignore", "harmless here"))
    log = ("GPU is lost (harmless here)", "No space left on device")
    assert told(*log, own=own) == ("disk_full", "No space left on device")


def test_what_has_left_records_was_launched_and_a_port_in_use_is_anothers() -> None:
    assert told("OSError: Address already in use")[0] == "launch_failed"
    assert told("OSError: Address already in use", records=2)[0] == ""
    assert told("no licence", records=2, own=(("launch_failed", "licence"),))[0] == "launch_failed"


def test_every_pattern_of_the_table_is_a_regular_expression_of_a_class_that_there_is() -> None:
    assert {failure for failure, _ in BUILTIN} <= {*map(str, Failure), "ignore"}
    assert all(compiled(pattern) for _, wordings in BUILTIN for pattern in wordings)
    first = {wording: failure for failure, wordings in reversed(BUILTIN) for wording in wordings}
    for wording, failure in first.items():
        assert not re.search(wording, ""), wording
        if failure != "ignore" and not set(wording) & set("\\^$*+?{}[]|()"):
            assert told(f"... {wording} ...")[0] == failure


def test_without_a_class_the_line_is_that_of_what_failed_and_not_of_who_noticed_it() -> None:
    child = "[default1]:AssertionError: no configuration ppo.json"
    rank = ("[default1]:Traceback (most recent call last):", '[default1]:  File "train.py", line 1', child)
    launcher = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"
    assert told(*rank, launcher) == ("", "AssertionError: no configuration ppo.json")
    assert told(launcher) == ("", launcher)
    assert told("ValueError: a", "CalledProcessError: Command 'x' returned 1") == ("", "ValueError: a")


def test_a_pattern_that_is_none_finds_nothing() -> None:
    own = (("error", "("), ("error", "fine"))
    assert told("CUDA out of memory (", own=own)[0] == "gpu_memory"
