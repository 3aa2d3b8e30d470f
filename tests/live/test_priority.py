"""Views give way to the training."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from rlprof.live.priority import NICE, give_way


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
def test_only_the_calling_thread_gives_way():
    before = os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)
    found = []

    def view():
        for _ in range(2):
            give_way()
            found.append((os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)))

    thread = threading.Thread(target=view)
    thread.start()
    thread.join()
    assert found == [(max(before[0], NICE), os.SCHED_BATCH)] * 2
    assert (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)) == before
