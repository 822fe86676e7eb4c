"""What a host lacks or refuses."""

from __future__ import annotations

from comborun.rules.deal import Stale
from comborun.rules.environment import DIFFERS
from comborun.rules.facts import Fact
from comborun.rules.host import PYTHON_REPLACED, Denial, FolderFlaw, Lack, Limit, Silence
from comborun.rules.machines import Elsewhere
from comborun.rules.slurm_variables import Variable
from comborun.rules.vocabulary import several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.words import Words

_ROOM = "`combo clean` removes old runs, `root:` names another disk"


def _near(fact: Fact, otherwise: str) -> str:
    return f"; did you mean {fact.text('near')}?" if fact.text("near") else otherwise


def _folder(fact: Fact) -> str:
    folder = fact.text("folder")
    make = f"; make it there, or `sync: [{{from: ., to: {folder}}}]` brings the grid file's"
    return f"workdir: there is no folder {folder}{_near(fact, make)}"


def _file(fact: Fact) -> str:
    path, below = fact.text("path"), fact.text("below")
    copy = f"; copy it there, or `sync: [{{from: {path.rpartition('/')[2]}, to: {path}}}]` brings it"
    make = f" in {below}; copy or make it there, or correct the path"
    return f"file: there is no {path}{_near(fact, make if below else copy)}"


def _relative(fact: Fact) -> str:
    paths, folder = fact.texts("paths"), fact.text("folder")
    are = f"{', '.join(paths)} {'is' if len(paths) == 1 else 'are'} relative, and no `workdir` is set"
    if fact.text("sync_to"):
        to, source = fact.text("sync_to"), fact.text("sync_from")
        return f"file: {are}: `workdir: {to}` is the folder to which `sync` brings {source}"
    sync = f"`sync: [{{from: ., to: {folder}}}]` with `workdir: {folder}` brings the grid file's folder there"
    return f"file: {are}: `workdir: ~/FOLDER` names its folder on the host; {sync}"


def _differs(fact: Fact) -> str:
    changed = fact.fields.get("changed")
    pairs = changed.items() if isinstance(changed, dict) else ()
    said = [_variable(name, *map(str, pair)) for name, pair in pairs if isinstance(pair, list) and len(pair) == 2]
    count = fact.count("sessions")
    whose = f"{several(count, 'session')} had" if count else "sessions that start now get"
    return f"{whose} other variables than the first launch: {'; '.join(said)}"


def _variable(name: str, then: str, now: str) -> str:
    if not then or not now or not name.endswith("PATH"):
        return f"{name} {f'is {now}' if now else 'is not set'}, and was {then or 'not set'}"
    before, after = then.split(":"), now.split(":")
    added, gone = ([one for one in some if one not in of] for some, of in ((after, before), (before, after)))
    says = [f"{word} {', '.join(some)}" for word, some in (("has", added), ("lacks", gone)) if some]
    return f"{name} {' and '.join(says) or 'has another order'}"


WORDS: Words = {
    DIFFERS: _differs,
    PYTHON_REPLACED: "{before}, the Python of this run, is gone on {host}; it goes on with {python}",
    Denial.USAGE: "[not understood: {given}; ]usage: {usage}",
    Denial.NOT_A_NUMBER: "slots needs a number from 1; to start no new sessions, use pause",
    Denial.NOT_SETTABLE: "{given} can't be set while a run goes on; known are {keys}",
    Denial.NO_SUCH_GPU: "there is no GPU {gpu}: nvidia-smi lists [{has}|none]",
    Denial.NEVER_STARTS: "{session} could never start then: {reason}",
    Denial.SERVER_ON_EACH_GPU: "the server {server} runs on each GPU of the plan; add GPUs by a changed grid",
    Denial.SLURM_DECIDES: "{key} can't be set on Slurm, which picks the GPUs: set how many tasks run with parallel=N, "
    "and choose nodes with `slurm` in the grid",
    Denial.NO_NAMES: "retry needs names of sessions, --failed or --stalled",
    Denial.NO_RUN: "{path} is not a run directory",
    Denial.NO_SESSION: "there is no session {session}",
    Denial.NO_NOTIFY: "the grid of this run has no notify",
    Denial.NO_LINE: "{path} has no line {line}",
    Denial.NO_TASK: "this is no task of Slurm",
    Denial.UNREADABLE: "{path} is absent, torn or foreign",
    Denial.RUN_UNREADABLE: (
        "the run {run} can't be read ({path}[: {error}| is empty{empty:if}| is not JSON]): --new makes another one"
    ),
    Denial.UNWRITABLE: "can't write {path}: [{error}|the disk may be full]",
    Denial.LOCK_HELD: "another process of comborun holds {lock}",
    Denial.NO_PROCESS: "no process {pid} runs there: name that of the training, or leave it out",
    Denial.LOCK_FOREIGN: "a process that is not a dispatcher holds {lock} (`fuser -v` shows it)",
    Denial.ATTEMPT_LIVES: "an earlier attempt of {session} still holds the lock",
    Denial.ATTEMPT_MADE: "attempt {attempt} has been made",
    Denial.DISPATCHER_ENDED: "the dispatcher ended with code {exit}: {said}",
    Denial.NO_SERVER: "it needs the server {server}, and none is ready",
    Denial.ELSEWHERE: "the path {path} leads elsewhere",
    Denial.LINK_IN_THE_WAY: "{path} is a link, and nothing is written through it",
    Denial.FOLDER_IN_THE_WAY: "{path} is a folder",
    Denial.NO_FILE: "{path} is not a file",
    Denial.PATH_UNUSABLE: "{path}: {error}",
    Denial.DATA_CHANGED: "the data arrived changed: nothing was changed",
    Denial.DATA_CUT: "what was sent did not arrive whole: nothing was changed",
    Denial.SLURM_HOLDS: "Slurm still holds tasks of the run: {said}",
    Denial.SLURM_REFUSES: "Slurm refuses: {said}",
    Silence.NO_ANSWER: "no answer within {seconds:g} s",
    Silence.ANSWERED_WITH: "{said}",
    Silence.FAILED: "{program} ended with code {exit}",
    Denial.OTHER_USER: "the run belongs to {owner}, whose processes only {owner} can end",
    Denial.SLURM_SILENT: "Slurm does not answer: {said}",
    Denial.DISPATCHER_STAYS: "the dispatcher on {host} lives, and does not leave",
    Denial.DEALT_ELSEWHERE: "{session} runs on {box}",
    Denial.GRID_RUN_STOPPED: "the run was stopped on all its hosts: `combo resume` continues it",
    Denial.NO_GRID_RUN: "{path} is not a part of a run on several hosts",
    Denial.DEAL_UNREADABLE: (
        "{path} can't be read, and says which sessions run on this host: none starts until it is put back. [It is the"
        " same as {taken} of the host with {session}; if none has that, `rm {path}` keeps {session} here|The same file"
        " of another host differs in `box` only]"
    ),
    Stale.OTHER_RUN: "the order is for another run",
    Stale.OLDER: "the order is older than what is in force: {given} after {has}",
    Stale.FENCED: "the order is of a time before its first host was given up (era {era})",
    Stale.OTHER_DEAL: "another order with the number {number} is in force",
    Stale.TAKES_AWAY: "the order takes {session} away, and this host was not given up",
    Stale.OTHER_TIME: "the order is for {given}, and {has} is in force",
    Stale.EPOCH: "move {given} of {session} does not follow move {has}",
    Stale.OTHER_MOVE: "{session} is at {box}",
    Stale.NO_PLACE: "{box} can't take it",
    Stale.HAS_BEGUN: "{session} has begun, so it stays",
    Denial.NO_MEMORY: "there is not enough memory here",
    Denial.FAULT: "{error}[ ({path})]",
    Limit.OPEN_FILES: "too many files are open here (`ulimit -n`)",
    Limit.MACHINE_FILES: "too many files are open on this machine",
    Limit.MEMORY: "there is no memory for another process (`ulimit -v`)",
    Limit.PROCESSES: "the limit on processes is reached: this user may have {most}, threads included (`ulimit -u`)",
    Limit.MACHINE_PROCESSES: "the limit on processes of this machine, or of a control group, is reached",
    FolderFlaw.NOT_MADE: "there is no folder {path}, and none can be made: {error}",
    FolderFlaw.UNWRITABLE: (
        "{path} belongs to {owner}, and others can't write there ({error}): give a `root` of your own"
    ),
    FolderFlaw.NO_FOLDER: "{path} is not a folder",
    FolderFlaw.FOREIGN: "{path} belongs to somebody else",
    FolderFlaw.OPEN: "others may write in {path} (mode {mode})",
    Lack.FOLDER: _folder,
    Lack.FILE: _file,
    Lack.RELATIVE: _relative,
    Lack.ENVIRONMENT: (
        "conda: there is no environment {name}[; did you mean {near}?|; there are {known}|; no conda has any in the"
        " usual folders, nor where `setup` has `source FOLDER/etc/profile.d/conda.sh`]"
    ),
    Lack.NOT_EXECUTABLE: "program: {program} is not executable; chmod +x {program}",
    Lack.PROGRAM: "program: {program} is not there[; did you mean {near}?]",
    Lack.ON_PATH: (
        "program: {program} is not on the PATH"
        "[; did you mean {near}?|; write its whole path, or add its folder to PATH in `setup`]"
    ),
    Lack.RUNTIME: "container: {runtime} is not installed; `runtime` may be docker, podman or apptainer",
    Lack.XVFB: "display: there is no Xvfb on the PATH, which `display: xvfb` asks for: sudo apt-get install xvfb",
    Lack.RUNTIME_FAILS: "container: {runtime} starts nothing here: {said}",
    Lack.ROOTLESS: (
        "container: {runtime} is rootless here, and your user there could not write results; "
        "`container: {{options: --user=0:0}}` makes it you"
    ),
    Lack.DISK_FULL: f"disk: {{root}}: the disk is full, {{free_kib}} KiB are free; {_ROOM}",
    Lack.DISK_SHORT: (
        f"disk: {{root}}: {{free_mib}} MiB are free, and the last run of this grid wrote {{wrote_mib}} MiB; {_ROOM}"
    ),
    Variable.COUNTS: "{name}={value} of your environment counts: the grid gives no {option}",
    Variable.IGNORED: "{name}={value} of your environment does not count",
    "run_in_use": "something works in it",
    Elsewhere.MACHINE: "it runs on {host}: give the command there, or with `--host {host}`",
    Elsewhere.NAMESAKE: "it runs on another machine that is also called {host}: give the command there",
    Elsewhere.NAMESPACE: "it runs in another container of this machine, {host}: give the command there",
}
