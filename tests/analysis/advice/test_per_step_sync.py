"""Results that are fetched from the device at every step."""

from __future__ import annotations

from advised import given, rest, share, train, work

from rlprof.analysis.advice.per_step_sync import per_step_sync


def fetching(every, seconds, steps=200):
    """A loop that fetches from the device every few steps."""

    def program(profiler):
        for step in range(steps):
            if step % 100 == 0:
                profiler.iteration()
            work(profiler, "env_step", 0.001)
            profiler.add_steps(8)
            if step % every == 0:
                with profiler.profile("device_to_host"):
                    rest(seconds)

    return program


def test_fetching_from_the_device_at_every_step_is_reported(tmp_path):
    facts = train(tmp_path, fetching(every=1, seconds=0.001))
    finding = given(per_step_sync(facts), "per_step_sync", share=share(facts, "device_to_host"))
    assert finding.operations == ("device_to_host",)
    assert "200 calls for 200 steps" in finding.evidence[0]


def test_fetching_the_same_once_per_rollout_is_fine(tmp_path):
    facts = train(tmp_path, fetching(every=20, seconds=0.02))
    assert share(facts, "device_to_host") > 0.2
    assert per_step_sync(facts) is None


def test_fetching_at_every_step_is_fine_if_it_takes_no_time(tmp_path):
    assert per_step_sync(train(tmp_path, fetching(every=1, seconds=0.00005))) is None
