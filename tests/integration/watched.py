"""Sessions for the watch: programs that hang, stall and complain, each in a way of its own."""

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
RETRIES = """
import time
print("loading")
i = 0
while True:
    i += 1
    print(f"[{time.time()}] retry {i}: connection refused at {id(i):#x}", flush=True)
    time.sleep(0.01)
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
import subprocess, time
x = bytearray(60 << 20)
other = subprocess.Popen(["{PYTHON}", "-c", "import time; y = bytearray(60 << 20); print(flush=True); time.sleep(60)"],
                         stdout=subprocess.PIPE)
other.stdout.readline()
time.sleep(4)
other.kill()
"""
"""holds more than 120 MiB in two processes for forty looks of the watch"""


def records(then: str, *constants: str) -> Script:
    return bash(RECORDS + then, count=3, results=("*.jsonl",), constants=constants)


SESSIONS = {
    "hangs": records("sleep 60", "hang_s=1"),
    "finishes_later": records("sleep 2.5; echo finished", "hang_s=1", "evidence_line='^finished$'"),
    "makes_videos": records(VIDEOS, "hang_s=2"),
    "may_hang": records("sleep 2", "hang_s=0"),
    "does_nothing": bash("echo loading; sleep 60", constants=("stall_s=1",)),
    "retries": python(RETRIES, constants=("stall_s=2",)),
    "takes_long": python(OVERTIME, constants=("max_s=1",)),
    "is_stubborn": python(STUBBORN, constants=("stall_s=1",)),
    "is_polite": python(POLITE, constants=("stall_s=1",)),
    "takes_memory": python(MEMORY),
    "is_short": bash("true"),
}
