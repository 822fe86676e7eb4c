"""Which device a program draws on: what the session's variable says for Vulkan."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from comborun.host.supervise.environment import CommandEnvironment
from comborun.host.system import drawing
from comborun.host.system.drawing import vulkan_device
from comborun.rules.endings.evidence import Evidence, MissingResource
from comborun.rules.facts import Fact
from comborun.rules.names import RunLayout

LOADER = """
/* stand-in for the Vulkan loader with two equal GPUs, and for Mesa's device-select layer of the version MESA:
   0: no layer; 22: takes the second device, whatever is named; 23: does not know `!`; 24: `!` hides all others;
   9: there is another device only */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static const char *tags[] = {"pci-0000_01_00_0", "pci-0000_41_00_0"};
int vkCreateInstance(void *info, void *allocator, void **instance) {
  puts("WARNING: no such extension"); fflush(stdout); *instance = info; return MESA < 0; }
int vkEnumeratePhysicalDevices(void *instance, unsigned *count, void **devices) {
  const char *wanted = getenv("DRI_PRIME");
  int only = MESA == 24 && wanted && strchr(wanted, '!'), first = 0, length = strlen(tags[0]);
  for (int i = 1; i >= 0 && MESA && wanted && *wanted; i--)
    if (MESA == 22 ? i : !strncmp(wanted, tags[i], length) && (only || !wanted[length]))
      first = i;
  devices[0] = (void *)(long)(first + 1); devices[1] = (void *)(long)(2 - first);
  if (MESA == 9) devices[0] = (void *)7L;
  *count = only || MESA == 9 ? 1 : 2; return 0; }
void vkGetPhysicalDeviceProperties2(void *device, void **properties) {
  memset((char *)properties[1] + 16, 0x11 * (long)device, 16); }
"""
needs_compiler = pytest.mark.skipif(not shutil.which("gcc"), reason="no compiler for the stand-in library")
UUIDS = tuple(f"GPU-{d * 8}-{d * 4}-{d * 4}-{d * 4}-{d * 12}" for d in "12")


@pytest.fixture
def nvidia(tmp_path: Path) -> Path:
    """/proc/driver/nvidia with two GPUs."""
    for number, bus in enumerate(("0000:01:00.0", "0000:41:00.0")):
        (tmp_path / "gpus" / bus).mkdir(parents=True)
        (tmp_path / "gpus" / bus / "information").write_text(f"Model: \t RTX 5090\nGPU UUID: \t {UUIDS[number]}\n")
    return tmp_path


def loader(folder: Path, mesa: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "vulkan.c").write_text(LOADER)
    library = str(folder / "libvulkan.so.1")
    build = ["gcc", "-shared", "-fPIC", "-w", f"-DMESA={mesa}", "-o", library, str(folder / "vulkan.c")]
    subprocess.run(build, check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder), prepend=os.pathsep)


@needs_compiler
@pytest.mark.parametrize(
    ("mesa", "gpus", "uuid", "device"),
    [
        (24, "1", UUIDS[1], ("pci-0000_41_00_0!", "asked")),
        (24, "0,1", UUIDS[0], ("pci-0000_01_00_0!", "asked")),
        (24, "1", "", ("pci-0000_41_00_0!", "asked")),
        (23, "1", UUIDS[1], ("pci-0000_41_00_0", "asked")),
        (22, "0", UUIDS[0], ("", "asked")),
        (0, "0", UUIDS[0], ("pci-0000_01_00_0!", "asked")),
        (-1, "1", UUIDS[1], ("pci-0000_41_00_0!", "assumed")),
        (24, "", "", ("", "assumed")),
        (24, "7", "", ("", "assumed")),
    ],
)
def test_vulkan_draws_on_the_granted_gpu(
    nvidia: Path, monkeypatch: pytest.MonkeyPatch, mesa: int, gpus: str, uuid: str, device: tuple[str, str]
) -> None:
    loader(nvidia, mesa, monkeypatch)
    assert vulkan_device(gpus, uuid, str(nvidia)) == device


@needs_compiler
def test_a_driver_that_has_not_looked_at_its_gpus_names_none(nvidia: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for card in nvidia.glob("gpus/*/information"):
        card.write_text("GPU UUID: \t GPU-????????-????-????-????-????????????\n")
    loader(nvidia, 24, monkeypatch)
    assert vulkan_device("1", UUIDS[1], str(nvidia)) == ("pci-0000_41_00_0!", "asked")
    assert vulkan_device("1", "", str(nvidia)) == ("pci-0000_41_00_0!", "assumed")


@needs_compiler
@pytest.mark.parametrize(("mesa", "why"), [(0, Evidence.GPU_NOT_FIRST), (9, Evidence.GPU_NOT_SEEN)])
def test_where_nothing_makes_the_granted_gpu_the_first_one_the_session_does_not_start(
    nvidia: Path, monkeypatch: pytest.MonkeyPatch, mesa: int, why: Evidence
) -> None:
    loader(nvidia, mesa, monkeypatch)
    with pytest.raises(MissingResource) as missing:
        vulkan_device("1", UUIDS[1], str(nvidia))
    assert missing.value.reason == Fact(why)


def test_a_task_of_slurm_that_sees_its_gpu_alone_asks_for_it_by_the_hosts_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "vulkan_device", lambda gpus, _uuid: (f"gpu {gpus}", "asked"))
    for grant, device in (({"gpus": "0", "slurm_gpus": "3,5"}, "gpu 3"), ({"gpus": "1"}, "gpu 1")):
        given = CommandEnvironment(RunLayout(str(tmp_path)), {"draws": ["vulkan"]}, grant, {})
        given.open()
        assert given.environment["COMBORUN_VULKAN_DEVICE"] == device
