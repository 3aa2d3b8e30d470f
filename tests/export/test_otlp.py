"""The OTLP requests, parsed with OpenTelemetry's own protocol buffers."""

from __future__ import annotations

import base64
import json
from collections import Counter, defaultdict

import pytest
from timelines import BACKWARD, COLLECT, ITERATION, MS, NASTY, SETTINGS, SPANS, STARTED, STEP, Kept, exported, training

from rlprof.export.otlp import write_otlp_metrics
from rlprof.export.otlp_traces import write_otlp_traces
from rlprof.ledger.histogram import bucket_of
from rlprof.session.reader import Session

json_format = pytest.importorskip("google.protobuf.json_format")
pytest.importorskip("opentelemetry.proto")

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest  # noqa: E402
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest  # noqa: E402

CUMULATIVE = 2


def metrics(session):
    made, _ = exported(session, write_otlp_metrics)
    request = json_format.ParseDict(json.loads(made), ExportMetricsServiceRequest())
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    return resource.resource, {metric.name: metric for metric in scope.metrics}


def traces(session):
    written, remark = exported(session, write_otlp_traces)
    made = json.loads(written)
    for span in made["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for key in ("traceId", "spanId", "parentSpanId"):
            if key in span:  # hexadecimal in OTLP's JSON, base64 in that of protocol buffers
                assert len(span[key]) == (32 if key == "traceId" else 16)
                span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    request = json_format.ParseDict(made, ExportTraceServiceRequest())
    (resource,) = request.resource_spans
    (scope,) = resource.scope_spans
    return list(scope.spans), remark


def attributes(point):
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in point.attributes}


def by_operation(metric):
    body = metric.sum if metric.WhichOneof("data") == "sum" else metric.exponential_histogram
    assert body.aggregation_temporality == CUMULATIVE
    return {attributes(point)["operation"]: point for point in body.data_points}


def durations_of(kept):
    return by_operation(metrics(kept.session())[1]["rlprof.operation.duration"])["env_step"]


def test_the_ledger_sums_to_the_wall_time(tmp_path):
    _, found = metrics(training(tmp_path))
    ledger = {name: point.as_int for name, point in by_operation(found["rlprof.operation.ledger_time"]).items()}
    (wall,) = found["rlprof.wall_time"].sum.data_points
    assert sum(ledger.values()) == wall.as_int == 3 * ITERATION
    assert ledger["backward"] == 3 * BACKWARD
    assert ledger["env_step"] == 3 * STEP
    assert ledger["collect"] == 3 * (COLLECT - STEP)
    assert ledger["unattributed"] == 3 * MS
    assert {ledger[name] for name in NASTY} == {3 * MS}
    assert found["rlprof.operation.ledger_time"].sum.is_monotonic


def test_an_operations_durations_are_an_exponential_histogram(tmp_path):
    _, found = metrics(training(tmp_path))
    assert found["rlprof.operation.duration"].unit == "ns"
    points = by_operation(found["rlprof.operation.duration"])
    assert attributes(points["backward"]) == {"operation": "backward", "category": "learning"}
    point = points["backward"]
    assert (point.count, point.sum, point.min, point.max) == (3, 3 * BACKWARD, BACKWARD, BACKWARD)
    assert point.start_time_unix_nano == STARTED
    assert point.time_unix_nano == STARTED + 3 * ITERATION
    assert points["clip"].zero_count == 3
    assert list(points["clip"].positive.bucket_counts) == []


@pytest.mark.parametrize("moves", [0, 1])
def test_every_duration_lies_in_the_bucket_that_otlp_gives_it(tmp_path, moves):
    durations = [0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 63, 65, 100, 999, 1_000_003, 3_600_000_000_007]
    kept = Kept(tmp_path)
    for duration in durations[moves:]:
        kept.work("env_step", duration)
    point = durations_of(kept)
    assert point.scale == 5
    base = 2 ** (2**-point.scale)
    assert point.count == point.zero_count + sum(point.positive.bucket_counts) == len(durations) - moves
    assert point.zero_count == sum(duration <= point.zero_threshold for duration in durations[moves:])
    for place, count in enumerate(point.positive.bucket_counts):
        index = point.positive.offset + place
        lower, upper = base**index, base ** (index + 1)
        inside = [d for d in durations if d > 1 and lower * (1 + 1e-12) < d <= upper * (1 + 1e-12)]
        assert count == len(inside), (lower, upper)


def test_only_a_power_of_two_above_32_ns_is_a_bucket_too_high(tmp_path):
    kept = Kept(tmp_path)
    kept.work("env_step", 1 << 20)
    point = durations_of(kept)
    assert point.positive.offset == bucket_of(1 << 20) == 20 * 32


def test_counts_and_rates_come_with_their_times(tmp_path):
    _, found = metrics(training(tmp_path))
    for name, total in (("steps", 600), ("episodes", 3), ("iterations", 3)):
        assert [point.as_int for point in found[f"rlprof.{name}"].sum.data_points] == [total]
    rates = {point.time_unix_nano: point.as_double for point in found["rlprof.steps_per_second"].gauge.data_points}
    assert rates == pytest.approx({STARTED + (i + 1) * ITERATION: 100 * (i + 1) / (ITERATION / 1e9) for i in range(3)})
    assert [point.as_int for point in found["rlprof.process.memory"].gauge.data_points] == [10**6, 2 * 10**6, 3 * 10**6]
    assert [point.as_double for point in found["rlprof.process.cpu"].gauge.data_points] == [0.91, 0.92]


def test_the_resource_describes_the_run(tmp_path):
    resource, _ = metrics(training(tmp_path))
    found = attributes(resource)
    assert (found["service.name"], found["process.pid"]) == ('run "<b>"', 1234)
    assert [item.string_value for item in found["process.command_args"].values] == ["python", "train.py", "--seed", "1"]
    settings = {key: value for key, value in found.items() if key.startswith("rlprof.setting.")}
    assert settings == {f"rlprof.setting.{key}": value for key, value in SETTINGS.items() if value is not None}


def test_an_empty_session_has_only_totals(tmp_path):
    _, found = metrics(Kept(tmp_path).session())
    assert "rlprof.operation.duration" not in found
    assert "rlprof.steps_per_second" not in found
    assert found["rlprof.wall_time"].sum.data_points[0].as_int == 0


def test_every_span_is_in_the_trace_of_its_iteration(tmp_path):
    spans, remark = traces(training(tmp_path))
    assert remark is None
    assert len(spans) == SPANS + 3
    assert len({span.span_id for span in spans}) == len(spans)
    names = defaultdict(Counter)
    for span in spans:
        names[span.trace_id][span.name] += 1
    assert len(names) == 3
    for number, trace in enumerate(sorted(names.values(), key=str), 1):
        expected = [*NASTY, "collect", "env_step", "env_reset", "update", "backward", "clip", f"iteration {number}"]
        assert trace == Counter(expected)


def test_a_span_has_its_parent_in_its_own_trace_and_lies_inside_it(tmp_path):
    spans, _ = traces(training(tmp_path))
    by_id = {span.span_id: span for span in spans}
    parents = {span.name: by_id[span.parent_span_id].name for span in spans if span.parent_span_id}
    assert parents["backward"] == parents["clip"] == "update"
    assert parents["env_step"].startswith("iteration ")
    for span in spans:
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        if span.parent_span_id:
            parent = by_id[span.parent_span_id]
            assert parent.trace_id == span.trace_id
            assert parent.start_time_unix_nano <= span.start_time_unix_nano
            assert span.end_time_unix_nano <= parent.end_time_unix_nano
    step = min((span for span in spans if span.name == "env_step"), key=lambda span: span.start_time_unix_nano)
    assert (step.start_time_unix_nano, step.end_time_unix_nano) == (STARTED, STARTED + STEP)
    assert attributes(step) == {"category": "environment", "thread.name": 'env "0" <b>\n'}


def test_a_span_around_all_iterations_does_not_put_them_into_one_trace(tmp_path):
    kept = Kept(tmp_path)
    with kept.profile("training"):
        kept.work("setup", 5)
        for _ in range(2):
            with kept.iteration():
                kept.work("env_step", 10)
            kept.tick(1)
    spans, _ = traces(kept.session())
    traces_of = defaultdict(set)
    for span in spans:
        traces_of[span.name].add(span.trace_id)
    assert len(traces_of["env_step"]) == 2
    assert traces_of["training"] == traces_of["setup"]
    assert traces_of["training"].isdisjoint(traces_of["env_step"])


def test_the_same_session_gets_the_same_ids_again(tmp_path):
    first = exported(training(tmp_path), write_otlp_traces)
    assert exported(Session(tmp_path), write_otlp_traces) == first
