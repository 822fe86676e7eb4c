"""Whatever comes in whatever order, no start exceeds a budget as last measured: the host's admission, fed with answers
of a driver that hypothesis makes up, against a ledger of its own here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comborun.host.admission.admission import Admission
from comborun.host.admission.leasebook import Measured
from comborun.rules.room.capacity import Card, Request
from comborun.rules.room.waits import waits_for
from comborun.words import say

SIZES = st.sampled_from([0, 1000, 4608, 10000, 20000])


@dataclass
class Host:
    """What the driver would tell, and what has been promised, by this test's own account."""

    admission: Admission
    totals: tuple[int, ...]
    reserve: int
    cpus: int
    others: list[int]
    number: int = 0
    asked: dict[str, tuple[int, int, int, str, int]] = field(default_factory=dict)
    """GPUs, MiB on each, cores, token, most of the group on a GPU"""
    grants: dict[str, tuple[int, ...]] = field(default_factory=dict)
    holds: dict[tuple[str, int], int] = field(default_factory=dict)
    """MiB that a session really holds"""
    measured: dict[tuple[str, int], int] = field(default_factory=dict)
    """the same, as last told"""
    told_others: list[int] = field(default_factory=list)

    def answer(self, *gpus: int) -> None:
        """A measurement comes, of these GPUs or of all."""
        self.number += 1
        told = Measured(self.number)
        for gpu in gpus or range(len(self.totals)):
            used = self.others[gpu] + sum(mib for (_, at), mib in self.holds.items() if at == gpu)
            told.cards[gpu] = Card(gpu, f"GPU-{gpu}", "", self.totals[gpu], used, bus=f"bus:{gpu}")
            told.listed.add(gpu)
        told.held = {(f"run/{who}/1", gpu): mib for (who, gpu), mib in self.holds.items()}
        told.memory = 64000, 60000
        self.admission.book.take_in(told)
        self.measured, self.told_others = dict(self.holds), list(self.others)

    def ask(self, who: str, gpus: int, mib: int, cpus: int, token: str, cap: int) -> None:
        self.asked[who] = (gpus, mib if gpus else 0, cpus, token, cap)
        tokens = () if token == "-" else (token,)
        asked = Request(gpus, mib if gpus else 0, cpus, tokens=tokens, group="kitchen", per_gpu=cap)
        self.admission.register(who, asked)

    def start(self, who: str) -> str:
        """`ok 0,1`, `never ...`, or what it waits for."""
        self.admission.round()
        pick = self.admission.pick([who], lambda name: f"/nowhere/sessions/{name}/attempt-1")
        if pick and pick.never:
            return f"never {say(pick.never)}"
        if not pick:
            ((_, fact),) = self.admission.waits([who])
            return f"{waits_for(fact)} {say(fact)}"
        self.grants[who] = pick.gpus
        self.check(who)
        return f"ok {','.join(map(str, pick.gpus))}"

    def end(self, who: str) -> None:
        self.admission.give_back(who)
        for gpu in self.grants.pop(who):
            self.holds.pop((who, gpu), None)

    def check(self, started: str) -> None:
        """The budgets, after a start, as last measured."""
        gpus, mib, _, _, _ = self.asked[started]
        assert len(set(self.grants[started])) == gpus
        assert sum(self.asked[who][2] for who in self.grants) <= self.cpus
        tokens = [self.asked[who][3] for who in self.grants if self.asked[who][3] != "-"]
        assert len(tokens) == len(set(tokens))
        for gpu in self.grants[started]:
            there = [who for who, granted in self.grants.items() if gpu in granted]
            shares = [max(self.asked[who][1], self.measured.get((who, gpu), 0)) for who in there]
            used = max(self.told_others[gpu], self.reserve) + sum(shares) + 128
            assert mib == 0 or used <= self.totals[gpu], f"GPU {gpu} over its budget after {started}: {shares}"
            assert len(there) == 1 or all(self.asked[who][1] for who in there), "who says no memory is alone"
            caps = [self.asked[who][4] for who in there if self.asked[who][4]]
            assert not self.asked[started][4] or len(caps) <= self.asked[started][4]


@contextmanager
def host(totals: tuple[int, ...], *, reserve: int = 0, cpus: int = 0, others: int = 0) -> Iterator[Host]:
    with TemporaryDirectory(prefix="cb") as name, pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMBORUN_LEASES", f"{name}/leases")
        Path(name, "dispatch").mkdir()
        admission = Admission(name, "run", lambda words: None, lambda kind, who, text: None)
        gpus = ",".join(map(str, range(len(totals))))
        admission.configure({"gpus": gpus, "reserve_gpu_mib": str(reserve), "cpus": str(cpus), "per_gpu": "0"})
        made = Host(admission, totals, reserve, cpus or 1 << 30, [others] * len(totals))
        made.answer()
        yield made


@pytest.mark.parametrize("job", [39936, 37193, 20000], ids=["39 GiB", "39 GB", "less than is reserved"])
@pytest.mark.parametrize(("total", "fit"), [(81559, 9), (81920, 9), (95830, 12), (98304, 12)])
def test_the_training_job_counts_once(total: int, fit: int, job: int) -> None:
    said = ""
    with host((total,), reserve=39936, others=job) as one:
        for number in range(fit + 1):
            one.ask(f"s{number}", 1, 4608, 0, "-", 0)
            said = one.start(f"s{number}")
            assert said.startswith("ok") == (number < fit), said
            one.holds[f"s{number}", 0] = 4608
            one.answer()
        assert said.startswith("gpu_memory needs 4608 MiB; ")


def test_what_is_not_known_and_what_is_old_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with host((20000, 20000)) as one:
        one.ask("a", 1, 4000, 0, "-", 0)
        one.ask("two", 2, 18000, 0, "-", 0)
        monkeypatch.setenv("COMBORUN_FRESH_MS", "1")
        time.sleep(0.002)
        assert one.start("a") == "unknown GPU 0 is measured again"
        monkeypatch.delenv("COMBORUN_FRESH_MS")
        one.answer(1)
        assert one.start("two") == "unknown nvidia-smi does not tell how much memory of GPU 0 is used"
        assert one.start("a") == "ok 1"
        one.answer(0)
        assert one.start("two").startswith("unknown")
        one.answer()
        one.end("a")
        assert one.start("two") == "unknown GPU 1 is measured again, since something ended there"
        one.answer()
        assert one.start("two") == "ok 0,1"


STEP = st.one_of(
    st.tuples(st.just("come"), st.integers(0, 3), SIZES, st.integers(0, 6), st.sampled_from("---x"), st.integers(0, 2)),
    st.tuples(st.just("grow"), st.integers(0, 9), st.floats(0, 1.3)),
    st.tuples(st.just("end"), st.integers(0, 9)),
    st.tuples(st.just("others"), st.integers(0, 3), st.sampled_from([0, 5000, 39000])),
    st.tuples(st.just("answer")),
)


@settings(max_examples=100)
@given(st.lists(STEP, min_size=10, max_size=80), st.sampled_from([0, 6000]))
def test_no_budget_is_ever_exceeded(steps: list[tuple[object, ...]], reserve: int) -> None:
    with host((24576, 24576, 49140), reserve=reserve, cpus=16) as one:
        waiting: list[str] = []
        for number, (what, *values) in enumerate(steps):
            running = sorted(one.grants)
            match what, values:
                case "come", [int(gpus), int(mib), int(cpus), str(token), int(cap)]:
                    one.ask(f"s{number}", gpus, mib, cpus, token, cap)
                    waiting.append(f"s{number}")
                case "grow", [int(index), float(share)] if running:
                    who = running[index % len(running)]
                    for gpu in one.grants[who]:
                        one.holds[who, gpu] = int((one.asked[who][1] or 8000) * share)
                case "end", [int(index)] if running:
                    one.end(running[index % len(running)])
                case "others", [int(gpu), int(mib)]:
                    one.others[gpu % 3] = mib // 2
                case "answer", []:
                    one.answer()
            waiting = [who for who in waiting if not one.start(who).startswith(("ok", "never"))]
        for who in sorted(one.grants):
            one.end(who)
        tally = one.admission.book.ledger.ours
        sums = (tally.cpus, tally.memory, *tally.load.values(), *tally.mib.values(), *tally.alone.values())
        assert set(sums) <= {0}, "what was promised has been given back, to the last MiB"
