"""Every file name of a run directory, in one place (docs/architecture.md says what the main ones hold)."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

NAME = "[A-Za-z0-9_-]{1,200}"
"""regular expression: the name of a session, a model server or a run"""

SERVER = re.compile("[a-z0-9-]+")
"""the name of a model server, and of its kind"""
VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
"""the name of an environment variable"""

AFTER = "after"
"""The session that runs the grid's `after` command. No combo can have this name: theirs contain an underscore."""

TOGETHER, DROPPED = "together", "dropped"
"""the sessions that share a process, in a row of the queue, session.json, grant and claim; and, in a row, those of them
that are not in the grid any more"""

DEFAULT_ROOT = "~/comborun"
"""the folder of the runs on a host, unless the grid says otherwise"""


SOCKETS = {"tmux": "TMUX_TMPDIR", "screen": "SCREENDIR"}
"""multiplexer -> the variable that names the folder of its sockets, "" if there is none; a begin record has it in small
letters. The preferred one first; comborun/host/engines has a class for each"""
MULTIPLEXER_NAMES = tuple(SOCKETS)

SAYS = "comborun: "
"""begins a line that a supervisor adds to the log of its session"""
SERVERS = "servers/"
"""prefix of a model server's name where a session's name may also stand"""


PROGRAM, FIND_PYTHON = "comborun_host", "find_python.sh"
"""below lib/: the host program, and the script that finds its Python"""
ATTEMPT, _WINDOW = "attempt-", "window-"
_CONFIGURATIONS = {"tmux": "tmux.conf", "screen": "screenrc"}
NUMBER = "[1-9][0-9]{0,8}"
"""regular expression: the number of an attempt, a plan or a batch"""


MOVE = re.compile(rf"{NAME}(?:\.[0-9]+){{3}}\.(?:out|in)")
"""the name of a record of a move: session, number of the deal, epoch"""


def _number(before: str, name: str, after: str = "") -> int:
    found = re.fullmatch(f"{before}({NUMBER}){after}", name)
    return int(found[1]) if found else 0


SERVER_VARIABLES = "COMBORUN_SERVER_"
"""start of the names of the variables with the addresses of model servers"""
SERVER_FIELDS = ("url", "host", "port")
"""parts of such an address, as in `{server.NAME.url}`"""
NO_PROXY, LOOPBACK = ("no_proxy", "NO_PROXY"), ("127.0.0.1", "localhost", "::1")
"""variables of hosts for which no proxy is asked; what they must hold for servers of the same machine"""


def server_variable(name: str, field: str = "") -> str:
    """The environment variable of a part of a server's address; without one the start of all three names."""
    return f"{SERVER_VARIABLES}{name.upper().replace('-', '_')}_{field.upper()}"


def attempt_number(folder: str) -> int:
    """The number of an attempt, from the name of its folder; 0 for another folder."""
    return _number(ATTEMPT, folder)


def plan_number(file: str) -> int:
    """The number of a plan, from the name of its file; 0 for another file."""
    return _number("plan-", file, r"\.json")


def batch_number(file: str) -> int:
    """The number of a batch of Slurm's tasks, from the name of its file; 0 for another file."""
    return _number("batch-", file, r"\.tsv")


def bare(name: str) -> str:
    """The name of a session or of a model server, as windows, messages and people use it."""
    return name.rpartition("/")[2]


def window(name: str, attempt: int, run_id: str) -> str:
    """The name of an attempt's window. It is always used whole; nothing matches a prefix."""
    return f"{bare(name)}_{run_id[-4:]}" + (f"_a{attempt}" if attempt > 1 else "")


class _File:
    """The path of a file of a layout, made when it is asked for: a layout often serves for one question."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, layout: AttemptLayout | RunLayout, _: object = None) -> str:
        return layout.at + self._name


class AttemptLayout:
    grant = _File("grant")
    claim = _File("claim")
    begin = _File("begin")
    end = _File("end")
    log = _File("log")
    output = _File("out")
    files = _File("files")
    videos = _File("videos.tsv")
    curves = _File("curves.json")  # only of a training
    stop = _File("stop")
    signalled = _File("signalled")
    stalled = _File("stalled")
    progressed = _File("progressed")
    wrong_gpu = _File("wrong_gpu")
    counts = _File(".counts")
    follows = _File(".follows")  # the command has ended, and what it started goes on
    failure = _File(".failure")
    verdict = _File(".verdict")
    heartbeat = _File("heartbeat")  # only on Slurm, as the frozen output is
    frozen_output = _File("out-closed")
    ready = _File("ready")
    unhealthy = _File("unhealthy")

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.at = f"{directory}/"


class RunLayout:
    """The files of one run directory; RUN gives names relative to it."""

    id = _File("id")
    sequence = _File("sequence")
    digest = _File("digest")
    manifest = _File("run.json")
    grid = _File("grid.yaml")
    front = _File("run_parallel.sh")
    library = _File("lib")
    program = _File(f"lib/{PROGRAM}")
    find_python = _File(f"lib/{FIND_PYTHON}")
    window = _File("lib/window.sh")
    sessions = _File("sessions")
    servers = _File("servers")
    results = _File("results")
    canary = _File("canary.json")
    report = _File("report")
    dispatch = _File("dispatch")
    python = _File("dispatch/python")
    queue = _File("dispatch/queue.jsonl")
    server_table = _File("dispatch/servers.jsonl")  # only in a run with model servers
    policy = _File("dispatch/policy.json")
    replaces = _File("dispatch/replaces")
    replaced = _File("dispatch/replaced")
    wanted_secrets = _File("dispatch/secrets.json")
    secrets = _File("dispatch/secrets")
    notify = _File("dispatch/notify.sh")
    notify_output = _File("dispatch/notify.out")
    notify_failed = _File("dispatch/notify.failed")
    notified = _File("dispatch/notified")
    multiplexer = _File("dispatch/multiplexer")
    slots = _File("dispatch/slots")
    settings = _File("dispatch/settings")
    settings_lock = _File("dispatch/.settings.lock")
    lock = _File("dispatch/lock")
    start_lock = _File("dispatch/.start")
    leaving = _File("dispatch/leaving")
    dispatcher = _File("dispatch/dispatcher")
    machine = _File("dispatch/machine")
    fifo = _File("dispatch/fifo")
    environments = _File("dispatch/environments.jsonl")
    events = _File("dispatch/events.jsonl")
    people = _File("dispatch/people.jsonl")  # who ordered what, and from where; stays on the host
    told = _File("dispatch/told.jsonl")
    waiting = _File("dispatch/waiting")
    hold = _File("dispatch/hold")
    resumed = _File("dispatch/resumed")
    stopped = _File("dispatch/stopped")
    breaker = _File("dispatch/breaker")
    quarantine = _File("dispatch/quarantine")
    gpu_caps = _File("dispatch/gpu_caps")
    decided = _File("dispatch/decided")
    decided_lock = _File("dispatch/.decided.lock")
    out = _File("dispatch/out")
    training = _File("dispatch/training")  # this and the following: only in a run that follows a training
    checkpoints = _File("dispatch/checkpoints.jsonl")
    follow_lock = _File("dispatch/.follow.lock")
    follower = _File("dispatch/follower")  # what it sees and does now
    kept = _File("checkpoints")
    done = _File("dispatch/done")
    seen = _File("dispatch/seen")  # of a trial: whoever made it needs it no more
    engine = _File("dispatch/engine")  # this and the following: only in a run on Slurm
    slurm_sessions = _File("dispatch/slurm.json")
    deal = _File("boxes/deal.json")  # this and the following: only in a grid run on several boxes
    stops = _File("boxes/stops.json")
    fence = _File("boxes/fence.json")
    boxes_lock = _File("boxes/lock")
    moving = _File("boxes/moving.json")  # at the arbiter: the deal under which sessions may move
    moves = _File("moves")
    lost = _File("lost")
    slurm = _File("slurm")
    settle = _File("slurm/settle.sh")
    jobs = _File("slurm/jobs")
    states = _File("slurm/states")
    shares = _File("slurm/shares")
    silent = _File("slurm/silent")
    slurm_variables = _File("slurm/variables")
    task_outputs = _File("slurm/out")

    def __init__(self, directory: str = "") -> None:
        self.directory = directory
        self.at = f"{directory}/" if directory else ""

    def plan(self, number: int | str) -> str:
        """The file of a plan. The newest one counts; a changed grid adds the next number."""
        return f"{self.at}plan-{number}.json"

    def amended_grid(self, number: int) -> str:
        """The grid from which plan-`number` was made, from the second on."""
        return f"{self.at}grid-{number}.yaml"

    def session(self, name: str) -> str:
        """The folder of a session, or of a model server for `servers/NAME`."""
        return f"{self.at}{name}" if name.startswith(SERVERS) else f"{self.sessions}/{name}"

    def script(self, name: str) -> str:
        return f"{self.session(name)}/session.sh"

    def session_lock(self, name: str) -> str:
        return f"{self.session(name)}/lock"

    def retry_request(self, name: str) -> str:
        """After which attempt a person asked for another one."""
        return f"{self.session(name)}/retry_request"

    def server_url(self, name: str) -> str:
        """The address of a model server while it is ready, for sessions that are started by hand."""
        return f"{self.servers}/{name}/url"

    def session_json(self, name: str) -> str:
        """The facts that its supervisor needs beside the script."""
        return f"{self.session(name)}/session.json"

    def attempt(self, name: str, number: int | str) -> AttemptLayout:
        """The files of an attempt. Both may also be patterns."""
        return AttemptLayout(f"{self.session(name)}/{ATTEMPT}{number}")

    def window_fifo(self, pid: int, number: int) -> str:
        """Through which a window that a dispatcher has opened ahead gets its supervisor."""
        return f"{self.dispatch}/{_WINDOW}{pid}-{number}"

    def window_fifos(self, entries: Iterable[str]) -> list[str]:
        """Those among the files of the dispatcher."""
        return [f"{self.dispatch}/{name}" for name in entries if name.startswith(_WINDOW)]

    def configuration(self, multiplexer: str) -> str:
        return f"{self.dispatch}/{_CONFIGURATIONS[multiplexer]}"

    def array(self, kind: int) -> str:
        """The job script of the tasks of one kind of request; kinds count from 1."""
        return f"{self.slurm}/array-{kind}.sh"

    def lost_box(self, boxes: str, number: tuple[int, int]) -> str:
        """The record of a loss: the deal that followed from it."""
        era, count = number
        return f"{self.lost}/{re.sub('[^A-Za-z0-9_.+-]', '-', boxes)[:100]}.{f'{era}.' * (era > 0)}{count}"

    def move(self, name: str, number: tuple[int, int], epoch: int, kind: str) -> str:
        """The record of a move under a deal: `out` at the box that gives, `in` at the one that takes."""
        return f"{self.moves}/{name}.{number[0]}.{number[1]}.{epoch}.{kind}"

    def batch(self, number: int) -> str:
        return f"{self.slurm}/batch-{number}.tsv"


KEPT_EPISODES = "boxes/kept.json"
"""in the joint copy of a run on several hosts: session -> attempt -> ranges of episodes that count of a lost host"""
CLOCKS = "boxes/clocks.json"

RUN = RunLayout()
"""names relative to the run directory"""

FETCHED = (RUN.id, RUN.digest, RUN.manifest, RUN.grid, RUN.canary, RUN.queue, RUN.deal)
"""what a mirror copies of a run, beside plans, attempts, the state of the dispatcher and `done`"""
FETCHED_STATE = (RUN.slots, RUN.multiplexer, RUN.stopped, RUN.environments, RUN.events, RUN.checkpoints)
_RECORDS = AttemptLayout("")
FETCHED_RECORDS = tuple(
    path[1:]
    for path in (_RECORDS.claim, _RECORDS.grant, _RECORDS.begin, _RECORDS.stop, _RECORDS.videos, _RECORDS.curves)
)
"""what it copies of an attempt, beside its results, its log and, last, its end"""
