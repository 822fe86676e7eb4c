"""How fast a slot that became free is taken again: comborun against what people use instead, side by side.

    python benchmarks/dispatch.py [--sessions 500] [--slots 4] [--rounds 3]
    ENGINES=PYTHON python benchmarks/dispatch.py       beside HyperQueue and Ray, too, which that Python has

Every tool runs the same tiny bash script, which appends the time when it starts and the time when it ends to one file.
With S slots, gap k is the time from the k-th end to the (S+k)-th start. All tools pay for the script's own bash, which
starts before it can say so; that overhead is measured and printed. Prints a markdown table; asserts nothing.
"""

from __future__ import annotations

import argparse
import atexit
import os
import platform
import secrets
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from comborun.generate.bundle import bundle
from comborun.model.plan import Limits, Plan, Session
from comborun.model.resources import BashWord
from comborun.remote.library import library_files
from comborun.rules.results.fields import ResultRules

STAMP = """\
printf 's %s\\n' "$EPOCHREALTIME" >>"$1"
shift
"$@"
printf 'e %s\\n' "$EPOCHREALTIME" >>"$STAMPS"
"""
POLL = """\
n=0
for ((i = 0; i < $1; i++)); do
  while (($(jobs -rp | wc -l) >= $2)); do sleep 1; done
  "${@:3}" &
done
wait
"""
ENGINES = os.environ.get("ENGINES", "")
HYPERQUEUE = """\
import sys
from hyperqueue import Job
from hyperqueue.cluster import LocalCluster, WorkerConfig

slots, sessions, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
with LocalCluster() as cluster:
    cluster.start_worker(WorkerConfig(cores=slots))
    job = Job()
    for _ in range(sessions):
        job.program(command, stdout=None, stderr=None)
    client = cluster.client()
    client.wait_for_jobs([client.submit(job)])
"""
RAY = """\
import subprocess, sys
import ray

slots, sessions, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
ray.init(num_cpus=slots, include_dashboard=False, logging_level="ERROR")
session = ray.remote(num_cpus=1, max_retries=0)(lambda: subprocess.run(command, check=True) and None)
ray.get([session.remote() for _ in range(sessions)])
"""


@dataclass(frozen=True)
class Work:
    """What each tool has to do: `sessions` times `command`, at most `slots` at once."""

    command: tuple[str, ...]
    sessions: int
    slots: int
    folder: Path

    @property
    def stamps(self) -> Path:
        return self.folder / "stamps"

    @property
    def stamped(self) -> list[str]:
        return ["bash", "--norc", "--noprofile", str(self.folder / "stamp.sh"), str(self.stamps), *self.command]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "STAMPS": str(self.stamps)}


@dataclass(frozen=True)
class Measured:
    """Sessions per second from the first start to the last end, and the gaps in milliseconds, sorted."""

    rate: float
    gaps: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.gaps)

    @property
    def p99(self) -> float:
        return self.gaps[min(len(self.gaps) - 1, round(0.99 * (len(self.gaps) - 1)))]


def comborun(multiplexer: str) -> Callable[[Work], None]:
    """The real dispatcher on a run directory like any other."""

    def run(work: Work) -> None:
        directory, environment = run_directory(work)
        begin(directory, environment, multiplexer)
        until((directory / "dispatch/done").exists)

    return run


def run_directory(work: Work, *, stamped: bool = True) -> tuple[Path, dict[str, str]]:
    """A run directory like any other, and an environment with multiplexers of its own."""
    token = secrets.token_hex(2)
    directory, screens = work.folder / f"bench-20260101T000000Z-{token}", work.folder / "screens"
    for file in bundle(plan(work, stamped=stamped), "", library_files(), {}):
        path = directory / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
    (directory / "id").write_text(f"{directory.name}\n")
    screens.mkdir(mode=0o700)
    return directory, {**work.environment, "COMBORUN_TMUX_SOCKET": f"bench{token}", "SCREENDIR": str(screens)}


def begin(directory: Path, environment: dict[str, str], multiplexer: str) -> None:
    start = ["bash", str(directory / "run_parallel.sh"), "--multiplexer", multiplexer]
    subprocess.run(start, env=environment, check=True, stdout=subprocess.DEVNULL)


def plan(work: Work, *, stamped: bool) -> Plan:
    words = tuple(BashWord(word) for word in (work.stamped if stamped else map(shlex.quote, work.command)))
    sessions = tuple(
        Session(
            name=f"bench_{number}",
            policy=str(number),
            environment="bench",
            unit="episode",
            first=0,
            count=1,
            seed=None,
            command=words,
            setup="",
            workdir=None,
            variables=(("STAMPS", BashWord(str(work.stamps))),),
            gpus=0,
            results=ResultRules(files=()),
            digest="",
        )
        for number in range(work.sessions)
    )
    limits = Limits(parallel=work.slots, per_gpu=0, stagger=0.0, attempts=1)
    return Plan(grid="bench", sessions=sessions, limits=limits, gpus=(), after=None, poll=60.0, digest="")


def parallel(work: Work) -> None:
    command = ["parallel", "--will-cite", f"-j{work.slots}", "-N0", *work.stamped]
    numbers = "".join(f"{number}\n" for number in range(work.sessions))
    subprocess.run(command, env=work.environment, input=numbers, text=True, check=True)


def engine(program: str) -> Callable[[Work], None]:
    """An engine that is installed, with its server, on this machine."""

    def run(work: Work) -> None:
        command = [ENGINES, "-c", program, str(work.slots), str(work.sessions), *work.stamped]
        subprocess.run(command, env=work.environment, check=True, capture_output=True)

    return run


def poll_loop(work: Work) -> None:
    command = ["bash", "-c", POLL, "poll", str(work.sessions), str(work.slots), *work.stamped]
    subprocess.run(command, env=work.environment, check=True)


def until(over: Callable[[], bool], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not over():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{seconds:g} s are over")
        time.sleep(0.05)


TOOLS: dict[str, tuple[str, Callable[[Work], None]]] = {
    "comborun, tmux": ("tmux", comborun("tmux")),
    "comborun, screen": ("screen", comborun("screen")),
    "GNU parallel": ("parallel", parallel),
    "HyperQueue": (ENGINES, engine(HYPERQUEUE)),
    "Ray": (ENGINES, engine(RAY)),
    "a loop that polls every second": ("bash", poll_loop),
}
POLLED = 24
"""sessions for the loop: it would take minutes with all"""


def measure(tool: Callable[[Work], None], command: tuple[str, ...], sessions: int, slots: int) -> Measured:
    work = Work(command, sessions, slots, workspace())
    tool(work)
    return read(work)


def workspace() -> Path:
    """A folder for one round. All are removed at the end: after many files were deleted, ext4 takes three to seven
    times longer to make a file, for minutes.
    """
    folder = Path(tempfile.mkdtemp(prefix="cb"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "stamp.sh").write_text(STAMP)
    return folder


def read(work: Work) -> Measured:
    lines = [line.split() for line in work.stamps.read_text().splitlines()]
    starts, ends = (sorted(float(stamp) for kind, stamp in lines if kind == wanted) for wanted in "se")
    if len(starts) != work.sessions or len(ends) != work.sessions:
        raise RuntimeError(f"{len(starts)} starts and {len(ends)} ends of {work.sessions} sessions")
    gaps = sorted(1000 * (start - end) for start, end in zip(starts[work.slots :], ends, strict=False))
    return Measured(work.sessions / (ends[-1] - starts[0]), tuple(gaps))


def overhead(rounds: int = 50) -> float:
    """Milliseconds from starting the stamping script to its first stamp: every tool's gap contains them."""
    folder = workspace()
    work = Work(("true",), rounds, 1, folder)
    before = []
    for _ in range(rounds):
        before.append(time.time())
        subprocess.run(work.stamped, env=work.environment, check=True)
    starts = [float(line.split()[1]) for line in work.stamps.read_text().splitlines() if line.startswith("s")]
    return 1000 * statistics.median(start - began for start, began in zip(starts, before, strict=True))


def median_of(rounds: list[Measured]) -> Measured:
    """The round with the median gap: one whole measurement, not a mixture."""
    return sorted(rounds, key=lambda one: one.median)[len(rounds) // 2]


def table(results: dict[str, list[Measured]], sessions: dict[str, int]) -> Iterator[str]:
    yield "| tool | sessions | sessions/s | gap median | gap p99 | median / GNU parallel's |"
    yield "|---|---|---|---|---|---|"
    middle = {tool: median_of(rounds) for tool, rounds in results.items()}
    reference = middle["GNU parallel"].median if "GNU parallel" in middle else None
    for tool, one in middle.items():
        ratio = f"{one.median / reference:.1f}" if reference else "-"
        yield (f"| {tool} | {sessions[tool]} | {one.rate:.1f} | {one.median:.1f} ms | {one.p99:.1f} ms | {ratio} |")


def compare(command: tuple[str, ...], count: int, options: argparse.Namespace) -> None:
    tools = {name: run for name, (program, run) in TOOLS.items() if shutil.which(program)}
    sessions = {name: min(POLLED, count) if run is poll_loop else count for name, run in tools.items()}
    results: dict[str, list[Measured]] = {name: [] for name in tools}
    for _ in range(options.rounds):  # interleaved, so that a noisy minute hits all of them
        for name, run in tools.items():
            results[name].append(measure(run, command, sessions[name], options.slots))
    print(f"\n`{' '.join(command)}`, {options.slots} slots, the median of {options.rounds} rounds\n")
    print("\n".join(table(results, sessions)), flush=True)


def platform_line() -> str:
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, load {load:.1f} before the first round"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(platform_line())
    print(f"in every gap: {overhead():.1f} ms from the start of the stamping script to its first stamp")
    compare(("true",), options.sessions, options)
    compare(("sleep", "0.05"), options.sessions, options)
    compare(("sleep", "0.5"), max(options.slots + 1, options.sessions * 2 // 5), options)


if __name__ == "__main__":
    main()
