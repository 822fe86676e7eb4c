"""What the kernel counts when memory runs out, and its limits on processes and files."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

from comborun.host.system import files, machine
from comborun.rules.facts import Fact
from comborun.rules.host import Limit


def test_what_was_killed_for_memory_is_counted_in_the_group_before_the_host(monkeypatch):
    monkeypatch.setattr(machine, "kills", lambda: "5,9")
    assert machine.kills_since("3,9") == (2, "group")
    assert machine.kills_since("5,6") == (3, "machine")
    assert machine.kills_since("5,9") == (0, "")
    assert machine.kills_since(",6") == (3, "machine")
    assert machine.kills_since(",") == (0, "")
    assert machine.kills_since("a[$(touch pwned)],x") == (0, "")


def test_where_few_files_may_be_open_a_command_still_inherits_its_lock_and_what_lacks_is_named():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        few = 100 + 2 * len([*Path("/proc/self/fd").iterdir()])  # the libraries of other tests hold some
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, before[1]))
        fd = files.inheritable(os.open(os.devnull, os.O_RDONLY))
        assert min(few // 2, files._HIGH) <= fd < few
        os.close(fd)
        assert machine.limit_reached() is None
        resource.setrlimit(resource.RLIMIT_NOFILE, (4, before[1]))
        assert machine.limit_reached() == Fact(Limit.OPEN_FILES)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert machine.limit_reached(errno.EMFILE) == Fact(Limit.OPEN_FILES)
