"""rlprof's own work on the training's thread (rules, readings, snapshots) has its own line, in CPU time."""

from __future__ import annotations

import time

from rlprof.ledger.decorate import in_place_of
from rlprof.probes.loop import new_loop


class Rules:
    """Takes 700 ns to answer, of which it has a core for 500; ends one phase and begins another in between."""

    def __init__(self, fake):
        self._fake = fake
        self._open = None

    def before_rollout(self):
        self._fake.tick(300, cpu=100)
        if self._open is not None:
            self._open.__exit__(None, None, None)
        self._open = self._fake.profile("rollout")
        self._open.__enter__()
        self._fake.tick(400, cpu=400)


def followed(fake, rules, step):
    """An environment's step as the probes follow it, and the loop."""
    profile, timed = fake.profile, fake.profiler.timed_type
    loop = new_loop(fake.profiler, rules, *map(profile, ("policy_forward", "loss_forward", "env_forward")))
    loop.training = True

    def make(method):
        return timed(profile("env_step"), step, method, True, None, (), loop, "step")

    return in_place_of(step, make), loop


def test_what_the_rules_take_inside_a_call_is_rlprofs_and_not_the_phases(fake):
    def step():
        fake.tick(1_000)
        return None, 0.0, False, False, {}

    step, loop = followed(fake, Rules(fake), step)
    for _ in range(10):
        loop.learned = True
        step()
    snapshot = fake.snapshot()
    assert snapshot.account("env_step").ledger_ns == 10 * 1_000
    assert snapshot.rlprof_ns == 10 * 500  # the other 200 ns somebody else had the core
    assert snapshot.account("rollout").ledger_ns + snapshot.unattributed_ns == 10 * 200
    assert snapshot.rlprof_uncertainty_ns == round(0.75 * 10 * 500)


def test_spans_inside_of_own_time_are_all_rlprofs(fake):
    ledger = fake.profiler.ledger
    with fake.profile("outer"):
        fake.tick(10)
        assert ledger.own_time(True) is False
        assert ledger.own_time(True) is True
        fake.tick(20)
        with fake.profile("inner"):
            fake.tick(30, cpu=5)
        assert ledger.own_time(False) is True
        fake.tick(40)
    costs = {node.operation: node.own_cost_ns for node in fake.snapshot().nodes}
    assert costs == {None: 0, "outer": 20, "inner": 5}
    accounts = {account.operation: account.ledger_ns for account in fake.snapshot().accounts}
    assert accounts == {"outer": 50, "inner": 25}


def test_recording_that_is_switched_off_meanwhile_is_not_disturbed(fake):
    ledger = fake.profiler.ledger
    with fake.profile("outer"):
        ledger.own_time(True)
        fake.tick(5)
        fake.profiler.disable()
        assert ledger.own_time(False) is False
        fake.profiler.enable()
        ledger.own_time(False)
        fake.tick(7)
    (outer,) = (node for node in fake.snapshot().nodes if node.operation == "outer")
    assert (outer.self_ns, outer.own_cost_ns) == (12, 5)


def test_snapshots_cost_their_cpu_time_and_not_the_time_that_others_had_the_core(profiler):
    with profiler.profile("outer"):
        for place in range(300):
            with profiler.profile(f"place {place}"):
                pass
        before = profiler.snapshot().rlprof_ns
        began = time.thread_time_ns()
        for _ in range(20):
            profiler.snapshot()
        spent = time.thread_time_ns() - began
        claimed = profiler.snapshot().rlprof_ns - before
    # The first snapshot's own cost is in the second.
    assert 0.7 * spent < claimed < 1.5 * spent
