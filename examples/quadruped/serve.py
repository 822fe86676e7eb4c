"""Serve policies over HTTP: one process that several simulators ask.

    python serve.py --port 8000 --policy flat=checkpoints/flat.npz rough=checkpoints/rough.npz
    python evaluate.py --policy rough --env stairs --server http://127.0.0.1:8000 --output-dir out

    GET  /health                   200 once all checkpoints are loaded
    GET  /v1/models                their names
    GET  /v1/models/NAME/frequency the clock's frequency in Hz, a float32 in little-endian order
    POST /v1/models/NAME/act       15 inputs in, 12 outputs back, the same way

The server remembers nothing between two requests, so any number of simulators can ask it in any order. Each request is
computed by itself: several at once in one matrix product would round otherwise, and episodes would differ.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response
from policy import INPUT_SIZE, CheckpointError, Network, load

WIRE = np.dtype("<f4")
RAW = "application/octet-stream"


def application(networks: Mapping[str, Network]) -> FastAPI:
    """The routes for these policies."""
    app = FastAPI(title="quadruped policies", docs_url=None, redoc_url=None)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/models")
    async def models() -> dict[str, list[dict[str, str]]]:
        return {"data": [{"id": name} for name in networks]}

    def network(name: str) -> Network:
        if name not in networks:
            raise HTTPException(404, f"there is no policy {name}; there are {', '.join(networks)}")
        return networks[name]

    @app.get("/v1/models/{name}/frequency")
    async def frequency(name: str) -> Response:
        return Response(network(name).freq.astype(WIRE).tobytes(), media_type=RAW)

    @app.post("/v1/models/{name}/act")
    async def act(name: str, request: Request) -> Response:
        chosen = network(name)
        body = await request.body()
        if len(body) != INPUT_SIZE * WIRE.itemsize:
            raise HTTPException(422, f"expected {INPUT_SIZE} numbers of {WIRE.itemsize} bytes, got {len(body)} bytes")
        outputs = chosen.forward(np.frombuffer(body, WIRE))
        return Response(outputs.astype(WIRE).tobytes(), media_type=RAW)

    return app


def named(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"expected NAME=FILE, got {text!r}")
    return name, Path(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Load, then listen until told to end; returns the exit code."""
    parser = argparse.ArgumentParser(description="Serve policies over HTTP.", allow_abbrev=False)
    parser.add_argument("--policy", type=named, nargs="+", required=True, metavar="NAME=FILE", help="a checkpoint")
    parser.add_argument("--port", type=int, required=True, help="where to listen")
    parser.add_argument("--host", default="127.0.0.1", help="on which address (default 127.0.0.1: this machine alone)")
    options = parser.parse_args(arguments)
    try:
        networks = {name: load(path) for name, path in options.policy}
    except CheckpointError as error:
        print(f"serve.py: error: {error}", file=sys.stderr)
        return 1
    uvicorn.run(application(networks), host=options.host, port=options.port, log_level="warning")
    return 0


if __name__ == "__main__":
    sys.exit(main())
