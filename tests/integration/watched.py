"""Sessions for the watch: programs that hang, stall, complain and work, each in a way of its own."""

from __future__ import annotations

from box import PYTHON, Script, bash, python

RECORDS = """\
for ((i = 0; i < 3; i++)); do
  printf '{"episode": %d, "success": true}\\n' "$i"
done >"$COMBORUN_OUTPUT_DIR/records.jsonl"
"""
VIDEOS = """
mkdir "$COMBORUN_OUTPUT_DIR/.videos"
for i in {1..9}; do sleep 0.5; echo >"$COMBORUN_OUTPUT_DIR/.videos/$i"; done
"""
QUIET_WORK = """
import time
began = time.monotonic()
while time.monotonic() - began < 5: pass
"""
CHATTER = """
import time
for i in range(50):
    print("step", i, "of 50", flush=True)
    time.sleep(0.1)
"""
SAVING = """
import os, time
for i in range(50):
    with open(os.environ["COMBORUN_OUTPUT_DIR"] + "/records.jsonl", "a") as file:
        file.write("{}\\n")
    time.sleep(0.1)
"""
CHILDREN = """
import subprocess
for i in range(16):
    subprocess.run(["timeout", "0.3", "sh", "-c", "while :; do :; done"])
"""
RETRIES = """
import time
print("loading")
i = 0
while True:
    i += 1
    print(f"[{time.time()}] retry {i}: connection refused at {id(i):#x}", flush=True)
    time.sleep(0.01)
"""
TRACEBACKS = """
import time, traceback
while True:
    try:
        raise ConnectionError(f"no answer at {time.monotonic()}")
    except ConnectionError:
        traceback.print_exc()
        print("the step is tried again", flush=True)
    sum(range(20_000))
"""
NAVIGATION = """
import time
while True:
    print(f"{time.strftime('%H:%M:%S')} INFO step {7} of 20")
    print(f"<HTTPConnection object at {id(object()):#x}>: Max retries exceeded")
    print("retrying...", flush=True)
    time.sleep(0.02)
"""
WARNINGS = """
import time
began = time.monotonic()
while time.monotonic() - began < 9:
    print("WARNING: joint 3 is near its limit", flush=True)
    sum(range(200_000))
"""
COMPLAINS_FIRST = """
import time
for i in range(40):
    print("[Error] failed to load an extension", flush=True)
began = time.monotonic()
while time.monotonic() - began < 9: pass
"""
FAILS_ALWAYS = """
import time
for i in range(90):
    print(f"Episode {i}: failure", flush=True)
    time.sleep(0.1)
"""
TIMES_OUT_ALWAYS = """
import time
for i in range(90):
    print(f"[ {i + 1:3d}/90] stairs TIMEOUT", flush=True)
    time.sleep(0.1)
"""
MOVING = """
import os, time
from pathlib import Path
out = Path(os.environ["COMBORUN_OUTPUT_DIR"])
for i in range(45):
    (out / "draft").write_text("{}\\n")
    os.utime(out / "draft", (1e9, 1e9))
    (out / "draft").rename(out / f"{i}.jsonl")
    time.sleep(0.2)
"""
OVERTIME = """
import time
while True:
    print(time.time(), flush=True)
    time.sleep(0.1)
"""
STUBBORN = """
import signal, subprocess, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
subprocess.Popen(["setsid", "sleep", "60"])
subprocess.Popen(["nohup", "sleep", "60"])
time.sleep(60)
"""
POLITE = """
import time
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("saved")
"""
MEMORY = f"""
import os, pathlib, subprocess, time
x = bytearray(60 << 20)
other = subprocess.Popen(["{PYTHON}", "-c", "import time; y = bytearray(60 << 20); time.sleep(60)"])
peak, deadline = pathlib.Path(os.environ["COMBORUN_OUTPUT_DIR"]).parent / ".watch", time.monotonic() + 30
while time.monotonic() < deadline and not (peak.exists() and int(peak.read_text() or 0) > 120 << 10):
    time.sleep(0.05)
other.kill()
"""
"""ends when the watch has seen it hold more than 120 MiB in two processes"""


def records(then: str, *constants: str) -> Script:
    return bash(RECORDS + then, count=3, results=("*.jsonl",), constants=constants)


def works(text: str, count: int = 50) -> Script:
    return python(text, count=count, results=("*.jsonl",), constants=("stall_s=2",))


SESSIONS = {
    "hangs": records("sleep 60", "hang_s=1"),
    "finishes_later": records("sleep 2.5; echo finished", "hang_s=1", "evidence_line='^finished$'"),
    "makes_videos": records(VIDEOS, "hang_s=2"),
    "may_hang": records("sleep 2", "hang_s=0"),
    "hangs_talking": records("while :; do echo waiting for the simulator; sleep 0.1; done", "hang_s=1", "max_s=20"),
    "does_nothing": bash("echo loading; sleep 60", constants=("stall_s=1",)),
    "computes": works(QUIET_WORK),
    "chats": works(CHATTER),
    "saves": works(SAVING),
    "has_children": works(CHILDREN),
    "retries": python(RETRIES, constants=("stall_s=2",)),
    "tracebacks": python(TRACEBACKS, constants=("stall_s=2", "max_s=20")),
    "navigates": python(NAVIGATION, constants=("stall_s=2", "max_s=20")),
    "warns": works(WARNINGS),
    "complains_first": works(COMPLAINS_FIRST),
    "fails_always": works(FAILS_ALWAYS),
    "times_out_always": works(TIMES_OUT_ALWAYS, count=90),
    "moves_results": works(MOVING),
    "takes_long": python(OVERTIME, constants=("max_s=1",)),
    "is_stubborn": python(STUBBORN, constants=("stall_s=1",)),
    "is_polite": python(POLITE, constants=("stall_s=1",)),
    "takes_memory": python(MEMORY),
    "is_short": bash("true"),
}


WORKING = (
    *("computes", "chats", "saves", "has_children", "moves_results"),
    *("warns", "complains_first", "fails_always", "times_out_always"),
)
