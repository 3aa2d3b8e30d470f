"""The list of findings: ranked by gain, one per line, and empty for a healthy training."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advised import at, on_cores, train, with_lines, work
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions import Written, facts_of, sample

from rlprof.analysis.advice import LEAST_GAIN, advise
from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding, Gain
from rlprof.analysis.advice.lines import hot_lines, match, place_of
from rlprof.ledger.catalogue import PHASES

MS = 1_000_000


@pytest.fixture(scope="module")
def troubled(tmp_path_factory):
    """Per iteration: 20 ms of evaluation, 40 of logging, 20 of checkpoints, 20 of loss."""
    written = Written(tmp_path_factory.mktemp("troubled"))
    for _ in range(20):
        with written.fake.profiler.iteration():
            written.work("evaluation", 20 * MS)
            written.work("logging", 40 * MS)
            written.work("checkpoint", 20 * MS)
            with written.fake.profile("update"):
                written.work("loss", 20 * MS)
    return facts_of(written.end())


def test_the_largest_gain_comes_first(troubled):
    found = advise(troubled)
    assert {finding.rule for finding in found} >= {"logging_in_loop", "evaluation_too_often", "checkpoint_too_often"}
    gains = [finding.gain.estimate for finding in found]
    assert gains == sorted(gains, reverse=True)
    assert found[0].operations == ("logging",)


@pytest.mark.parametrize(
    ("growth", "order"),
    [(1, ["logging_in_loop", "memory_growth"]), (20, ["memory_growth", "logging_in_loop"])],
    ids=["memory for hours", "memory for minutes"],
)
def test_findings_that_are_not_about_speed_come_last_unless_the_run_will_be_killed(tmp_path, growth, order):
    written = Written(tmp_path)
    for second in range(1, 61):
        with written.fake.profiler.iteration():
            written.work("loss", 500 * MS)
            written.work("logging", 500 * MS)
        rss, left = (500 + growth * second) << 20, 10 << 30
        written.samples.append(sample(second * 1_000 * MS, rss=rss, machine_available=left))
    found = advise(facts_of(written.end()))
    assert [finding.rule for finding in found] == order


def test_one_line_has_one_finding(troubled):
    """The line logs: the operation says so, and so does its text."""
    facts = with_lines(troubled, {"logging": [at("train.py:5", "print(reward)", 1.0)]})
    found = [finding for finding in advise(facts) if finding.place is not None]
    assert [finding.place.where for finding in found] == ["train.py:5"]


def test_a_rule_that_speaks_of_an_operation_and_of_its_lines_speaks_once(troubled):
    """The hottest line writes, and is not the line that calls the operation."""
    facts = with_lines(troubled, {"logging": [at("log.py:7", "self.file.write(row)", 0.9, "write")]})
    found = [finding for finding in advise(facts) if finding.rule == "logging_in_loop"]
    assert len(found) == 1


def test_a_line_that_is_known_to_be_slow_says_more_than_the_operation_that_becomes_slower(tmp_path):
    written = Written(tmp_path)
    for number in range(60):
        with written.fake.profiler.iteration():
            written.work("replay_sample", (10 + number) * MS)
            written.work("loss", 20 * MS)
    line = at("train.py:5", "return np.stack(self.rows)[indices]", 1.0)
    facts = facts_of(written.end())
    assert [finding.rule for finding in advise(facts)] == ["slowing_down"]
    assert [finding.rule for finding in advise(with_lines(facts, {"replay_sample": [line]}))] == ["restacking"]


def test_lines_stand_for_the_operation_that_they_are_in(troubled):
    """They promise a little less than the operation of the same rule, and say more."""
    (found,) = (one for one in advise(troubled) if one.rule == "logging_in_loop")
    assert found.place is None
    facts = with_lines(troubled, {"logging": [at("train.py:5", "print(reward)", 0.7), at("train.py:9", "f(x)", 0.3)]})
    (found,) = (one for one in advise(facts) if one.rule == "logging_in_loop")
    assert found.place.where == "train.py:5"


def finding(rule, gain, place, names_it=False):
    line = at(place, "x", 1.0, "act")
    return Finding(rule, place if names_it else "Slow.", line, ("loss",), ("1.",), "Change.", Gain(gain, 1.0, 9.0), "c")


def only(monkeypatch, *findings):
    """As if the rules had found these."""
    monkeypatch.setattr("rlprof.analysis.advice.RULES", [lambda _, one=one: one for one in findings])
    monkeypatch.setattr("rlprof.analysis.advice.FAMILIES", ())
    monkeypatch.setattr("rlprof.analysis.advice.GENERAL", ())


def test_more_environments_come_after_mistakes_in_the_code(monkeypatch, troubled):
    more = finding("tiny_batch_inference", 3.0, "train.py:1")
    mistake = finding("copying", 1.2, "train.py:2", names_it=True)
    only(monkeypatch, more, mistake)
    assert advise(troubled) == (mistake, more)


def test_lines_beside_a_policy_that_is_called_one_by_one_are_part_of_it(monkeypatch, troubled):
    one_by_one = finding("policy_per_env", 2.0, "train.py:1")
    inside = finding("item_in_loop", 1.2, "train.py:2", names_it=True)
    only(monkeypatch, one_by_one, inside)
    assert advise(troubled) == (one_by_one,)


@pytest.mark.parametrize(("iterations", "option"), [(12, " --iterations 6"), (29, " --iterations 14"), (30, "")])
def test_the_check_of_a_short_training_asks_for_fewer_iterations(troubled, iterations, option):
    short = replace(troubled, progress=replace(troubled.progress, iterations=iterations))
    check = compare_with_change(short)
    assert check == f"rlprof compare 'run train.py --seed 1' 'run train_changed.py --seed 1'{option}"


def test_small_gains_are_left_out(troubled):
    assert all(finding.gain is None or finding.gain.estimate >= LEAST_GAIN for finding in advise(troubled))


def test_no_finding_is_about_a_phase(troubled):
    facts = with_lines(troubled, {"loss": [at("train.py:5", "loss_fn(x).item()", 1.0)]})
    assert not any(PHASES & set(finding.operations) for finding in advise(facts))


def healthy(profiler):
    """Short resets now and then, a policy for all environments at once, little logging, most time in learning."""
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


@pytest.mark.parametrize("lines", [False, True])
def test_a_healthy_training_gets_no_finding(tmp_path, lines):
    facts = on_cores(train(tmp_path, healthy), 4)
    if lines:
        hot = {"backward": [at("train.py:80", "loss.backward()", 1.0)], "env_step": [at("e.py:3", "env.step(a)", 1.0)]}
        facts = with_lines(facts, hot)
    assert advise(facts) == ()


def test_a_healthy_training_after_a_long_start_gets_none_either(tmp_path):
    def program(profiler):
        work(profiler, "startup", 1.0)
        healthy(profiler)

    assert advise(on_cores(train(tmp_path, program), 4)) == ()


SOURCES = st.sampled_from(["a()", "b()", "c()"])


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_hot_lines_have_the_time_of_all_operations(troubled, data):
    """Whatever the samples are: no line has more than the training time, and the hottest comes first."""
    lines = {}
    for operation in ("logging", "loss", "checkpoint"):
        numbers = data.draw(st.lists(st.integers(1, 5), max_size=4, unique=True))
        shares = [data.draw(st.floats(0, 1 / max(1, len(numbers)))) for _ in numbers]
        lines[operation] = [at(f"t.py:{n}", data.draw(SOURCES), part) for n, part in zip(numbers, shares)]
    facts = with_lines(troubled, lines)
    found = hot_lines(facts)
    times = [hot.line.ns for hot in found]
    assert times == sorted(times, reverse=True)
    assert sum(times) == pytest.approx(sum(line.ns for some in facts.code.lines.values() for line in some))
    assert sum(hot.line.share for hot in found) <= 1.001
    matched = match(facts, r"a\(")
    assert matched is None or all("a(" in hot.line.source for hot in matched.lines)


def test_a_place_is_the_line_that_takes_longest_in_the_operation(troubled):
    shared = at("t.py:1", "a()", 0.4)
    facts = with_lines(troubled, {"logging": [shared], "loss": [shared, at("t.py:2", "b()", 0.6)]})
    assert place_of(facts, "loss").where == "t.py:2"
    assert place_of(facts, "logging").where == "t.py:1"
    assert place_of(facts, "checkpoint") is None


def test_a_slowdown_that_lines_explain_is_no_finding_of_its_own(tmp_path):
    written = Written(tmp_path)
    for number in range(60):
        with written.fake.profiler.iteration():
            written.work("env_step", (10 + number) * MS)
            written.work("loss", 10 * MS)
    line = at("train.py:5", "mean = np.mean(self.rewards)", 0.9, "Env.step")
    found = advise(with_lines(facts_of(written.end()), {"env_step": [line, at("env.py:9", "self.sim.run()", 0.1)]}))
    assert [finding.rule for finding in found if finding.rule in ("growing_container", "slowing_down")] == [
        "growing_container"
    ]
