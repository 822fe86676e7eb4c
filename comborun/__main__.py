"""The programs: `combo`, which is also `python -m comborun`, and `combo-monitor`. Ctrl-C never shows a traceback."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_AGAIN_S = 0.01


def monitor() -> None:
    """The program `combo-monitor`: the same as `combo monitor`."""
    main("monitor")


def main(command: str = "") -> None:
    if sys.platform == "win32":
        sys.exit("comborun needs a Unix: on Windows, install WSL (wsl --install) and use it in there")
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: no other file may get its number
            setattr(sys, name, open(os.open(os.devnull, os.O_RDWR), "r+", closefd=False))  # noqa: SIM115
    if not os.environ.get("HOME"):  # as in some services: what we start needs it too
        os.environ["HOME"] = os.path.expanduser("~")  # noqa: PTH111  # pathlib is slow to import
    code = 130
    try:
        import gc
        import signal

        gc.disable()  # while modules are loaded, which all stay: this saves a fifth of the time
        interruptible = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
        if interruptible:
            sys.unraisablehook = _unraisable
            signal.signal(signal.SIGALRM, _interrupt)
            signal.signal(signal.SIGINT, _interrupt)
        from comborun.cli import combo, command_named, guarded

        code = guarded(command_named(command) if command else combo)
        gc.freeze()  # Python's end then searches no objects for garbage
        if interruptible:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # the command has ended
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:  # before the command began, or while it ended
        pass
    sys.exit(code)


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; later, if modules are being loaded: Python would show tracebacks of its import locks."""
    if frame and frame.f_code is main.__code__:  # no command runs
        os._exit(130)
    while frame:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _later()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _unraisable(found: sys.UnraisableHookArgs) -> None:
    """Python ignores exceptions in destructors. So an interrupt is raised again a little later."""
    if isinstance(found.exc_value, KeyboardInterrupt):
        _later()
    else:
        sys.__unraisablehook__(found)


def _later() -> None:
    import signal

    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


if __name__ == "__main__":
    main()
