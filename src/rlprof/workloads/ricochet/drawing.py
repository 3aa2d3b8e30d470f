"""A board as an RGB image, drawn with PIL."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from rlprof import profile, profile_function
from rlprof.workloads.ricochet.board import Board
from rlprof.workloads.ricochet.settings import ImageSettings

FLOOR, INLAY, LINE, WALL = (236, 228, 208), (226, 216, 192), (180, 170, 150), (60, 50, 45)
ROBOTS = ((214, 48, 49), (9, 132, 227), (0, 160, 90), (240, 180, 20))
"""Colours of robots, repeated if there are more robots. The target has that of the first robot."""
POINTS = 5


class Drawing:
    """Draws boards of one size. With `cached`, grid and walls of a board are drawn once and kept."""

    def __init__(self, board_size: int, settings: ImageSettings, cached: bool) -> None:
        self._cell = settings.cell
        self._drawn = (board_size * settings.cell,) * 2
        self._resized = (settings.size,) * 2
        self._cached = cached
        self._empty: dict[Board, Image.Image] = {}
        radius = settings.cell / 2 - 1
        turns = [pi * point / POINTS for point in range(2 * POINTS)]
        radii = [radius if point % 2 == 0 else radius / 2.5 for point in range(2 * POINTS)]
        self._star = [(far * sin(turn), -far * cos(turn)) for far, turn in zip(radii, turns)]

    @profile_function("env_rgb_observation_generation")
    def observe(self, board: Board, robots: Sequence[int], target: int) -> NDArray[np.uint8]:
        """The image: channels, rows, columns."""
        image = self._render(board, robots, target)
        with profile("env_rgb_resizing"):
            resized = image.resize(self._resized, Image.Resampling.LANCZOS)
        return np.ascontiguousarray(np.asarray(resized).transpose(2, 0, 1))

    @profile_function("env_rgb_rendering")
    def _render(self, board: Board, robots: Sequence[int], target: int) -> Image.Image:
        image = self._cached_empty(board).copy() if self._cached else self._draw_empty(board)
        pen = ImageDraw.Draw(image)
        self._draw_target(pen, board, target)
        self._draw_robots(pen, board, robots)
        return image

    def _cached_empty(self, board: Board) -> Image.Image:
        if board not in self._empty:
            self._empty[board] = self._draw_empty(board)
        return self._empty[board]

    def _draw_empty(self, board: Board) -> Image.Image:
        image = Image.new("RGB", self._drawn, FLOOR)
        pen = ImageDraw.Draw(image)
        self._draw_grid(pen, board)
        self._draw_walls(pen, board)
        return image

    @profile_function("env_rgb_draw_grid")
    def _draw_grid(self, pen: ImageDraw.ImageDraw, board: Board) -> None:
        """Draw a tile with an inlay for each cell."""
        for cell in range(board.size**2):
            left, top, right, bottom = self._box(board, cell)
            pen.rectangle((left, top, right, bottom), fill=FLOOR, outline=LINE)
            pen.rectangle((left + 2, top + 2, right - 2, bottom - 2), fill=INLAY)

    @profile_function("env_rgb_draw_walls")
    def _draw_walls(self, pen: ImageDraw.ImageDraw, board: Board) -> None:
        for cell, side in sorted(board.blocked):
            left, top, right, bottom = self._box(board, cell)
            edges = (
                (left, top, right, top),
                (right, top, right, bottom),
                (left, bottom, right, bottom),
                (left, top, left, bottom),
            )
            pen.line(edges[side], fill=WALL)

    @profile_function("env_rgb_draw_target")
    def _draw_target(self, pen: ImageDraw.ImageDraw, board: Board, target: int) -> None:
        left, top, right, bottom = self._box(board, target)
        x, y = (left + right) / 2, (top + bottom) / 2
        pen.polygon([(x + across, y + down) for across, down in self._star], fill=ROBOTS[0])

    @profile_function("env_rgb_draw_robots")
    def _draw_robots(self, pen: ImageDraw.ImageDraw, board: Board, robots: Sequence[int]) -> None:
        for number, cell in enumerate(robots):
            left, top, right, bottom = self._box(board, cell)
            pen.ellipse((left + 2, top + 2, right - 2, bottom - 2), fill=ROBOTS[number % len(ROBOTS)], outline=WALL)

    def _box(self, board: Board, cell: int) -> tuple[int, int, int, int]:
        """Left, top, right and bottom pixels of a cell."""
        row, column = divmod(cell, board.size)
        side = self._cell
        return column * side, row * side, (column + 1) * side - 1, (row + 1) * side - 1
