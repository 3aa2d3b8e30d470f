"""Programs whose correct accounts are known. Each can be run, with timestamps of what really happens, and be computed
from its plan."""

from __future__ import annotations

import asyncio
import heapq
import selectors
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter_ns as now
from typing import Any

from _truth import DRIVER, History, Run, Stay

MS = 1_000_000


def spin(ms: float) -> None:
    """Keep the CPU busy. Only for the driver: two spinning threads would only measure the GIL."""
    end = now() + ms * MS
    while now() < end:
        pass


def sleep(ms: float) -> None:
    time.sleep(ms / 1e3)


@dataclass
class Recorder:
    """Runs pieces of work inside spans, and takes its own timestamps just inside them."""

    profile: Callable[..., Any]
    history: History = field(default_factory=History)
    slack: list[int] = field(default_factory=list)
    """ns between the timestamps inside and outside of a span: how far a timestamp can be from the span's own."""

    def span(self, lane: str, account: str, body: Callable[[], object], waits: bool = False) -> None:
        before = now()
        with self.profile(account, wait=waits):
            start = now()
            body()
            end = now()
        self.keep(Stay(lane, account, start, end, waits), before, now())

    def keep(self, stay: Stay, before: int, after: int) -> None:
        self.history.stays.append(stay)
        self.slack.append(round(stay.start - before + after - stay.end))


@dataclass(frozen=True)
class Program:
    key: str
    title: str
    run: Callable[[Recorder], None]
    plan: Callable[[], History]


def in_threads(count: int, work: Callable[[str, int], None], driver: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work, args=(f"worker-{i}", i)) for i in range(count)]
    for thread in threads:
        thread.start()
    driver()
    for thread in threads:
        thread.join()


def planned(*stays: Stay, runs: list[Run] | None = None) -> History:
    """A history from spans and runs in ms."""
    in_ns = [Stay(stay.lane, stay.account, stay.start * MS, stay.end * MS, stay.waits) for stay in stays]
    runs_ns = [Run(run.lane, run.start * MS, run.end * MS) for run in runs or []]
    return History(in_ns, runs_ns, 0, max(stay.end for stay in in_ns))


# ---- (a) one thread ----

Tree = tuple[str, "list[Tree] | float"]
SERIAL: list[Tree] = [
    ("iteration", [
        ("rollout", [("env_step", 9), ("policy_forward", 4), ("env_step", 7), ("store", 1)]),
        ("learn", [("loss", 3), ("backward", 11), ("optimizer_step", 2)]),
        ("log", 1),
    ])
]  # fmt: skip
SERIAL_ROUNDS = 8
BRANCH = 0.5  # ms that a span with inner spans works before them


def run_serial(recorder: Recorder) -> None:
    def run(trees: list[Tree]) -> None:
        for name, inside in trees:
            recorder.span(DRIVER, name, partial(branch, inside) if isinstance(inside, list) else partial(leaf, inside))

    def branch(trees: list[Tree]) -> None:
        spin(BRANCH)
        run(trees)

    def leaf(ms: float) -> None:
        (sleep if ms > 8 else spin)(ms)

    for _ in range(SERIAL_ROUNDS):
        run(SERIAL)


def plan_serial() -> History:
    stays: list[Stay] = []

    def plan(trees: list[Tree], at: float) -> float:
        for name, inside in trees:
            end = plan(inside, at + BRANCH) if isinstance(inside, list) else at + inside
            stays.append(Stay(DRIVER, name, at, end))
            at = end
        return at

    at = 0.0
    for _ in range(SERIAL_ROUNDS):
        at = plan(SERIAL, at)
    return planned(*stays)


# ---- (b) eight threads at a barrier ----

BARRIER_LEARN = 8
BARRIER_SLEEPS = [[10 + 7 * ((i * 3 + number) % 8) for i in range(8)] for number in range(5)]


def run_barrier(recorder: Recorder) -> None:
    go, done = threading.Barrier(9), threading.Barrier(9)

    def work(lane: str, i: int) -> None:
        for sleeps in BARRIER_SLEEPS:
            recorder.span(lane, "barrier_wait", go.wait, waits=True)
            recorder.span(lane, "env_step", partial(sleep, sleeps[i]))
            recorder.span(lane, "barrier_wait", done.wait, waits=True)

    def drive() -> None:
        for _ in BARRIER_SLEEPS:
            recorder.span(DRIVER, "learn", partial(spin, BARRIER_LEARN))
            recorder.span(DRIVER, "collect", lambda: (go.wait(), done.wait()), waits=True)

    in_threads(8, work, drive)


def plan_barrier() -> History:
    stays = []
    at = 0
    for sleeps in BARRIER_SLEEPS:
        begin = at + BARRIER_LEARN
        end = begin + max(sleeps)
        stays += [Stay(DRIVER, "learn", at, begin), Stay(DRIVER, "collect", begin, end, waits=True)]
        for i, ms in enumerate(sleeps):
            stays.append(Stay(f"worker-{i}", "env_step", begin, begin + ms))
            stays.append(Stay(f"worker-{i}", "barrier_wait", begin + ms, end, waits=True))
        at = end
    return planned(*stays)


# ---- (c) threads that wait for the driver, and threads that work while it works ----

LEARN, LOG, OVERLAPPED, LEARN_ROUNDS = 22, 5, 12, 12


def run_driver_works(recorder: Recorder) -> None:
    ready = [threading.Event() for _ in range(LEARN_ROUNDS)]

    def work(lane: str, i: int) -> None:
        for event in ready:
            if i < 2:
                recorder.span(lane, "env_step", partial(sleep, OVERLAPPED))
            recorder.span(lane, "wait_for_policy", event.wait, waits=True)

    def drive() -> None:
        for event in ready:
            recorder.span(DRIVER, "learn", partial(spin, LEARN))
            recorder.span(DRIVER, "log", partial(spin, LOG))
            event.set()

    in_threads(4, work, drive)


def plan_driver_works() -> History:
    stays = []
    for number in range(LEARN_ROUNDS):
        at = number * (LEARN + LOG)
        end = at + LEARN + LOG
        stays += [Stay(DRIVER, "learn", at, at + LEARN), Stay(DRIVER, "log", at + LEARN, end)]
        for i in range(4):
            start = at
            if i < 2:
                start = at + OVERLAPPED
                stays.append(Stay(f"worker-{i}", "env_step", at, start))
            stays.append(Stay(f"worker-{i}", "wait_for_policy", start, end, waits=True))
    return planned(*stays)


# ---- (d) asyncio tasks ----

# The spans of each task, each with its steps: (spin, sleep).
TASKS: dict[str, list[tuple[str, list[tuple[float, float]]]]] = {
    "task-0": [("env_step", [(6, 31), (4, 53)]), ("policy_forward", [(9, 0)]), ("env_step", [(3, 67), (2, 45)])],
    "task-1": [("env_step", [(8, 70)]), ("store", [(5, 22), (5, 0)]), ("teacher", [(1, 83), (7, 0)])],
    "task-2": [("teacher", [(2, 97), (3, 41)]), ("env_step", [(11, 19), (6, 24)])],
    "task-3": [("evaluate", [(1, 160), (12, 15)]), ("store", [(4, 0)])],
}


def run_asyncio(recorder: Recorder) -> None:
    async def task(lane: str) -> None:
        resumed = now()
        for account, steps in TASKS[lane]:
            before = now()
            with recorder.profile(account):
                start = now()
                for busy, pause in steps:
                    spin(busy)
                    if pause:
                        recorder.history.runs.append(Run(lane, resumed, now()))
                        await asyncio.sleep(pause / 1e3)
                        resumed = now()
                end = now()
            recorder.keep(Stay(lane, account, start, end), before, now())
        recorder.history.runs.append(Run(lane, resumed, now()))

    async def everything() -> None:
        await asyncio.gather(*(task(lane) for lane in TASKS))

    def loop() -> None:
        event_loop = asyncio.SelectorEventLoop(selector)
        event_loop.run_until_complete(everything())
        event_loop.close()

    selector = StampedSelector()
    recorder.span(DRIVER, "collect", loop)
    recorder.slack += loop_slack(recorder.history.runs, selector.polls)


class StampedSelector(selectors.DefaultSelector):
    """Records when the event loop polls. The loop waits only while it polls."""

    def __init__(self) -> None:
        super().__init__()
        self.polls: list[int] = []

    def select(self, timeout: float | None = None) -> Any:
        self.polls.append(now())
        ready = super().select(timeout)
        self.polls.append(now())
        return ready


def loop_slack(runs: list[Run], polls: list[int]) -> list[int]:
    """How far each timestamp of a run is from the next known event of the loop. The task switch was in between."""
    known = sorted([*polls, *(run.start for run in runs), *(run.end for run in runs)])
    after = [known[bisect_right(known, run.end)] - run.end for run in runs if run.end < known[-1]]
    before = [run.start - known[bisect_left(known, run.start) - 1] for run in runs if run.start > known[0]]
    return [round(gap) for gap in (*after, *before)]


def plan_asyncio() -> History:
    """The event loop runs one task at a time, in the order in which they become ready."""
    stays: list[Stay] = []
    runs: list[Run] = []
    at = 0.0

    def play(lane: str) -> Any:
        """Yields spins and sleeps, and is sent the time after each."""
        clock = yield 0, 0
        for account, steps in TASKS[lane]:
            start = clock
            for busy, pause in steps:
                clock = yield busy, pause
            stays.append(Stay(lane, account, start, clock))

    queue: list[tuple[float, int, str, Any]] = []
    for order, lane in enumerate(TASKS):
        player = play(lane)
        next(player)
        queue.append((0.0, order, lane, player))
    order = len(queue)
    while queue:
        wakes, _, lane, player = heapq.heappop(queue)
        at = begin = max(at, wakes)
        try:
            while True:
                busy, pause = player.send(at)
                at += busy
                if pause:
                    order += 1
                    heapq.heappush(queue, (at + pause, order, lane, player))
                    break
        except StopIteration:
            pass
        runs.append(Run(lane, begin, at))
    return planned(Stay(DRIVER, "collect", 0, at), *stays, runs=runs)


# ---- (e) a driver that waits for futures ----

POOL, DISPATCH, UPDATE = 4, 1, 6
JOBS: list[tuple[float, float]] = [
    (25, 0), (40, 0), (13, 18), (52, 0), (30, 11), (8, 0), (47, 0), (21, 9), (16, 0),
]  # fmt: skip
JOB_ROUNDS = 3


def run_futures(recorder: Recorder) -> None:
    def job(step: float, reset: float) -> None:
        lane = f"thread-{threading.get_ident()}"

        def inside() -> None:
            sleep(step)
            if reset:
                recorder.span(lane, "env_reset", partial(sleep, reset))

        recorder.span(lane, "env_step", inside)

    def all_of(pool: ThreadPoolExecutor) -> None:
        """Submits inside the waiting span: from the first job on, threads work and the driver has nothing to do."""
        for future in [pool.submit(job, *one) for one in JOBS]:
            future.result()

    with ThreadPoolExecutor(POOL) as pool:
        for _ in range(JOB_ROUNDS):
            recorder.span(DRIVER, "dispatch", partial(spin, DISPATCH))
            recorder.span(DRIVER, "wait_for_envs", partial(all_of, pool), waits=True)
            recorder.span(DRIVER, "update", partial(spin, UPDATE))


def plan_futures() -> History:
    stays = []
    at = 0.0
    for _ in range(JOB_ROUNDS):
        begin = at + DISPATCH
        free = [(begin, worker) for worker in range(POOL)]
        end = begin
        for step, reset in JOBS:
            start, worker = heapq.heappop(free)
            over = start + step + reset
            stays.append(Stay(f"worker-{worker}", "env_step", start, over))
            if reset:
                stays.append(Stay(f"worker-{worker}", "env_reset", start + step, over))
            heapq.heappush(free, (over, worker))
            end = max(end, over)
        stays += [Stay(DRIVER, "dispatch", at, begin), Stay(DRIVER, "wait_for_envs", begin, end, waits=True)]
        stays.append(Stay(DRIVER, "update", end, end + UPDATE))
        at = end + UPDATE
    return planned(*stays)


# ---- (f) the seed case: env_step in a pool of 16 threads ----

SEED_ROUNDS, FORWARD, SEED_LEARN = 5, 2, 3
SEED_STEPS = [46 + i for i in range(16)]


def run_seed(recorder: Recorder) -> None:
    def step(ms: float) -> None:
        recorder.span(f"thread-{threading.get_ident()}", "env_step", partial(sleep, ms))

    with ThreadPoolExecutor(16) as pool:
        for _ in range(SEED_ROUNDS):
            recorder.span(DRIVER, "policy_forward", partial(spin, FORWARD))
            recorder.span(DRIVER, "collect", lambda: list(pool.map(step, SEED_STEPS)), waits=True)
            recorder.span(DRIVER, "learn", partial(spin, SEED_LEARN))


def plan_seed() -> History:
    stays = []
    at = 0
    for _ in range(SEED_ROUNDS):
        begin, end = at + FORWARD, at + FORWARD + max(SEED_STEPS)
        stays += [Stay(DRIVER, "policy_forward", at, begin), Stay(DRIVER, "collect", begin, end, waits=True)]
        stays += [Stay(f"worker-{i}", "env_step", begin, begin + ms) for i, ms in enumerate(SEED_STEPS)]
        stays.append(Stay(DRIVER, "learn", end, end + SEED_LEARN))
        at = end + SEED_LEARN
    return planned(*stays)


PROGRAMS = (
    Program("serial", "nested spans on one thread", run_serial, plan_serial),
    Program("barrier", "8 threads at a barrier, and a driver that waits for all of them", run_barrier, plan_barrier),
    Program("driver_works", "threads that wait for the driver or work beside it", run_driver_works, plan_driver_works),
    Program("asyncio", "tasks that spin and await inside spans", run_asyncio, plan_asyncio),
    Program("futures", "a driver that waits for the futures of a thread pool", run_futures, plan_futures),
    Program("seed_case", "env_step in a pool of 16 threads", run_seed, plan_seed),
)
