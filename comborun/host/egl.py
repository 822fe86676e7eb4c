"""How EGL numbers the GPUs, which can differ from CUDA. A child process asks, because drivers crash and hang.

A GPU is matched by its UUID (EGL_EXT_device_persistent_id) or by CUDA's number for it (EGL_NV_device_cuda). CUDA counts
only visible devices, so the child process makes all of them visible.
"""

from __future__ import annotations

import sys

PROGRAM = """
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
"""prints a line for each device: its index, CUDA's number, the GPU's UUID; - is not told"""

COMMAND = (sys.executable, "-I", "-c", PROGRAM)


def device(said: str, gpu: str, uuid: str) -> str:
    """EGL's number for a GPU, from what the program prints; empty where it has none."""
    for line in said.splitlines():
        index, cuda, name = [*line.split(), "", "", ""][:3]
        if name == uuid if uuid and name != "-" else cuda == gpu:
            return index
    return ""
