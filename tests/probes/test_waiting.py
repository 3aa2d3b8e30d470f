"""Waits of the driver and of threads inside a span: one wait, one span, and no span without a wait."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import multiprocessing.connection
import multiprocessing.pool
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from generic_probes import calls, places, profiled, snapshot_of

from rlprof.probes import waiting

WAITS = {"thread_wait", "future_wait", "queue_wait", "pipe_wait", "process_wait"}
PAUSE = 0.05


@contextmanager
def recorded(core="auto"):
    """Records a block. After it, `waits` has the calls of each kind of wait, and `snapshot` has everything."""
    with profiled(waiting.PROBE, core=core) as profiler:
        found = SimpleNamespace(profile=profiler.profile, profiler=profiler)
        yield found
        found.snapshot = snapshot_of(profiler)
    found.waits = {name: count for name, count in calls(found.snapshot).items() if name in WAITS}


def later(action, *arguments):
    timer = threading.Timer(PAUSE, action, arguments)
    timer.daemon = True
    timer.start()
    return timer


@pytest.mark.parametrize("core", ["c", "python"])
def test_a_queue_is_waited_for_only_when_it_is_empty(core):
    with recorded(core) as found:
        items = queue.Queue(1)
        items.put(1)
        assert items.get() == 1
        timer = later(items.put, 2)
        assert items.get(timeout=10) == 2
        timer.join()
    assert found.waits["queue_wait"] == 1
    assert found.snapshot.account("queue_wait").waited_ns >= 0.5 * PAUSE * 1e9


def test_a_full_queue_and_a_queue_that_is_worked_off_are_waited_for():
    with recorded() as found:
        items = queue.Queue(1)
        items.put(1)

        def work():
            items.get()
            items.task_done()

        timer = later(work)
        items.put(2)
        timer.join()
        timer = later(work)
        items.join()
        timer.join()
    assert found.waits["queue_wait"] == 2


def test_a_queue_that_stays_empty_raises_as_ever():
    with recorded() as found:
        with pytest.raises(queue.Empty):
            queue.Queue().get_nowait()
        with pytest.raises(queue.Empty):
            queue.Queue().get(timeout=0.01)
    assert found.waits == {"queue_wait": 1}


def test_futures_are_waited_for_by_name():
    with recorded() as found:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            slow = pool.submit(time.sleep, PAUSE)
            slow.result()
            slow.result()  # it is there already
            concurrent.futures.wait([pool.submit(time.sleep, PAUSE)])
            assert len(list(concurrent.futures.as_completed([pool.submit(time.sleep, PAUSE)]))) == 1
            with pytest.raises(ZeroDivisionError):
                pool.submit(lambda: time.sleep(PAUSE) or 1 / 0).result()
            with pytest.raises(concurrent.futures.TimeoutError):
                pool.submit(time.sleep, 2 * PAUSE).result(timeout=0.01)
    assert found.waits["future_wait"] == 5


def test_threads_events_conditions_and_barriers_are_waited_for():
    with recorded() as found:
        event = threading.Event()
        timer = later(event.set)
        assert event.wait(10)
        assert event.wait(10)  # it is set already
        timer.join()
        assert not threading.Event().wait(0.01)
        barrier = threading.Barrier(2)
        timer = later(barrier.wait)
        barrier.wait(10)
        timer.join()
    assert set(found.waits) == {"thread_wait"}
    assert found.waits["thread_wait"] >= 3


def test_a_wait_goes_to_those_who_work_meanwhile():
    with recorded() as found:

        def work():
            with found.profile("env_step"):
                time.sleep(2 * PAUSE)

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(work).result()
    assert found.snapshot.account("env_step").ledger_ns >= 0.8 * 2 * PAUSE * 1e9
    assert found.snapshot.account("future_wait").ledger_ns < PAUSE * 1e9


def test_threads_outside_of_spans_get_no_lane():
    with recorded() as found:
        stop = threading.Event()
        threads = [threading.Thread(target=stop.wait, args=(10,), name=f"idle-{i}") for i in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(PAUSE)
        stop.set()
        for thread in threads:
            thread.join()
    assert [lane.name for lane in found.snapshot.lanes if lane.name.startswith("idle")] == []


def test_a_thread_inside_a_span_records_its_waits():
    with recorded() as found:
        items = queue.Queue()

        def work():
            with found.profile("teacher_forward"):
                items.get(timeout=10)

        thread = threading.Thread(target=work, name="teacher")
        thread.start()
        time.sleep(PAUSE)
        items.put(1)
        thread.join()
    assert found.snapshot.account("queue_wait").waited_ns > 0


def echo(connection):
    time.sleep(PAUSE)
    connection.send({"x": 1})
    connection.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pipes_and_processes_are_waited_for(method):
    with recorded() as found:
        context = multiprocessing.get_context(method)
        mine, theirs = context.Pipe()
        process = context.Process(target=echo, args=(theirs,))
        process.start()
        theirs.close()
        assert mine.poll(10)
        assert mine.recv() == {"x": 1}
        assert multiprocessing.connection.wait([process.sentinel], 10) == [process.sentinel]
        with pytest.raises(EOFError):
            mine.recv()
        process.join()
        assert process.exitcode == 0
    assert found.waits["pipe_wait"] >= 3
    assert found.waits["process_wait"] >= 1
    assert not any("wait/" in place for place in places(found.snapshot)), "one wait, one span"


def test_a_pool_is_waited_for():
    with recorded() as found:
        with multiprocessing.pool.ThreadPool(2) as pool:
            assert pool.map(abs, [-1, -2]) == [1, 2]
            pool.apply(time.sleep, (PAUSE,))
            assert list(pool.imap(lambda x: time.sleep(PAUSE) or x, [1])) == [1]
    assert found.waits["future_wait"] >= 2


def test_a_command_is_waited_for():
    with recorded() as found:
        subprocess.run([sys.executable, "-c", "pass"], check=True)
    assert found.waits["process_wait"] >= 1


def interrupt_a_wait(thread):
    """Once it waits: a signal that comes just before that is seen by Python only when the wait is over. And again, as
    people do, where it still waits: one that another thread takes does not wake this one."""
    while sys._current_frames()[thread].f_code.co_name != "wait":
        time.sleep(0.01)
    time.sleep(0.1)
    for _ in range(3):
        if sys._current_frames()[thread].f_code.co_name == "wait":
            signal.pthread_kill(thread, signal.SIGINT)
            time.sleep(1)


@pytest.fixture
def interruptible():
    """What a shell starts in the background ignores interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.figures
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_comes_through():
    with recorded() as found:
        timer = later(interrupt_a_wait, threading.get_ident())
        with pytest.raises(KeyboardInterrupt):
            queue.Queue().get(timeout=10)
        assert found.profiler.ledger.depth() == 1  # the start-up of the test
        timer.join()
    assert found.waits["queue_wait"] == 1


def test_a_wait_inside_a_wait_of_the_programs_own_is_that_ones():
    with recorded() as found:
        items = queue.Queue()
        later(items.put, 1)
        with found.profile("collect", wait=True):
            items.get(timeout=10)
    assert "queue_wait" not in found.waits
    assert found.snapshot.account("collect").calls == 1


def test_a_driver_that_sleeps_outside_of_spans_waits_for_working_threads():
    with recorded() as found:
        begun = threading.Event()

        def work():
            with found.profile("env_step"):
                begun.set()
                time.sleep(3 * PAUSE)

        thread = threading.Thread(target=work)
        thread.start()
        begun.wait()
        time.sleep(PAUSE)
        thread.join()
    snapshot = found.snapshot
    assert calls(snapshot)["sleep"] == 1
    assert snapshot.account("env_step").ledger_ns >= PAUSE * 1e9
    assert snapshot.account("sleep").ledger_ns < 0.5 * snapshot.account("sleep").waited_ns


def test_an_environment_that_sleeps_is_not_waiting():
    with profiled(waiting.PROBE) as profiler:
        with profiler.profile("env_step"):
            time.sleep(PAUSE)
        snapshot = snapshot_of(profiler)
    assert "sleep" not in calls(snapshot)
    assert snapshot.account("env_step").waited_ns == 0
    assert snapshot.account("env_step").ledger_ns >= PAUSE * 1e9


def test_sleep_stays_what_it_was():
    original = time.sleep
    with profiled(waiting.PROBE):
        assert pickle.loads(pickle.dumps(time.sleep)) is time.sleep
        assert time.sleep.__name__ == "sleep"
        with pytest.raises(ValueError, match="non-negative"):
            time.sleep(-1)
    assert time.sleep is original
