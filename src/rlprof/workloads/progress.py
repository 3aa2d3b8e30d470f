"""Progress of a training: a bar on a terminal, some lines elsewhere, and a list of its scores."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

LINES = 10
"""Lines that a whole run writes to a file."""
REDRAW_SECONDS = 0.2


class Progress:
    """Shows the iterations of a training. Draws on the training's own thread: a second thread would compete with it for
    the interpreter."""

    def __init__(self, name: str, score: str, show: bool = True) -> None:
        self.name = name
        self.score = score
        self.scores: list[float | None] = []
        """One per iteration. None if there was nothing to score, for example if no episode ended."""
        self.steps = 0
        self._iterations = 0
        self._draw: Callable[[], None] = lambda: None
        self._close: Callable[[], None] = lambda: None
        self._show = show and sys.stderr is not None
        self._began = self._last = time.perf_counter()

    def begin(self, iterations: int) -> None:
        """Begin to show a training of so many iterations, once it is set up."""
        self._iterations = iterations
        self._began = time.perf_counter()
        if self._show and sys.stderr.isatty():
            self._begin_bar()
        elif self._show:
            self._draw = self._line

    def advance(self, score: float | None, steps: int) -> None:
        """Count an iteration that has ended, with its environment steps."""
        self.scores.append(score)
        self.steps += steps
        self._last = time.perf_counter()
        self._draw()

    def end(self) -> None:
        """Leave the terminal as it was. A second call does nothing."""
        self._close()
        self._close = self._draw = lambda: None

    @property
    def known(self) -> list[float]:
        return [score for score in self.scores if score is not None]

    @property
    def steps_per_second(self) -> float:
        """Environment steps per second since `begin`."""
        return self.steps / max(1e-9, self._last - self._began)

    def _latest(self) -> str:
        known = self.known
        shown = f"{self.score} {known[-1]:,.4g}, " if known else ""
        return f"{shown}{self.steps_per_second:,.0f} steps/s"

    def _begin_bar(self) -> None:
        import rich  # noqa: PLC0415 - a training whose output goes to a file draws nothing
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415
        from rich.progress import Progress as Bar  # noqa: PLC0415

        rich.reconfigure(stderr=True)
        bar = Bar(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
            TextColumn("{task.fields[latest]}"), console=rich.get_console(), auto_refresh=False,
        )  # fmt: skip
        task = bar.add_task(self.name, total=self._iterations, latest="")
        bar.start()

        drawn = 0.0

        def draw() -> None:
            nonlocal drawn
            if self._last > drawn + REDRAW_SECONDS or len(self.scores) == self._iterations:
                drawn = self._last
                bar.update(task, completed=len(self.scores), latest=self._latest(), refresh=True)

        self._draw, self._close = draw, bar.stop

    def _line(self) -> None:
        done, whole = len(self.scores), self._iterations
        if done * LINES // whole > (done - 1) * LINES // whole:
            sys.stderr.write(f"{self.name}: {done} of {whole} iterations, {self._latest()}\n")
