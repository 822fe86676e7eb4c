"""What holds for all tests, also for those that older Pythons run."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings
from rounds import rounds

# how long an example takes says how busy the machine is
settings.register_profile("comborun", deadline=None, max_examples=rounds(100))
settings.load_profile("comborun")

COMPUTING = Path(__file__).parent / "unit"
"""the tests without processes"""


def pytest_configure(config: pytest.Config) -> None:
    """Undo what nohup, or a background job of a shell without job control, ignores: children would ignore it, too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for one in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(one, signal.SIG_DFL)
    # matplotlib lists this machine's fonts once for all homes that tests make
    os.environ.setdefault("MPLCONFIGDIR", str(config.cache.mkdir("matplotlib")))
    if not hasattr(config, "workerinput"):  # the workers of this process share it
        library = tempfile.mkdtemp(prefix="combo-library-")
        os.chmod(library, 0o755)  # noqa: PTH101
        os.environ["COMPILED_LIBRARY"] = library
        config.add_cleanup(lambda: shutil.rmtree(library, ignore_errors=True))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests, and the libraries that they import, stay to the end: they are no garbage to look for."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each worker its share of what takes long first: whole modules of tests that run processes, and mostly wait.
    Those in which one has a time limit of its own take longest.

    Workers begin with neighbouring tests, an equal number each, and take each other's last ones when they have no more
    (pytest-xdist's `worksteal`). Tests that only compute are short and come last: no worker is left alone at the end.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        items[:] = dealt(items, workers)


def dealt(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """The same tests, those of the first worker first."""
    hands: list[list[pytest.Item]] = [[] for _ in range(workers)]
    processes = (item for item in items if COMPUTING not in item.path.parents)
    modules = [[*module] for _, module in itertools.groupby(processes, key=lambda item: item.path)]
    for module in sorted(modules, key=lambda one: not any(item.get_closest_marker("timeout") for item in one)):
        min(hands, key=len).extend(module)
    rest = iter([item for item in items if COMPUTING in item.path.parents])
    left = len(items)
    for place, hand in enumerate(hands):
        share = left // (workers - place)
        hand.extend(itertools.islice(rest, max(0, share - len(hand))))
        left -= len(hand)
    return [*itertools.chain.from_iterable(hands), *rest]
