"""Gains against what is computed by hand: for a serial training that is Amdahl's law."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advised import amdahl, at, share, train, with_lines, work
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions import Written, facts_of

from rlprof.analysis.advice.gain import MOST, SIDE_EFFECTS, Left, gain_if
from rlprof.analysis.advice.lines import gain_of, match
from rlprof.analysis.lane_work import Work
from rlprof.analysis.topology import own

MS = 1_000_000
LEFT = Left(0.25, 0.0, 0.5)


def training(folder, iterations=12, env_step=lambda _: 30):
    """Per iteration some ms of env_step, and 10 ms of backward inside 5 ms of a phase's own code."""
    written = Written(folder)
    for number in range(iterations):
        written.fake.profiler.iteration()
        written.work("env_step", int(env_step(number) * MS))
        with written.fake.profile("update"):
            written.fake.tick(5 * MS)
            written.work("backward", 10 * MS)
    return facts_of(written.end())


def beyond(gain):
    """Half of the fraction that is saved is what the rest may gain in addition."""
    return gain * (1 + SIDE_EFFECTS * (1 - 1 / gain))


def ends(gain):
    return gain.estimate, gain.low, gain.high


@pytest.mark.parametrize(
    ("named", "part"), [("env_step", 30), ("backward", 10), ("update", 15), (own("update"), 5)]
)  # fmt: skip
def test_a_serial_training_follows_amdahls_law(tmp_path, named, part):
    gain = gain_if(training(tmp_path), {named: LEFT})
    assert ends(gain) == pytest.approx((amdahl(part / 45, 0.25), amdahl(part / 45, 0.5), beyond(amdahl(part / 45))))


def test_several_operations_save_their_sum(tmp_path):
    gain = gain_if(training(tmp_path), {"env_step": LEFT, "backward": 0.5})
    middle, least, most = (45 / (45 - (30 * (1 - left) + 5)) for left in (0.25, 0.5, 0.0))
    assert ends(gain) == pytest.approx((middle, least, beyond(most)))


def test_iterations_that_differ_widen_the_interval(tmp_path):
    even = gain_if(training(tmp_path / "even"), {"env_step": 0.5})
    uneven = gain_if(training(tmp_path / "uneven", env_step=lambda i: 10 if i % 2 else 50), {"env_step": 0.5})
    assert beyond(even.low) == pytest.approx(even.high)
    assert uneven.low < 0.97 * uneven.estimate
    assert uneven.high > 1.03 * uneven.estimate


@pytest.mark.parametrize("named", ["env_step", own("update")])
def test_without_iterations_the_shares_decide_and_a_tenth_is_open(tmp_path, named):
    whole = training(tmp_path)
    facts = replace(whole, work=Work(4, True, ()))
    part = 30 / 45 if named == "env_step" else 5 / 45
    gain = gain_if(facts, {named: LEFT})
    assert gain.estimate == pytest.approx(amdahl(part, 0.25))
    assert gain.low == pytest.approx(amdahl(0.9 * part, 0.5))
    assert gain.high == pytest.approx(beyond(amdahl(1.1 * part, 0.0)))


def test_an_operation_inside_itself_counts_once(written):
    for _ in range(10):
        with written.fake.profile("search"):
            written.work("search", 10 * MS)
        written.work("backward", 10 * MS)
    assert gain_if(facts_of(written.end()), {"search": 0.5}).estimate == pytest.approx(amdahl(0.5, 0.5))


def test_start_up_has_no_part_in_a_gain(tmp_path):
    """As long as the whole training."""

    def program(profiler):
        work(profiler, "startup", 0.9)
        for _ in range(20):
            profiler.iteration()
            work(profiler, "env_step", 0.03)
            work(profiler, "backward", 0.015)

    facts = train(tmp_path, program)
    assert share(facts, "env_step") == pytest.approx(2 / 3)
    assert gain_if(facts, {"env_step": 0.5}).estimate == pytest.approx(1.5)


@settings(max_examples=100, deadline=None)
@given(least=st.floats(0, 1), middle=st.floats(0, 1), most=st.floats(0, 1), with_iterations=st.booleans())
def test_a_gain_is_never_a_loss_and_within_its_interval(planted_training, least, middle, most, with_iterations):
    facts = planted_training if with_iterations else replace(planted_training, work=Work(4, True, ()))
    gain = gain_if(facts, {"env_step": Left(*sorted((middle, least, most))[1:2], least=least, most=most)})
    assert 1.0 <= gain.low <= gain.estimate <= gain.high <= MOST


@pytest.fixture(scope="module")
def planted_training(tmp_path_factory):
    return training(tmp_path_factory.mktemp("gain"))


def test_a_line_gains_its_part_of_the_own_time_and_samples_are_uncertain(tmp_path):
    """60 % of the 30 ms of env_step, in a training of 0.54 s: ten samples."""
    facts = with_lines(training(tmp_path), {"env_step": [at("env.py:3", "slow()", 0.6), at("env.py:4", "ok()", 0.4)]})
    found = match(facts, r"slow\(")
    gain = gain_of(facts, found, Left(0.5, 0.5, 0.5))
    assert found.share == pytest.approx(18 / 45)
    assert gain.estimate == pytest.approx(amdahl(18 / 45, 0.5))
    assert 1.0 <= gain.low < amdahl(0.8 * 18 / 45, 0.5)
    assert amdahl(1.2 * 18 / 45, 0.5) < gain.high <= beyond(amdahl(30 / 45, 0.5)) * 1.001  # never more than all of it


def test_more_samples_tell_better_how_long_a_line_takes(tmp_path):
    def width(iterations):
        facts = training(tmp_path / str(iterations), iterations)
        facts = with_lines(facts, {"env_step": [at("env.py:3", "slow()", 0.6)]})
        gain = gain_of(facts, match(facts, r"slow\("), Left(0.5, 0.5, 0.5))
        return gain.estimate - gain.low

    assert width(1200) < 0.2 * width(12)
