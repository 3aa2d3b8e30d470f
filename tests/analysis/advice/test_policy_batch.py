"""Policies that choose one action per call."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from advised import amdahl, at, compute, cured, given, share, train, with_lines, work
from sessions import facts_of

from rlprof.analysis.advice.policy_batch import policy_batch

torch = pytest.importorskip("torch")


@pytest.fixture
def threads():
    """Sets torch's threads, for this test only."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def one_thread(threads):
    threads(1)


def mlp(width):
    layers = [torch.nn.Linear(8, width), torch.nn.Tanh(), torch.nn.Linear(width, width), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 2))


def collecting(envs, steps, count=True, env_step=0.00001):
    """Steps a vector of environments, with one policy call for all of them."""
    net = mlp(64)

    def program(profiler):
        for _ in range(4):
            profiler.iteration()
            for _ in range(steps // 4):
                with profiler.profile("policy_forward"), torch.no_grad():
                    compute(net, torch.zeros(envs, 8))
                    with profiler.profile("value_forward"):
                        compute(net, torch.zeros(envs, 8))
                work(profiler, "env_step", env_step * envs)
                if count:
                    profiler.add_steps(envs)

    return program


def test_a_policy_that_chooses_one_action_per_call_should_have_a_larger_batch(tmp_path, one_thread):
    facts = train(tmp_path, collecting(envs=1, steps=2000))
    finding = given(policy_batch(facts), "tiny_batch_inference")
    assert finding.operations == ("policy_forward",)  # value_forward is part of its calls
    assert "2,000 calls for 2,000 env steps" in finding.evidence[0]
    assert 1.5 < finding.gain.estimate < amdahl(share(facts, "policy_forward", "value_forward")) * 1.1


@pytest.mark.long
def test_larger_batches_gain_no_more_than_was_promised(tmp_path, one_thread):
    small, large = (collecting(envs, steps, env_step=0.00005) for envs, steps in ((1, 1000), (64, 60)))
    bound, gain = cured(tmp_path, policy_batch, small, large)
    assert 1.3 < gain < 1.15 * bound  # by CPU time, which other programs' use of the caches makes a little longer


def stepping(written, envs, policy_calls, rounds=50, policy_ns=50_000, env_ns=20_000, phase="rollout"):
    """Rounds of a loop: the policy chooses actions, then a vector of environments is stepped once."""
    for _ in range(rounds // 10):
        written.fake.profiler.iteration()
        with written.fake.profile(phase) if phase else nullcontext():
            for _ in range(10):
                for _ in range(policy_calls):
                    written.work("policy_forward", policy_ns)
                written.work("env_step", env_ns)
                written.fake.profiler.add_steps(envs)
    return facts_of(written.end())


@pytest.mark.parametrize("phase", ["rollout", None])
def test_a_policy_that_is_called_once_per_environment_of_a_vector(written, phase):
    facts = stepping(written, envs=8, policy_calls=8, phase=phase)
    facts = with_lines(facts, {"policy_forward": [at("train.py:31", "action = policy(obs[i])", 0.9)]})
    finding = given(policy_batch(facts), "policy_per_env", share=400 / 420)
    assert finding.place.where == "train.py:31"
    assert "400 calls for 400 env steps" in finding.evidence[0]
    assert "8 times" in finding.cause
    # Eight observations take at least as long as one. The rest may get faster by six tenths of it.
    least = amdahl(400 / 420, 1 / 8)
    assert finding.gain.high <= least * (1 + 0.6 * (1 - 1 / least)) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("envs", "calls", "policy_ns"),
    [
        pytest.param(8, 1, 50_000, id="one call for all"),
        pytest.param(8, 8, 100, id="too short to matter"),
        pytest.param(8, 8, 5_000_000, id="long calls, which compute"),
    ],
)
def test_a_vector_whose_policy_calls_are_no_waste_is_fine(written, envs, calls, policy_ns):
    assert policy_batch(stepping(written, envs, calls, policy_ns=policy_ns)) is None


def test_a_training_that_learns_after_each_step_has_no_larger_batch(written):
    for _ in range(100):
        written.fake.profiler.iteration()
        written.work("policy_forward", 50_000)
        written.work("env_step", 20_000)
        written.work("backward", 50_000)
        written.fake.profiler.add_steps(1)
    assert policy_batch(facts_of(written.end())) is None


def test_an_actor_and_a_critic_in_evaluation_are_no_calls_per_environment(written):
    """One call for 4 environments in the loop; another policy evaluates."""
    for _ in range(10):
        written.fake.profiler.iteration()
        for _ in range(20):
            written.work("policy_forward", 50_000)
            written.work("env_step", 20_000)
            written.fake.profiler.add_steps(4)
        with written.fake.profile("evaluation"):
            for _ in range(100):
                written.work("policy_forward", 50_000)
                written.work("env_step", 20_000)
    assert policy_batch(facts_of(written.end())) is None


def test_a_large_batch_is_not_tiny_however_long_it_takes(tmp_path, one_thread):
    facts = train(tmp_path, collecting(envs=64, steps=400))
    assert share(facts, "policy_forward", "value_forward") > 0.1
    assert policy_batch(facts) is None


def test_without_counted_steps_the_batch_is_unknown(tmp_path, one_thread):
    assert policy_batch(train(tmp_path, collecting(envs=1, steps=400, count=False))) is None


def test_a_long_call_is_computation_that_a_larger_batch_does_not_make_cheaper(tmp_path):
    def program(profiler):
        for _ in range(40):
            work(profiler, "policy_forward", 0.005)
            profiler.add_steps(1)

    assert policy_batch(train(tmp_path, program)) is None
