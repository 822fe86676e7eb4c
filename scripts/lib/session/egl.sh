# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# egl.sh: the number that EGL has for a GPU, which need not be CUDA's. To be sourced by session.sh, for sessions whose
# command names it. EGL is asked by Python, where there is one; where there is no answer the GPU's index is assumed,
# and the begin record says so.
#
# An EGL device is known by the GPU's UUID (EGL_EXT_device_persistent_id) or by CUDA's number for it
# (EGL_NV_device_cuda), which counts the devices that CUDA sees: so it is asked with all of them visible.

egl_program='
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
'

egl::ask() { # <gpus> <uuids> -> COMBORUN_EGL_DEVICE, of the first GPU; egl_told: asked or assumed
  local gpu=${1%%,*} uuid=${2%%,*} row index cuda name
  egl_told=assumed
  export COMBORUN_EGL_DEVICE=$gpu
  [[ $gpu ]] || return 0
  while read -r index cuda name; do
    [[ $index =~ ^[0-9]{1,4}$ ]] || continue
    if [[ $uuid && $name != - ]]; then
      [[ $name == "$uuid" ]] || continue
    else
      [[ $cuda == "$gpu" ]] || continue
    fi
    COMBORUN_EGL_DEVICE=$index egl_told=asked
    return
  done < <(timeout -k 1 "${COMBORUN_EGL_S:-10}" python3 -I -c "$egl_program" 2>/dev/null)
}
