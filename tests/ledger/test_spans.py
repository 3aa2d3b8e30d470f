"""One lane: trees, counts, times, and every way to leave a span."""

from __future__ import annotations

import sys
from contextlib import ExitStack

import pytest

import rlprof
from rlprof import Profiler


def test_it_is_off_until_enabled_and_then_records_nothing_retroactively(core):
    profiler = Profiler(core)
    with profiler.profile("early"):
        pass
    assert profiler.snapshot().accounts == []
    assert profiler.snapshot().wall_ns == 0
    assert not profiler.enabled


def test_one_profiler_serves_the_process_under_both_names():
    assert rlprof.get_profiler() is rlprof.get_global_profiler()
    assert rlprof.get_profiler().profile is rlprof.profile


def test_a_span_is_one_object_for_one_name_and_options(core):
    profile = Profiler(core).profile
    assert profile("a") is profile("a") is profile("".join(["a"]))
    assert profile("a") is not profile("a", wait=True)
    assert profile("a", track_memory=True) is profile("a", track_memory=True)


def test_times_are_divided_between_a_span_and_what_it_calls(fake):
    with fake.profile("outer"):
        fake.tick(10)
        with fake.profile("inner"):
            fake.tick(5)
        fake.tick(1)
        with fake.profile("inner"):
            fake.tick(7)
    fake.tick(100)
    snapshot = fake.snapshot()
    outer, inner = snapshot.account("outer"), snapshot.account("inner")
    assert (outer.calls, outer.wall_ns, outer.self_ns, outer.ledger_ns) == (1, 23, 11, 11)
    assert (inner.calls, inner.wall_ns, inner.self_ns, inner.min_ns, inner.max_ns) == (2, 12, 12, 5, 7)
    assert snapshot.unattributed_ns == 100
    assert snapshot.wall_ns == 123


def test_a_span_that_is_still_open_is_in_the_account(fake):
    with fake.profile("training"):
        fake.tick(50)
        snapshot = fake.snapshot()
        assert snapshot.account("training").ledger_ns == 50
        assert snapshot.account("training").calls == 0
        assert snapshot.open_spans == 1
        fake.tick(5)
    account = fake.snapshot().account("training")
    assert (account.ledger_ns, account.calls, account.busy_ns) == (55, 1, 55)


def test_recursion_counts_every_call_and_its_inclusive_time_once(fake):
    def descend(depth: int) -> None:
        with fake.profile("descend"):
            fake.tick(1)
            if depth:
                descend(depth - 1)

    descend(4)
    account = fake.snapshot().account("descend")
    assert (account.calls, account.self_ns, account.wall_ns, account.max_ns) == (5, 5, 5, 5)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_ends_the_span_and_goes_on(fake, error):
    with pytest.raises(error):
        with fake.profile("failing"):
            fake.tick(3)
            raise error
    fake.tick(4)
    assert fake.ledger() == {"failing": 3, "unattributed": 4}


def test_spans_may_end_out_of_order(fake):
    a, b, c = (fake.profile(name) for name in "abc")
    a.__enter__()
    fake.tick(1)
    b.__enter__()
    fake.tick(10)
    c.__enter__()
    fake.tick(100)
    a.__exit__(None, None, None)
    fake.tick(1_000)
    c.__exit__(None, None, None)
    fake.tick(10_000)
    b.__exit__(None, None, None)
    assert fake.ledger() == {"b": 10_010, "c": 1_100, "a": 1, "unattributed": 0}
    snapshot = fake.snapshot()
    assert {name: snapshot.account(name).busy_ns for name in "abc"} == {"a": 111, "b": 11_110, "c": 1_100}
    assert snapshot.open_spans == 0


def test_an_exit_without_an_enter_is_ignored(fake):
    fake.profile("never").__exit__(None, None, None)
    with fake.profile("other"):
        fake.profile("never").__exit__(None, None, None)
        fake.tick(1)
    assert fake.ledger() == {"other": 1, "unattributed": 0}


def test_an_exit_stack_holds_spans(fake):
    with ExitStack() as stack:
        stack.enter_context(fake.profile("first"))
        fake.tick(1)
        stack.enter_context(fake.profile("second", wait=True))
        fake.tick(2)
    assert fake.ledger() == {"second": 2, "first": 1, "unattributed": 0}


def test_nesting_may_be_deep(fake):
    depth = 5_000
    with ExitStack() as stack:
        for i in range(depth):
            stack.enter_context(fake.profile(f"level {i % 7}"))
            fake.tick(1)
    snapshot = fake.snapshot()
    assert sum(account.calls for account in snapshot.accounts) == depth
    assert snapshot.unattributed_ns == 0


def test_ten_thousand_names_stay_distinct(fake):
    for i in range(10_000):
        with fake.profile(f"operation {i}"):
            fake.tick(i)
    snapshot = fake.snapshot()
    assert len(snapshot.accounts) == 10_000
    assert snapshot.account("operation 777").ledger_ns == 777


def test_names_without_end_are_folded_with_one_warning(profiler):
    with pytest.warns(rlprof.RlprofWarning, match="65,535 operation names") as warned:
        for i in range(66_000):
            with profiler.profile(f"step {i}"):
                pass
    assert len(warned) == 1
    snapshot = profiler.snapshot()
    assert sum(account.calls for account in snapshot.accounts) == 66_000
    assert snapshot.account("(other names)").calls == 66_000 - 65_535


@pytest.mark.parametrize("name", [None, 3, b"bytes", ("a",), object])
def test_a_name_that_is_not_a_string_is_a_clear_type_error(core, name):
    kind = type(name).__name__
    with pytest.raises(TypeError, match=f"takes the operation's name as a str, not {kind}"):
        Profiler(core).profile(name)


def test_wrong_arguments_are_type_errors(core):
    profile = Profiler(core).profile
    with pytest.raises(TypeError):
        profile()
    with pytest.raises(TypeError):
        profile("a", colour="red")
    with pytest.raises(TypeError, match="category as a str, not int"):
        profile("a", category=1)


class Name(str):
    """A string that is not quite one."""

    __slots__ = ()

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        return True


def test_a_string_subclass_names_the_operation_it_spells(fake):
    with fake.profile(Name("a")):
        fake.tick(1)
    with fake.profile("a"):
        fake.tick(2)
    assert fake.ledger() == {"a": 3, "unattributed": 0}


@pytest.mark.parametrize("name", ["", " ", "naïve", "\ud800", "a\nb", "<b>", "x" * 10_000])
def test_any_string_is_a_name(fake, name):
    with fake.profile(name):
        fake.tick(1)
    assert fake.ledger()[name] == 1


def test_the_catalogue_gives_categories_and_the_caller_may_choose(profiler):
    for name, category in [("env_step", None), ("my_net", "policy"), ("unknown", None)]:
        with profiler.profile(name, category=category):
            pass
    categories = {account.operation: account.category for account in profiler.snapshot().accounts}
    assert categories == {"env_step": "environment", "my_net": "policy", "unknown": "other"}
    with pytest.raises(ValueError, match="'cooking' of 'x' is not one of environment, "):
        profiler.profile("x", category="cooking")


def test_a_category_given_later_replaces_the_catalogues_and_a_second_one_does_not(profiler):
    with profiler.profile("thing"):
        pass
    profiler.profile("thing", category="policy")
    with pytest.warns(rlprof.RlprofWarning, match="two categories"):
        profiler.profile("thing", category="storage")
    assert profiler.snapshot().account("thing").category == "policy"


def test_quantiles_come_from_all_calls_within_the_buckets_width(fake):
    for duration in range(1, 1001):
        with fake.profile("a"):
            fake.tick(duration * 1_000)
    account = fake.snapshot().account("a")
    for q in (0.5, 0.95, 0.99):
        assert account.quantile_ns(q) == pytest.approx(q * 1_000_000, rel=0.012)
    assert account.mean_ns == 500_500
    assert (account.min_ns, account.max_ns) == (1_000, 1_000_000)


def test_cpu_time_differs_from_wall_time(fake):
    with fake.profile("sleeps"):
        fake.tick(100, cpu=0)
        with fake.profile("spins"):
            fake.tick(50)
        fake.tick(10, cpu=4)
    snapshot = fake.snapshot()
    assert snapshot.account("sleeps").cpu_ns == 4
    assert snapshot.account("spins").cpu_ns == 50


def test_the_span_is_what_with_binds_and_shows_its_name(core):
    profile = Profiler(core).profile
    with profile("env_step") as span:
        assert span.name == "env_step"
    assert repr(profile("x", wait=True)) == "profile('x', wait=True)"


def test_spans_leave_no_references_behind(profiler):
    span = profiler.profile("a")
    before = sys.getrefcount(span)
    for _ in range(1_000):
        with profiler.profile("a"):
            pass
    assert sys.getrefcount(span) == before
