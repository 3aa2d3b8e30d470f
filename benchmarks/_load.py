"""Other work that comes and goes, as on a shared machine."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from types import TracebackType

BUSY_SECONDS = 4.0
QUIET_SECONDS = 6.0
"""Mean lengths. Both are drawn anew each time, so that nothing can fall into step with them."""

_BURN = "import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end:\n    sum(range(10000))\n"


class ComingAndGoing:
    """A context manager that keeps a number of programs coming and going. Each computes for a while and pauses for a
    while."""

    def __init__(self, programs: int) -> None:
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._come_and_go, args=(seed,)) for seed in range(programs)]

    def __enter__(self) -> ComingAndGoing:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _come_and_go(self, seed: int) -> None:
        chance = random.Random(seed)
        while not self._over.wait(chance.expovariate(1 / QUIET_SECONDS)):
            seconds = chance.expovariate(1 / BUSY_SECONDS)
            program = subprocess.Popen([sys.executable, "-c", _BURN.format(seconds=seconds)])
            if self._over.wait(seconds):
                program.terminate()
            program.wait()
