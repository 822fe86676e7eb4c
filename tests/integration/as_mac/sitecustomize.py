"""Makes Python look as on a Mac: its platform, without the names that only Linux has.

Modules that adapt themselves to the system which they run on are imported before.
"""

import asyncio  # noqa: F401
import ctypes.util  # noqa: F401
import multiprocessing.util  # noqa: F401
import os
import platform  # noqa: F401
import resource
import select
import shutil  # noqa: F401
import signal
import socket
import subprocess  # noqa: F401
import sys
import sysconfig
import tempfile  # noqa: F401
import time
import urllib.request  # noqa: F401
import webbrowser  # noqa: F401

ONLY_ON_LINUX = {
    os: "sched_getaffinity sched_setaffinity sched_getscheduler memfd_create pidfd_open eventfd setns unshare splice"
    " copy_file_range getrandom posix_fadvise posix_fallocate getxattr setxattr setresuid setresgid getresuid O_PATH"
    " O_DIRECT pipe2 fdatasync",
    time: "CLOCK_BOOTTIME CLOCK_TAI",
    select: "epoll",
    socket: "TCP_KEEPIDLE TCP_USER_TIMEOUT AF_NETLINK AF_PACKET SOCK_CLOEXEC SOCK_NONBLOCK SO_BINDTODEVICE",
    signal: "sigtimedwait sigwaitinfo pidfd_send_signal SIGPWR SIGRTMIN",
    resource: "prlimit",
}
for module, names in ONLY_ON_LINUX.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
sysconfig.get_config_vars()  # they are in a file that is named for the platform
sys.platform = "darwin"
