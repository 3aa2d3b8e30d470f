"""Resets that take a large part of the time."""

from __future__ import annotations

import pytest
from advised import given, share, train, work

from rlprof.analysis.advice.reset_storm import reset_storm


def episodes(length, reset, first=0.0, steps=120, iterations=4):
    """A training with a reset every few steps. The first reset takes some seconds longer."""

    def program(profiler):
        done = 0
        work(profiler, "env_reset", first + reset)
        for _ in range(iterations):
            profiler.iteration()
            for _ in range(steps // iterations):
                work(profiler, "env_step", 0.002)
                profiler.add_steps(1)
                done += 1
                if done % length == 0:
                    work(profiler, "env_reset", reset)
            work(profiler, "update", 0.01)

    return program


def test_short_episodes_with_slow_resets_are_a_storm(tmp_path):
    facts = train(tmp_path, episodes(length=4, reset=0.01))
    # Per iteration 7 or 8 resets of 10 ms, 30 steps of 2 ms and an update of 10 ms.
    finding = given(reset_storm(facts), "reset_storm", share=300 / 580)
    assert finding.operations == ("env_reset",)
    assert finding.evidence[0].startswith("31 resets for 120 env steps, one every 3.9")
    assert "early" in finding.change
    # The smaller of two shares: over all of the training, and of the iterations after the first (230 of 440 ms).
    assert f"{100 * min(share(facts, 'env_reset'), 230 / 440):.1f}%" in finding.cause


def test_slow_resets_of_long_episodes_should_become_cheaper(tmp_path):
    finding = given(reset_storm(train(tmp_path, episodes(length=40, reset=0.08, steps=240))), "reset_storm")
    assert finding.change.startswith("Make the reset cheaper")


@pytest.mark.parametrize("iterations", [1, 4])
def test_a_slow_first_reset_alone_is_no_storm(tmp_path, iterations):
    facts = train(tmp_path, episodes(length=20, reset=0.001, first=0.4, iterations=iterations))
    assert share(facts, "env_reset") > 0.2
    assert reset_storm(facts) is None


def test_cheap_resets_are_no_storm(tmp_path):
    assert reset_storm(train(tmp_path, episodes(length=4, reset=0.0002))) is None
