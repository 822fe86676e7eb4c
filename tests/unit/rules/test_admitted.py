"""What fits on a host, who comes first, and what nobody waits for in vain."""

from __future__ import annotations

import json
import random

import pytest

from comborun.rules.facts import Fact
from comborun.rules.room.capacity import HEADROOM, Blocker, Capacity, Request, grantable, never, others_use
from comborun.rules.room.ledger import Lease, Ledger
from comborun.rules.room.order import BackfillQueue
from comborun.rules.room.waits import Never, Wait

BIG = 1 << 40


def ledger(*memory: int, per_gpu: int = 0, cpus: int | None = None, main: int = BIG) -> Ledger:
    """A host with GPUs of which so much may be promised."""
    capacity = Capacity(tuple(range(len(memory))), per_gpu, cpus)
    capacity.gpu_memory = dict(enumerate(memory))
    capacity.totals = {gpu: mib + HEADROOM for gpu, mib in capacity.gpu_memory.items()}
    capacity.memory = capacity.memory_total = main
    return Ledger(capacity)


def refused(host: Ledger, request: Request) -> Blocker:
    found = host.choose(request)
    assert isinstance(found, Blocker)
    return found


def test_a_job_counts_by_its_use_or_by_the_reserve_whichever_is_more() -> None:
    assert grantable(80000, 10000, 40000, HEADROOM) == 80000 - 40000 - HEADROOM
    assert grantable(80000, 50000, 40000, HEADROOM) == 80000 - 50000 - HEADROOM


def test_what_others_use_is_told_by_the_driver_or_else_by_what_ours_asked_for() -> None:
    assert others_use(9000, 4000, 0, None) == 5000
    assert others_use(3000, 4000, 0, None) == 0, "measured a moment apart"
    assert others_use(9000, 0, 6000, 1000) == 3000, "at least what ours did not ask for"
    assert others_use(9000, 0, 9000, 1000) == 1000, "what it was when it was last known"
    assert others_use(500, 0, 9000, 1000) == 500


def test_without_a_gpu_there_is_no_memory_of_one_and_without_a_group_no_cap() -> None:
    asked = Request(gpu_memory=5, per_gpu=1, per_host=1, only=(1,))
    assert (asked.asks, ledger(1).choose(asked)) == (False, ())
    assert Request(group="kitchen", per_host=1).asks


def test_the_least_loaded_gpu_is_taken_then_the_one_with_the_most_memory_free() -> None:
    host = ledger(10000, 35000, 20000)
    assert host.choose(Request(gpus=1, gpu_memory=8000)) == (1,)
    host.take(Lease("", "a", Request(gpus=1, gpu_memory=1000), (1,)))
    assert host.choose(Request(gpus=1, gpu_memory=8000)) == (2,)
    assert host.choose(Request(gpus=2, gpu_memory=8000)) == (0, 2), "in the order of their numbers"
    assert host.choose(Request(gpus=1, gpu_memory=30000)) == (1,)
    assert host.choose(Request(gpus=1, gpu_memory=8000, only=(0,))) == (0,)


def test_who_says_no_memory_has_its_gpu_alone() -> None:
    host, there = ledger(10000), Request(gpus=1)
    host.take(Lease("", "there", there, (0,)))
    assert refused(host, Request(gpus=1, gpu_memory=10)).waits_for == "gpu"
    host.give_back("there")
    host.take(Lease("", "other", Request(gpus=1, gpu_memory=10), (0,)))
    assert refused(host, there).waits_for == "gpu"
    host.give_back("other")
    assert host.choose(there) == (0,)


def test_what_a_session_holds_counts_where_that_is_more_than_it_asked_for() -> None:
    host = ledger(10000, main=100)
    host.take(Lease("", "a", Request(gpus=1, gpu_memory=4000, memory=10), (0,)))
    host.charge(host.ours.leases["a"], {0: 7000}, 60)
    host.capacity.others = {0: 0}
    taken = {"needs_mib": 4000, "free_mib": 3000, "total_mib": 10128, "others_mib": 0, "sessions": 1, "held_mib": 7000}
    found = refused(host, Request(gpus=1, gpu_memory=4000)).fact
    assert (found.code, found.count("gpu"), taken.items() <= found.fields.items()) == (Wait.GPU_MEMORY_TAKEN, 0, True)
    assert refused(host, Request(gpus=1, gpu_memory=3001)).waits_for == "gpu_memory"
    assert refused(host, Request(memory=41)).waits_for == "host_memory"
    host.charge(host.ours.leases["a"], {0: 100}, 0)
    assert host.free(0) == 6000
    host.give_back("a")
    assert (host.free(0), host.ours.memory, host.ours.load[0]) == (10000, 0, 0)
    host.pending_release = [(0, 6000, 1)]
    found = refused(host, Request(gpus=1, gpu_memory=5000))
    assert (found.waits_for, found.urgent) == ("unknown", True), "given back, but no measurement shows it"
    assert host.choose(Request(gpus=1, gpu_memory=4000)) == (0,)


def test_tokens_caps_and_cores_are_counted_over_all_runs() -> None:
    host = ledger(1000, 1000, cpus=4)
    mine = Request(gpus=1, gpu_memory=1, cpus=2, tokens=("ray",), group="kitchen", per_gpu=1, per_host=2)
    host.take(Lease("other", "a", mine, (0,), "/other/sessions/a/attempt-1"))
    blocker = refused(host, Request(tokens=("ray",)))
    assert (blocker.waits_for, blocker.of) == ("token", "ray")
    assert blocker.fact == Fact(Wait.TOKEN_TAKEN, token="ray", session="a", run="other")
    kitchen = Request(gpus=1, gpu_memory=1, group="kitchen", per_gpu=1, per_host=2)
    assert host.choose(kitchen) == (1,)
    host.take(Lease("", "b", kitchen, (1,)))
    blocker = refused(host, kitchen)
    assert (blocker.waits_for, blocker.of) == ("cap", "kitchen")
    assert refused(host, Request(cpus=3)).waits_for == "cpus"
    assert host.choose(Request(cpus=2)) == ()


def test_a_lease_is_read_from_the_file_of_another_run_as_it_was_written() -> None:
    request = Request(gpus=2, gpu_memory=500, memory=70, tokens=("ray",), group="kitchen", per_gpu=1, alone=True)
    lease = Lease("other", "a", request, (0, 3), "/runs/other/sessions/a/attempt-2", (4, 5), 1790000000)
    read = Lease.of("other", json.loads(json.dumps(lease.as_data())))
    assert read.as_data() == lease.as_data()
    assert (read.marker, read.gpus, read.cores) == ("other/a/2", (0, 3), (4, 5))
    assert (read.mib, read.memory) == ({0: 500, 3: 500}, 70)
    assert read.request == request


def test_a_lease_of_the_former_version_counts() -> None:
    request = {"gpus": 1, "gpu_memory": 500, "cpus": 2, "memory": 0, "tokens": ["ray"], "group": "", "per_gpu": 0}
    request |= {"per_host": 0, "only": [1], "alone": False}
    former = {"run": "other", "who": "a", "request": request, "gpus": [1], "at": "/other/sessions/a/attempt-1"}
    host = ledger(1000, 1000, cpus=2)
    host.take(Lease.of("other", {**former, "cores": [0, 1], "since": 1790000000}))
    assert (host.free(1), host.foreign.load[1]) == (500, 1)
    assert refused(host, Request(cpus=1)).waits_for == "cpus"


def test_what_is_not_known_and_what_is_old_is_not_free() -> None:
    host = ledger(1000, 1000)
    del host.capacity.gpu_memory[1]
    host.capacity.memory = None
    asks = Request(gpus=2, gpu_memory=10)
    assert refused(host, asks).waits_for == "unknown"
    assert refused(host, Request(memory=1)).waits_for == "unknown"
    assert host.choose(Request(gpus=1, gpu_memory=10)) == (0,)
    host.capacity.fresh = False
    found = refused(host, Request(gpus=1, gpu_memory=10))
    assert (found.waits_for, found.urgent) == ("unknown", True)
    assert host.choose(Request(gpus=1)) == (0,), "without a driver nothing can be measured"


def test_sessions_of_a_run_that_say_no_memory_share_a_gpu_as_its_limits_say_whatever_they_hold() -> None:
    host, asks = ledger(24000, per_gpu=2), Request(gpus=1)
    host.capacity.has_driver = True
    host.capacity.measure_gpu(0, 24576, 0)
    host.take(Lease("", "a", asks, (0,)))
    host.charge(host.ours.leases["a"], {0: 23900})
    assert host.choose(asks) == (0,)


def test_who_says_no_memory_starts_on_no_gpu_that_strangers_fill_or_whose_state_is_unknown() -> None:
    host, asks = ledger(1000, 1000), Request(gpus=1)
    host.capacity.has_driver = True
    host.capacity.measure_gpu(0, 24576, 24000)
    host.capacity.measure_gpu(1, 24576, 22100)
    found = refused(host, asks)
    assert (found.waits_for, found.fact.count("others_mib")) == ("gpu_memory", 22100)
    assert not host.possible(asks), "nothing is kept for who waits for strangers"
    host.capacity.measure_gpu(1, 24576, 21000)
    assert host.choose(asks) == (1,)
    host.capacity.fresh = False
    assert refused(host, asks).waits_for == "unknown"
    host.capacity.fresh, host.capacity.gpu_memory = True, {}
    assert refused(host, asks).waits_for == "unknown"


def test_of_several_gpus_the_reason_that_says_most_is_told() -> None:
    host = ledger(1000, 1000, 1000)
    host.capacity.quarantine = frozenset((0,))
    host.take(Lease("", "a", Request(gpus=1, gpu_memory=900), (1,)))
    host.take(Lease("", "b", Request(gpus=1, gpu_memory=800), (2,)))
    found = refused(host, Request(gpus=1, gpu_memory=500))
    assert (found.waits_for, found.free) == ("gpu_memory", 200), "the GPU with the most memory free"


def test_what_can_never_start_is_told_at_once() -> None:
    capacity = ledger(1000, 5000, cpus=4, main=100).capacity
    assert never(Request(gpus=1, only=(7,)), capacity) == Fact(Never.GPUS_TOO_MANY, gpus=1, may_use=0, only=[7])
    assert never(Request(gpus=3), capacity) == Fact(Never.GPUS_TOO_MANY, gpus=3, may_use=2, only=[])
    assert never(Request(cpus=5), capacity) == Fact(Never.CORES_TOO_MANY, cores=5, may_use=4)
    assert never(Request(memory=101), capacity) == Fact(Never.MEMORY_TOO_MUCH, mib=101, total_mib=100, reserve_mib=0)
    too_much = never(Request(gpus=2, gpu_memory=3000), capacity)
    assert too_much
    assert (too_much.code, too_much.fields["totals_mib"]) == (Never.GPU_MEMORY_TOO_MUCH, {"0": 1128, "1": 5128})
    assert not never(Request(gpus=2, gpu_memory=1000, cpus=4, memory=100), capacity)
    del capacity.totals[0]
    assert not never(Request(gpus=2, gpu_memory=3000), capacity), "what is not known may be enough"


# The order


class Queue:
    """Sessions that come in an order and start when the line lets them; nobody ends by itself."""

    def __init__(self, host: Ledger) -> None:
        self.host, self.line = host, BackfillQueue(host)
        self.waiting: list[tuple[str, Request]] = []

    def round(self) -> list[str]:
        """Who starts now."""
        self.line.round()
        started = []
        for who, request in list(self.waiting):
            if request in self.line.refused:
                continue
            found = self.host.choose(request, who)
            if isinstance(found, Blocker):
                self.line.refuse(who, request, found)
                continue
            self.waiting.remove((who, request))
            self.host.take(Lease("", who, request, found))
            self.line.started(request)
            started.append(who)
        return started


def test_who_does_not_fit_is_passed_as_often_as_sessions_ran_and_then_kept_room() -> None:
    queue = Queue(ledger(10, 10, cpus=64))
    small, wide = Request(gpus=1, gpu_memory=10), Request(gpus=2, gpu_memory=10)
    queue.waiting = [("a", small), ("b", small), ("wide", wide), *((f"s{i}", small) for i in range(9))]
    assert queue.round() == ["a", "b"]
    queue.host.give_back("a")
    assert queue.round() == ["s0"]
    queue.host.give_back("b")
    assert queue.round() == ["s1"]
    queue.host.give_back("s0")
    assert queue.round() == [], "two ran when it had to wait, and two have passed it"
    assert queue.line.refused[small][1].fact.text("session") == "wide"
    queue.host.give_back("s1")
    assert queue.round() == ["wide"]


def test_nothing_is_kept_for_who_waits_for_what_others_hold() -> None:
    queue = Queue(ledger(10, 5))
    wide, small = Request(gpus=2, gpu_memory=10), Request(gpus=1, gpu_memory=5)
    queue.waiting = [("wide", wide), *((f"s{i}", small) for i in range(9))]
    for turn in range(9):
        for who in list(queue.host.ours.leases):
            queue.host.give_back(who)
        assert queue.round(), turn
        if len(queue.waiting) == 1:
            break
    assert queue.waiting == [("wide", wide)]


def test_a_token_is_kept_for_the_one_that_waited_first() -> None:
    queue = Queue(ledger())
    both, one = Request(tokens=("ray", "vulkan")), Request(tokens=("vulkan",))
    queue.waiting = [("a", Request(tokens=("ray",))), ("both", both), ("one", one)]
    assert queue.round() == ["a"]
    assert queue.round() == [], "else those that need one of the two would pass for ever"
    queue.host.give_back("a")
    assert queue.round() == ["both"]


@pytest.mark.parametrize("seed", range(20))
def test_everybody_that_can_start_does_so_however_many_come_after(seed: int) -> None:
    chance = random.Random(seed)
    queue = Queue(ledger(100, 100, 100, cpus=8, main=100))

    def request() -> Request:
        return Request(
            gpus=chance.choice([0, 0, 1, 1, 2, 3]),
            gpu_memory=chance.choice([0, 30, 50, 100]),
            cpus=chance.choice([0, 1, 4, 8]),
            memory=chance.choice([0, 20, 100]),
            tokens=chance.choice([(), (), ("ray",), ("ray", "vulkan")]),
        )

    first = [(f"first{i}", request()) for i in range(12)]
    queue.waiting = list(first)
    running: list[str] = []
    for turn in range(2000):
        queue.waiting += [(f"late{turn}.{i}", request()) for i in range(2)]
        running += queue.round()
        if running:
            queue.host.give_back(running.pop(chance.randrange(len(running))))
        if not {who for who, _ in queue.waiting} & {who for who, _ in first}:
            return
    pytest.fail(f"still waiting: {[who for who, _ in queue.waiting if who.startswith('first')]}")
