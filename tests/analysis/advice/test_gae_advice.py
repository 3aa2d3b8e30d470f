"""All time between rollout and update is called `advantage`. Only time on a CPU can be a Python loop."""

from __future__ import annotations

from typing import Any

import pytest
from advised import given
from fakes import Fake
from sessions import Written, facts_of

from rlprof.analysis.advice.python_gae import python_gae

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
    advice = given(python_gae(trained(tmp_path, between_cpu=300 * MS)), "python_gae")
    assert "100.0%" in advice.evidence[-1]


def test_without_cpu_time_there_is_no_advice(tmp_path):
    facts = trained(tmp_path, between_cpu=300 * MS, cpu="off")
    assert facts.operation("advantage").cpu_ns is None
    assert python_gae(facts) is None
