"""What ended a program: its last exception or a fatal line, and the class that only this names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from comborun.rules.endings.signatures import Ended, find

SAMPLES = Path(__file__).parents[1] / "samples" / "endings.txt"
PUBLIC = SAMPLES.with_name("public_endings.txt")
STACK = '  File "eval.py", line 7, in main\n    run()\n    ^^^^^'


def traceback(last: str, prefix: str = "") -> str:
    return "\n".join(prefix + line for line in f"Traceback (most recent call last):\n{STACK}\n{last}".split("\n"))


def of(log: str, *, killed: bool = False, served: bool = False, records: int = 0) -> tuple[str, str]:
    return find(log.split("\n"), (), Ended(killed=killed, served=served, records=records))


KEY_ERROR = traceback("KeyError: 'observation.state'")
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"


def cases() -> list[tuple[str, str]]:
    """The ends of logs in the samples, each after a line with the class, or the exception that has none."""
    return [tuple(one.rstrip("\n").split("\n", 1)) for one in SAMPLES.read_text().split("=== ")[1:]]


@pytest.mark.parametrize(("expected", "log"), cases())
def test_the_last_exception_or_fatal_line_names_the_class(expected, log):
    failure, line = of(log, served=expected.startswith("KeyError"))
    assert (line if expected.startswith("KeyError") else failure or "no class") == expected
    assert not (failure and expected.startswith("KeyError"))


def public_cases() -> list[tuple[str, str, str]]:
    """Ends of logs as public threads show them, shortened; each after its class and what it is of."""
    found = [one.rstrip("\n").split("\n", 1) for one in PUBLIC.read_text().split("=== ")[1:]]
    heads = [re.fullmatch("(no class|[a-z_]+) (.*)", head) for head, _ in found]
    return [(head[1], head[2], log) for head, (_, log) in zip(heads, found) if head]


@pytest.mark.parametrize(("expected", "what", "log"), public_cases(), ids=[what for _, what, _ in public_cases()])
def test_what_people_show_of_their_simulators_has_its_class_and_no_other(expected, what, log):
    assert (of(log, killed=what.endswith(", killed"))[0] or "no class") == expected, what


def test_what_a_thread_said_before_does_not_explain_that_something_is_none():
    none = traceback("AttributeError: 'NoneType' object has no attribute 'reset'")
    log = f"Exception in thread Thread-3:\n{traceback(OOM)}\ngoing on\n{none}"
    assert of(log)[0] == ""


def packed(level: str, last: str) -> str:
    return json.dumps({"level": level, "exc": traceback(last), "host": "vm"})


def test_a_traceback_within_a_line_is_read_like_one_of_many_lines_unless_the_line_warns():
    last = 'RuntimeError: CUDA out of memory in "main", seen'
    assert of(packed("error", last)) == ("gpu_memory", last)
    assert of(packed("warning", OOM)) == ("", "")
    assert of(f"{packed('warning', OOM)}\nall is done") == ("", "")
    assert of(f"{OOM}\nhalf of it\n{packed('error', 'KeyError: 7')}") == ("", "KeyError: 7")


def test_an_exception_group_counts_as_one():
    log = "\n".join(
        [
            "  + Exception Group Traceback (most recent call last):",
            '  |   File "x.py", line 3, in <module>',
            "  | ExceptionGroup: two (2 sub-exceptions)",
            "  +-+---------------- 1 ----------------",
            "    | ValueError: no such task",
            "    +---------------- 2 ----------------",
            f"    | {OOM}",
            "    +------------------------------------",
        ]
    )
    assert of(log) == ("gpu_memory", OOM)


@pytest.mark.parametrize(
    "error",
    [
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "grpc.RpcError: <_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE",
    ],
)
def test_a_server_is_lost_only_where_one_is_in_use(error):
    log = traceback(error)
    assert of(log, served=True)[0] == "server_lost"
    assert of(log) == ("", error.split("\n")[0])


def test_an_error_of_a_service_is_that_of_the_server_in_use():
    log = traceback("openai.InternalServerError: Error code: 503 - {'message': 'the engine is dead'}")
    assert (of(log, served=True)[0], of(log)[0]) == ("server_lost", "network_fault")


@pytest.mark.parametrize("line", ["X Error of failed request:  BadValue", "FATAL:   container creation failed"])
def test_a_fatal_line_without_a_class_is_told(line):
    assert of(f"loading\n{line}\n  Major opcode of failed request:  149 (GLX)") == ("", line)


def test_a_crash_counts_where_a_signal_ended_the_program():
    log = f"{KEY_ERROR}\nSegmentation fault (core dumped)"
    assert of(log, killed=True)[0] == "crashed"
    assert of(log)[0] == ""
    survived = f"{traceback(OOM)}\nonce more with half the batch"
    assert of(survived)[0] == "gpu_memory"
    assert of(survived, killed=True)[0] == ""


SCRIPTS = {
    "chained": (
        "gpu_memory",
        """
        try:
            raise RuntimeError('CUDA out of memory')
        except RuntimeError as e:
            raise ValueError('x') from e
        """,
    ),
    "thread": (
        "",
        """
        import threading
        t = threading.Thread(target=lambda: open('/nowhere/CUDA out of memory'))
        t.start(); t.join()
        raise KeyError('x')
        """,
    ),
    "child": (
        "gpu_memory",
        """
        import multiprocessing as m
        def f(c):
            raise RuntimeError('CUDA out of memory')
        if __name__ == '__main__':
            a, b = m.Pipe()
            p = m.Process(target=f, args=(b,)); p.start(); b.close(); p.join(); a.recv()
        """,
    ),
    "pool": (
        "host_limit",
        """
        import concurrent.futures as c
        def f(): raise OSError(24, 'Too many open files')
        if __name__ == '__main__':
            c.ProcessPoolExecutor(1).submit(f).result()
        """,
    ),
    "fault": (
        "crashed",
        """
        import faulthandler, ctypes; faulthandler.enable(); ctypes.string_at(0)
        """,
    ),
    "finalizer": (
        "",
        """
        class A:
            def __del__(self): raise RuntimeError('CUDA out of memory')
        a = A()
        raise KeyError('x')
        """,
    ),
    "logger": (
        "",
        """
        import logging
        try: raise OSError('Connection refused')
        except OSError: logging.getLogger('urllib3').warning('no', exc_info=True)
        raise KeyError('x')
        """,
    ),
    "asserted": (
        "",
        """
        assert [] == ['CUDA'], 'no GPU'
        """,
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_real_programs_print(name, tmp_path):
    expected, text = SCRIPTS[name]
    script = tmp_path / "eval.py"
    script.write_text(textwrap.dedent(text))
    done = subprocess.run([sys.executable, str(script)], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, check=False)
    assert done.returncode
    assert of(done.stdout.decode(), killed=done.returncode < 0, served=True)[0] == expected


def test_an_exception_behind_a_warning_is_the_programs_own_if_nothing_follows() -> None:
    log = f"ffmpeg: Segmentation fault (core dumped)\nWARNING: going on without videos\n{traceback('AssertionError')}"
    assert of(log) == ("", "AssertionError")
    assert of(log, killed=True)[0] == "crashed"
    logged = f"WARNING: no video\n{traceback('ValueError: codec')}\nepisode 3 begins\nSegmentation fault (core dumped)"
    assert of(logged) == ("crashed", "Segmentation fault (core dumped)")
