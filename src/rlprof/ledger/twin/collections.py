"""The runs of Python's garbage collector, counted and timed: core/collections.c."""

from __future__ import annotations

GENERATIONS = 3


class Collections:
    """What the collector did since the training began, and how long it took before that."""

    def __init__(self) -> None:
        self._of = [[0, 0, 0, 0] for _ in range(GENERATIONS)]
        """Per generation: runs, ns, the longest run, objects freed."""
        self._before = [0] * GENERATIONS
        self._began: int | None = None

    def note(self, phase: str, info: dict[str, int], now: int) -> None:
        """As Python calls the functions in gc.callbacks."""
        if phase == "start":
            self._began = now
            return
        generation = info.get("generation", -1)
        if self._began is not None and 0 <= generation < GENERATIONS:
            of = self._of[generation]
            spent = now - self._began
            of[:] = of[0] + 1, of[1] + spent, max(of[2], spent), of[3] + info.get("collected", 0)
        self._began = None

    def begin(self) -> None:
        """The training begins: what was collected before belongs to start-up."""
        self._before = [before + of[1] for before, of in zip(self._before, self._of)]
        self._of = [[0, 0, 0, 0] for _ in range(GENERATIONS)]

    def rows(self) -> list[tuple[int, int, int, int, int]]:
        return [(of[0], of[1], of[2], of[3], before) for of, before in zip(self._of, self._before)]
