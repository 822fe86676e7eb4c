"""The devices on which a program draws. EGL and Vulkan count GPUs in orders of their own, and Vulkan does not read
CUDA_VISIBLE_DEVICES. Child processes ask the drivers, because drivers crash and hang.
"""

from __future__ import annotations

import os
import re
import sys
from glob import glob

from comborun.host.system import commands, files
from comborun.host.system.process import setting
from comborun.rules.endings.evidence import Evidence, MissingResource

ASKED, ASSUMED = "asked", "assumed"
"""who says which device a GPU is: the driver, or nobody"""

_EGL = """
import ctypes, os, uuid
os.environ.pop("CUDA_VISIBLE_DEVICES", None)
os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
egl = ctypes.CDLL("libEGL.so.1")
egl.eglGetProcAddress.restype = ctypes.c_void_p

def function(name, *arguments):
    address = egl.eglGetProcAddress(name)
    return ctypes.CFUNCTYPE(ctypes.c_uint, *arguments)(address) if address else lambda *_: 0

number, handle, numbers = ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)
devices, count = (handle * 64)(), number()
if not function(b"eglQueryDevicesEXT", number, ctypes.POINTER(handle), numbers)(64, devices, count):
    raise SystemExit(1)
attribute = function(b"eglQueryDeviceAttribEXT", handle, number, ctypes.POINTER(ctypes.c_ssize_t))
binary = function(b"eglQueryDeviceBinaryEXT", handle, number, number, handle, numbers)
for index, device in enumerate(devices[: count.value]):
    cuda, name, size = ctypes.c_ssize_t(), (ctypes.c_ubyte * 16)(), number()
    told = attribute(device, 0x323A, cuda)
    named = binary(device, 0x335C, 16, name, size) and size.value == 16
    print(index, cuda.value if told else "-", "GPU-%s" % uuid.UUID(bytes=bytes(name)) if named else "-")
"""
EGL_COMMAND = (sys.executable, "-I", "-c", _EGL)
"""Prints a line for each device: its index, CUDA's number, the GPU's UUID; - is not told. CUDA counts only visible
devices, so the child process makes all of them visible."""

VULKAN_PROGRAM = """
import ctypes, struct, uuid
vulkan = ctypes.CDLL("libvulkan.so.1")
application = ctypes.create_string_buffer(struct.pack("iPPIPII", 0, 0, 0, 0, 0, 0, 1 << 22 | 1 << 12))
wanted = struct.pack("iPIPIPIP", 1, 0, 0, ctypes.addressof(application), 0, 0, 0, 0)
instance, count = ctypes.c_void_p(), ctypes.c_uint(64)
if vulkan.vkCreateInstance(wanted, None, ctypes.byref(instance)):
    raise SystemExit(1)
devices = (ctypes.c_void_p * count.value)()
if vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), devices) < 0:
    raise SystemExit(1)
for device in devices[: count.value]:
    names = ctypes.create_string_buffer(struct.pack("iP16x16x8xII", 1000071004, 0, 0, 0))
    properties = ctypes.create_string_buffer(struct.pack("iP", 1000059001, ctypes.addressof(names)), 2048)
    vulkan.vkGetPhysicalDeviceProperties2(ctypes.c_void_p(device), properties)
    print("GPU-%s" % uuid.UUID(bytes=names.raw[16:32]))
"""
"""Prints the UUID of each Vulkan device, in the order in which programs see them: VkPhysicalDeviceIDProperties of
Vulkan 1.1, which NVIDIA's driver fills with nvidia-smi's UUID."""

_UUID = "GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def egl_number(said: str, gpu: str, uuid: str) -> str:
    """EGL's number for a GPU, from the output of EGL_COMMAND; empty if there is none."""
    for line in said.splitlines():
        index, cuda, name = [*line.split(), "", "", ""][:3]
        if name == uuid if uuid and name != "-" else cuda == gpu:
            return index
    return ""


def egl_device(gpus: str, uuid: str) -> tuple[str, str]:
    """EGL's number for the first GPU, which may differ from CUDA's, and `asked` or `assumed`."""
    gpu = gpus.partition(",")[0]
    if not gpu:
        return "", ASSUMED
    found = egl_number(commands.run(setting("COMBORUN_EGL_S", 10.0), *EGL_COMMAND)[1], gpu, uuid)
    return (found, ASKED) if found else (gpu, ASSUMED)


def vulkan_device(gpus: str, uuid: str, nvidia: str = "/proc/driver/nvidia") -> tuple[str, str]:
    """The value of DRI_PRIME that makes the first GPU the first one for Vulkan, and `asked` or `assumed`.

    Mesa's device-select layer reads it, also for NVIDIA's driver: `pci-0000_41_00_0!` hides all other devices. Before
    Mesa 24 `!` is unknown, and Mesa 22 takes a device that is not the named one. So each value is tried. Raises
    MissingResource if none is right.
    """
    gpu = gpus.partition(",")[0]
    if not gpu:
        return "", ASSUMED
    cards = sorted(glob(f"{nvidia}/gpus/*/information"))
    named = ["".join(re.findall(rf"(?m)^GPU UUID:\s*({_UUID})$", files.read_text(card))) for card in cards]
    place = named.index(uuid) if uuid and uuid in named else int(gpu)
    if place >= len(cards):
        return "", ASSUMED
    wanted, seen = uuid or named[place], [""]
    tag = "pci-" + re.sub("[:.]", "_", os.path.basename(os.path.dirname(cards[place])))
    for value in (f"{tag}!", tag, ""):
        ask = ("env", f"DRI_PRIME={value}", sys.executable, "-I", "-c", VULKAN_PROGRAM)
        code, said = commands.run(setting("COMBORUN_EGL_S", 10.0), *ask)
        seen = re.findall(f"(?m)^{_UUID}$", said)  # drivers print warnings, too
        if code or not seen or not wanted:
            return f"{tag}!", ASSUMED
        if seen[0] == wanted:
            return value, ASKED
    raise MissingResource(Evidence.GPU_NOT_FIRST if wanted in seen else Evidence.GPU_NOT_SEEN)
