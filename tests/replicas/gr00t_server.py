"""Stands in for run_gr00t_server.py of Isaac-GR00T: ready by a line and by its port, where it greets as ZMQ does."""

from __future__ import annotations

import argparse
import os
import socketserver
import time

ASKED = os.environ.get("REPLICA", "").split()
LOADING_S = 0.3
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL".ljust(55, b"\0")
"""ZMTP 3.0: signature, version, mechanism, filler; the standard library knows no more of ZMQ"""


class Greeter(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.sendall(GREETING)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("model-path", "embodiment-tag", "device", "host"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--port", type=int, required=True)
    given = parser.parse_args()
    print(f"Starting GR00T inference server...\n  Embodiment tag: {given.embodiment_tag}", flush=True)
    time.sleep(LOADING_S)
    if "full" in ASKED:
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB.")
    with Server((given.host, given.port), Greeter) as server:
        print(f"Server is ready and listening on tcp://{given.host}:{given.port}", flush=True)
        server.serve_forever()


main()
