"""GPU busy and idle time, against HolisticTraceAnalysis: `pip install 'rlprof[hta]'` brings it, and half of Jupyter.

HTA counts other events than rlprof, and the same time for the same events. What it counts is everything that has a
stream, so also what a stream waits for (`cuda_sync`) and operators that name one; and in traces with several steps only
what was launched by a call that is in the trace. In the others both are the same.
"""

from __future__ import annotations

import logging

import numpy as np
import pytest
from traces import real_traces

from rlprof.trace.analysis.devices import devices_of
from rlprof.trace.analysis.host import Host
from rlprof.trace.analysis.intervals import Intervals
from rlprof.trace.analysis.launches import launches_of
from rlprof.trace.kinds import Kind
from rlprof.trace.read import read_trace

trace_analysis = pytest.importorskip("hta.trace_analysis", reason="HolisticTraceAnalysis is not installed")


def counted_by_hta(trace):
    stream = trace.arg("stream")
    rows = stream.rows[stream.values >= 0].astype(np.int64)
    rows = rows[trace.kind[rows] != Kind.UNUSED]
    if len(Host.of(trace).steps) > 1:
        rows = rows[launches_of(trace, rows) >= 0]
    return rows


@pytest.mark.filterwarnings("ignore")
@real_traces()
def test_busy_and_idle_agree(path):
    trace = read_trace(path)
    devices = devices_of(trace)
    logging.disable(logging.CRITICAL)
    try:
        other = trace_analysis.TraceAnalysis(
            trace_files={0: str(path)}, trace_dir=str(path.parent), include_last_profiler_step=True
        )
        (found,) = other.get_temporal_breakdown(visualize=False).to_dict("records")
    except IndexError:
        assert devices == []
        pytest.skip("HTA cannot read a trace without kernels")
    finally:
        logging.disable(logging.NOTSET)
    (device,) = devices
    rows = counted_by_hta(trace)
    busy = Intervals.of(trace.start[rows], trace.end[rows])
    window = (busy.end[-1] - busy.start[0]) / 1000
    # HTA cuts the start and the length of every event to whole microseconds.
    rounding = 1 if (trace.duration[rows] % 1000 == 0).all() else 2 * len(rows)
    assert window == pytest.approx(found["kernel_time(us)"], abs=min(2, rounding))
    assert busy.total / 1000 == pytest.approx(found["compute_time(us)"] + found["non_compute_time(us)"], abs=rounding)
    assert window - busy.total / 1000 == pytest.approx(found["idle_time(us)"], abs=rounding)
    if np.array_equal(np.sort(rows), np.sort(device.rows)):
        assert device.busy.total == busy.total
