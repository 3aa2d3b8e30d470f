"""A watcher gets a report of every span, in both cores."""

from __future__ import annotations

import os
import threading

import pytest
from ledger.helpers import in_thread

from rlprof.ledger.hooks import RlprofWarning


def watched(profiler):
    seen = []
    profiler.ledger.watch(lambda name, begins: seen.append((name, begins)))
    return seen


def test_spans_are_reported_as_they_begin_and_end(profiler):
    seen = watched(profiler)
    with profiler.profile("outer"), profiler.profile("inner"):
        assert profiler.ledger.open_operations() == ["outer", "inner"]
    assert seen == [("outer", True), ("inner", True), ("inner", False), ("outer", False)]


def test_an_open_span_is_reported_when_it_ends(profiler):
    with profiler.profile("outer"):
        seen = watched(profiler)
        assert profiler.ledger.open_operations() == ["outer"]
    assert seen == [("outer", False)]


def test_a_watcher_can_be_removed(profiler):
    seen = watched(profiler)
    with profiler.profile("outer"):
        profiler.ledger.watch(None)
    assert seen == [("outer", True)]


def test_spans_out_of_order_and_split_spans_are_reported(profiler):
    seen = watched(profiler)
    outer, inner = profiler.profile("outer"), profiler.profile("inner")
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    assert seen[2:] == [("outer", False), ("inner", False)]
    del seen[:]
    outer.__enter__()
    profiler.ledger.split(outer, profiler.profile("rest"))
    assert seen == [("outer", True), ("outer", False)]


def test_exceptions_pass_and_a_watcher_that_fails_is_removed(profiler):
    seen = watched(profiler)
    with pytest.raises(KeyError), profiler.profile("outer"):
        raise KeyError(1)
    assert seen == [("outer", True), ("outer", False)]

    def fails(name, begins):
        raise ValueError(name)

    profiler.ledger.watch(fails)
    message = r"the watcher of spans has failed and is no longer called \(ValueError: outer\)"
    with pytest.warns(RlprofWarning, match=message) as warned:
        for _ in range(2):
            with profiler.profile("outer"):
                pass
    assert len(warned) == 1
    assert profiler.snapshot().account("outer").calls == 3


def test_spans_of_the_watcher_itself_are_not_reported(profiler):
    seen = []

    def watcher(name, begins):
        seen.append((name, begins))
        with profiler.profile("own"):
            pass

    profiler.ledger.watch(watcher)
    with profiler.profile("outer"):
        pass
    assert seen == [("outer", True), ("outer", False)]
    assert profiler.snapshot().account("own").calls == 2


def test_spans_are_reported_on_their_own_thread(profiler):
    seen = []
    profiler.ledger.watch(lambda name, _begins: seen.append((name, threading.get_ident())))
    ident = []

    def work():
        ident.append(threading.get_ident())
        with profiler.profile("worker"):
            pass

    in_thread(work)
    assert seen == [("worker", ident[0])] * 2


def test_a_watched_ledger_accounts_for_every_instant(profiler):
    seen = watched(profiler)
    with profiler.profile("a"):
        for _ in range(10):
            with profiler.profile("b", wait=True):
                pass
    snapshot = profiler.snapshot()
    snapshot.check()
    assert (snapshot.account("a").calls, snapshot.account("b").calls, len(seen)) == (1, 10, 22)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_reports_nothing(profiler):
    seen = watched(profiler)
    profiler.listen(lambda what: seen.append((what, True)))
    child = os.fork()
    if child == 0:
        with profiler.profile("outer"):
            profiler.iteration()
        os._exit(len(seen))
    assert os.waitpid(child, 0)[1] == 0
    with profiler.profile("outer"):
        pass
    assert seen == [("outer", True), ("outer", False)]
