"""What the rules cost a training with a cheap environment is in rlprof's own line."""

from __future__ import annotations

import time

import pytest
from probes.generic_probes import profiled, snapshot_of
from probes.trainings import dqn

from rlprof.probes.phase_rules import PhaseRules

gymnasium = pytest.importorskip("gymnasium")

RULES = ("before_rollout", "begin_update", "is_acting", "epoch_ended")


@pytest.mark.long
def test_the_cost_of_a_dqns_phases_is_claimed(monkeypatch):
    spent, inside = [0], [0]

    def timed(rule):
        def call(self, *args):
            inside[0] += 1
            began = time.thread_time_ns()
            try:
                return rule(self, *args)
            finally:
                inside[0] -= 1
                if not inside[0]:
                    spent[0] += time.thread_time_ns() - began

        return call

    for name in RULES:
        monkeypatch.setattr(PhaseRules, name, timed(getattr(PhaseRules, name)))
    with profiled() as profiler:
        dqn.train(steps=1_500)
        snapshot = snapshot_of(profiler)
    assert spent[0] > 1_000_000
    # Not less than the rules are seen to take; and not the time in which others had the core.
    assert 0.9 * spent[0] < snapshot.rlprof_ns < 3 * spent[0]
    assert snapshot.rlprof_uncertainty_ns > 0.3 * spent[0]
