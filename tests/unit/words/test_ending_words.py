"""What people read of how attempts ended."""

from __future__ import annotations

import os
from pathlib import Path

from comborun.model.attempt import End
from comborun.rules import records
from comborun.rules.endings.evidence import TEXT_MOST, Evidence, fact, of_script
from comborun.rules.facts import Fact
from comborun.words import say
from comborun.words.endings import WORDS, said

GOLDEN = Path(__file__).parents[2] / "golden" / "words" / "endings.txt"
FACTS = (
    fact(Evidence.NOT_STARTED, said="a sentence of the former version"),
    fact(Evidence.COULD_NOT_RUN, program="./o'neill", folder="/a b", said="No such file or directory"),
    fact(Evidence.COULD_NOT_RUN, program="./run.sh", folder="/a", interpreter="/bin/bash\r"),
    fact(Evidence.COULD_NOT_RUN, program="x", folder="/"),
    fact(Evidence.SECRET_MISSING, name="HF_TOKEN"),
    fact(Evidence.GPU_NOT_FIRST),
    fact(Evidence.GPU_NOT_SEEN),
    fact(Evidence.SETUP_FAILED, number="2", exit="1", line="conda activate x", said="EnvironmentNameNotFound: x"),
    fact(Evidence.SETUP_FAILED, number="2", exit="0", line="exit 0"),
    fact(Evidence.SETUP_RETURNED, exit="3"),
    fact(Evidence.NO_FOLDER, path="/a"),
    fact(Evidence.CANNOT_MAKE, path="/a"),
    fact(Evidence.CANNOT_WRITE, path="/a"),
    fact(Evidence.CANNOT_LINK, path="/a"),
    fact(Evidence.FOLDER_BREAKS_JSON, path='/a"'),
    fact(Evidence.FOLDER_BREAKS_MOUNT, path="/a:b", runtime="docker"),
    fact(Evidence.CONTAINER_FAILED, runtime="docker", exit=125, said="docker: no daemon"),
    fact(Evidence.CONTAINER_FAILED, runtime="podman", exit=9),
    fact(Evidence.NO_DISPLAY, gpu="3"),
    fact(Evidence.NO_XVFB),
    fact(Evidence.XVFB_FAILED),
    fact(Evidence.NO_PORT, said="/tmp/ports is not a folder"),
    fact(Evidence.SECRET_MISSING, name="TOKEN"),
    fact(Evidence.SECRET_NOT_SET, name="TOKEN"),
    fact(Evidence.PORT_TAKEN, port=8000),
    fact(Evidence.NO_PROCESS),
    fact(Evidence.TASK_ENDED_EARLY, said="slurmstepd: error"),
    fact(Evidence.TASK_CANCELLED),
    fact(Evidence.WINDOW_REFUSED, engine="tmux", exit=1),
    fact(Evidence.WINDOW_REFUSED, engine="tmux"),
    fact(Evidence.FILES_REMOVED),
    fact(Evidence.SUPERVISOR_LEFT),
    fact(Evidence.SUPERVISOR_LEFT, exit=3),
    fact(Evidence.SUPERVISOR_LEFT, error="Cannot allocate memory"),
    fact(Evidence.NOT_BEGUN, within_s=20.0),
    fact(Evidence.ROOM_UNUSED),
    fact(Evidence.STALLED, seconds=60, core=2, stopped=1),
    fact(Evidence.STALLED, seconds=60, line="connection refused", times=30),
    fact(Evidence.RAN_TOO_LONG, limit_s=3600.0),
    fact(Evidence.SLURM_TIME_LIMIT),
    fact(Evidence.HELD_MEMORY, mib=150, limit_mib=100),
    fact(Evidence.HUNG_AFTER_WORK, limit_s=120),
    fact(Evidence.HUNG_AFTER_WORK, limit_s=120, files=20_000),
    fact(Evidence.NOT_READY, limit_s=600, check="http 200 /health"),
    fact(Evidence.NOT_READY, limit_s=600, check="http 200 /health", at="[::1]:8000"),
    fact(Evidence.WARM_UP_UNANSWERED, limit_s=5),
    fact(Evidence.NO_ANSWER, path="/health", misses=6, every_s=10),
    fact(Evidence.NO_ANSWER, misses=6, every_s=0.1),
    fact(Evidence.INTERRUPTED, by="window"),
    fact(Evidence.INTERRUPTED, by="signal"),
    fact(Evidence.CANCELLED, before="beginning"),
    fact(Evidence.CANCELLED, before="another_attempt"),
    fact(Evidence.DECIDED),
    fact(Evidence.ENDED_WITH, sessions=["stairs_flat"]),
    fact(Evidence.KILLED_FOR_MEMORY, where="group", count=1, available_kib=1024),
    fact(Evidence.KILLED_FOR_MEMORY, where="machine", count=2),
    fact(Evidence.OUTPUT_DISK_FULL, free_kib=12),
    fact(Evidence.SERVER_ENDED, server="pi0", cause="signal", exit="137"),
    fact(Evidence.SERVER_ENDED, server="pi0"),
    fact(Evidence.SERVER_SILENT, server="pi0"),
    fact(Evidence.SERVER_ANSWERS, servers=["pi0/1", "vlm/2"]),
    fact(Evidence.REBOOTED),
    fact(Evidence.TAKEN_OVER, host="gpu-box"),
    fact(Evidence.SUPERVISOR_DIED),
    fact(Evidence.TASK_GONE),
    fact(Evidence.SLURM_SAYS, said="*** JOB 7 CANCELLED DUE TO TIME LIMIT ***"),
    fact(Evidence.LOG_SAYS, said="CUDA out of memory"),
    fact(Evidence.PATTERNS_SLOW),
    fact(Evidence.SHARED_MEMORY_SMALL, mib=64, free_mib=0),
    fact(Evidence.SHARED_MEMORY_SMALL),
    fact(Evidence.NOT_JUDGED, said="KeyError('x')"),
    fact(Evidence.HOST_LIMITS, files=1024),
    fact(Evidence.SURVIVORS, pids=[7, 8]),
    fact(Evidence.LEFT_BEHIND, count=2, grace_s=5.0),
    fact(Evidence.LACKS, line="^done$", steps=True, files=["all.json"]),
    fact(Evidence.WRONG_GPU, used=[[0, 1000], [1, 700]], granted=[0]),
)


def test_every_fact_about_an_end_has_these_words() -> None:
    assert {one.code for one in FACTS} == set(WORDS) == {str(code) for code in Evidence}
    page = "".join(f"{one.code}: {say(one)}\n" for one in FACTS)
    if os.environ.get("COMBORUN_WRITE_GOLDEN"):
        GOLDEN.write_text(page)
    assert page == GOLDEN.read_text()


def test_a_fact_whose_fields_are_of_another_type_is_still_said() -> None:
    for code in Evidence:
        assert say(Fact(code, used="x", granted=7, pids=None, count="many", line=[1], said={"a": 1}, exit=[]))


def test_what_a_script_wrote_keeps_any_name() -> None:
    program = """it's "quoted" {here}"""
    found = of_script("\0".join(["could_not_run", "program", program, "folder", "/o'neill\nx", ""]))
    assert found == fact(Evidence.COULD_NOT_RUN, program=program, folder="/o'neill\nx")
    torn = of_script("could_not_run\0program")
    assert torn == fact(Evidence.NOT_STARTED, said="could_not_run program")
    assert of_script("log_says\0said\0x\0") == fact(Evidence.NOT_STARTED, said="log_says said x")


def test_an_end_says_its_facts_and_one_of_the_former_version_its_note() -> None:
    fields = {"attempt": 1, "ended": 5, "cause": "exited", "completeness": "none"}
    why = fact(Evidence.LOG_SAYS, said="\x1b[2J" + "x" * 1000)
    text = records.render({**fields, "ending": [why]}.items())
    end = End.parse(text)
    assert end.facts == (why,)
    assert len(why.text("said")) == TEXT_MOST
    assert end.note == said(records.parse(text))
    assert end.note.startswith("its log says:  [2Jx")
    old = End.parse(records.render({**fields, "note": "its log says: y"}.items()))
    assert (old.facts, old.note) == ((), "its log says: y")
