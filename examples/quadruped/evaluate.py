"""Evaluate one policy on one terrain.

    python evaluate.py --policy flat --env stairs --episodes 100 --seed 1000 --output-dir out

Episode i uses the seed `--seed` + i and depends on nothing else, so a range may be cut into pieces, repeated,
or run by many processes: the records are the same. Each finished episode is a line on stdout and a line in
episodes.jsonl.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from client import RemotePolicy, ServerError
from episode import Controller, EpisodeResult, run_episode
from policy import CheckpointError, Policy, load
from results import EpisodeFile, Identity, record
from sideview import SideView
from terrain import TERRAINS
from video import Video, VideoError, require_video

CHECKPOINTS = Path(__file__).parent / "checkpoints"
FAILURE, INTERRUPTED = 1, 130  # exit codes; argparse's own for a wrong command line is 2


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line instead of the whole usage."""
        self.exit(2, f"{self.prog}: error: {message}\n")


def count(text: str) -> int:
    """A whole number from 0 up."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 up, got {text!r}")
    return int(text)


def level(text: str) -> float:
    """A factor of difficulty."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.1 <= value <= 3.0:
        raise argparse.ArgumentTypeError(f"expected a number from 0.1 to 3, got {text!r}")
    return value


def name(text: str) -> str:
    """A policy's name, which becomes part of file names."""
    if not re.fullmatch(r"[A-Za-z0-9._-]+", text):
        raise argparse.ArgumentTypeError(f"a name may hold letters, digits, '.', '_' and '-', got {text!r}")
    return text


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(description="Evaluate one policy on one terrain.", allow_abbrev=False)
    parser.add_argument("--policy", type=name, required=True, help="flat, rough, or any with --checkpoint")
    parser.add_argument("--env", choices=TERRAINS, required=True, help="the terrain")
    parser.add_argument("--level", type=level, default=1.0, help="difficulty; 1 is what the policies met")
    parser.add_argument("--episodes", type=count, default=100, metavar="N", help="how many (default 100)")
    parser.add_argument("--first-episode", type=count, default=0, metavar="N", help="the first (default 0)")
    parser.add_argument("--seed", type=count, default=1000, help="of episode 0 (default 1000)")
    parser.add_argument("--output-dir", type=Path, required=True, metavar="DIR", help="gets episodes.jsonl")
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="default: checkpoints/POLICY.npz")
    parser.add_argument("--server", metavar="URL", help="ask the policy of this server (serve.py); no checkpoint then")
    parser.add_argument("--render", type=count, nargs="+", default=[], metavar="N", help="episodes to draw")
    parser.add_argument(
        "--render-as", choices=("gif", "mp4"), default="gif", help="side view, or video (needs EGL and PyAV)"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the episodes of the command line; returns the exit code."""
    options = parse(arguments)
    try:
        evaluate(choose_policy(options), options, choose_view(options))
    except (CheckpointError, ServerError, OSError) as error:
        print(f"evaluate.py: error: {error}", file=sys.stderr)
        return FAILURE
    except KeyboardInterrupt:
        print("evaluate.py: interrupted; finished episodes are recorded", file=sys.stderr)
        return INTERRUPTED
    return 0


def choose_policy(options: argparse.Namespace) -> Controller:
    """The network of a checkpoint, or that of a server."""
    if options.server:
        return RemotePolicy(options.server, options.policy)
    return Policy(load(options.checkpoint or CHECKPOINTS / f"{options.policy}.npz"))


def choose_view(options: argparse.Namespace) -> type[SideView | Video]:
    """What draws the chosen episodes: the side view, unless a video was asked for and can be made."""
    if options.render and options.render_as == "mp4":
        try:
            require_video()
        except VideoError as reason:
            print(f"evaluate.py: {reason}; drawing side views instead", file=sys.stderr)
        else:
            return Video
    return SideView


def evaluate(policy: Controller, options: argparse.Namespace, view: type[SideView | Video]) -> None:
    """Run, record and announce one episode after the other."""
    successes = 0
    with EpisodeFile(options.output_dir) as file:
        for done in range(options.episodes):
            episode = options.first_episode + done
            seed = options.seed + episode
            caption = f"{options.policy} on {options.env}, seed {seed}"
            watch = view(caption) if episode in options.render else None
            result = run_episode(policy, options.env, seed, options.level, watch)
            identity = Identity(options.policy, options.env, options.level, episode, seed)
            file.append(record(identity, result))
            successes += result.success
            print(f"{describe(episode, seed, result)}  {successes}/{done + 1} succeeded", flush=True)
            if watch is not None:
                watch.save(options.output_dir / f"{options.env}_{options.policy}_{episode}{view.suffix}")


def describe(episode: int, seed: int, result: EpisodeResult) -> str:
    outcome = f"{result.termination:11s}  {result.distance_m:5.2f} m  {result.time_s:5.2f} s"
    return f"episode {episode:4d}  seed {seed}  {outcome}"


if __name__ == "__main__":
    sys.exit(main())
