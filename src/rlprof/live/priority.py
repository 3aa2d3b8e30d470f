"""Views give way to the training: a few milliseconds of theirs must not delay a process that the training waits for."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

NICE = 10
"""Enough that the training comes first on a busy core, and that a view still gets the little that it needs."""


def give_way() -> None:
    """Lower the priority of the calling thread, and of the threads and processes that it starts from here on."""
    if sys.platform != "linux":
        return  # elsewhere the priority is that of the whole process, which may run a training
    with suppress(OSError):
        if os.getpriority(os.PRIO_PROCESS, 0) < NICE:
            os.setpriority(os.PRIO_PROCESS, 0, NICE)
    with suppress(OSError):
        if os.sched_getscheduler(0) == os.SCHED_OTHER:
            # A thread of this kind never interrupts another one when it wakes.
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
