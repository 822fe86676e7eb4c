"""A side view of an episode as an animated GIF, drawn by Pillow: no OpenGL, no display, no ffmpeg.

Orthographic, seen along +y, far geoms first, with the ground in section and whatever stands between the robot
and the eye cut away. Spheres and capsules are discs and thick lines, boxes the convex hulls of their corners:
that covers every geom of this example.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import mujoco
import numpy as np
from episode import GOAL
from PIL import Image, ImageDraw
from policy import Array
from simulation import Simulation

WIDTH, HEIGHT = 320, 240
OVERSAMPLING = 3  # drawn larger by this factor, then reduced, for smooth edges
SCALE = 125.0  # pixels per metre
EYE_AHEAD = 0.15  # m from the robot to the picture's centre
EYE_HEIGHT = 0.72  # m above the ground
FRAME_PERIOD = 4  # control steps: 12.5 frames per second
COLOURS = 64
SKY, INK, GOAL_COLOUR, BLADES = (226, 236, 245), (60, 64, 72), (205, 60, 50), (98, 140, 62)
CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))

Point = tuple[float, float]
Colour = tuple[int, int, int]


class SideView:
    """Watches an episode, then writes what it saw."""

    suffix = ".gif"

    def __init__(self, caption: str) -> None:
        self.caption = caption
        self.frames: list[Image.Image] = []
        self._steps = 0

    def __call__(self, simulation: Simulation) -> None:
        if self._steps % FRAME_PERIOD == 0:
            self.frames.append(draw(simulation, self.caption))
        self._steps += 1

    def save(self, path: Path) -> None:
        # One palette for all frames and no dither: a small file in which nothing flickers.
        palette = stacked(self.frames[:: max(1, len(self.frames) // 4)]).quantize(COLOURS)
        frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in self.frames]
        frames[0].save(path, save_all=True, append_images=frames[1:], duration=80, loop=0)


def stacked(frames: list[Image.Image]) -> Image.Image:
    """Some frames as one picture, to take a palette from."""
    picture = Image.new("RGB", (WIDTH, HEIGHT * len(frames)))
    for row, frame in enumerate(frames):
        picture.paste(frame, (0, HEIGHT * row))
    return picture


def draw(simulation: Simulation, caption: str) -> Image.Image:
    """One frame: terrain, robot, marks every metre, and a caption with distance and time."""
    image = Image.new("RGB", (WIDTH * OVERSAMPLING, HEIGHT * OVERSAMPLING), SKY)
    canvas = Canvas(ImageDraw.Draw(image), simulation.x + EYE_AHEAD)
    canvas.post(GOAL)
    for geom in visible_geoms(simulation, canvas.eye_x):
        canvas.geom(simulation, geom)
    canvas.ground(simulation)
    canvas.blades(simulation.terrain.blade_height)
    image = image.resize((WIDTH, HEIGHT), Image.Resampling.BOX)
    pen = ImageDraw.Draw(image)
    pen.text((8, 6), caption, fill=INK)
    distance = round(simulation.x, 1) + 0.0  # no "-0.0"
    pen.text((WIDTH - 8, 6), f"{distance} m  {simulation.time:4.1f} s", fill=INK, anchor="ra")
    return image


def visible_geoms(simulation: Simulation, eye_x: float) -> list[int]:
    """The geoms to draw, the far ones first: neither the ground, nor terrain in front of the robot."""
    model, positions = simulation.model, simulation.data.geom_xpos
    inside = np.abs(positions[:, 0] - eye_x) < WIDTH / SCALE / 2 + model.geom_rbound
    solid = model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE
    robot = model.geom_bodyid > 0
    # Terrain counts where it ends: stairs as wide as the course belong behind the robot.
    distance = positions[:, 1] + np.where(robot, 0.0, model.geom_rbound)
    (geoms,) = np.nonzero(inside & solid & (robot | (distance > simulation.y)))
    order = np.argsort(-distance[geoms], kind="stable")
    return [int(geom) for geom in geoms[order]]


class Canvas:
    """Draws metres of the x-z plane as pixels of an oversampled picture."""

    def __init__(self, pen: ImageDraw.ImageDraw, eye_x: float) -> None:
        self.pen, self.eye_x, self.scale = pen, eye_x, SCALE * OVERSAMPLING

    def point(self, x: float, z: float) -> Point:
        return (
            WIDTH * OVERSAMPLING / 2 + (x - self.eye_x) * self.scale,
            HEIGHT * OVERSAMPLING / 2 - (z - EYE_HEIGHT) * self.scale,
        )

    def ground(self, simulation: Simulation) -> None:
        """The ground in section, with a mark at every metre."""
        left, right = self.eye_x - 0.5 * WIDTH / SCALE, self.eye_x + 0.5 * WIDTH / SCALE
        rgba = simulation.model.geom("ground").rgba
        self.pen.rectangle((*self.point(left, 0.0), *self.point(right, -1.0)), fill=shade(rgba, 0.0))
        for metre in range(int(np.ceil(left)), int(right) + 1):
            x, z = self.point(metre, -0.05)
            self.pen.line((x, self.point(metre, 0.0)[1], x, z), fill=INK, width=OVERSAMPLING)
            below = (x, z + 2 * OVERSAMPLING)
            self.pen.text(below, f"{metre}", fill=INK, anchor="ma", font_size=10 * OVERSAMPLING)

    def post(self, at: float) -> None:
        self.pen.line((*self.point(at, 0.0), *self.point(at, 1.0)), fill=GOAL_COLOUR, width=2 * OVERSAMPLING)
        flag = (self.point(at, 1.0), self.point(at + 0.22, 0.93), self.point(at, 0.86))
        self.pen.polygon(flag, fill=GOAL_COLOUR)

    def blades(self, height: float) -> None:
        """Grass in the foreground, as tall as the episode's blades."""
        if not height:
            return
        spacing = 0.035
        first = int((self.eye_x - 0.5 * WIDTH / SCALE) / spacing) - 1
        for blade in range(first, first + int(WIDTH / SCALE / spacing) + 3):
            root, lean, growth = blade * spacing, 0.02 * (blade * 7 % 5 - 2), 0.6 + 0.1 * (blade * 3 % 5)
            ends = (*self.point(root, 0.0), *self.point(root + lean, height * growth))
            self.pen.line(ends, fill=BLADES, width=OVERSAMPLING)

    def geom(self, simulation: Simulation, geom: int) -> None:
        model, data = simulation.model, simulation.data
        centre, size = data.geom_xpos[geom], model.geom_size[geom]
        axes = data.geom_xmat[geom].reshape(3, 3)
        colour = shade(model.geom_rgba[geom], float(centre[1]))
        kind = model.geom_type[geom]
        if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
            self.disc(centre, size[0], colour)
        elif kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
            self.capsule(centre, axes[:, 2] * size[1], size[0], colour)
        else:
            corners = (centre + axes @ (size * corner) for corner in CORNERS)
            self.pen.polygon(convex_hull([self.point(x, z) for x, _, z in corners]), fill=colour)

    def disc(self, centre: Array, radius: float, colour: Colour) -> None:
        x, z = self.point(centre[0], centre[2])
        reach = radius * self.scale
        self.pen.ellipse((x - reach, z - reach, x + reach, z + reach), fill=colour)

    def capsule(self, centre: Array, half: Array, radius: float, colour: Colour) -> None:
        ends = (centre - half, centre + half)
        line = [self.point(x, z) for x, _, z in ends]
        self.pen.line(line, fill=colour, width=round(2 * radius * self.scale))
        for end in ends:
            self.disc(end, radius, colour)


def shade(rgba: Array, y: float) -> Colour:
    """A colour of 8 bits per channel, paler with the distance beyond the centre line (y in metres)."""
    haze = float(np.clip(0.12 + 0.5 * y, 0.0, 0.45))
    red, green, blue = (1.0 - haze) * 255.0 * rgba[:3] + haze * np.array(SKY)
    return int(red), int(green), int(blue)


def convex_hull(points: list[Point]) -> list[Point]:
    """Corners of the hull in order, by Andrew's monotone chain."""

    def chain(ordered: list[Point]) -> list[Point]:
        hull: list[Point] = []
        for x, z in ordered:
            while len(hull) > 1 and turns_right(hull[-2], hull[-1], (x, z)):
                hull.pop()
            hull.append((x, z))
        return hull[:-1]

    ordered = sorted(points)
    return chain(ordered) + chain(ordered[::-1])


def turns_right(a: Point, b: Point, c: Point) -> bool:
    """Whether the way from a over b to c turns right, or not at all."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) <= 0.0
