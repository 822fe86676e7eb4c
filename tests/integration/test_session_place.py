"""What stands around a session's command, with real processes: GPUs by name, cores, threads, a port, a display."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import session_by_hand
from box import Box, Script, alive, bash, kill, until
from recorded import record
from traces import HOLD

from comborun.model.resources import Display
from comborun.rules.vocabulary import Cause

UUIDS = "GPU-05d35c06-da01-4b1d-9f3e-000000000002,GPU-05d35c06-da01-4b1d-9f3e-000000000005"
TELL = "env | grep -E '^({})' | sort"
needs_xvfb = pytest.mark.skipif(not shutil.which("Xvfb"), reason="Xvfb is not here")


def by_hand(box: Box, script: Script, grant: str = "") -> None:
    """One session, run as a person would; `grant` is what a dispatcher would have written."""
    if grant:
        box.write("sessions/stairs_flat/attempt-1/grant", grant)
    session_by_hand.by_hand(box, script)


def told(box: Box, name: str = "stairs_flat") -> dict[str, str]:
    """The environment that the command of a session printed."""
    return dict(line.split("=", 1) for line in box.log(name).splitlines())


def test_a_command_sees_the_gpus_that_it_was_granted(box: Box) -> None:
    box.environment["CUDA_VISIBLE_DEVICES"] = "7"  # of the shell in which the run was started
    script = bash(TELL.format("COMBORUN_GPU|CUDA_"), more={"pin": "both"}, setup="true")
    by_hand(box, script, f'{{"gpus": "2,5", "uuids": "{UUIDS}"}}\n')
    seen = {"COMBORUN_GPU": "0", "COMBORUN_GPUS": "0,1", "COMBORUN_GPU_COUNT": "2"}
    assert told(box) == {**seen, "CUDA_VISIBLE_DEVICES": UUIDS, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert box.begun("stairs_flat").gpus == "2,5"


def test_a_session_runs_on_its_cores_with_as_many_threads_and_the_grids_variables_win(box: Box) -> None:
    core = min(os.sched_getaffinity(0))
    script = bash(
        TELL.format("[A-Z]+_NUM_THREADS|PXR_|COMBORUN_(CORES|THREADS)")
        + "; echo allowed=$(sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status)",
        more={"threads": 3},
        variables=("MKL_NUM_THREADS=1",),
    )
    by_hand(box, script, record(cores=core))
    capped = {f"{name}_NUM_THREADS": "3" for name in ("OMP", "OPENBLAS", "NUMEXPR", "LP")}
    assert told(box) == capped | {
        "MKL_NUM_THREADS": "1",
        "PXR_WORK_THREAD_LIMIT": "3",
        "COMBORUN_CORES": str(core),
        "COMBORUN_THREADS": "3",
        "allowed": str(core),
    }
    assert box.fields("sessions/stairs_flat/attempt-1/begin")["cores"] == str(core)


def test_a_session_that_can_not_be_bound_to_its_cores_runs_all_the_same(box: Box) -> None:
    by_hand(box, bash("echo went on"), record(cores=60000))
    assert "can not be bound to the cores 60000" in box.log("stairs_flat")
    assert box.log("stairs_flat").endswith("went on\n")


def test_sessions_that_run_at_once_have_ports_of_their_own_which_nothing_listens_on(box: Box, tmp_path: Path) -> None:
    box.environment["COMBORUN_PORTS"] = str(tmp_path / "ports")
    listen = (
        "import os,socket,time\ns=socket.socket(); s.bind(('127.0.0.1',int(os.environ['COMBORUN_PORT'])));s.listen()\n"
    )
    listen += "print('up',flush=True)\nwhile not os.path.exists(os.environ['COMBORUN_RUN_DIR']+'/go'): time.sleep(.05)"
    names = [f"env_p{i}" for i in range(6)]
    script = Script(("/usr/bin/env", "python3", "-c", f"'{listen.replace(chr(39), chr(34))}'"))
    box.plan(dict.fromkeys(names, script), parallel=6)
    box.start()
    until(lambda: all(box.log(name) == "up\n" for name in names), "all listen at their port")
    ports = [box.fields(f"sessions/{name}/attempt-1/begin")["port"] for name in names]
    assert len(set(ports)) == 6
    supervisor = box.begun(names[0]).supervisor
    kill(supervisor, signal.SIGKILL)
    lock = tmp_path / "ports" / ports[0]
    held = ["flock", "-n", str(lock), "true"]
    assert subprocess.run(held, check=False).returncode == 1, "an orphan keeps its port"
    box.write("go", "")
    box.await_done()
    until(lambda: subprocess.run(held, check=False).returncode == 0, "a port is free when its session has ended")


def servers(box: Box) -> list[int]:
    """The X servers of a box."""
    found = []
    for pid in box.marked():
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            continue
        found += [pid] if name == "Xvfb" else []
    return found


@needs_xvfb
def test_each_session_has_an_x_server_of_its_own_with_its_geometry_which_ends_with_it(box: Box) -> None:
    draw = 'xdpyinfo >"$COMBORUN_OUTPUT_DIR/x"; echo "$DISPLAY $COMBORUN_DISPLAY"; ' + HOLD
    names = [f"env_p{i}" for i in range(4)]
    script = bash(draw, more={"display": Display("xvfb", geometry="640x480x24")})
    box.plan(dict.fromkeys(names, script), parallel=4)
    box.start()
    until(lambda: all(box.log(name).strip() for name in names), "all have drawn")
    shown = [box.log(name).split() for name in names]
    assert all(display == own and display.startswith(":") for display, own in shown)
    assert len({display for display, _ in shown}) == 4
    if shutil.which("xdpyinfo"):
        assert all("640x480" in (box.attempt(name) / "out/x").read_text() for name in names)
    assert len(servers(box)) == 4
    assert box.fields("sessions/env_p0/attempt-1/begin")["display"] == shown[0][0]
    began = time.monotonic()
    box.write("go", "")
    box.await_done()
    assert servers(box) == []
    assert not box.marked()
    assert time.monotonic() - began < 6, "nobody waits for a server that is to go anyway"


@needs_xvfb
@pytest.mark.parametrize("way", ["stop", "kill -9 of both"])
def test_an_x_server_goes_with_its_session_however_that_ends(box: Box, way: str) -> None:
    box.plan({"stairs_flat": bash('sleep 600 & echo "$DISPLAY"; wait', more={"display": Display("xvfb")})})
    box.start()
    until(lambda: box.log("stairs_flat").strip(), "it has a display")
    (server,) = servers(box)
    begin = box.begun("stairs_flat")
    if way == "stop":
        box.stop()
    else:
        box.kill_dispatcher()
        kill(begin.supervisor, signal.SIGKILL)
        until(lambda: not alive(begin.supervisor), "its supervisor is gone")
        assert alive(server), "an orphan keeps its display"
        os.killpg(begin.pid, signal.SIGKILL)
    until(lambda: not alive(server), "its server is gone too")


def test_an_x_server_that_will_not_leave_is_killed(box: Box) -> None:
    box.stand_in("Xvfb", "trap '' TERM\necho 77\nwhile :; do sleep 1; done")
    by_hand(box, bash('echo "$DISPLAY"', more={"display": Display("xvfb")}))
    assert box.log("stairs_flat").strip() == ":77"
    assert box.ended("stairs_flat").clean
    assert not box.marked()


@needs_xvfb
@pytest.mark.parametrize(
    "display", [Display("xvfb", geometry="huge"), Display(by_gpu=((0, 8), (1, 9)))], ids=["huge", "none"]
)
def test_a_session_whose_display_can_not_be_had_fails_before_its_command(box: Box, display: Display) -> None:
    by_hand(box, bash("echo ran", more={"display": display}), '{"gpus": "3"}\n')
    end = box.ended("stairs_flat")
    assert end.cause is Cause.LAUNCH_FAILED
    assert ("Xvfb did not come up" in end.note) == display.own
    assert ("no display for GPU 3" in end.note) == (not display.own)
    assert "ran" not in box.log("stairs_flat")
    assert not box.marked()


@pytest.mark.parametrize(("display", "seen"), [(Display("1"), ":1"), (Display(by_gpu=((0, 8), (2, 9))), ":9")])
def test_a_display_that_is_there_is_named_by_the_grid_or_by_the_gpu(box: Box, display: Display, seen: str) -> None:
    by_hand(box, bash(TELL.format("DISPLAY|COMBORUN_DISPLAY"), more={"display": display}), '{"gpus": "2"}\n')
    assert told(box) == {"DISPLAY": seen, "COMBORUN_DISPLAY": seen}


EGL = """
/* stand-in for NVIDIA's libEGL: devices in another order than CUDA's, and Mesa's at the end */
#include <string.h>
typedef unsigned (*f)();
static unsigned devices(int n, void **out, int *count) {
  for (int i = 0; i < 3; i++) out[i] = (void *)(long)(i + 1);
  *count = 3; return 1; }
static unsigned attribute(void *d, int name, long *value) {
  static long cuda[] = {2, 0}; long i = (long)d - 1;
  if (name != 0x323A || i > 1) return 0; *value = cuda[i]; return 1; }
static unsigned binary(void *d, int name, int most, void *value, int *size) {
  long i = (long)d - 1;
  if (!NAMED || name != 0x335C || i > 1) return 0;
  memset(value, i ? 0x11 : 0x22, 16); *size = 16; return 1; }
f eglGetProcAddress(const char *name) {
  if (!strcmp(name, "eglQueryDevicesEXT")) return (f)devices;
  if (!strcmp(name, "eglQueryDeviceAttribEXT")) return (f)attribute;
  if (!strcmp(name, "eglQueryDeviceBinaryEXT")) return (f)binary;
  return 0;
}
"""


@pytest.mark.skipif(not shutil.which("gcc"), reason="no compiler for the stand-in library")
@pytest.mark.parametrize(
    ("named", "grant", "egl"),
    [
        (0, '{"gpus": "0"}\n', "1 asked"),
        (0, '{"gpus": "2"}\n', "0 asked"),
        (1, '{"gpus": "7", "uuids": "GPU-22222222-2222-2222-2222-222222222222"}\n', "0 asked"),
        (1, '{"gpus": "0", "uuids": "GPU-33333333-3333-3333-3333-333333333333"}\n', "0 assumed"),
        (0, '{"gpus": "3"}\n', "3 assumed"),
    ],
)
def test_the_egl_device_of_a_gpu_is_asked_for_and_else_assumed(
    box: Box, tmp_path: Path, named: int, grant: str, egl: str
) -> None:
    (tmp_path / "egl.c").write_text(EGL)
    build = ["gcc", "-shared", "-fPIC", "-w", f"-DNAMED={named}", "-o", str(tmp_path / "libEGL.so.1")]
    subprocess.run([*build, str(tmp_path / "egl.c")], check=True)
    box.environment |= {"LD_LIBRARY_PATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": "1"}
    by_hand(box, bash('echo "$COMBORUN_EGL_DEVICE"'), grant)
    begin = box.fields("sessions/stairs_flat/attempt-1/begin")
    assert f"{begin['egl']} {begin['egl_told']}" == egl
    assert box.log("stairs_flat") == f"{egl.split(maxsplit=1)[0]}\n"
