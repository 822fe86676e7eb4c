"""Every file name of a run directory, in one place (docs/architecture.md says what the main ones hold)."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

NAME = "[A-Za-z0-9_-]{1,200}"
"""regular expression: the name of a session, a model server or a run"""

AFTER = "after"
"""The session that runs the grid's `after` command. No combo can have this name: theirs contain an underscore."""

TOGETHER, DROPPED = "together", "dropped"
"""the sessions that share a process, in a row of the queue, session.json, grant and claim; and, in a row, those of them
that are not in the grid any more"""

DEFAULT_ROOT = "~/comborun"
"""the folder of the runs on a host, unless the grid says otherwise"""


MULTIPLEXER_NAMES = ("tmux", "screen")
"""the preferred one first; comborun/host/engines has a class for each"""

SERVERS = "servers/"
"""prefix of a model server's name where a session's name may also stand"""


PROGRAM, FIND_PYTHON = "comborun_host", "find_python.sh"
"""below lib/: the host program, and the script that finds its Python"""
ATTEMPT, _WINDOW = "attempt-", "window-"
_CONFIGURATIONS = {"tmux": "tmux.conf", "screen": "screenrc"}
NUMBER = "[1-9][0-9]{0,8}"
"""regular expression: the number of an attempt, a plan or a batch"""


def _number(before: str, name: str, after: str = "") -> int:
    found = re.fullmatch(f"{before}({NUMBER}){after}", name)
    return int(found[1]) if found else 0


SERVER_VARIABLES = "COMBORUN_SERVER_"
"""start of the names of the variables with the addresses of model servers"""
SERVER_FIELDS = ("url", "host", "port")
"""parts of such an address, as in `{server.NAME.url}`"""


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


class AttemptLayout:
    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.grant = f"{directory}/grant"
        self.claim = f"{directory}/claim"
        self.begin = f"{directory}/begin"
        self.end = f"{directory}/end"
        self.log = f"{directory}/log"
        self.output = f"{directory}/out"
        self.files = f"{directory}/files"
        self.videos = f"{directory}/videos.tsv"
        self.stop = f"{directory}/stop"
        self.signalled = f"{directory}/signalled"
        self.stalled = f"{directory}/stalled"
        self.progressed = f"{directory}/progressed"
        self.wrong_gpu = f"{directory}/wrong_gpu"
        self.counts = f"{directory}/.counts"
        self.follows = f"{directory}/.follows"  # the command has ended, and what it started goes on
        self.failure = f"{directory}/.failure"
        self.verdict = f"{directory}/.verdict"
        self.heartbeat = f"{directory}/heartbeat"  # only on Slurm, as the frozen output is
        self.frozen_output = f"{directory}/out-closed"
        self.ready = f"{directory}/ready"
        self.unhealthy = f"{directory}/unhealthy"


class RunLayout:
    """The files of one run directory; RUN gives names relative to it."""

    def __init__(self, directory: str = "") -> None:
        self.directory = directory
        at = f"{directory}/" if directory else ""
        self.id = f"{at}id"
        self.sequence = f"{at}sequence"
        self.digest = f"{at}digest"
        self.manifest = f"{at}run.json"
        self.grid = f"{at}grid.yaml"
        self.front = f"{at}run_parallel.sh"
        self.library = f"{at}lib"
        self.program = f"{at}lib/{PROGRAM}"
        self.find_python = f"{at}lib/{FIND_PYTHON}"
        self.window = f"{at}lib/window.sh"
        self.sessions = f"{at}sessions"
        self.servers = f"{at}servers"
        self.results = f"{at}results"
        self.canary = f"{at}canary.json"
        self.report = f"{at}report"
        self.dispatch = dispatch = f"{at}dispatch"
        self.python = f"{dispatch}/python"
        self.queue = f"{dispatch}/queue.jsonl"
        self.server_table = f"{dispatch}/servers.jsonl"  # only in a run with model servers
        self.policy = f"{dispatch}/policy.json"
        self.replaces = f"{dispatch}/replaces"
        self.replaced = f"{dispatch}/replaced"
        self.wanted_secrets = f"{dispatch}/secrets.json"
        self.secrets = f"{dispatch}/secrets"
        self.notify = f"{dispatch}/notify.sh"
        self.notify_output = f"{dispatch}/notify.out"
        self.notify_failed = f"{dispatch}/notify.failed"
        self.notified = f"{dispatch}/notified"
        self.multiplexer = f"{dispatch}/multiplexer"
        self.slots = f"{dispatch}/slots"
        self.settings = f"{dispatch}/settings"
        self.lock = f"{dispatch}/lock"
        self.start_lock = f"{dispatch}/.start"
        self.leaving = f"{dispatch}/leaving"
        self.dispatcher = f"{dispatch}/dispatcher"
        self.machine = f"{dispatch}/machine"
        self.fifo = f"{dispatch}/fifo"
        self.environments = f"{dispatch}/environments.jsonl"
        self.events = f"{dispatch}/events.jsonl"
        self.people = f"{dispatch}/people.jsonl"  # who ordered what, and from where; stays on the host
        self.told = f"{dispatch}/told.jsonl"
        self.waiting = f"{dispatch}/waiting"
        self.hold = f"{dispatch}/hold"
        self.resumed = f"{dispatch}/resumed"
        self.stopped = f"{dispatch}/stopped"
        self.breaker = f"{dispatch}/breaker"
        self.quarantine = f"{dispatch}/quarantine"
        self.gpu_caps = f"{dispatch}/gpu_caps"
        self.decided = f"{dispatch}/decided"
        self.decided_lock = f"{dispatch}/.decided.lock"
        self.out = f"{dispatch}/out"
        self.training = f"{dispatch}/training"  # this and the following: only in a run that follows a training
        self.checkpoints = f"{dispatch}/checkpoints.jsonl"
        self.follow_lock = f"{dispatch}/.follow.lock"
        self.kept = f"{at}checkpoints"
        self.done = f"{dispatch}/done"
        self.seen = f"{dispatch}/seen"  # of a trial: whoever made it needs it no more
        self.engine = f"{dispatch}/engine"  # this and the following: only in a run on Slurm
        self.slurm_sessions = f"{dispatch}/slurm.json"
        self.slurm = f"{at}slurm"
        self.settle = f"{at}slurm/settle.sh"
        self.jobs = f"{at}slurm/jobs"
        self.states = f"{at}slurm/states"
        self.shares = f"{at}slurm/shares"
        self.silent = f"{at}slurm/silent"
        self.slurm_variables = f"{at}slurm/variables"
        self.task_outputs = f"{at}slurm/out"
        self._at = at

    def plan(self, number: int | str) -> str:
        """The file of a plan. The newest one counts; a changed grid adds the next number."""
        return f"{self._at}plan-{number}.json"

    def amended_grid(self, number: int) -> str:
        """The grid from which plan-`number` was made, from the second on."""
        return f"{self._at}grid-{number}.yaml"

    def session(self, name: str) -> str:
        """The folder of a session, or of a model server for `servers/NAME`."""
        return f"{self._at}{name}" if name.startswith(SERVERS) else f"{self.sessions}/{name}"

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

    def batch(self, number: int) -> str:
        return f"{self.slurm}/batch-{number}.tsv"


RUN = RunLayout()
"""names relative to the run directory"""

FETCHED = (RUN.id, RUN.digest, RUN.manifest, RUN.grid, RUN.canary, RUN.queue)
"""what a mirror copies of a run, beside plans, attempts, the state of the dispatcher and `done`"""
FETCHED_STATE = (RUN.slots, RUN.multiplexer, RUN.stopped, RUN.environments, RUN.events, RUN.checkpoints)
_RECORDS = AttemptLayout("")
FETCHED_RECORDS = tuple(
    path[1:] for path in (_RECORDS.claim, _RECORDS.grant, _RECORDS.begin, _RECORDS.stop, _RECORDS.videos)
)
"""what it copies of an attempt, beside its results, its log and, last, its end"""
