"""A policy that lives in another process: the client of `serve.py`."""

from __future__ import annotations

import http.client
import socket
import urllib.parse

import numpy as np
from policy import ACTION_SCALE, CONTROL_PERIOD, STANDING, Array, clock
from robot import JOINT_COUNT

WIRE = np.dtype("<f4")
ANSWER_S = 30.0


class ServerError(Exception):
    """The policy's server can't be asked; the message says where it is and why, in one line."""


class RemotePolicy:
    """Drives the robot as `Policy` does, to the bit: the network is the server's, the clock its own."""

    def __init__(self, url: str, name: str) -> None:
        place = urllib.parse.urlsplit(url)
        if place.scheme != "http" or not place.hostname:
            raise ServerError(f"expected a server's address such as http://127.0.0.1:8000, got {url!r}")
        self.url = url
        self.path = f"/v1/models/{urllib.parse.quote(name, safe='')}"
        self.connection = http.client.HTTPConnection(place.hostname, place.port or 80, timeout=ANSWER_S)
        self.frequency = float(np.frombuffer(self._ask("GET", "/frequency", b"", WIRE.itemsize), WIRE)[0])
        self.phase = 0.0

    def reset(self) -> None:
        self.phase = 0.0

    def act(self, observation: Array) -> Array:
        """Joint targets (12,) in radians for an observation (11,)."""
        inputs = np.concatenate((observation, clock(self.phase))).astype(WIRE)
        answer = self._ask("POST", "/act", inputs.tobytes(), JOINT_COUNT * WIRE.itemsize)
        self.phase = (self.phase + self.frequency * CONTROL_PERIOD) % 1.0
        return STANDING + ACTION_SCALE * np.frombuffer(answer, WIRE).astype(np.float64)

    def _connected(self) -> socket.socket:
        link = socket.create_connection((self.connection.host, self.connection.port), ANSWER_S)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return link

    def _ask(self, method: str, what: str, body: bytes, size: int) -> bytes:
        try:
            if self.connection.sock is None:
                self.connection.sock = self._connected()
            self.connection.request(method, self.path + what, body, {"Content-Type": "application/octet-stream"})
            response = self.connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServerError(f"the policy's server at {self.url} does not answer: {error!r}") from None
        if response.status != http.client.OK or len(answer) != size:
            said = answer[:200].decode("utf-8", "replace")
            raise ServerError(f"the policy's server at {self.url} answered {response.status}: {said}")
        return answer
