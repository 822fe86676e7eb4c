"""The findings of `combo doctor` in words: what was found, what it leads to, and what mends it."""

from __future__ import annotations

import shlex

from comborun.rules.findings import Found, Level
from comborun.rules.host import Lack
from comborun.rules.vocabulary import amount
from comborun.words import fill, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Mapping, Union

    from comborun.rules.facts import Fact
    from comborun.rules.findings import Finding
    from comborun.words import Words

    Text = Union[str, Callable[[Fact], str]]

_NO_RUN_THERE = "no run can be put there"
_NO_VIEW = "no session can be opened or looked at"
_NO_GPU = "nothing can use a GPU"
_OTHER_ROOT = "combo doctor --root DIR  # and root: DIR in the grid"
_EGL_GUESSED = (
    "{{egl_device}} is taken to be the GPU's index; rendering may land on another GPU, or fail",
    "python3 with ctypes, and libEGL of the driver (libnvidia-gl)",
)
_TIMES_OFF, _SET_CLOCK = "times in tables are off by that", "sudo timedatectl set-ntp true"
_LOCAL_DISK = "root: DIR in the grid, with a folder on a local disk"
_WITHOUT_LOCKS = ("two dispatchers could run at once, and sessions be started twice", _LOCAL_DISK)
_LOGIND = (
    "sudo mkdir -p /etc/systemd/logind.conf.d"
    " && printf '[Login]\\nKillUserProcesses=no\\n' | sudo tee /etc/systemd/logind.conf.d/comborun.conf"
    " && sudo systemctl restart systemd-logind"
)
_HOGS = "ps -eo user,pid,{0},args --sort=-{0} | head"


def _gpu_room(fact: Fact) -> str:
    users = fact.fields.get("users")
    named = [_user(user) for user in users if isinstance(user, dict)] if isinstance(users, list) else []
    used = "" if users is None else f", used by {', '.join(named) or 'programs that cannot be named'}"
    return fill("{name}, {free_bytes:amount} of {total_bytes:amount} free", fact) + used


def _user(user: Mapping[str, object]) -> str:
    held = user.get("bytes")
    memory = f", {amount(held)}" if isinstance(held, int) else ""
    return f"{user.get('owner')}: {user.get('program')} ({user.get('pid')}{memory})"


def _egl_differs(fact: Fact) -> str:
    devices = fact.fields.get("devices")
    pairs = [one for one in devices if isinstance(one, list) and len(one) == 2] if isinstance(devices, list) else []
    return ", ".join(f"GPU {gpu} is EGL device {device}" for gpu, device in pairs)


def _clock(fact: Fact) -> str:
    off, doubt = fact.number("off_s") or 0.0, fact.number("doubt_s") or 0.0
    return f"{off:+.2f} s against this machine, ± {doubt:.2f} s"


def _of_disk(fact: Fact) -> str:
    return f"du -xh --max-depth=2 {shlex.quote(fact.text('mount'))} | sort -h | tail -20"


def _on_path(command: str) -> Callable[[Fact], str]:
    return lambda fact: f"{command} {shlex.quote(fact.text('path'))}"


_ROWS: dict[str, tuple[Text, ...]] = {
    Found.BASH: ("{version}",),
    Found.BASH_TOO_OLD: (
        "bash is {version}; {least} is the oldest that works",
        "no session can start, and nothing else was looked at",
        "sudo apt-get install bash",
    ),
    Found.PROGRAMS: ("all that sessions need is there",),
    Found.NO_XVFB_HERE: (
        "there is no Xvfb, and the grid says `display: xvfb`",
        "its sessions fail before their command starts",
        "sudo apt-get install xvfb",
    ),
    Found.PROGRAMS_MISSING: (
        "not on the PATH: {programs}",
        "sessions can't be started or supervised",
        "sudo apt-get install bash coreutils util-linux",
    ),
    Found.PROGRAMS_POOR: (
        "{programs} can't do what GNU's can, as those of BusyBox",
        "sessions can't be supervised",
        "sudo apt-get install coreutils",
    ),
    # tmux, screen, logging out
    Found.TMUX: ("{version}[; our server runs{runs:if}]",),
    Found.OTHER_MULTIPLEXER: ("is not there; sessions run in {multiplexer} ({version})",),
    Found.NO_MULTIPLEXER: (
        lambda fact: f"neither {' nor '.join(fact.texts('multiplexers'))} is there",
        "there is nothing to run sessions in",
        lambda fact: f"sudo apt-get install {' '.join(fact.texts('multiplexers')[:1])}",
    ),
    Found.TMUX_HANGS: ("tmux does not answer", _NO_VIEW, "ps -ef | grep tmux"),
    Found.SERVER_STOPPED: ("our tmux server {pid} is stopped", _NO_VIEW, "kill -CONT {pid}"),
    Found.SERVER_SILENT: (
        "our tmux server {pid} does not answer",
        _NO_VIEW,
        "kill {pid}  # sessions go on without their windows",
    ),
    Found.SERVER_WITHOUT_SOCKET: (
        "our tmux server {pid} lives, and its socket is gone or another's",
        "its sessions go on, but can't be read",
        "kill -USR1 {pid}",
    ),
    Found.TMUX_FAILS: ("tmux: {said}", _NO_VIEW, "export TMUX_TMPDIR=~/.tmux; mkdir -m 700 ~/.tmux"),
    Found.LOGOUT_HARMLESS: ("ends nothing (systemd {systemd})",),
    Found.NO_SYSTEMD: ("no systemd here (process 1 is {first}): it ends nothing",),
    Found.SYSTEMD_HANGS: (
        "systemd does not answer",
        "it is not known whether logging out ends sessions",
        "loginctl list-sessions",
    ),
    Found.KILL_USER_PROCESSES: ("KillUserProcesses=yes", "every session is ended when you log out", lambda _: _LOGIND),
    Found.NO_LINGERING: (
        "sessions run below {group}, and lingering is off",
        "when your last login ends, systemd ends your user manager and every session with it",
        "loginctl enable-linger",
    ),
    # GPUs
    Found.NO_GPU_HERE: ("no NVIDIA GPU here",),
    Found.DRIVER: ("{version}, {gpus:GPU}",),
    Found.NO_NVIDIA_SMI: (
        "there is an NVIDIA driver, but no nvidia-smi on the PATH",
        "GPUs can't be shared out among sessions",
        "sudo apt-get install nvidia-utils",
    ),
    Found.DRIVER_HANGS: (
        "nvidia-smi hangs",
        "sessions that ask for GPUs wait for ever; programs that use one may hang too",
        "sudo dmesg | grep -i xid; sudo reboot",
    ),
    Found.DRIVER_REPLACED: (
        "the driver was upgraded while its kernel module stayed loaded: {said}",
        "programs that use a GPU already go on, new ones can't start",
        "sudo reboot",
    ),
    Found.DRIVER_NOT_LOADED: ("the driver's kernel module is not loaded: {said}", _NO_GPU, "sudo modprobe nvidia"),
    Found.GPU_OFF_BUS: ("a GPU has fallen off its bus: {said}", "what ran on it is gone", "sudo reboot"),
    Found.DRIVER_WITHOUT_GPU: ("the driver sees no GPU: {said}", _NO_GPU, "lspci | grep -i nvidia"),
    Found.DRIVER_FAILS: (
        "nvidia-smi ends with code {exit}: [{said}|it says nothing]",
        "sessions that ask for GPUs can't start",
        "nvidia-smi",
    ),
    Found.GPU_SAYS_NOTHING: ("{name} does not tell how full it is", "it can't be shared safely", "nvidia-smi"),
    Found.GPU_ROOM: (
        _gpu_room,
        "simulators that want more than what is free end with out of memory",
        "use_gpus in the grid, without {gpu}",
    ),
    Found.NO_RAY_TRACING: (
        "{name} has no ray tracing cores",
        "Isaac Sim's cameras and other ray tracing don't start here; headless without cameras does",
    ),
    Found.EGL: ("numbers the GPUs as nvidia-smi does",),
    Found.EGL_DIFFERS: (
        _egl_differs,
        "programs that take CUDA's number for EGL's render on another GPU",
        'variables: {{MUJOCO_EGL_DEVICE_ID: "{{egl_device}}"}}',
    ),
    Found.EGL_SILENT: ("EGL can't be asked how it numbers the GPUs", *_EGL_GUESSED),
    Found.EGL_WITHOUT_GPU: ("EGL has no device for any GPU", *_EGL_GUESSED),
    Found.VULKAN: ("its loader finds {path}",),
    Found.VULKAN_WITHOUT_DRIVER: (
        lambda fact: f"its loader finds no NVIDIA driver: there is no {' or '.join(fact.texts('paths'))}",
        "Isaac Sim, SAPIEN and AI2-THOR don't start, or draw on the CPU",
        "libnvidia-gl of the driver; or unset VK_DRIVER_FILES and VK_ICD_FILENAMES",
    ),
    Found.VULKAN_SILENT: (
        "it can't be asked which GPU it takes",
        "{{vulkan_device}} is a guess: drawing may land on another GPU",
        "vulkaninfo --summary",
    ),
    Found.VULKAN_CANNOT_CHOOSE: (
        "GPU {gpu}: {reason}",
        "programs that draw through Vulkan may all draw on the first GPU",
        "sudo apt-get install mesa-vulkan-drivers",
    ),
    # Disks
    Found.ROOM: (
        "{free_bytes:amount} of {total_bytes:amount} free at {folder}",
        "logs, records and videos are cut off when it is full, and no session can start",
        _of_disk,
    ),
    Found.INODES: (
        "{free} of {total} inodes free at {folder}",
        "a disk without inodes is as full as one without room",
        _of_disk,
    ),
    Found.DISK_HANGS: (
        "a file system does not answer: the root's or that of TMPDIR",
        "what touches it hangs with it",
        "df -h",
    ),
    Found.ROOT_UNWRITABLE: ("nothing can be written in {root}", _NO_RUN_THERE, _OTHER_ROOT),
    Found.ROOT_NOT_MADE: ("nothing can be written where {root} would be made", _NO_RUN_THERE, _OTHER_ROOT),
    Found.TMP_UNWRITABLE: (
        "nothing can be written in {folder} (TMPDIR)",
        _NO_RUN_THERE,
        "export TMPDIR=~/tmp; mkdir -p ~/tmp",
    ),
    Found.SHARED_TAKEN: (
        "{path} belongs to {owner}, so your runs use {instead}",
        "a run that an earlier version started can't see what they hold",
        "sudo rm -r {path}",
    ),
    Found.PROXY: (
        "{variables} is set, and no_proxy does not name 127.0.0.1",
        "sessions with a model server get it in no_proxy; what you start by hand asks the proxy for the server",
        "export no_proxy=127.0.0.1,localhost,::1",
    ),
    Found.SLURM_VARIABLES: (
        "set: {variables}",
        "they count for --slurm only where the grid gives no such option",
        "unset ${{!SBATCH_@}}",
    ),
    Found.LOCKS: ("flock works on {root} ({kind})",),
    Found.LOCKS_IGNORED: ("flock is ignored on {root} ({kind})", *_WITHOUT_LOCKS),
    Found.LOCKS_REFUSED: ("flock is refused on {root} ({kind})", *_WITHOUT_LOCKS),
    Found.FAR_DISK: (
        "{root} is on {kind}",
        "other machines see records late, locks depend on its server, and every log line travels",
        _LOCAL_DISK,
    ),
    Found.DISK_IN_MEMORY: (
        "{root} is on {kind}",
        "runs and results are gone after a restart, and take main memory until then",
        _LOCAL_DISK,
    ),
    # The machine
    Found.MEMORY: (
        "{free_bytes:amount} of {total_bytes:amount} available[; a control group allows {allowed_bytes:amount} of it]",
        "the kernel ends processes when it runs out: simulators first",
        _HOGS.format("rss"),
    ),
    Found.LOAD: (
        "load {load} on {cpus:CPU}",
        "simulators share the CPUs with it: fewer episodes per hour",
        _HOGS.format("pcpu"),
    ),
    Found.OPEN_FILES: (
        "[{most}|unlimited] at most, hard limit [{hard}|unlimited]",
        'simulators end with "too many open files"',
        "ulimit -n [{hard}|unlimited]",
    ),
    Found.PROCESSES: (
        "{used} of [{allowed} in use|any number]",
        'sessions die with "can\'t fork": a simulator has hundreds of threads',
        "ulimit -u unlimited  # or raise nproc in /etc/security/limits.conf",
    ),
    Found.FIFOS_ELSEWHERE: ("{root} ({kind}) has no FIFOs: a run's are on this machine's own disk",),
    Found.FIFOS_REFUSED: (
        "no FIFO can be made on {root} ({kind}): {error}",
        "no run can start there: its dispatcher gets its messages through one",
        _LOCAL_DISK,
    ),
    Found.CLOCK: (_clock, _TIMES_OFF, _SET_CLOCK),
    Found.CLOCK_FAR_OFF: (_clock, f"{_TIMES_OFF}; certificates and make may fail", _SET_CLOCK),
    # What a grid names
    Found.WINDOWS_LINE_ENDS: (
        "{path} has Windows line ends",
        "bash reads the carriage return as part of the last word: options are not known, files not found",
        _on_path("sed -i 's/\\r$//'"),
    ),
    Found.NAMED_FILE_MISSING: (
        "the grid names {path}, which is not here",
        "a command that needs it fails at once",
        _on_path("ls -l"),
    ),
    Found.FILES_NOT_SEEN: (
        "the files that the grid names could not all be looked at",
        "they may be on a slow disk",
    ),
}
"""code -> what was found, its cost, its fix"""

WORDS: Words = {code: row[0] for code, row in _ROWS.items()}
_ADVICE: dict[str, tuple[Text, ...]] = {
    **{code: row[1:] for code, row in _ROWS.items()},
    **{code.value: ("sessions that need it fail at once",) for code in Lack},
}


def told(finding: Finding) -> tuple[str, str, str]:
    """What was found, its cost and its fix; what is fine has neither."""
    cost, fix = ("", "") if finding.level is Level.OK else advice(finding.fact)
    return say(finding.fact), cost, fix


def advice(fact: Fact) -> tuple[str, str]:
    """What it leads to, and what mends it; each may be empty."""
    cost, fix, *_ = (*(fill(text, fact) for text in _ADVICE.get(fact.code, ())), "", "")
    return cost, fix
