"""Damaged result files in `out/` of a running grid: its other sessions end well, and `status` and `stop` answer.

    python benchmarks/damaged.py [--files 10000] [--sessions 8] [--seed 1] [--stop] [--training]

A third of the sessions write files of real formats (npz, eval, sqlite, csv, json, jsonl, names of videos), torn,
swollen, or with a piece of another one in it; the others write rows. Runs in tmux on this machine, in a folder of its
own. Prints how long `status` took, and fails if a healthy session did not succeed or a command did not answer. With
--stop the run is stopped while the files arrive; it fails if anything is left of it. With --training they are
trainings, of which curves and checkpoints are looked for in these files.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SAMPLES = Path(__file__).parents[1] / "tests" / "unit" / "samples"
PROGRAM = """
import json, os, random, sys, time
samples, kind, files, seed, out = sys.argv[1:6]
if kind.endswith("healthy"):
    with open(out + "/rows.jsonl", "w") as rows:
        for at in range(20):
            rows.write(json.dumps({"episode": at, "success": at % 3 > 0}) + "\\n")
            rows.flush()
            time.sleep(0.1)
    sys.exit()
draw = random.Random(int(seed))
found = [os.path.join(at, name) for at, _, names in os.walk(samples) for name in names]
for at in range(int(files)):
    path = draw.choice(found)
    data, other = open(path, "rb").read(), open(draw.choice(found), "rb").read()
    for _ in range(draw.randint(1, 3)):
        cut = draw.randrange(len(data) + 1)
        torn, swollen = data[:cut], data[:cut] + other[:200] + data[cut:]
        data = draw.choice((torn, swollen, torn + b"\\x00" * 9 + data[cut + 9 :]))
    name = os.path.basename(path)
    if draw.random() < 0.1:
        name = draw.choice(("success_obj_episode_%d.mp4", "failure_obj_%d_x.mp4", "success_obj_.mp4"))
        name = name.replace("%d", str(at))
    folder = os.path.join(out, str(at % 97))
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "%d_%s" % (at, name) if draw.random() < 0.5 else name), "wb") as file:
        file.write(data)
"""
GRID = """\
name: damaged
root: {root}
policies: [{policies}]
environments: [healthy, also_healthy, broken]
episodes: 20
workdir: .
command: {python} program.py {samples} {{environment}} {files} {{policy}} {{output_dir}}
{results}
limits: {{parallel: 4}}
poll: 1 s
"""


def main() -> int:
    given = argparse.ArgumentParser()
    given.add_argument("--files", type=int, default=10_000)
    given.add_argument("--sessions", type=int, default=8)
    given.add_argument("--seed", type=int, default=1)
    given.add_argument("--stop", action="store_true")
    given.add_argument("--training", action="store_true")
    args = given.parse_args()
    place = Path(tempfile.mkdtemp(prefix="comborun-damaged-"))
    (place / "program.py").write_text(PROGRAM.replace('kind == "healthy"', 'kind.endswith("healthy")'))
    policies = range(args.seed, args.seed + args.sessions)
    fields = {
        "root": place / "root",
        "python": sys.executable,
        "samples": SAMPLES,
        "results": "unit: step\nresults: none" if args.training else 'results: {files: ["**/*"]}',
        "files": 10**9 if args.stop else args.files // args.sessions,
    }
    grid = place / "grid.yaml"
    grid.write_text(GRID.format(policies=", ".join(f'"{one}"' for one in policies), **fields))
    healthy = 2 * args.sessions
    try:
        run("launch", str(grid))
        if args.stop:
            return stopped(place, args.files // 4)
        looks: list[float] = []
        while True:
            began = time.monotonic()
            told = json.loads(run("status", "--json", "--root", str(place / "root")))
            looks.append(time.monotonic() - began)
            ended = [one for one in told["sessions"] if one.get("outcome")]
            if len(ended) == len(told["sessions"]) or len(looks) > 600:
                break
            time.sleep(1)
        well = [one for one in ended if "healthy" in one["environment"] and one["outcome"] == "succeeded"]
        run("stop", "--yes", "--root", str(place / "root"), check=False)
        print(
            f"{len(well)} of {healthy} healthy sessions succeeded; {len(looks)} looks, the longest {max(looks):.1f} s"
        )
        return 0 if len(well) == healthy else 1
    finally:
        shutil.rmtree(place, ignore_errors=True)


def stopped(place: Path, files: int) -> int:
    """Stop the run while its programs write, and look what is left."""
    root = place / "root"
    while (there := sum(1 for _ in root.glob("*/sessions/*/attempt-*/out/*/*"))) < files:
        time.sleep(0.2)
    began = time.monotonic()
    run("stop", "--yes", "--root", str(root))
    took = time.monotonic() - began
    told = json.loads(run("status", "--json", "--root", str(root)))
    states = [one["outcome"] or one["state"] for one in told["sessions"]]
    after = sum(1 for _ in root.glob("*/sessions/*/attempt-*/out/*/*"))
    alive = [one for one in Path("/proc").glob("[0-9]*/cmdline") if str(place).encode() in text_of(one)]
    time.sleep(1)
    still = sum(1 for _ in root.glob("*/sessions/*/attempt-*/out/*/*")) - after
    print(f"stopped after {there} files, in {took:.1f} s; {len(alive)} processes left, {still} files written later")
    print(", ".join(f"{states.count(one)} {one}" for one in sorted({*states})))
    return 1 if still or alive else 0


def text_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def run(*words: str, check: bool = True) -> str:
    """What `combo` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "comborun", *words], capture_output=True, text=True, check=False, timeout=300
    )
    if check and done.returncode and "status" not in words:
        raise SystemExit(f"combo {' '.join(words)}: {done.stderr}{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
