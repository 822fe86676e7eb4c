"""Stands in for openpi's examples/libero/main.py: results are printed, with a logging prefix, and written nowhere."""

from __future__ import annotations

import argparse
import logging
import os
import time
from pathlib import Path

log = logging.getLogger()
ASKED = os.environ.get("REPLICA", "").split()
TASKS = 2


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("host", "port", "task-suite-name", "seed", "video-out-path"):
        parser.add_argument(f"--args.{name}", dest=name.replace("-", "_"))
    parser.add_argument("--args.num-trials-per-task", dest="trials", type=int, default=50)
    told = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    log.info("Waiting for server at ws://%s:%s...", told.host, told.port)
    while "waiting" in ASKED:
        log.info("Still waiting for server...")
        time.sleep(0.1)
    videos = Path(told.video_out_path)
    videos.mkdir(parents=True)
    done = successes = 0
    for task in range(TASKS):
        for trial in range(told.trials):
            log.info("\nTask: put object %s away", task)
            log.info("Starting episode %s...", trial + 1)
            caught = "caught" in ASKED and done >= TASKS * told.trials // 2
            success = done % 4 != 0 and not caught
            if caught:
                log.error("Caught exception: received 1011 (internal error); then sent 1011")
            done, successes = done + 1, successes + success
            (videos / f"rollout_put_{task}_{'success' if success else 'failure'}.mp4").write_bytes(b"")
            log.info("Success: %s", success)
            log.info("# episodes completed so far: %s", done)
            log.info("# successes: %s (%.1f%%)", successes, successes / done * 100)
        log.info("Current total success rate: %s", successes / done)
    log.info("Total success rate: %s", successes / done)
    log.info("Episodes in all: %s" if "reworded" in ASKED else "Total episodes: %s", done)


main()
