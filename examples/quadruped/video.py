"""An episode as H.264 video: MuJoCo's renderer on EGL, encoded by PyAV. The side view needs neither.

MuJoCo reads MUJOCO_GL when it is imported, and has been imported by the time somebody asks for a video, so
the EGL context is made here instead of by `mujoco.Renderer`.
"""

from __future__ import annotations

import os
from pathlib import Path

import mujoco
import numpy as np
import numpy.typing as npt
from simulation import Simulation

WIDTH, HEIGHT = 320, 240
FRAME_PERIOD, FRAMES_PER_SECOND = 2, 25  # of 50 control steps per second, every second one
QUALITY = "28"  # x264's constant rate factor

Frame = npt.NDArray[np.uint8]


class VideoError(Exception):
    """Videos can't be made here; the message says what is missing."""


def require_video() -> None:
    """Raise VideoError unless this machine has an encoder and EGL."""
    os.environ["MUJOCO_GL"] = "egl"
    try:
        import av  # noqa: F401
    except ImportError:
        raise VideoError("PyAV is not installed (pip install av)") from None
    try:
        from mujoco import egl

        egl.GLContext(WIDTH, HEIGHT).free()
    except Exception as error:  # noqa: BLE001 - without libEGL, PyOpenGL fails in ways that vary by version
        raise VideoError(f"EGL does not work here (apt install libegl1 libgl1): {error}") from None


class Video:
    """Watches an episode through a camera that follows the robot, then writes what it saw."""

    suffix = ".mp4"

    def __init__(self, caption: str) -> None:
        self.caption = caption
        self.frames: list[Frame] = []
        self._camera: Camera | None = None
        self._steps = 0

    def __call__(self, simulation: Simulation) -> None:
        if self._camera is None:
            self._camera = Camera(simulation.model)
        if self._steps % FRAME_PERIOD == 0:
            self.frames.append(self._camera.frame(simulation))
        self._steps += 1

    def save(self, path: Path) -> None:
        import av

        with av.open(str(path), "w") as container:
            container.metadata["title"] = self.caption
            stream = container.add_stream("libx264", rate=FRAMES_PER_SECOND, options={"crf": QUALITY})
            stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
            for pixels in self.frames:
                container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
            container.mux(stream.encode())


class Camera:
    """An off-screen renderer for one model, without shadows, which cost half the speed on a CPU."""

    def __init__(self, model: mujoco.MjModel) -> None:
        from mujoco.egl import GLContext

        self._egl = GLContext(WIDTH, HEIGHT)
        self._egl.make_current()
        self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._scene = mujoco.MjvScene(model, maxgeom=1000)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self._viewpoint = mujoco.MjvCamera()
        self._viewpoint.distance, self._viewpoint.azimuth, self._viewpoint.elevation = 2.3, 60.0, -18.0

    def frame(self, simulation: Simulation) -> Frame:
        """The picture (height, width, 3) of this instant."""
        self._viewpoint.lookat[:] = simulation.x + 0.2, simulation.y, simulation.data.qpos[2] - 0.15
        view = (mujoco.MjvOption(), None, self._viewpoint, mujoco.mjtCatBit.mjCAT_ALL, self._scene)
        mujoco.mjv_updateScene(simulation.model, simulation.data, *view)
        self._egl.make_current()
        rectangle = mujoco.MjrRect(0, 0, WIDTH, HEIGHT)
        mujoco.mjr_render(rectangle, self._scene, self._context)
        pixels = np.empty((HEIGHT, WIDTH, 3), np.uint8)
        mujoco.mjr_readPixels(pixels, None, rectangle, self._context)
        return np.ascontiguousarray(pixels[::-1])
