"""Stands in for rollout_policy.py of Isaac-GR00T: one printed tuple at the end, numpy's spelling in it."""

from __future__ import annotations

import argparse
import os

ASKED = os.environ.get("REPLICA", "").split()


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("env_name", "policy_client_host", "policy_client_port", "max_episode_steps", "n_action_steps"):
        parser.add_argument(f"--{name}")
    for name in ("n_episodes", "n_envs"):
        parser.add_argument(f"--{name}", type=int)
    told = parser.parse_args()
    print(f"Running collecting {told.n_episodes} episodes for {told.env_name} with {told.n_envs} vec envs")
    for done in range(1, told.n_episodes + 1):
        bar = f"{100 * done // told.n_episodes}%|██   | {done}/{told.n_episodes} [03:10<04:45]"
        print(f"\rEpisodes:  {bar}", end="")
    print(flush=True)
    if "killed" in ASKED:
        os.kill(os.getpid(), 9)
    successes = [index % 4 != 0 for index in range(told.n_episodes)]
    listed = ", ".join(f"np.{success}_" for success in successes)
    print(f"Collecting {told.n_episodes} episodes took 475.2 seconds")
    print(f"results:  ({told.env_name!r}, [{listed}], {{}})")
    print(f"success rate:  {sum(successes) / len(successes)}")


main()
