"""The classes of failures: one row holds everything that depends on the class.

The order is that in which signatures are searched for in a log, and that of the tables in docs/grid.md.
"""

from __future__ import annotations

from comborun.rules.vocabulary import Cause, Completeness, Word

HOST, GPU = "host", "gpu"
"""what the breaker counts a failure for"""


class Row:
    """What follows from a class of failures, and how it is told."""

    def __init__(
        self,
        words: str,
        means: str,
        *,
        retries: int = 0,
        wait_s: float = 10.0,
        breaker: str = "",
        signatures: tuple[str, ...] = (),
        in_log: bool = False,
        report: str = "",
        mend: str = "",
    ) -> None:
        self.words = words
        """for a table or a notice"""
        self.means = means
        """for docs/grid.md"""
        self.retries = retries
        """how often it is retried by default, with twice the wait each time"""
        self.wait_s = wait_s
        self.breaker = breaker
        """HOST: a failure of the host as a whole, whatever GPU the session had. GPU: of its GPUs, or of the host if it
        had none. Empty: it does not count."""
        self.signatures = signatures
        """Wordings of logs, as Python's regular expressions; one without special characters is searched as plain text,
        which is fast."""
        self.in_log = in_log or bool(signatures)
        """whether a line of a log can show it, so that the grid may add patterns"""
        self.report = report or words
        """words of the report"""
        self.mend = mend
        """what a person does about it, if retries don't help"""


class Failure(Word):
    """The class of a failure. If a log's line shows a class that is also a Cause, the class becomes the cause."""

    GPU_MEMORY = "gpu_memory"
    GPU_FAULT = "gpu_fault"
    SHARED_MEMORY = "shared_memory"
    DISK_FULL = "disk_full"
    STORAGE_FAULT = "storage_fault"
    HOST_MEMORY = "host_memory"
    HOST_LIMIT = "host_limit"
    SERVER_LOST = "server_lost"
    NETWORK_FAULT = "network_fault"
    LAUNCH_FAILED = "launch_failed"
    CRASHED = "crashed"
    KILLED = "killed"
    STALLED = "stalled"
    TIMED_OUT = "timed_out"
    ERROR = "error"
    NO_RESULT = "no_result"
    LOST = "lost"
    PREEMPTED = "preempted"

    @property
    def row(self) -> Row:
        return _ROWS[self]

    @property
    def cause(self) -> Cause | None:
        """The cause of the same name, if there is one."""
        return _CAUSES.get(self.value)


_ROWS = {
    Failure.GPU_MEMORY: Row(
        "out of GPU memory",
        "out of GPU memory; after the second time the session has the GPU alone. If others ran beside it, one"
        " session fewer may run there until `combo resume`",
        retries=2,
        wait_s=60.0,
        breaker=GPU,
        signatures=(
            *("CUDA out of memory", "CUDA error: out of memory", "CUDA_ERROR_OUT_OF_MEMORY"),
            *("cudaErrorMemoryAllocation", "torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError"),
            *("CU[A-Z]+_STATUS_(ALLOC_FAILED|NOT_INITIALIZED)", "RESOURCE_EXHAUSTED: Out of memory"),
            *("ERROR_OUT_OF_DEVICE_MEMORY", "is less than desired GPU memory utilization"),
            *("ErrorOutOfDeviceMemory", "No available memory for the cache blocks"),
            *(
                "Gym cuda error: out of memory",
                "PxgCudaDeviceMemoryAllocator fail to allocate",
                "C[Uu][Dd][Aa].{0,60}[Oo]ut of memory",
            ),
            *(
                "(RESOURCE_EXHAUSTED|Resource exhausted): ([Oo]ut of memory|[Ff]ailed to allocate)",
                "OOM when allocating tensor.*GPU",
            ),
            *("cupy.*OutOfMemoryError", "Failed to allocate [0-9]+ bytes on device .cuda"),
            *("increase --mem-fraction-static", "bfc_arena.*Failed to allocate memory"),
            *("PhysX Internal CUDA error.*[Ee]rror code 2\\b", "cudaSuccess.*out of memory"),
        ),
        mend="give more `gpu_memory` in the grid or let fewer sessions run on a GPU, then retry",
    ),
    Failure.GPU_FAULT: Row(
        "GPU fault",
        "the GPU or its driver failed",
        retries=1,
        wait_s=60.0,
        breaker=GPU,
        signatures=(
            *("ERROR_DEVICE_LOST", "A GPU crash occurred", "GPU crash is detected", "GPU is lost"),
            *("has fallen off the bus", "NVRM: Xid", "uncorrectable ECC error", "CUDA driver initialization failed"),
            "[Cc][Uu][Dd][Aa] ([Ee]rror|failure)[ :0-9(']*(an illegal (memory|instr)|unspecified launch|unknown error)",
            *("Skipping NVIDIA GPU due CUDA being in bad state", "ErrorDeviceLost", "is/are busy or unavailable"),
            *("devices are busy or unavailable", "No CUDA GPUs are available", "no CUDA-capable device is detected"),
            *("CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_LAUNCH_FAILED"),
            *("CUDA_ERROR_UNKNOWN", "[Cc]uda failure.*(launch timed out|misaligned)"),
            *("CUDA error: misaligned address", "CUDA error: the launch timed out", "cudaErrorIllegalAddress"),
            *("GPU \\w+ fail to launch kernel", "vk::PhysicalDevice::createDeviceUnique: Error[IE]"),
            "PhysX Internal CUDA error",
            *("Driver/library version mismatch", "failed with error 70[0-9]", "Cuda context manager error"),
            *("Failed to initialize NVML", "NVML Shared Library Not Found", "(?i)Found no NVIDIA driver"),
            *("NVMLError_(Driver|LibR?[mr]|Gpu|IRQ|Reset|Un)", "communicate with the NVIDIA driver"),
            *("NVIDIA driver on your system is too old", "CUDA driver version is insufficient"),
            *("CUDA_ERROR_(SYSTEM|COMPAT|STUB)_", "Error 80[234]: ", "nvidia-container-cli: initialization error"),
        ),
        mend="look at the GPU with nvidia-smi and `combo doctor`, then retry",
    ),
    Failure.SHARED_MEMORY: Row(
        "out of shared memory",
        "`/dev/shm` is full; a container gets more with --ipc=host or --shm-size",
        retries=1,
        wait_s=60.0,
        breaker=HOST,
        signatures=(
            *("insufficient shared memory", "out of shared memory"),
            "(unable to open shared memory object|</torch_[0-9])(?!.*Too many open files)",
            *("Error while creating shared memory segment", "DataLoader worker .*Bus error"),
            "No space left on device.*(/dev/shm|/?psm_|/?sem\\.)",
            "/dev/shm.*(No space|[Ff]ull|too small|exceeds|Cannot allocate)",  # noqa: S108 - a wording
        ),
        mend="make room in /dev/shm or give a container more (--ipc=host, --shm-size), then retry",
    ),
    Failure.DISK_FULL: Row(
        "disk full",
        "no room for its output",
        wait_s=60.0,
        breaker=HOST,
        signatures=(
            *("No space left on device", "Disk quota exceeded", "database or disk is full"),
            "PytorchStreamWriter failed writing",
        ),
        mend="free some space where the run writes, then retry",
    ),
    Failure.STORAGE_FAULT: Row(
        "storage fault",
        "a file system failed: a stale NFS handle, an input or output error, a mount that is gone",
        retries=2,
        wait_s=60.0,
        breaker=HOST,
        signatures=(
            *("[Ss]tale (NFS )?file handle", "Remote I/O error", "Host is down: '"),
            *("Input/output error", "/\\S*: Transport endpoint is not connected"),
            "Transport endpoint is not connected: b?['/]",
        ),
        mend="look at the file system that the line names (`df`, `mount`, the system's log), then retry",
    ),
    Failure.HOST_MEMORY: Row(
        "out of memory",
        "out of main memory",
        retries=1,
        wait_s=60.0,
        breaker=HOST,
        signatures=(
            *("^MemoryError", "std::bad_alloc", "Cannot allocate memory", "oom[-_]kill"),
            *("out of memory: Killed process", "Out of memory: Killed process"),
            *("Unable to allocate [0-9.]+ [KMGT]iB for an array", "DefaultCPUAllocator: (can.t|not enough)"),
            *("DataLoader worker .* is killed by signal: Killed", "ErrorOutOfHostMemory"),
            *("ERROR_OUT_OF_HOST_MEMORY", "running low on memory", "RayOutOfMemoryError"),
            *("memory allocation of [0-9]+ bytes failed", "OOM when allocating tensor.*allocator (mkl)?cpu"),
            *("cannot allocate memory for thread-local data", "java\\.lang\\.OutOfMemoryError(?!.*native thread)"),
            "insufficient memory for the Java Runtime",
        ),
        mend="let fewer sessions run at once or give their `memory` in the grid, then retry",
    ),
    Failure.HOST_LIMIT: Row(
        "at a limit of the host",
        "no more threads, processes or open files",
        retries=1,
        wait_s=60.0,
        breaker=HOST,
        signatures=(
            *("can't start new thread", "pthread_create failed", "Thread creation failed"),
            *("received 0 items of ancdata", "Too many open files"),
            *("inotify (instance|watch|limit)", "BlockingIOError: \\[Errno 11\\] Resource"),
            *("(fork|what\\(\\)).*Resource temporarily unavailable", "unable to create (new )?native thread"),
        ),
        mend="raise the limit of threads, processes or open files of your user (ulimit), then retry",
    ),
    Failure.SERVER_LOST: Row(
        "its server was lost",
        "its model server went away",
        retries=2,
        wait_s=30.0,
        breaker=GPU,
        signatures=(
            *("EngineDeadError", "Still waiting for server", "Connection refused", "RayActorError"),
            *("Connection reset by peer", "Remote end closed connection", "APIConnectionError"),
            *("ConnectionClosedError", "Server disconnected", "zmq.error.Again", "StatusCode.UNAVAILABLE"),
            *("Error code: 50[0-4]", "50[0-4] Server Error"),
        ),
        mend="look at the log of its model server, then retry",
    ),
    Failure.NETWORK_FAULT: Row(
        "network fault",
        "a service on the network did not answer, or asked for fewer requests: a hub of models, an API",
        retries=3,
        wait_s=60.0,
        breaker=HOST,
        signatures=(
            *("Max retries exceeded with url", "HTTPS?ConnectionPool\\(.*timed out", "NameResolutionError"),
            *("[Nn]ame or service not known", "Temporary failure in name resolution", "Could not resolve host"),
            *("Network is unreachable", "No route to host", "429 Client Error", "Error code: (429|50[0-4])"),
            *("50[0-4] Server Error", "APIConnectionError", "APITimeoutError", "RateLimitError"),
            *("[Cc]heck your (internet )?connection and try again", "[Cc]ouldn't connect to 'https?:"),
            *("ClientConnectorError", "ServiceUnavailable: 503", "ResourceExhausted: 429", "errors.CommError"),
        ),
        mend="see whether the host reaches the service that the line names (a proxy, a quota, a token), then retry",
    ),
    Failure.LAUNCH_FAILED: Row(
        "the command never ran",
        "setup failed, or the program or folder is missing",
        breaker=HOST,
        signatures=(
            *("Address already in use", "address already in use", "EADDRINUSE"),
            *("has failed to listen on any local network address", "Server is already active for display"),
            *("Failed to acquire exclusive lock to data store", "could not connect to display"),
            *("Cannot open display", "Could not load the Qt platform plugin", "no Qt platform plugin"),
            *("Cannot initialize a EGL device display", "Unable to create windowless context"),
            *("Cannot initialize a headless EGL display", "OpenGL platform library has not been loaded"),
            *("NoSuchDisplayException", "failed to find a rendering device"),
            *("Could not find the Qt platform plugin", "vk::Instance::\\w+: ErrorInitializationFailed"),
            *("gladLoadGL error", "Failed to initialize OpenGL", "MUJOCO_EGL_DEVICE_ID"),
        ),
        report="launch failed",
        mend="mend the setup, the program or the folder that is named, then retry",
    ),
    Failure.CRASHED: Row(
        "crashed",
        "by a segfault, an abort and the like",
        retries=1,
        breaker=GPU,
        signatures=(
            *("FIFO server failed to connect to Unity in time", "^Error: signal 11"),
            *("Segmentation fault", "core dumped", "Bus error", "Fatal Python error", "terminate called"),
            *("double free or corruption", "SIGSEGV", "Unity process has exited", "AI2-THOR backend timed out"),
            *("EngineDeadError", "RayActorError", "ActorDiedError", "WorkerCrashedError", "BrokenProcessPool"),
            "\\[Fatal\\] \\[carb",
        ),
        mend="read the end of its log; a crash that comes again is in the program or its libraries",
    ),
    Failure.KILLED: Row(
        "killed",
        "by a signal from outside",
        retries=1,
        breaker=GPU,
        mend="find out who killed it: another user, a script, or the system's log",
    ),
    Failure.STALLED: Row(
        "stalled",
        "ended after `stall_after`",
        retries=1,
        breaker=GPU,
        mend="see in its log where it stopped; if it only needs longer, raise `stall_after`, then retry",
    ),
    Failure.TIMED_OUT: Row(
        "took too long", "ended after `max_time`", mend="raise `max_time` in the grid if it needs longer, then retry"
    ),
    Failure.ERROR: Row(
        "program error", "exit code other than 0", in_log=True, mend="correct the program or its arguments, then retry"
    ),
    Failure.NO_RESULT: Row(
        "no results",
        "exit code 0, but its work is not complete",
        mend="see with `combo check` which results are read; correct `results` in the grid, and launch again",
    ),
    Failure.LOST: Row(
        "nobody saw it end",
        "its processes are gone, and so is their supervisor: killed, or the host restarted",
        retries=2,
        wait_s=0.0,
        breaker=GPU,
        report="lost",
        mend="retry; if it happens again, see with `combo doctor` what ends processes of your user",
    ),
    Failure.PREEMPTED: Row(
        "preempted by Slurm",
        "Slurm gave its place to another job; not counted by `attempts`",
        retries=10,
        wait_s=0.0,
        mend="retry, or ask Slurm for a partition whose jobs are not preempted",
    ),
}
_CAUSES = {cause.value: cause for cause in Cause}
_CLASSES = {failure.value: failure for failure in Failure}
_CRASHES = {4, 5, 6, 7, 8, 11, 31}
"""ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS: signals that a program gives itself"""


def named(word: str) -> Failure | None:
    """The class of this name; None for one that this version does not know."""
    return _CLASSES.get(word)


def words_of(word: str) -> str:
    """The words of a class; one that this version does not know is shown as itself."""
    failure = named(word)
    return failure.row.words if failure else word


def mend(word: str) -> str:
    """What a person does about a class of failures."""
    failure = named(word)
    return failure.row.mend if failure else "look at its log"


def failure_of(completeness: Completeness, cause: Cause, code: int | None, signal: int | None) -> Failure | None:
    """The class of a failure; None for what is complete, stopped or not needed. The host writes it into `end`, unless
    the log shows another class.
    """
    if completeness is Completeness.COMPLETE or cause in {Cause.STOPPED, Cause.NOT_NEEDED}:
        return None
    if cause is Cause.EXITED:
        return Failure.NO_RESULT if code == 0 else Failure.ERROR
    if cause is Cause.SIGNAL:
        return Failure.CRASHED if signal in _CRASHES else Failure.KILLED
    if cause is Cause.HUNG:  # its evidence was there, and has vanished
        return Failure.STALLED
    return _CLASSES.get(cause.value, Failure.ERROR)


def grid_lines() -> list[str]:
    """The table of docs/grid.md."""
    rows = [f"| {one} | {one.row.means} | {one.row.retries} | {_wait(one.row.wait_s)} |" for one in Failure]
    return ["| class | means | retries | first wait |", "|---|---|---|---|", *rows]


def _wait(seconds: float) -> str:
    if not seconds:
        return "none"
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"
