r"""An evaluation on a real GPU: the example's quadruped, its policy in torch on the device, frames through EGL.

    python walk.py --policy flat --env grass --episodes 3 --first-episode 0 --seed 1000 --memory-mib 4096 \
      --output-dir out

Takes `--memory-mib` of the device besides, as a simulator with cameras would. Writes the example's records, with the
device that it ran on. Prints what EGL draws with.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

EXAMPLE = Path(__file__).parents[2] / "examples" / "quadruped"
sys.path.insert(0, str(EXAMPLE))

from episode import run_episode  # noqa: E402
from policy import ACTION_SCALE, CONTROL_PERIOD, STANDING, clock, load  # noqa: E402
from results import Identity, record  # noqa: E402
from simulation import Simulation  # noqa: E402
from video import Camera  # noqa: E402

DRAWN_EVERY = 25
"""control steps between two frames"""


class TorchPolicy:
    """The example's network, as torch computes it on the device."""

    def __init__(self, checkpoint: Path) -> None:
        network = load(checkpoint)
        self.weights = {key: torch.tensor(value, device="cuda") for key, value in vars(network).items()}
        self.frequency = float(network.freq)
        self.phase = 0.0

    def reset(self) -> None:
        self.phase = 0.0

    def act(self, observation: Any) -> Any:
        w = self.weights
        inputs = torch.tensor([*observation, *clock(self.phase)], dtype=torch.float32, device="cuda")
        with torch.inference_mode():
            hidden = torch.tanh((inputs - w["mu"]) / w["sd"] @ w["w0"] + w["b0"])
            outputs = torch.tanh(hidden @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"]
        self.phase = (self.phase + self.frequency * CONTROL_PERIOD) % 1.0
        return STANDING + ACTION_SCALE * outputs.cpu().numpy().astype(float)


class Eyes:
    """Draws now and then, and counts the frames that show something."""

    def __init__(self) -> None:
        self.camera: Camera | None = None
        self.steps = self.frames = 0

    def __call__(self, simulation: Simulation) -> None:
        self.camera = self.camera or Camera(simulation.model)
        if self.steps % DRAWN_EVERY == 0:
            pixels = self.camera.frame(simulation)
            self.frames += int(pixels.std() > 1)
        self.steps += 1


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("policy", "env"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("episodes", "first-episode", "seed", "memory-mib"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--output-dir", type=Path, required=True)
    told = parser.parse_args()
    held = torch.empty(told.memory_mib << 20, dtype=torch.uint8, device="cuda").fill_(1)
    device = torch.cuda.get_device_properties(0)
    print(f"device {device.name} {getattr(device, 'uuid', '')}, {held.numel() >> 20} MiB held", flush=True)
    policy = TorchPolicy(EXAMPLE / "checkpoints" / f"{told.policy}.npz")
    began = time.monotonic()
    with (told.output_dir / "episodes.jsonl").open("a") as file:
        for episode in range(told.first_episode, told.first_episode + told.episodes):
            eyes = Eyes()
            result = run_episode(policy, told.env, told.seed + episode, 1.0, eyes)
            row = json.loads(record(Identity(told.policy, told.env, 1.0, episode, told.seed + episode), result))
            file.write(json.dumps({**row, "frames": eyes.frames, "device": str(getattr(device, "uuid", ""))}) + "\n")
            file.flush()
            print(f"episode {episode}: {result.termination}, {eyes.frames} frames", flush=True)
    print(f"done in {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
