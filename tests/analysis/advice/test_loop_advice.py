"""Rules about what else is in the training loop: advantages, logging, spans that are missing or too many."""

from __future__ import annotations

import pytest
from advised import compute, cured, given, on_cores, share, spin, train, work

from rlprof import SpanCost
from rlprof.analysis.advice import advise
from rlprof.analysis.advice.logging_in_loop import logging_in_loop
from rlprof.analysis.advice.python_gae import python_gae
from rlprof.analysis.advice.rlprof_cost import rlprof_cost
from rlprof.analysis.advice.unattributed_time import unattributed_time

torch = pytest.importorskip("torch")

GAMMA, LAMBDA = 0.99, 0.95


def gae_by_timestep(rewards, values, dones):
    """The obvious first version: a few torch calls per timestep."""
    advantages, last = torch.zeros_like(rewards), torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        alive = 1.0 - dones[t]
        delta = rewards[t] + GAMMA * values[t + 1] * alive - values[t]
        advantages[t] = last = delta + GAMMA * LAMBDA * alive * last
    return advantages


def gae_by_scan(rewards, values, dones):
    """The same in log2(T) operations on whole arrays."""
    alive = 1.0 - dones
    advantages = rewards + GAMMA * values[1:] * alive - values[:-1]
    decay = GAMMA * LAMBDA * alive
    reach = 1
    while reach < len(rewards):
        further = advantages.clone()
        further[:-reach] += decay[:-reach] * advantages[reach:]
        product = torch.zeros_like(decay)
        product[:-reach] = decay[:-reach] * decay[reach:]
        advantages, decay, reach = further, product, 2 * reach
    return advantages


def advantages(gae, calls, idle):
    """Rollouts of 128 timesteps of 8 environments."""
    torch.manual_seed(0)
    rollout = torch.rand(128, 8), torch.rand(129, 8), (torch.rand(128, 8) < 0.02).float()
    assert torch.allclose(gae_by_timestep(*rollout), gae_by_scan(*rollout), atol=1e-5)

    def program(profiler):
        for _ in range(calls):
            profiler.iteration()
            work(profiler, "env_step", idle)
            profiler.add_steps(128 * 8)
            with profiler.profile("gae"):
                compute(gae, *rollout)

    return program


def test_a_loop_over_timesteps_is_found_by_its_time_per_env_step(tmp_path):
    facts = train(tmp_path, advantages(gae_by_timestep, calls=40, idle=0.005))
    advice = given(python_gae(facts), "python_gae")
    assert advice.operations == ("gae",)
    gae = facts.operation("gae")
    assert "40 calls for 40,960 env steps" in advice.evidence[0]
    factor = gae.cpu_ns / (40 * 50_000 + 40_960 * 6)
    computed = share(facts, "gae") * gae.cpu_ns / gae.self_ns
    assert advice.gain == pytest.approx((1.0, 1 / (1 - computed * (1 - 1 / factor))))


@pytest.mark.long
def test_vectorising_gains_no_more_than_the_bound(tmp_path):
    loop, scan = advantages(gae_by_timestep, calls=20, idle=0.005), advantages(gae_by_scan, calls=20, idle=0.005)
    bound, gain = cured(tmp_path, python_gae, loop, scan)
    assert 1.3 < gain < 1.15 * bound  # by CPU time, which other programs' use of the caches makes a little longer


def test_vectorised_advantages_are_fine_however_large_their_share(tmp_path):
    facts = train(tmp_path, advantages(gae_by_scan, calls=400, idle=0.0002))
    assert share(facts, "gae") > 0.2
    assert python_gae(facts) is None


def looping(calls, iterations=20, operation="logging", last=0.0):
    """Some calls of 4 ms per iteration, and one call of `last` seconds at the end."""

    def program(profiler):
        for _ in range(iterations):
            profiler.iteration()
            for _ in range(10):
                work(profiler, "env_step", 0.001)
            for _ in range(calls):
                with profiler.profile(operation):
                    spin(0.002)
                    work(profiler, "policy_forward", 0.002)
        work(profiler, "checkpoint", last)

    return program


@pytest.mark.parametrize("operation", ["logging", "evaluation"])
def test_an_operation_of_each_iteration_is_named_including_what_it_calls(tmp_path, operation):
    facts = train(tmp_path, looping(calls=3, operation=operation))
    advice = given(logging_in_loop(facts), "logging_in_loop")
    assert advice.operations == (operation,)
    assert "60 calls, 3 per iteration" in advice.evidence[0]
    taken = share(facts, operation, "policy_forward")
    assert taken > 0.4
    assert advice.gain == pytest.approx((1.0, 1 / (1 - taken)), rel=0.01)


def test_an_operation_of_each_step_is_named_even_without_iterations(tmp_path):
    def program(profiler):
        for _ in range(100):
            work(profiler, "env_step", 0.002)
            work(profiler, "telemetry", 0.002)

    advice = given(logging_in_loop(train(tmp_path, program)), "logging_in_loop")
    assert "100 calls, 1 per call of env_step" in advice.evidence[0]


def test_a_large_checkpoint_at_the_end_is_not_in_the_loop(tmp_path):
    facts = train(tmp_path, looping(calls=0, last=0.2))
    assert share(facts, "checkpoint") > 0.3
    assert logging_in_loop(facts) is None


def test_a_little_logging_in_each_iteration_is_fine(tmp_path):
    def program(profiler):
        for _ in range(20):
            profiler.iteration()
            work(profiler, "env_step", 0.01)
            work(profiler, "logging", 0.0001)

    assert logging_in_loop(train(tmp_path, program)) is None


@pytest.mark.parametrize(("outside", "reported"), [(0.006, True), (0.0, False)])
def test_much_time_without_a_span_is_reported(tmp_path, outside, reported):
    def program(profiler):
        for _ in range(40):
            work(profiler, "env_step", 0.004)
            spin(outside)

    advice = unattributed_time(train(tmp_path, program))
    assert (advice is not None) == reported
    if reported:
        assert given(advice, "unattributed_time").gain is None


COST = SpanCost(inside_ns=30.0, outside_ns=60.0)


def spans(around):
    """Many spans around this many seconds of work, with a planted cost per span."""

    def program(profiler):
        for _ in range(200):
            with profiler.profile("update"):
                for _ in range(100):
                    work(profiler, "feature_extraction", around + 30e-9)
                    spin(60e-9)

    return program, COST


def test_spans_around_nothing_are_reported_with_their_cost(tmp_path):
    facts = train(tmp_path, *spans(around=0.0))
    advice = given(rlprof_cost(facts), "rlprof_cost")
    assert advice.operations[0] == "feature_extraction"
    assert "20,000 times" in advice.evidence[1]


def test_spans_around_work_cost_next_to_nothing(tmp_path):
    assert rlprof_cost(train(tmp_path, *spans(around=0.0001))) is None


def test_a_healthy_training_gets_no_advice(tmp_path):
    """Short resets now and then, a policy for all environments at once, little logging, most time in learning."""

    def program(profiler):
        for _ in range(10):
            profiler.iteration()
            for step in range(8):
                work(profiler, "policy_forward", 0.0005)
                work(profiler, "env_step", 0.001)
                profiler.add_steps(64)
                if step == 7:
                    work(profiler, "env_reset", 0.0002)
            work(profiler, "gae", 0.0005)
            for _ in range(4):
                work(profiler, "backward", 0.005)
            work(profiler, "logging", 0.0002)

    # Whether others want the cores is not the training's doing: other tests run beside this one.
    assert {advice.rule for advice in advise(on_cores(train(tmp_path, program), 4))} <= {"crowded_machine"}
