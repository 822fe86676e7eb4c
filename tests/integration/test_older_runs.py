"""A run that an older version made: a sentence from every command but report, logs and stop, which work on it."""

from __future__ import annotations

import json
import shutil

from box import until
from desk import ONE, Desk

REFUSED = {
    "status": (),
    "monitor": ("--plain",),
    "explain": ("maze_good",),
    "retry": ("maze_good",),
    "pause": (),
    "drain": (),
    "resume": (),
    "slots": ("2",),
    "notify": (),
}


def test_an_older_run_is_refused_with_a_sentence_and_can_be_reported_looked_at_and_stopped(desk: Desk) -> None:
    run = desk.launched(1, **ONE)
    until((run / "dispatch/done").exists, "it ends")
    shutil.rmtree(run / "lib/comborun_host")
    (run / "dispatch/queue.jsonl").unlink()
    plan = json.loads((run / "plan-1.json").read_text())
    plan["limits"]["give_way"] = 30.0
    (run / "plan-1.json").write_text(json.dumps(plan))
    (run / "lib/stop.sh").write_text('printf "maze_good: %s\\n" "stopped as of old" "$#"\n')
    for command, words in {**REFUSED, "launch": ("grid.yaml",)}.items():
        refused = desk.combo(command, *words, code=2)
        assert "an older comborun" in refused.stderr, (command, refused.stderr)
        assert "Traceback" not in refused.stderr
    assert desk.combo("logs", "maze_good").returncode == 0
    assert desk.combo("report").returncode == 0
    stopped = desk.combo("stop")
    assert (stopped.returncode, "stopped as of old" in stopped.stdout) == (0, True), stopped.stderr
