"""A session as OTLP/JSON: an ExportMetricsServiceRequest. For the timeline see otlp_traces.py.

The JSON mapping is OTLP's own: 64-bit numbers are strings, enums are numbers, trace and span ids are hexadecimal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any, BinaryIO

import msgspec

from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED
from rlprof.ledger.histogram import BUCKETS_PER_OCTAVE
from rlprof.ledger.snapshot import Account, Snapshot
from rlprof.session.reader import Session

CUMULATIVE = 2
SCALE = 5
"""2^5 buckets per octave."""

Json = dict[str, Any]


def write_otlp_metrics(session: Session, file: BinaryIO) -> None:
    """Totals as of the last flush; steps per second, CPU and memory over time."""
    snapshot = session.snapshot()
    metrics = (*_totals(session, snapshot), *_gauges(session))
    scoped = {"scope": scope(), "metrics": [metric for metric in metrics if _has_points(metric)]}
    request = {"resourceMetrics": [{"resource": resource(session), "scopeMetrics": [scoped]}]}
    file.write(msgspec.json.encode(request) + b"\n")


def _totals(session: Session, snapshot: Snapshot) -> Iterator[Json]:
    span = {"startTimeUnixNano": str(session.info.started), "timeUnixNano": str(_now(session))}
    accounts = snapshot.accounts
    yield {
        "name": "rlprof.operation.duration",
        "description": "Durations of the calls, including what they called.",
        "unit": "ns",  # in seconds, the buckets would differ from the ledger's
        "exponentialHistogram": {
            "aggregationTemporality": CUMULATIVE,
            "dataPoints": [{**span, **_histogram(account)} for account in accounts if account.calls],
        },
    }
    ledger = {account.operation: (account.category, account.ledger_ns) for account in accounts}
    ledger[UNATTRIBUTED] = (UNATTRIBUTED, snapshot.unattributed_ns)
    ledger[RLPROF] = (RLPROF, snapshot.rlprof_ns)
    overlapped = {account.operation: (account.category, account.overlapped_ns) for account in accounts}
    cpu = {account.operation: (account.category, account.cpu_ns) for account in accounts}
    described = "The driver's wall time that each operation accounts for. The values sum to rlprof.wall_time."
    for name, description, values in (
        ("ledger_time", described, ledger),
        ("overlapped_time", "Work while the driver was busy with something else.", overlapped),
        ("cpu_time", "Thread CPU time of the operation itself.", cpu),
    ):
        points = [
            {**span, "asInt": str(value), "attributes": attributes({"operation": operation, "category": category})}
            for operation, (category, value) in values.items()
            if value is not None
        ]
        yield _sum(f"rlprof.operation.{name}", description, "ns", points)
    for name, description, unit, total in (
        ("wall_time", "Recorded wall time.", "ns", snapshot.wall_ns),
        ("iterations", "Iterations that have ended.", "{iteration}", snapshot.iterations),
        ("steps", "Environment steps, of all environments together.", "{step}", max(0, snapshot.steps)),
        ("episodes", "Episodes that have ended.", "{episode}", max(0, snapshot.episodes)),
    ):
        yield _sum(f"rlprof.{name}", description, unit, [{**span, "asInt": str(total)}])


def _sum(name: str, description: str, unit: str, points: list[Json]) -> Json:
    body = {"aggregationTemporality": CUMULATIVE, "isMonotonic": True, "dataPoints": points}
    return {"name": name, "description": description, "unit": unit, "sum": body}


def _gauge(name: str, description: str, unit: str, points: list[Json]) -> Json:
    return {"name": name, "description": description, "unit": unit, "gauge": {"dataPoints": points}}


def _histogram(account: Account) -> Json:
    counts = dict(account.histogram)
    # The ledger's bucket 0 has calls of 0 or 1 ns: OTLP's zero bucket with a threshold of 1.
    zero = counts.pop(0, 0)
    buckets = {_otlp_bucket(bucket): count for bucket, count in counts.items()}
    first, last = min(buckets, default=0), max(buckets, default=-1)
    return {
        "attributes": attributes({"operation": account.operation, "category": account.category}),
        "count": str(sum(account.histogram.values())),
        "sum": float(account.busy_ns),
        "min": float(account.min_ns),
        "max": float(account.max_ns),
        "scale": SCALE,
        "zeroCount": str(zero),
        "zeroThreshold": 1.0,
        "positive": {
            "offset": first,
            "bucketCounts": [str(buckets.get(bucket, 0)) for bucket in range(first, last + 1)],
        },
    }


def _otlp_bucket(bucket: int) -> int:
    """OTLP's buckets are (lower, upper], the ledger's [lower, upper): a power of two is one bucket lower in OTLP. Up to
    32 ns such a bucket contains nothing else, so it is moved. Above, these few calls stay 2 % too high."""
    octave, rest = divmod(bucket, BUCKETS_PER_OCTAVE)
    return bucket - 1 if rest == 0 and octave <= 5 else bucket


def _gauges(session: Session) -> Iterator[Json]:
    points = [
        {"timeUnixNano": str(unix_time(session, iteration.end)), "asDouble": iteration.steps / iteration.wall_ns * 1e9}
        for iteration in session.iterations()
        if iteration.steps > 0 and iteration.wall_ns
    ]
    yield _gauge("rlprof.steps_per_second", "At the end of each iteration, over that iteration.", "{step}/s", points)
    samples = [(str(unix_time(session, sample.time)), sample) for sample in session.samples()]
    cpu = [{"timeUnixNano": time, "asDouble": sample.cpu / 100} for time, sample in samples if sample.cpu is not None]
    yield _gauge("rlprof.process.cpu", "Cores that the process kept busy.", "{core}", cpu)
    rss = [{"timeUnixNano": time, "asInt": str(sample.rss)} for time, sample in samples if sample.rss is not None]
    yield _gauge("rlprof.process.memory", "Resident memory of the process.", "By", rss)


def _has_points(metric: Json) -> bool:
    return any(isinstance(body, dict) and body["dataPoints"] for body in metric.values())


def unix_time(session: Session, time: int) -> int:
    """Unix time in ns for a time of the ledger's clock."""
    return session.info.started + time - session.info.origin


def _now(session: Session) -> int:
    return session.info.started if session.state is None else unix_time(session, session.state.time)


def scope() -> Json:
    """The instrumentation scope."""
    return {"name": "rlprof", "version": metadata.version("rlprof")}


def resource(session: Session) -> Json:
    """The run as a resource, with OpenTelemetry's attribute names where they exist."""
    info = session.info
    known: dict[str, Any] = {
        "service.name": info.name,
        "service.instance.id": session.folder.name,
        "host.name": info.host,
        "host.cpu.model.name": info.processor,
        "os.description": info.platform,
        "process.pid": info.pid,
        "process.command_args": list(info.command),
        "process.working_directory": info.folder,
        "process.runtime.version": info.python,
    }
    if info.git is not None:
        known["vcs.ref.head.revision"] = info.git.revision
        known["vcs.ref.head.name"] = info.git.branch
    known.update((f"rlprof.package.{name}", version) for name, version in info.packages.items())
    known.update((f"rlprof.setting.{name}", value) for name, value in info.settings.items() if value is not None)
    return {"attributes": attributes(known)}


def attributes(values: Mapping[str, Any]) -> list[Json]:
    """Attributes in OTLP's JSON form."""
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)} if abs(value) < 2**63 else {"stringValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}
