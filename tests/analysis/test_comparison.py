"""Comparisons of pairs with planted times."""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import replace
from statistics import NormalDist

import pytest

from rlprof.analysis.comparison import MeasuredPair, compare
from rlprof.analysis.work import Measured
from rlprof.compare.html import to_html
from rlprof.compare.text import to_json, to_text, verdict, verdict_of


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
    shown = {line.split()[0]: line for line in to_text(found).splitlines() if line[:2] in ("x ", "y ")}
    assert re.search(r"\d% \[[\d.]+, [\d.]+\] +faster +\+3.9%$", shown["x"])  # of 100, 60.7 are left
    assert re.search(r"A?  \[0.0, 0.0\] +~ +\+0.0%$", shown["y"])  # an estimate would be read as a result


def test_typical_iterations_find_what_noise_hides_and_means_find_what_is_rare():
    chance = random.Random(1)
    noisy, rare = [], []
    for _ in range(12):
        one = Measured(1000, 1000, 10, {"x": 100, "y": 900})
        loud = 100 * math.exp(chance.gauss(0, 0.5))
        other = Measured(900 + loud, 1000, 10, {"x": loud, "y": 900})
        noisy.append(MeasuredPair(one, other, typical={"x": 0.05 + chance.gauss(0, 0.005), "y": 0.0}))
        often = Measured(1100, 1000, 10, {"x": 200 * math.exp(chance.gauss(0, 0.02)), "y": 900})
        rare.append(MeasuredPair(one, often, typical={"x": chance.gauss(0, 0.1), "y": 0.0}))
    for pairs, speedup in ((noisy, math.expm1(0.05)), (rare, -0.5)):
        (x,) = (one for one in compare("A", "B", pairs).components if one.name == "x")
        assert x.significant
        assert x.speedup.estimate == pytest.approx(speedup, abs=0.02 if pairs is rare else 0.005)


def test_a_component_of_only_one_arm_is_named():
    pairs = [MeasuredPair(pair.a, replace(pair.b, ledger={"x": 1000.0})) for pair in pairs_of([0.0] * 3)]
    found = {one.name: one for one in compare("A", "B", pairs).components}
    y = found["y"]
    assert (verdict_of(y), y.speedup, y.significant) == ("only A", None, True)


def test_what_is_in_no_component_has_a_line_of_its_own():
    pairs = [
        MeasuredPair(replace(pair.a, wall_ns=1010), replace(pair.b, wall_ns=pair.b.wall_ns + 30))
        for pair in pairs_of([0.5, 0.52, 0.48])
    ]
    found = compare("A", "B", pairs)
    saved = [(pair.a.wall_ns - pair.b.wall_ns) / pair.a.wall_ns for pair in pairs]
    assert sum(component.contribution for component in found.components) == pytest.approx(sum(saved) / 3)
    (rest,) = (component for component in found.components if component.name == "between iterations")
    assert (rest.a_ns, rest.b_ns) == (pytest.approx(1.0), pytest.approx(3.0))
    assert not rest.significant
    (line,) = (line for line in to_text(found).splitlines() if line.startswith("between iterations"))
    assert " ns" not in line


def test_the_page_has_the_verdict_a_line_per_component_and_what_differs():
    found = replace(compare("A <b>", "B", pairs_of([0.5, 0.52, 0.48, 0.51])), changes=("setting x: 1 -> <2>",))
    page = to_html(found)
    assert verdict(found) in page
    assert page.count("<svg") == 4  # the axis, all of it, x and y
    assert page.count("<circle") == 2  # no estimate of y, for which there is no evidence
    assert page.count("+3.9%") == 2  # what x saves is the whole saving
    assert "A &lt;b&gt;" in page
    assert "setting x: 1 -&gt; &lt;2&gt;" in page.partition("What differs between A and B")[2]


def test_a_page_of_very_many_components_says_how_many_are_left():
    (pair, other) = pairs_of([0.1, 0.12])
    ledger = {f"part {number}": 10.0 for number in range(100)}
    found = compare("A", "B", [MeasuredPair(replace(one.a, ledger=ledger), one.b) for one in (pair, other)])
    page = to_html(found)
    assert page.count("<tr") == 1 + 1 + 60 + 1  # headers, all of it, and the rest
    assert f"{len(found.components) - 60} components more" in page


def test_the_json_has_everything_and_the_verdict():
    found = json.loads(to_json(compare("A", "B", pairs_of([0.5, 0.52, 0.48, 0.51]))))
    assert found["verdict"] == "faster"
    assert found["speedup"]["low"] > 0
    assert [one["name"] for one in found["components"]] == ["x", "y"]


def test_the_four_verdicts():
    slower = compare("A", "B", pairs_of([-0.5, -0.52, -0.48]))
    assert slower.verdict == "slower"
    # 1000 to 900 + 100 e^0.5, in steps per second: 1 - 1 / 1.0649; the ends of the interval are as positive.
    figures = re.fullmatch(r"B is slower by ([\d.]+)% \[([\d.]+), ([\d.]+)\]. Only 3 pairs: .*", verdict(slower))
    size, low, high = map(float, figures.groups())
    assert low < size == 6.1 < high
    assert compare("A", "B", pairs_of([0.01, -0.01, 0.0, 0.02])).verdict == "same"
    assert compare("A", "B", pairs_of([0.9, -0.9, 0.5, -0.6])).verdict == "unknown"
    alone = compare("A", "B", pairs_of([0.5]))
    assert alone.verdict == "unknown"
    assert "No verdict: a single pair gives no error rate" in verdict(alone)


def test_a_trend_is_reported():
    pairs = [MeasuredPair(pair.a, pair.b, drift) for pair, drift in zip(pairs_of([0.5] * 4), (0.1, 0.12, 0.09, 0.11))]
    found = compare("A", "B", pairs)
    assert not found.steady
    assert "Not steady" in to_text(found)
    assert compare("A", "B", pairs_of([0.5, 0.5, 0.5])).steady


def with_work(pairs, a, b):
    return [MeasuredPair(replace(pair.a, **a), replace(pair.b, **b)) for pair in pairs]


def learning(steps, updates):
    return with_work(pairs_of([0.0, 0.01, 0.0], steps=steps), *({"updates": number} for number in updates))


def test_iterations_of_another_size_are_compared_per_step_if_they_learn_as_much_per_step():
    found = compare("A", "B", learning((10, 20), (5, 10)))
    assert (found.work, found.sizes) == (None, "10 steps per iteration in A, 20 in B")
    assert found.speedup.estimate == pytest.approx(1.0, abs=0.01)  # the same time for twice the steps
    assert found.verdict == "faster"
    assert "Iterations differ in size: 10 steps per iteration in A, 20 in B." in to_text(found)


@pytest.mark.parametrize("pairs", [pairs_of([0.0, 0.01, 0.0], steps=(3051, 642)), learning((3051, 642), (8, 8))])
def test_steps_that_nothing_else_explains_withhold_the_verdict_until_a_unit_is_chosen(pairs):
    found = compare("A", "B", pairs)
    assert found.verdict == "different work"
    assert found.work.startswith("3,051 steps per iteration in A, 642 in B")
    for shown in (" ".join(to_text(found).split()), to_html(found), json.loads(to_json(found))["sentence"]):
        assert (
            f"No verdict: A and B do different work: {found.work}. Compare per training iteration with --per" in shown
        )
    by_iteration, by_step = (compare("A", "B", pairs, per=unit) for unit in ("iteration", "step"))
    assert (by_iteration.verdict, by_step.verdict) == ("same", "slower")
    assert by_step.speedup.estimate == pytest.approx(642 / 3051 - 1, abs=0.01)
    assert by_iteration.a_ns == pytest.approx(1000)
    assert verdict(by_iteration).startswith("Per training iteration: The same within")
    assert verdict(by_step).startswith("Per environment step: B is slower by")
    for one in (by_iteration, by_step):
        assert verdict(one) in to_html(one)
        assert "3,051 steps per iteration in A, 642 in B" in to_text(one)


def test_iterations_that_end_by_chance_differ_in_size_by_chance():
    sizes = [(16, 22), (25, 19), (18, 24), (21, 23), (24, 20), (17, 19)]  # 20.2 and 21.2 on average
    pairs = [
        MeasuredPair(replace(pair.a, steps=a), replace(pair.b, steps=b))
        for pair, (a, b) in zip(pairs_of([0.5] * 6), sizes)
    ]
    assert compare("A", "B", pairs).work is None
    assert compare("A", "B", [replace(pair, b=replace(pair.b, steps=2 * pair.b.steps)) for pair in pairs]).work


def one_component(logs):
    return [MeasuredPair(Measured(1000, 1, 10, {}), Measured(1000 * math.exp(-log), 1, 10, {})) for log in logs]


def words(found):
    return " ".join(to_text(found).split())


def test_a_comparison_that_could_not_decide_says_what_it_would_take():
    few = words(compare("A", "B", one_component([0.2, -0.2, 0.1])))
    assert "one of them would still win every pair in 25.0% of cases. To detect a difference of 5.0%" in few
    normal = NormalDist(0, 0.1)
    noise = [normal.inv_cdf(place / 9) for place in range(1, 9)]
    (needed,) = re.findall(
        r"To detect a difference of 5.0% in this noise, run about (\d+) pairs",
        words(compare("A", "B", one_component(noise))),
    )
    more = [normal.inv_cdf(place / (int(needed) + 1)) for place in range(1, int(needed) + 1)]
    assert compare("A", "B", one_component(more)).least_seen == pytest.approx(0.05, abs=0.015)


@pytest.mark.parametrize("logs", [[0.05, 0.048, 0.052], [-0.05, -0.048, -0.052, -0.05, -0.05]])
def test_a_verdict_of_few_pairs_says_everywhere_how_often_chance_alone_agrees(logs):
    found = compare("A", "B", one_component(logs))
    assert found.verdict == ("faster" if logs[0] > 0 else "slower")
    chance = {3: "25.0", 5: "6.2"}[len(logs)]
    caution = (
        f"Only {len(logs)} pairs: if A and B were equally fast, one of them would still win every pair in {chance}% of"
        " cases."
    )
    for shown in (words(found), to_html(found), json.loads(to_json(found))["sentence"]):
        assert caution in shown
    assert "Only" not in verdict(compare("A", "B", one_component(2 * logs)))
    same = compare("A", "B", one_component([0.001, -0.001, 0.0]))
    assert verdict(same).endswith("Only 3 pairs: so few can be close together by chance.")


@pytest.mark.parametrize("logs", [[0.9, -0.4], [0.5, 0.5001]])
def test_two_pairs_have_no_interval_anywhere(logs):
    """Student's t of two values would say: between 100% slower and 10,000,000,000% faster."""
    found = compare("A", "B", pairs_of(logs))
    assert (found.speedup.low, found.speedup.high, found.least_seen) == (None, None, None)
    for shown in (words(found), to_html(found), json.loads(to_json(found))["sentence"]):
        assert "No verdict: 2 pairs are too few for an interval. B was faster by" in shown
        assert not re.search(r"\d{4,}%|%\W+\[", shown)
    assert "Run at least 6 pairs" in words(found)
    assert to_html(found).count("<b>no evidence</b>") == 2  # neither by time nor by CPU time


def test_no_evidence_is_an_interval_without_an_estimate():
    found = compare("A", "B", pairs_of([0.9, -0.9, 0.5, -0.6]))
    assert re.fullmatch(
        r"No evidence of a difference: B is between [\d.]+% slower and [\d.]+% faster. "
        r"In this noise, only differences of [\d.]+% or more are detected reliably.",
        verdict(found),
    )
    page = to_html(found)
    assert "<b>no evidence</b>" in page
    assert "<circle" not in page
    estimate = f"{100 * found.speedup.estimate:.1f}%"
    assert f"faster by {estimate}" not in page
    assert f"<b>{estimate}" not in page


def test_what_is_off_the_scale_of_the_plot_ends_with_an_arrow():
    """The axis reaches as far as what is certain: x is not, and varies a thousandfold."""
    a = Measured(1000, 1, 10, {"x": 1.0, "y": 999})
    pairs = [MeasuredPair(a, Measured(900 + x, 1, 10, {"x": x, "y": 800})) for x in (1e-3, 1e3, 1e-3, 1e3)]
    pairs = [replace(pair, b=replace(pair.b, wall_ns=900.0 + place)) for place, pair in enumerate(pairs)]
    page = to_html(compare("A", "B", pairs))
    assert page.count("<polygon") == 2
    assert 'aria-label="B&#x27;s speed relative to A&#x27;s, on a log scale"' in page


def test_arms_that_do_different_work_get_no_verdict():
    """B is twice as fast, and does half of the optimizer steps."""
    found = compare("A", "B", with_work(pairs_of([0.5, 0.51, 0.52]), {"updates": 8}, {"updates": 4}))
    assert found.speedup.low > 0
    assert found.work == "800 optimizer steps per 1,000 environment steps in A, 400 in B"
    assert found.verdict == json.loads(to_json(found))["verdict"] == "different work"
    for shown in (to_text(found), to_html(found)):
        assert f"No verdict: A and B do different work: {found.work}." in " ".join(shown.split())
        assert "faster by" not in shown
        assert "slower" not in shown
        assert "saved" not in shown.lower()
    counted_by_iteration = with_work(pairs_of([0.5, 0.51]), {"steps": 0, "updates": 8}, {"steps": 0, "updates": 4})
    assert compare("A", "B", counted_by_iteration).work == "8 optimizer steps per iteration in A, 4 in B"


@pytest.mark.parametrize(
    ("episodes", "iterations", "differ"),
    [
        pytest.param((1, 1.1), 1000, False, id="a few per cent"),
        pytest.param((1, 0.5), 100, True, id="half of very many"),
        pytest.param((1, 0.5), 4, False, id="by chance: 12 and 6"),
        pytest.param((0.25, 0), 4, False, id="by chance: 3 and none"),
        pytest.param((0.25, 0), 100, True, id="75 and none"),
    ],
)
def test_resets_are_work_too_if_they_differ_by_more_than_chance(episodes, iterations, differ):
    a, b = ({"episodes": number, "iterations": iterations} for number in episodes)
    found = compare("A", "B", with_work(pairs_of([0.5, 0.51, 0.52]), a, b))
    assert found.verdict == ("different work" if differ else "faster")
    if differ:
        of_a, of_b = (f"{100 * number:.3g}" for number in episodes)
        assert found.work == f"{of_a} episodes per 1,000 environment steps in A, {of_b} in B"


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
