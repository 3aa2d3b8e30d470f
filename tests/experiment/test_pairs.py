"""Two processes that take turns, with planted times."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from statistics import NormalDist

import psutil
import pytest

from rlprof.analysis.comparison import Measured, MeasuredPair, compare
from rlprof.analysis.components import component_of
from rlprof.errors import RlprofError
from rlprof.experiment.arm import Arm, ArmError, words_of
from rlprof.experiment.pairs import measured, run_pair
from rlprof.report.comparison import to_json, to_text, verdict
from rlprof.report.html.comparison import to_html

TRAINING = """
import sys, time
from rlprof import get_profiler, profile
step, turns = float(sys.argv[1]), int(sys.argv[2])
profiler = get_profiler()
for turn in range(turns):
    profiler.iteration()
    with profile("env_step"):
        time.sleep(step)
    with profile("update"):
        time.sleep(0.01)
    profiler.add_steps(0 if "--no-steps" in sys.argv else 10)
print("the last words", file=sys.stderr)
sys.exit(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
"""


@pytest.fixture
def training(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(TRAINING)
    return path


def test_a_planted_difference_is_found_where_it_is(training):
    commands = (f"run {training} 0.04 1000", f"rlprof run {training} 0.02 1000")
    heard = []
    pair = run_pair(commands, 5, random.Random(1), warm_up=1, tell=heard.append)
    assert heard == [0, 1, 2, 3, 4, 5]
    assert len(pair.blocks) == 5
    assert pair.changes == ()  # but for what is in the command lines
    found = measured(pair, component_of({}))
    a, b = found.a, found.b
    assert a.steps == b.steps == 10
    assert a.ledger["env_step"] > 0.04e9  # a sleep is at least as long as it is told to be
    assert b.ledger["env_step"] > 0.02e9
    assert a.ledger["env_step"] > 1.2 * b.ledger["env_step"]
    assert a.wall_ns > b.wall_ns
    assert "turn_wait" not in a.ledger
    assert sum(a.ledger.values()) == pytest.approx(a.wall_ns, rel=0.05)
    assert not [child for child in psutil.Process().children(recursive=True) if "train.py" in " ".join(child.cmdline())]


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        ("0.001 0 0", "B .* has ended without an iteration.*\n.*the last words"),
        ("0.001 3 7", "B .* failed with exit code 7.*\n.*the last words"),
        (
            "0.001 2 0",
            "B .* has ended after 2 of 8 iterations that a pair needs; let it train longer\n.*the last words",
        ),
        ("0.001 7 0", "B .* has ended after 7 of 8 iterations .*, or ask for fewer: --iterations 2\n"),
        ("0.001 1000 0 --no-steps", "A .* counts environment steps, B .* none"),
    ],
)
def test_an_arm_that_cannot_be_compared_is_named_with_its_last_words(training, arm, said):
    with pytest.raises(ArmError, match=f"(?s){said}"):
        run_pair((f"run {training} 0.001 1000", f"run {training} {arm}"), 3, random.Random(1), warm_up=4)


def test_an_arm_that_dies_while_it_waits_is_named(training, tmp_path):
    with Arm("A", f"run {training} 0.001 1000", tmp_path) as arm:
        arm.begin()
        arm._process.kill()
        arm._process.wait()
        with pytest.raises(ArmError, match=r"A .* was ended by signal 9"):
            arm.take_turn()


def test_what_is_no_arm_is_refused():
    with pytest.raises(RlprofError, match="begins with run or train"):
        words_of("report last")
    with pytest.raises(RlprofError, match="is no command line"):
        words_of("run 'train.py")


def pairs_of(logs, noise=0.0, steps=(10, 10), seed=1):
    chance = random.Random(seed)
    made = []
    for log in logs:
        b = 100.0 * math.exp(-log + chance.gauss(0, noise))
        one = Measured(1000, 1000, steps[0], {"x": 100, "y": 900})
        made.append(MeasuredPair(one, Measured(900 + b, 900 + b, steps[1], {"x": b, "y": 900})))
    return made


def test_contributions_sum_to_the_whole_saving():
    found = compare("A", "B", pairs_of([0.5, 0.52, 0.48, 0.51]))
    saved = sum(component.contribution for component in found.components)
    assert saved == pytest.approx((found.a_ns - found.b_ns) / found.a_ns, rel=1e-6)
    assert found.verdict == "faster"
    x, y = found.components
    assert (x.name, x.significant, y.name, y.significant) == ("x", True, "y", False)
    assert "B is faster by" in verdict(found)
    assert "~" in to_text(found)


def test_what_is_in_no_component_has_a_line_of_its_own():
    pairs = [
        MeasuredPair(replace(pair.a, wall_ns=1010), replace(pair.b, wall_ns=pair.b.wall_ns + 30))
        for pair in pairs_of([0.5, 0.52, 0.48])
    ]
    found = compare("A", "B", pairs)
    assert sum(component.contribution for component in found.components) == pytest.approx(
        sum((pair.a.wall_ns - pair.b.wall_ns) / pair.a.wall_ns for pair in pairs) / 3
    )
    (rest,) = (component for component in found.components if component.name == "taking turns")
    assert (rest.a_ns, rest.b_ns) == (pytest.approx(1.0), pytest.approx(3.0))
    assert not rest.significant
    (line,) = (line for line in to_text(found).splitlines() if line.startswith("taking turns"))
    assert " ns" not in line


def test_the_page_has_the_verdict_a_line_a_component_and_what_differs():
    found = replace(compare("A <b>", "B", pairs_of([0.5, 0.52, 0.48, 0.51])), changes=("setting x: 1 -> <2>",))
    page = to_html(found)
    assert verdict(found) in page
    assert page.count("<svg") == 2  # all of it, and x; y contributes nothing
    assert "A &lt;b&gt;" in page
    assert "setting x: 1 -&gt; &lt;2&gt;" in page


def test_the_json_has_everything_and_the_verdict():
    told = json.loads(to_json(compare("A", "B", pairs_of([0.5, 0.52, 0.48, 0.51]))))
    assert told["verdict"] == "faster"
    assert told["speedup"]["low"] > 0
    assert [one["name"] for one in told["components"]] == ["x", "y"]


def test_the_four_verdicts():
    assert compare("A", "B", pairs_of([-0.5, -0.52, -0.48])).verdict == "slower"
    assert compare("A", "B", pairs_of([0.01, -0.01, 0.0, 0.02])).verdict == "same"
    assert compare("A", "B", pairs_of([0.9, -0.9, 0.5, -0.6])).verdict == "unknown"
    alone = compare("A", "B", pairs_of([0.5]))
    assert alone.verdict == "unknown"
    assert "No error rate can be given from one pair" in verdict(alone)


def test_a_trend_is_said():
    pairs = [MeasuredPair(pair.a, pair.b, drift) for pair, drift in zip(pairs_of([0.5] * 4), (0.1, 0.12, 0.09, 0.11))]
    found = compare("A", "B", pairs)
    assert not found.steady
    assert "Not steady" in to_text(found)
    assert compare("A", "B", pairs_of([0.5, 0.5, 0.5])).steady


def test_more_steps_an_iteration_is_other_work_and_is_said():
    found = compare("A", "B", pairs_of([0.0, 0.0, 0.0], steps=(10, 20)))
    assert found.work == "10 steps an iteration in A, 20 in B"
    assert found.speedup.estimate == pytest.approx(1.0)  # the same time for twice the steps
    assert "The workload differs" in to_text(found)


def test_equal_arms_are_called_different_in_one_case_of_twenty():
    """By the interval, over planted pairs: the rate is known to its own chance of error."""
    chance = random.Random(1)
    trials, wrong = 600, 0
    for _ in range(trials):
        pairs = []
        for _ in range(6):
            a, b = (1000 * math.exp(chance.gauss(0, 0.05)) for _ in range(2))
            pairs.append(MeasuredPair(Measured(a, a, 10, {}), Measured(b, b, 10, {})))
        wrong += compare("A", "B", pairs).verdict in ("faster", "slower")
    tolerance = NormalDist().inv_cdf(0.9999) * math.sqrt(0.05 * 0.95 / trials)
    assert abs(wrong / trials - 0.05) < tolerance
