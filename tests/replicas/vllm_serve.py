"""Stands in for `vllm serve`: its port opens only once the engine has started, and outlives the engine."""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ASKED = os.environ.get("REPLICA", "").split()
DIES_AFTER = next((int(word.removeprefix("dies=")) for word in ASKED if word.startswith("dies=")), None)
LOADING_S = 0.3
TOTAL_GIB, FREE_GIB = 79.1, 10.0


class Engine:
    """What answers requests; once dead, it answers none any more, and nothing but a new process helps."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.answered = 0
        self.dead = False
        self.lock = threading.Lock()

    def answer(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if request.get("model") != self.model:
            return 404, refusal("NotFoundError", f"The model `{request.get('model')}` does not exist.", 404)
        with self.lock:
            self.dead = self.dead or self.answered == DIES_AFTER
            if self.dead:
                told("ERROR", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.")
                message = "EngineCore encountered an issue. See stack trace (above) for the root cause."
                return 500, refusal("InternalServerError", message, 500)
            self.answered += 1
        answer = {"role": "assistant", "content": f"to {request['messages'][-1]['content']}: go on"}
        choice = {"index": 0, "message": answer, "finish_reason": "stop"}
        usage = {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9}
        return 200, {"object": "chat.completion", "model": self.model, "choices": [choice], "usage": usage}


class Front(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine: Engine

    def do_GET(self) -> None:
        if self.path == "/health":
            self.reply(503 if self.engine.dead else 200)
        elif self.path == "/v1/models":
            self.reply(200, {"object": "list", "data": [{"id": self.engine.model, "object": "model"}]})
        else:
            self.reply(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            self.reply(404, {"detail": "Not Found"})
            return
        while "stalls" in ASKED:
            time.sleep(1)
        self.reply(*self.engine.answer(request))

    def reply(self, status: int, body: dict[str, Any] | None = None) -> None:
        text = json.dumps(body).encode() if body else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *words: object) -> None:  # noqa: A002
        told("INFO", f'{self.client_address[0]}:{self.client_address[1]} - "{words[0]}" {words[1]}')


def refusal(kind: str, message: str, code: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def told(level: str, line: str) -> None:
    print(f"(APIServer pid={os.getpid()}) {level}:     {line}", flush=True)


def start_engine(fraction: float) -> None:
    time.sleep(LOADING_S)
    if "full" in ASKED:
        raise ValueError(
            f"Free memory on device cuda:0 ({FREE_GIB}/{TOTAL_GIB} GiB) on startup is less than desired GPU memory "
            f"utilization ({fraction}, {fraction * TOTAL_GIB:.2f} GiB). Decrease GPU memory utilization or reduce GPU "
            "memory used by other processes."
        )


def listen(host: str, port: int) -> ThreadingHTTPServer:
    if "taken" in ASKED:
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE).lower())
    return ThreadingHTTPServer((host, port), Front)


def main() -> None:
    parser = argparse.ArgumentParser(prog="vllm")
    serve = parser.add_subparsers(required=True).add_parser("serve")
    serve.add_argument("model")
    serve.add_argument("--host")
    serve.add_argument("--port", type=int, default=8000)
    serve.add_argument("--served-model-name")
    serve.add_argument("--tensor-parallel-size", type=int, choices=range(1, 9), default=1)
    serve.add_argument("--gpu-memory-utilization", type=float, default=0.9)
    serve.add_argument("--max-model-len", type=int)
    given = parser.parse_args()
    start_engine(given.gpu_memory_utilization)
    Front.engine = Engine(given.served_model_name or given.model)
    told("INFO", f"Starting vLLM API server 0 on http://{given.host}:{given.port}")
    try:
        front = listen(given.host, given.port)
    except OSError as error:
        told("ERROR", str(error))
        sys.exit(1)
    told("INFO", "Application startup complete.")
    front.serve_forever()


if __name__ == "__main__":
    main()
