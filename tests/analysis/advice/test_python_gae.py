"""All time between rollout and update is called `advantage`. Only time on a CPU can be a Python loop."""

from __future__ import annotations

from typing import Any

import pytest
from advised import amdahl, at, compute, cured, given, share, spin, train, with_lines, work
from fakes import Fake
from sessions import Written, facts_of

from rlprof.analysis.advice.python_gae import python_gae

torch = pytest.importorskip("torch")

MS = 1_000_000
STEPS = 128


def trained(tmp_path: Any, between_cpu: int, core: str = "auto", cpu: str = "auto") -> Any:
    """Rollouts of 128 steps, then 300 ms that belong to nothing, found by the phase rules' split."""
    fake = Fake(core, start=0)
    if cpu != "auto":
        fake.profiler = type(fake.profiler)(core, clock="fake", cpu=cpu)
        fake.profile = fake.profiler.profile
        fake.profiler.enable()
    written = Written(tmp_path, fake)
    ledger = fake.profiler.ledger
    for _ in range(5):
        ledger.iteration(False)
        fake.profile("rollout").__enter__()
        for _ in range(STEPS):
            with fake.profile("env_step"):
                fake.tick(MS)
            ledger.add_steps(1)
        fake.tick(300 * MS, cpu=between_cpu)
        ledger.split(fake.profile("rollout"), fake.profile("advantage"))
        with fake.profile("update"):
            fake.tick(100 * MS)
    return facts_of(written.end())


@pytest.mark.parametrize("core", ["c", "python"])
def test_a_sleep_between_rollout_and_update_is_no_loop_in_python(tmp_path, core):
    facts = trained(tmp_path, between_cpu=0, core=core)
    advantage, rollout = facts.operation("advantage"), facts.operation("rollout")
    assert (advantage.self_ns, advantage.cpu_percent) == (1_500 * MS, 0.0)
    assert rollout is None or rollout.cpu_percent in (None, 100.0)
    assert python_gae(facts) is None


def test_the_same_time_spent_computing_is_a_loop_in_python(tmp_path):
    facts = trained(tmp_path, between_cpu=300 * MS)
    finding = given(python_gae(facts), "python_gae", share=share(facts, "advantage"))
    assert "100.0%" in finding.evidence[-1]


@pytest.mark.parametrize(
    ("source", "function", "speaks"),
    [
        ("delta = rewards[t] + gamma * values[t + 1] - values[t]", "collect", True),
        ("last = d + decay * last", "compute_gae", True),
        ("batch = np.stack(history)", "collect", False),
        ("model = torch.compile(model)", "<module>", False),
    ],
)
def test_lines_that_do_not_look_like_advantages_are_not_blamed_on_them(tmp_path, source, function, speaks):
    """All time between rollout and update is called `advantage`, whatever it is."""
    lines = [at("train.py:9", source, 0.8, function), at("train.py:3", "prepare()", 0.2)]
    finding = python_gae(with_lines(trained(tmp_path, between_cpu=300 * MS), {"advantage": lines}))
    assert (finding is not None) == speaks
    assert not speaks or finding.place.where == "train.py:9"


def test_without_cpu_time_there_is_no_finding(tmp_path):
    facts = trained(tmp_path, between_cpu=300 * MS, cpu="off")
    assert facts.operation("advantage").cpu_ns is None
    assert python_gae(facts) is None


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
    finding = given(python_gae(facts), "python_gae")
    assert finding.operations == ("gae",)
    assert "40 calls for 40,960 env steps" in finding.evidence[0]
    # Iterations vary a little, as the loop really computes.
    assert 1.2 < finding.gain.estimate < amdahl(share(facts, "gae")) * 1.1


@pytest.mark.long
def test_vectorising_gains_no_more_than_the_bound(tmp_path):
    loop, scan = advantages(gae_by_timestep, calls=20, idle=0.005), advantages(gae_by_scan, calls=20, idle=0.005)
    bound, gain = cured(tmp_path, python_gae, loop, scan)
    assert 1.3 < gain < 1.15 * bound  # by CPU time, which other programs' use of the caches makes a little longer


def test_vectorised_advantages_are_fine_however_large_their_share(tmp_path):
    facts = train(tmp_path, advantages(gae_by_scan, calls=400, idle=0.0002))
    assert share(facts, "gae") > 0.2
    assert python_gae(facts) is None


@pytest.mark.parametrize(
    ("function", "speaks"), [("own_gae", True), ("Agent.discounted_returns", True), ("learn", False)]
)
def test_a_function_named_after_advantages_is_found_inside_an_update(tmp_path, function, speaks):
    def program(profiler):
        for _ in range(10):
            profiler.iteration()
            work(profiler, "env_step", 0.1)
            profiler.add_steps(100)
            with profiler.profile("update"):
                spin(0.1)

    line = at("train.py:24", "step = data[i]", 0.9, function)
    finding = python_gae(with_lines(train(tmp_path, program), {"update": [line]}))
    assert (finding is not None) is speaks
    if finding is not None:
        cause = given(finding, "python_gae", share=0.5).cause
        assert cause.startswith(f"{function}() takes 45.0% of the training time: 900 us per env step")
        assert finding.place.where == "train.py:24"
