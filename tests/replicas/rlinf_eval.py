"""Stands in for RLinf's evaluation: silence, then a rate and a number of trajectories, twice.

Placements are read no further than Hydra's `~key` and `+key=value`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ASKED = os.environ.get("REPLICA", "").split()


def main() -> None:
    config, *overrides = sys.argv[1:]
    told = dict(word.split("=", 1) for word in overrides if not word.startswith("~"))
    placement = told.get("+cluster.component_placement", "the configuration's own")
    episodes = int(told["env.eval.total_num_envs"]) * int(told["env.eval.rollout_epoch"])
    print(f"[INFO 09:15:41 RLinf] config {config}\nGenerated placements: {placement}", flush=True)
    if "exit0" in ASKED:
        os._exit(0)
    rate = "'eval/success_once': array(0.75, dtype=float32), 'eval/return': array(0.43, dtype=float32)"
    print(f"[INFO 09:15:42 RLinf] {{{rate}, 'eval/success_at_end': 0.5, 'eval/num_trajectories': {episodes}}}")
    table = f"│episode_len=80.0 │num_trajectories={episodes} │return=0.43 │success_once=0.75 │\n"
    Path(told["runner.logger.log_path"], "metrics.log").write_text(table)


main()
