"""Whatever comes in whatever order, no start exceeds a budget as last measured: the real bash functions, asked by
hypothesis in one bash process, against a ledger of their own here."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comborun.library import scripts_directory

DRIVER = r"""
set -uo pipefail
library=$1 run=$2 run_id=run
for file in base/{record,clock,host,marker,policy} attempt/{evidence,attempt} watch/activity \
  admission/{request,gpus,measure,measured,promise,lease,leased,room,handout,passing,admit}; do
  source "$library/$file.sh" || exit 66
done
exec 3<>"$run/dispatch/fifo" 4>/dev/null 8>/dev/null
pause_ms=2000
measure::ask() { :; } # the test answers, by a file
taskset() { false; }
lease::enter() { lease_news=0; } # there is no other run
lease::write() { :; }
lease::leave() { :; }
while read -r verb rest; do
  set -- $rest
  case $verb in
    policy) policy::read "$run/dispatch/policy.tsv" && gpus::allow "${policy[gpus]}" "${policy[per_gpu]}" ;;
    request) request::read "$@" && admit::open ;;
    answer) measure_number=$1 measure_pid='' && clock::now_ms && measure_asked_ms=$now_ms && admit::measured "$1" ;;
    age) measure_told_ms=$((measure_told_ms - $1)) ;;
    start)
      passing::round
      if admit::never "${kind_of[$1]}"; then
        printf 'never %s\n' "$why"
      elif admit::choose "$1" && admit::secure "$1" "$run/sessions/$1/attempt-1"; then
        printf 'ok %s\n' "$chosen"
      else
        printf '%s %s\n' "$wait_for" "$wait_why"
      fi
      ;;
    end) admit::give_back "$1" ;;
    sums) printf '%s\n' "${promised_cpus} ${promised_memory} ${#promised[@]} ${gpus_load[*]} ${gpus_mib[*]-}" ;;
  esac
done
"""
SIZES = st.sampled_from([0, 1000, 4608, 10000, 20000])


@dataclass
class Host:
    """What the driver would tell, and what has been promised, by this test's own account."""

    talk: subprocess.Popen[str]
    folder: Path
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

    def say(self, line: str) -> None:
        assert self.talk.stdin
        self.talk.stdin.write(line + "\n")
        self.talk.stdin.flush()

    def hear(self) -> str:
        assert self.talk.stdout
        return self.talk.stdout.readline().rstrip("\n")

    def answer(self) -> None:
        """A measurement comes."""
        self.number += 1
        lines = [f"number {self.number} {uptime_ms()}"]
        for gpu, total in enumerate(self.totals):
            used = self.others[gpu] + sum(mib for (_, at), mib in self.holds.items() if at == gpu)
            lines += [f"gpu {gpu} GPU-{gpu} {used} {total}", f"told {gpu}"]
        lines += [f"held run/{who}/1 {gpu} {mib}" for (who, gpu), mib in self.holds.items()]
        (self.folder / "dispatch/measured").write_text("\n".join([*lines, "memory 64000 60000", ".", ""]))
        self.say(f"answer {self.number}")
        self.measured, self.told_others = dict(self.holds), list(self.others)

    def ask(self, who: str, gpus: int, mib: int, cpus: int, token: str, cap: int) -> None:
        self.asked[who] = (gpus, mib if gpus else 0, cpus, token, cap)
        self.say(f"request {who} {gpus} {mib} {cpus} 0 {token} kitchen {cap} 0 -")

    def start(self, who: str) -> str:
        self.say(f"start {who}")
        said = self.hear()
        if said.startswith("ok"):
            self.grants[who] = tuple(int(gpu) for gpu in said.split()[1].split(",")) if said != "ok " else ()
            self.check(who)
        return said

    def end(self, who: str) -> None:
        self.say(f"end {who}")
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


def uptime_ms() -> int:
    """As the driver's clock has it."""
    return int(float(Path("/proc/uptime").read_text().split()[0]) * 1000)


@contextmanager
def host(totals: tuple[int, ...], *, reserve: int = 0, cpus: int = 0, others: int = 0) -> Iterator[Host]:
    with TemporaryDirectory(prefix="cb") as name:
        folder = Path(name)
        (folder / "dispatch").mkdir()
        subprocess.run(["mkfifo", folder / "dispatch/fifo"], check=True)
        gpus = ",".join(map(str, range(len(totals))))
        rows = {"gpus": gpus, "reserve_gpu_mib": reserve, "cpus": cpus, "per_gpu": 0}
        (folder / "dispatch/policy.tsv").write_text("".join(f"{key}\t{value}\n" for key, value in rows.items()))
        talk = subprocess.Popen(
            ["bash", "-c", DRIVER, "driver", str(scripts_directory() / "lib"), str(folder)],
            env={"PATH": "/usr/bin:/bin", "COMBORUN_LEASES": str(folder / "leases")},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        made = Host(talk, folder, totals, reserve, cpus or 1 << 30, [others] * len(totals))
        made.say("policy")
        made.answer()
        try:
            yield made
        finally:
            talk.communicate(timeout=10)
            assert talk.returncode == 0


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
        assert said.startswith("gpu_memory asks for 4608 MiB; of the")


def test_whoever_holds_more_than_it_asked_for_counts_with_that() -> None:
    with host((20000,)) as one:
        for who in "ab":
            one.ask(who, 1, 6000, 0, "-", 0)
        assert one.start("a") == "ok 0"
        one.holds["a", 0] = 14000
        one.answer()
        assert one.start("b") == (
            "gpu_memory asks for 6000 MiB; of the 20000 MiB of GPU 0 5872 are free: others use 0, 1 of this run holds "
            "or is promised 14000, headroom 128"
        )


def test_what_is_not_known_and_what_is_old_starts_nothing() -> None:
    with host((20000, 20000)) as one:
        one.ask("a", 1, 4000, 0, "-", 0)
        one.ask("two", 2, 18000, 0, "-", 0)
        one.say("age 6000")
        assert one.start("a") == "unknown GPU 0 is measured again"
        one.number += 1
        (one.folder / "dispatch/measured").write_text(
            f"number {one.number} {uptime_ms()}\ngpu 1 GPU-1 0 20000\ntold 1\n.\n"
        )
        one.say(f"answer {one.number}")
        one.told_others = [0, 0]
        assert one.start("two") == "unknown nvidia-smi does not tell how full GPU 0 is"
        assert one.start("a") == "ok 1"
        one.number += 1
        (one.folder / "dispatch/measured").write_text(f"number {one.number} {uptime_ms()}\ngpu 0 GPU-0 0 20000\n")
        one.say(f"answer {one.number}")
        assert one.start("two").startswith("unknown"), "a torn answer is none"
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


@settings(max_examples=40, deadline=None)
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
        one.say("sums")
        assert set(one.hear().split()) <= {"0"}, "what was promised has been given back, to the last MiB"
