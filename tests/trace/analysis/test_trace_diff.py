"""What differs between traces, and what is noise."""

from __future__ import annotations

import pytest
from planted_trace import Planted
from traces import REAL, SHARED

from rlprof.trace.analysis.diff import ADDED, FASTER, GONE, NOISE, NOT_JUDGED, SHIFTED, SLOWER, T_95, compare
from rlprof.trace.analysis.per_step import steps_of
from rlprof.trace.read import read_trace

US = 1000


def planted(folder, name, steps, forward=100, kernel="gemm", marked=True):
    """Steps of these lengths. In each, a forward pass of so long; the rest is the environment's."""
    made, start = Planted(), 0
    for number, length in enumerate(steps):
        if marked:
            made.annotation(f"ProfilerStep#{number}", start, start + length)
        made.annotation("policy_forward", start, start + forward)
        made.host("aten::linear", start + 10, start + forward - 10)
        made.launch(start + 20, start + 30, start + 40, start + 60, name=kernel)
        made.annotation("env_step", start + forward, start + length)
        start += length
    return steps_of(read_trace(made.write(folder, f"{name}.json")))


def test_the_phase_that_took_longer_is_the_cause(tmp_path):
    before = planted(tmp_path, "a", [1000, 1010, 990])
    after = planted(tmp_path, "b", [2300, 2310, 2290], forward=1400)
    found = compare([before], [after])
    assert (found.step.verdict, found.step.before, found.step.after) == (SLOWER, 1000 * US, 2300 * US)
    assert (found.verdict, found.cause) == (SLOWER, "policy_forward")
    assert found.phases[0].difference == 1300 * US
    assert sum(change.difference for change in found.phases) == pytest.approx(found.step.difference)
    assert [(change.name, change.verdict) for change in found.operators] == [("aten::linear", SLOWER)]
    assert found.unit == "steps"


def test_with_one_run_per_side_a_factor_of_two_or_the_steps_own_spread_is_noise(tmp_path):
    found = compare([planted(tmp_path, "a", [1000, 1000, 1000])], [planted(tmp_path, "b", [1900, 1900, 1900])])
    assert found.step.verdict == NOISE
    assert found.step.noise == pytest.approx(950 * US)
    found = compare([planted(tmp_path, "c", [500, 2500])], [planted(tmp_path, "d", [3100, 3100])])
    assert found.step.verdict == NOISE  # twice as long and more, but the steps of A are that far apart
    assert found.step.noise == pytest.approx(2 * 2000 / 2**0.5 * US)


def test_a_changed_phase_is_named_even_if_the_step_did_not_change(tmp_path):
    before = planted(tmp_path, "a", [1000, 1000], forward=100)
    found = compare([before], [planted(tmp_path, "b", [1100, 1100], forward=400)])
    assert (found.verdict, found.cause) == (SHIFTED, "policy_forward")


def test_several_runs_per_side_show_what_noise_is(tmp_path):
    ttest_ind = pytest.importorskip("scipy.stats").ttest_ind
    one, other = planted(tmp_path, "a1", [1000, 1000]), planted(tmp_path, "a2", [1100, 1100])
    near = [planted(tmp_path, "b1", [820, 820]), planted(tmp_path, "b2", [890, 890])]
    assert ttest_ind([1000, 1100], [820, 890]).pvalue > 0.05
    assert compare([one, other], near).step.verdict == NOISE
    far = [planted(tmp_path, "b3", [600, 600]), planted(tmp_path, "b4", [660, 660])]
    expected = ttest_ind([1000, 1100], [600, 660])
    assert expected.pvalue < 0.05
    found = compare([one, other], far)
    assert (found.unit, found.step.verdict) == ("runs", FASTER)
    low, high = expected.confidence_interval(0.95)
    assert found.step.noise == pytest.approx((high - low) / 2 * US, rel=1e-3)


def test_the_table_of_students_t_is_scipys():
    t = pytest.importorskip("scipy.stats").t
    assert pytest.approx([t.ppf(0.975, freedom) for freedom in range(1, len(T_95) + 1)], abs=6e-4) == list(T_95)


def test_what_is_on_one_side_only_is_added_or_gone(tmp_path):
    before, after = planted(tmp_path, "a", [1000, 1000]), planted(tmp_path, "b", [1000, 1000], kernel="fused")
    changes = {change.name: change for change in compare([before], [after]).kernels}
    assert {name: change.verdict for name, change in changes.items()} == {"gemm": GONE, "fused": ADDED}
    assert (changes["gemm"].calls_before, changes["gemm"].calls_after) == (1, 0)


def test_without_steps_one_trace_per_side_is_not_judged(tmp_path):
    before = planted(tmp_path, "a", [1000], marked=False)
    found = compare([before], [planted(tmp_path, "b", [2000], marked=False)])
    assert found.step.verdict == NOT_JUDGED
    assert not found.marked


def real(name):
    return steps_of(read_trace(SHARED / f"v100_resnet50_{name}.pt.trace.json.gz"))


needs_traces = pytest.mark.skipif(not REAL, reason="no real traces in shared/ beside this clone")


@needs_traces
@pytest.mark.parametrize("runs", [1, 2])
def test_loader_workers_show_as_the_cause(runs):
    before = [real(f"workers0_run{run + 1}") for run in range(runs)]
    after = [real(f"workers4_run{run + 1}") for run in range(runs)]
    found = compare(before, after)
    assert found.cause == "data_loading"
    assert {change.name: change.verdict for change in found.phases}["data_loading"] == FASTER


@needs_traces
@pytest.mark.parametrize("side", ["workers0", "workers4"])
def test_two_runs_of_one_side_are_noise(side):
    found = compare([real(f"{side}_run1")], [real(f"{side}_run2")])
    assert (found.verdict, found.cause) == (NOISE, None)
    assert {change.verdict for change in (*found.phases, *found.idle)} <= {NOISE}
