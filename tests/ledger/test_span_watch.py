"""Somebody is told of every span, in both cores, and nobody pays for it otherwise."""

from __future__ import annotations

import os
import threading
import warnings

import pytest
from fakes import CORES

from rlprof import Profiler
from rlprof.ledger.hooks import RlprofWarning


@pytest.fixture(params=CORES)
def profiler(request):
    profiler = Profiler(request.param)
    profiler.enable()
    yield profiler
    profiler.disable()


def watched(profiler):
    told = []
    profiler.ledger.watch(lambda name, begins: told.append((name, begins)))
    return told


def test_spans_are_told_as_they_begin_and_end(profiler):
    told = watched(profiler)
    with profiler.profile("outer"), profiler.profile("inner"):
        assert profiler.ledger.open_operations() == ["outer", "inner"]
    assert told == [("outer", True), ("inner", True), ("inner", False), ("outer", False)]


def test_what_is_open_already_is_told_when_it_ends(profiler):
    with profiler.profile("outer"):
        told = watched(profiler)
        assert profiler.ledger.open_operations() == ["outer"]
    assert told == [("outer", False)]


def test_nobody_is_told_any_more(profiler):
    told = watched(profiler)
    with profiler.profile("outer"):
        profiler.ledger.watch(None)
    assert told == [("outer", True)]


def test_spans_out_of_order_and_split_ones_are_told(profiler):
    told = watched(profiler)
    outer, inner = profiler.profile("outer"), profiler.profile("inner")
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    assert told[2:] == [("outer", False), ("inner", False)]
    del told[:]
    outer.__enter__()
    profiler.ledger.split(outer, profiler.profile("rest"))
    assert told == [("outer", True), ("outer", False)]


def test_an_exception_goes_through_and_a_watcher_that_fails_is_let_go(profiler):
    told = watched(profiler)
    with pytest.raises(KeyError), profiler.profile("outer"):
        raise KeyError(1)
    assert told == [("outer", True), ("outer", False)]

    def fails(name, begins):
        raise ValueError(name)

    profiler.ledger.watch(fails)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with profiler.profile("outer"):
            pass
        with profiler.profile("outer"):
            pass
    assert [str(warning.message) for warning in said if issubclass(warning.category, RlprofWarning)] == [
        "rlprof: the watcher of spans has failed and is no longer called (ValueError: outer)"
    ]
    assert profiler.snapshot().account("outer").calls == 3


def test_spans_of_the_watcher_itself_are_not_told(profiler):
    told = []

    def watcher(name, begins):
        told.append((name, begins))
        with profiler.profile("own"):
            pass

    profiler.ledger.watch(watcher)
    with profiler.profile("outer"):
        pass
    assert told == [("outer", True), ("outer", False)]
    assert profiler.snapshot().account("own").calls == 2


def test_other_threads_are_told_on_their_own(profiler):
    told = []
    profiler.ledger.watch(lambda name, _begins: told.append((name, threading.get_ident())))
    ident = []

    def work():
        ident.append(threading.get_ident())
        with profiler.profile("worker"):
            pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert told == [("worker", ident[0])] * 2


def test_a_watched_ledger_accounts_for_every_instant(profiler):
    told = watched(profiler)
    with profiler.profile("a"):
        for _ in range(10):
            with profiler.profile("b", wait=True):
                pass
    snapshot = profiler.snapshot()
    snapshot.check()
    assert (snapshot.account("a").calls, snapshot.account("b").calls, len(told)) == (1, 10, 22)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_tells_nobody(profiler):
    told = watched(profiler)
    profiler.listen(lambda what: told.append((what, True)))
    child = os.fork()
    if child == 0:
        with profiler.profile("outer"):
            profiler.iteration()
        os._exit(len(told))
    assert os.waitpid(child, 0)[1] == 0
    with profiler.profile("outer"):
        pass
    assert told == [("outer", True), ("outer", False)]
