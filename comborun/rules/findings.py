"""The findings of `combo doctor`: what a check has found on a host, as a fact, and how bad that is."""

from __future__ import annotations

from typing import NamedTuple

from comborun.rules.facts import Fact
from comborun.rules.vocabulary import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Level(Word):
    """The severity of a finding; the worst comes first."""

    ERROR = "error"  # sessions can't run, or will be ended or lost
    WARNING = "warning"  # something will go wrong at some point, or already costs a lot
    NOTE = "note"  # worth knowing; nothing has to be done
    OK = "ok"


class Found(Word):
    """Codes of findings; what a grid lacks are those of `rules/host.py`. Comments name the fields."""

    BASH = "bash_version"  # version
    BASH_TOO_OLD = "bash_too_old"  # version, least
    PROGRAMS = "programs_there"
    NO_XVFB_HERE = "xvfb_not_on_path"
    PROGRAMS_MISSING = "programs_missing"  # programs
    PROGRAMS_POOR = "programs_not_gnu"  # programs
    # tmux, screen, logging out
    TMUX = "tmux_answers"  # version, runs (whether our server does)
    OTHER_MULTIPLEXER = "other_multiplexer"  # multiplexer, version
    NO_MULTIPLEXER = "no_multiplexer"  # multiplexers
    TMUX_HANGS = "tmux_hangs"
    SERVER_STOPPED = "tmux_server_stopped"  # pid
    SERVER_SILENT = "tmux_server_silent"  # pid
    SERVER_WITHOUT_SOCKET = "tmux_socket_gone"  # pid
    TMUX_FAILS = "tmux_fails"  # said
    LOGOUT_HARMLESS = "logout_ends_nothing"  # systemd
    NO_SYSTEMD = "no_systemd"  # first (process)
    SYSTEMD_HANGS = "systemd_hangs"
    KILL_USER_PROCESSES = "kill_user_processes"
    NO_LINGERING = "no_lingering"  # group
    # GPUs. said: by nvidia-smi
    NO_GPU_HERE = "no_nvidia_gpu"
    DRIVER = "driver_answers"  # version, gpus
    NO_NVIDIA_SMI = "no_nvidia_smi"
    DRIVER_HANGS = "driver_hangs"
    DRIVER_REPLACED = "driver_replaced"  # said
    DRIVER_NOT_LOADED = "driver_not_loaded"  # said
    GPU_OFF_BUS = "gpu_off_bus"  # said
    DRIVER_WITHOUT_GPU = "driver_without_gpu"  # said
    DRIVER_FAILS = "driver_fails"  # exit, said
    GPU_SAYS_NOTHING = "gpu_says_no_memory"  # gpu, name
    GPU_ROOM = "gpu_memory_free"  # gpu, name, free_bytes, total_bytes; where it is used: users
    NO_RAY_TRACING = "no_ray_tracing"  # gpu, name
    EGL = "egl_numbers_agree"
    EGL_DIFFERS = "egl_numbers_differ"  # devices: lists of GPU and device
    EGL_SILENT = "egl_silent"
    EGL_WITHOUT_GPU = "egl_without_gpu"
    VULKAN = "vulkan_finds_driver"  # path
    VULKAN_WITHOUT_DRIVER = "vulkan_without_driver"  # paths
    VULKAN_SILENT = "vulkan_silent"
    VULKAN_CANNOT_CHOOSE = "vulkan_cannot_choose"  # gpu, reason
    # Disks
    ROOM = "disk_free"  # folder, free_bytes, total_bytes, mount
    INODES = "inodes_free"  # folder, free, total, mount
    DISK_HANGS = "disk_hangs"
    ROOT_UNWRITABLE = "root_unwritable"  # root
    ROOT_NOT_MADE = "root_cannot_be_made"  # root
    TMP_UNWRITABLE = "tmp_unwritable"  # folder
    SHARED_TAKEN = "shared_folder_of_another_user"  # path, owner, instead
    LOCKS = "locks_work"  # root, kind (of file system)
    LOCKS_IGNORED = "locks_ignored"  # root, kind
    LOCKS_REFUSED = "locks_refused"  # root, kind
    FAR_DISK = "root_on_another_machine"  # root, kind
    DISK_IN_MEMORY = "root_in_memory"  # root, kind
    # The machine
    MEMORY = "memory_free"  # free_bytes, total_bytes; allowed_bytes: by a control group
    LOAD = "machine_load"  # load, cpus
    OPEN_FILES = "open_files_most"  # most, hard; null: unlimited
    PROCESSES = "processes_used"  # used, allowed; null: any number
    PROXY = "proxy_gets_local_requests"  # variables
    SLURM_VARIABLES = "slurm_variables_set"  # variables
    FIFOS_ELSEWHERE = "fifos_elsewhere"  # root, kind
    FIFOS_REFUSED = "fifos_refused"  # root, kind, error
    CLOCK = "clock_off"  # off_s, doubt_s
    CLOCK_FAR_OFF = "clock_far_off"  # off_s, doubt_s
    # What a grid names
    WINDOWS_LINE_ENDS = "windows_line_ends"  # path
    NAMED_FILE_MISSING = "named_file_missing"  # path
    FILES_NOT_SEEN = "named_files_not_seen"


class Finding(NamedTuple):
    check: str
    """a word of docs/doctor.md"""
    level: Level
    fact: Fact


def error(check: str, code: Word, **fields: Any) -> Finding:
    return Finding(check, Level.ERROR, Fact(code, **fields))


def warning(check: str, code: Word, **fields: Any) -> Finding:
    return Finding(check, Level.WARNING, Fact(code, **fields))


def note(check: str, code: Word, **fields: Any) -> Finding:
    return Finding(check, Level.NOTE, Fact(code, **fields))


def fine(check: str, code: Word, **fields: Any) -> Finding:
    return Finding(check, Level.OK, Fact(code, **fields))
