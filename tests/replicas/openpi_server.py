"""Stands in for openpi's scripts/serve_policy.py and openpi/serving/websocket_policy_server.py, two files in one: it
listens on every address unless its class is told otherwise. Of a websocket's server it has /healthz only."""

from __future__ import annotations

import argparse
import logging
import socket
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOADING_S = 0.3
log = logging.getLogger("websockets.server")


class Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 426)
        self.end_headers()
        self.wfile.write(b"OK\n")

    def log_message(self, format: str, *words: object) -> None:  # noqa: A002
        log.info(format, *words)


class WebsocketPolicyServer:
    def __init__(self, policy: object, host: str = "0.0.0.0", port: int | None = None) -> None:
        self.policy = policy
        self.address = (host, port or 0)

    def serve_forever(self) -> None:
        with ThreadingHTTPServer(self.address, Health) as server:
            log.info("server listening on %s:%s", *self.address)
            server.serve_forever()


def main() -> None:
    from openpi.serving import websocket_policy_server  # type: ignore[import-not-found]

    parser = argparse.ArgumentParser()
    parser.add_argument("--env", choices=["ALOHA", "ALOHA_SIM", "DROID", "LIBERO"])
    parser.add_argument("--port", type=int, default=8000)
    checkpoint = parser.add_subparsers(required=True).add_parser("policy:checkpoint")
    checkpoint.add_argument("--policy.config", required=True)
    checkpoint.add_argument("--policy.dir", required=True)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    time.sleep(LOADING_S)
    log.info("Creating server (host: %s, ip: 127.0.1.1)", socket.gethostname())
    websocket_policy_server.WebsocketPolicyServer(policy=None, host="0.0.0.0", port=given.port).serve_forever()


if __name__ == "__main__":
    main()
