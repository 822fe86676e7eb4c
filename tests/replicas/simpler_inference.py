"""Stands in for SimplerEnv's main_inference.py: the outcome of an episode is in the name of its video."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

ASKED = os.environ.get("REPLICA", "").split()


def main() -> None:
    parser = argparse.ArgumentParser()
    names = ("policy-model", "policy-setup", "ckpt-path", "robot", "env-name", "scene-name", "obj-variation-mode")
    for name in (*names, "logging-dir", "tf-memory-limit"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--obj-episode-range", nargs=2, type=int, default=[0, 60])
    told = parser.parse_args()
    scene = Path(told.logging_dir, told.ckpt_path, told.scene_name, "arm_pd_ee_delta_pose", told.env_name)
    folder = scene / "rob_0.35_0.20_rot_0.000_-0.000_3.142_rgb_overlay_None"
    folder.mkdir(parents=True)
    outcomes = [index % 4 != 0 for index in range(*told.obj_episode_range)]
    for index, success in enumerate(outcomes, told.obj_episode_range[0]):
        outcome = "success" if success else "failure"
        (folder / f"{outcome}_obj_episode_{index}_is_drawer_open_True.mp4").write_bytes(b"\0\0\0\x08moov")
    print(" " * 10, "Average success", sum(outcomes) / len(outcomes), flush=True)
    if "segfault" in ASKED:
        os.kill(os.getpid(), 11)


main()
