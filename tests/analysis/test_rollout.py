"""What one rollout consists of, against planted times."""

from __future__ import annotations

from planted import Planted

from rlprof.analysis.rollout import Rollout, rollout


def lines(found: Rollout | None) -> list[tuple[str, int, float]]:
    return [(step.operation, step.depth, step.ns) for step in found.steps]


def collect(planted: Planted, steps: int = 4) -> None:
    """Each step: 10 ns of policy, 30 ns of environment with 5 ns of rendering in it."""
    for _ in range(steps):
        planted.work("policy_forward", 10)
        with planted.profile("env_step"):
            planted.tick(25)
            planted.work("render", 5)


def test_the_calls_of_an_operation_that_contains_all_collection_are_the_rollouts(planted):
    for _ in range(3):
        with planted.profiler.iteration():
            with planted.profile("rollout"):
                collect(planted)
                planted.tick(2)
            planted.work("update", 500)
    found = rollout(planted.breakdown())
    assert (found.rollouts, found.total_ns) == (3, 4 * 40 + 2)
    assert lines(found) == [("env_step", 0, 120), ("render", 1, 20), ("policy_forward", 0, 40)]


def test_the_bottleneck_has_the_largest_time_of_its_own(planted):
    with planted.profiler.iteration(), planted.profile("rollout"):
        with planted.profile("env_step"):
            planted.tick(10)
            planted.work("render", 90)
        planted.work("policy_forward", 60)
    found = rollout(planted.breakdown())
    assert [step.operation for step in found.steps if step.bottleneck] == ["render"]


def test_without_such_an_operation_the_iterations_are_the_rollouts(planted):
    planted.work("env_make", 1_000)
    for _ in range(4):
        with planted.profiler.iteration():
            collect(planted, 2)
            planted.work("update", 100)
    found = rollout(planted.breakdown())
    assert (found.rollouts, found.total_ns) == (4, 80)
    assert lines(found) == [("env_step", 0, 60), ("render", 1, 10), ("policy_forward", 0, 20)]


def test_no_environment_or_no_iterations_is_no_rollout(planted):
    with planted.profiler.iteration():
        planted.work("update", 100)
    assert rollout(planted.breakdown()) is None
    planted = Planted()
    collect(planted)
    assert rollout(planted.breakdown()) is None


def test_only_what_dominates_the_training_is_a_bottleneck(planted):
    """A rollout of 10% of the training, then one of 5 equal parts."""
    with planted.profiler.iteration():
        with planted.profile("rollout"):
            planted.work("env_step", 80)
            planted.work("policy_forward", 20)
        planted.work("update", 900)
    assert not any(step.bottleneck for step in rollout(planted.breakdown()).steps)
    equal = Planted()
    with equal.profiler.iteration(), equal.profile("rollout"):
        for name in ("env_step", "policy_forward", "buffer_add", "render", "advantage"):
            equal.work(name, 100)
    assert not any(step.bottleneck for step in rollout(equal.breakdown()).steps)
