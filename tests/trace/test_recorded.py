"""A trace that torch records here, against the counts of the training that is recorded."""

from __future__ import annotations

from collections import Counter

from traces import LAYERS, STEPS

from rlprof.trace.analysis.host import Host
from rlprof.trace.analysis.summarize import summarize
from rlprof.trace.kinds import Kind
from rlprof.trace.read import read_trace


def test_a_trace_has_the_steps_phases_and_operators_of_its_training(recorded_trace):
    trace = read_trace(recorded_trace)
    assert len(Host.of(trace).steps) == STEPS
    names = Counter(trace.names(trace.rows(Kind.OPERATOR, Kind.ANNOTATION)))
    assert names["aten::addmm"] == STEPS * LAYERS
    assert names["policy_forward"] == names["update"] == STEPS
    summary = summarize(trace)
    assert summary.devices == ()
    assert {"policy_forward", "update"} <= {phase.name for phase in summary.phases}
