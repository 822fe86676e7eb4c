#!/usr/bin/env python3
"""A link with delay and cuts between the network namespaces of two processes; it counts what it carries.

    delaynet.py PID_A ADDRESS_A PID_B ADDRESS_B

For kernels without netem: a TUN device in each namespace, and this process carries the packets. It reads commands from
standard input, answers each with a line, and ends with its standard input: `delay MS` (one way), `down`, `up`, `count`.
Needs root, /dev/net/tun and iproute2.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import heapq
import json
import os
import select
import struct
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field

DEVICE = "link0"
MTU = 1500
_SET_DEVICE = 0x400454CA  # TUNSETIFF
_TUN_WITHOUT_HEADER = 0x0001 | 0x1000  # IFF_TUN | IFF_NO_PI
_TCP, _SYN, _ACK = 6, 0x02, 0x10
_BURST = 64


@dataclass
class Counted:
    """What went from A to B (`up`) and back (`down`) since the start; lost packets count too: they were sent."""

    packets_up: int = 0
    packets_down: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    """of IP packets, headers included"""
    connections: int = 0
    """that A opened"""
    turns: int = 0
    """how often A spoke after B had: an exchange in which each waits for the other has as many round trips"""


@dataclass
class Relay:
    a: int
    b: int
    delay: float = 0.0
    """milliseconds, one way"""
    up: bool = True
    counted: Counted = field(default_factory=Counted)
    _heap: list[tuple[float, int, int, bytes]] = field(default_factory=list)
    _last: dict[int, float] = field(default_factory=dict)
    _number: int = 0
    _b_spoke: bool = True

    def run(self) -> None:
        waiter = select.epoll()
        for descriptor in (self.a, self.b, sys.stdin.fileno()):
            waiter.register(descriptor, select.EPOLLIN)
        while True:
            self._deliver()
            pause = max(0.0, self._heap[0][0] - time.monotonic()) if self._heap else -1
            for descriptor, _ in waiter.poll(pause):
                if descriptor != sys.stdin.fileno():
                    self._take(descriptor)
                elif not self._obey():
                    return

    def _deliver(self) -> None:
        while self._heap and self._heap[0][0] <= time.monotonic():
            _, _, target, packet = heapq.heappop(self._heap)
            try:
                os.write(target, packet)
            except OSError:  # the other end's queue is full, or its device is gone: lost, as on a real link
                continue

    def _take(self, source: int) -> None:
        for _ in range(_BURST):
            try:
                packet = os.read(source, 65536)
            except BlockingIOError:
                return
            self._count(packet, upwards=source == self.a)
            if self.up:
                self._queue(packet, source)

    def _queue(self, packet: bytes, source: int) -> None:
        due = max(time.monotonic() + self.delay / 1000, self._last.get(source, 0.0))
        self._last[source] = due
        self._number += 1
        heapq.heappush(self._heap, (due, self._number, self.b if source == self.a else self.a, packet))

    def _count(self, packet: bytes, *, upwards: bool) -> None:
        counted = self.counted
        if upwards:
            counted.packets_up += 1
            counted.bytes_up += len(packet)
        else:
            counted.packets_down += 1
            counted.bytes_down += len(packet)
        if len(packet) < 20 or packet[0] >> 4 != 4 or packet[9] != _TCP:
            return
        tcp = (packet[0] & 15) * 4
        if upwards and packet[tcp + 13] & (_SYN | _ACK) == _SYN:
            counted.connections += 1
        if len(packet) > tcp + (packet[tcp + 12] >> 4) * 4:  # it carries data
            counted.turns += upwards and self._b_spoke
            self._b_spoke = not upwards

    def _obey(self) -> bool:
        """Obey one line; False when there will be no more."""
        words = sys.stdin.readline().split()
        if not words:
            return False
        if words[0] in {"up", "down"}:
            self.up = words[0] == "up"
        elif words[0] == "delay":
            self.delay = float(words[1])
        print(json.dumps(asdict(self.counted)), flush=True)
        return True


def open_device(pid: int, address: str, peer: str) -> int:
    """A TUN device in the namespace of a process; its descriptor."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    enter(os.open(f"/proc/{pid}/ns/net", os.O_RDONLY))
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _SET_DEVICE, struct.pack("16sH22s", DEVICE.encode(), _TUN_WITHOUT_HEADER, b""))
    for words in (
        "link set lo up",
        f"address add {address} peer {peer} dev {DEVICE}",
        f"link set {DEVICE} mtu {MTU} txqueuelen 5000 up",
    ):
        subprocess.run(["ip", *words.split()], check=True)
    enter(home)
    return device


def enter(namespace: int) -> None:
    """Go into the network namespace of a descriptor, which is closed."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(namespace, 0):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(namespace)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pid_a", type=int)
    parser.add_argument("address_a")
    parser.add_argument("pid_b", type=int)
    parser.add_argument("address_b")
    given = parser.parse_args()
    a = open_device(given.pid_a, given.address_a, given.address_b)
    b = open_device(given.pid_b, given.address_b, given.address_a)
    sys.stdin.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    print("ready", flush=True)
    Relay(a, b).run()


if __name__ == "__main__":
    main()
