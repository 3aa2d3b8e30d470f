"""Checks of the session, report, analysis and charts of the simulated training."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rlprof.analysis.load import load_facts
from rlprof.analysis.report import Report, build_report
from rlprof.doctor.selftest.simulation import ENV_STEPS, MEMORY, STEPS, Truth
from rlprof.ledger.profiler import Profiler
from rlprof.report.analyzer import to_text as analysis_text
from rlprof.report.files import RAW, SUMMARY
from rlprof.report.formats import renderer
from rlprof.session.reader import Session

TOLERANCE = 0.02
"""Fraction of a planted time. Two clocks are read microseconds apart; a busy machine adds the rest."""
ABSOLUTE_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    passed: bool | None
    """None if the check is not possible here."""
    detail: str


class WrongError(Exception):
    """A failed check: what was found and what was expected."""


def run_checks(folder: Path | None, truth: Truth) -> Iterator[Check]:
    """Run every check, even after failures. Without a session, only report why."""
    yield _attempt("the C core", _core)
    if folder is None:
        yield Check("a session is written", False, "no session was written; see the warning above")
        return
    yield _attempt("a session is written", lambda: _written(folder))
    try:
        with Session(folder) as session:
            report = build_report(session)
            events = sum(len(block) // 24 for block in session.timeline())
    except Exception as error:
        yield Check("the session can be read", False, f"{type(error).__name__}: {error}")
        return
    yield Check("the session can be read", True, str(folder))
    yield _attempt("the accounts sum to the wall time", lambda: _sums(report))
    yield _attempt("times are those planted", lambda: _times(report, truth))
    yield _attempt("calls are those made", lambda: _calls(report, truth, events))
    yield _attempt("steps, episodes and iterations are counted", lambda: _counts(report))
    yield _attempt("memory is what was touched", lambda: _memory(report))
    yield _attempt("the analysis finds what was planted", lambda: _analysis(report, truth))
    yield _attempt("the system was sampled", lambda: _samples(report))
    for format_ in ("text", "markdown", "csv", "html"):
        yield _attempt(f"report as {format_}", lambda name=format_: _shows_names(renderer(name)(report)))  # type: ignore[misc]
    yield _attempt("report as json, read back", lambda: _round_trip(report))
    yield _with_library("charts", "matplotlib", lambda: _charts(report))


def _attempt(name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, True, check())
    except WrongError as wrong:
        return Check(name, False, str(wrong))
    except Exception as error:  # a check that breaks has failed, too
        return Check(name, False, f"{type(error).__name__}: {error}")


def _with_library(name: str, library: str, check: Callable[[], str]) -> Check:
    if importlib.util.find_spec(library) is None:
        return Check(name, None, f"{library} is not installed; install it with pip install 'rlprof[report]'")
    return _attempt(name, check)


def _core() -> str:
    if Profiler().core != "c":
        raise WrongError(
            "not built, so rlprof runs on its Python twin at about 100 times the cost per span; install a C compiler"
        )
    return "built"


def _written(folder: Path) -> str:
    missing = [name for name in ("session.db", RAW, SUMMARY) if not (folder / name).exists()]
    if missing:
        raise WrongError(f"{', '.join(missing)} missing in {folder}")
    return f"session.db, {RAW}, {SUMMARY}"


def _sums(report: Report) -> str:
    report.facts.check()
    return f"{report.facts.breakdown.wall_ns:,} ns"


def _times(report: Report, truth: Truth) -> str:
    worst = 0.0
    for operation, seconds in truth.seconds.items():
        found = report.facts.operation(operation)
        recorded = found.busy_ns / 1e9 if found else 0.0
        if abs(recorded - seconds) > ABSOLUTE_SECONDS + TOLERANCE * seconds:
            raise WrongError(f"{operation}: {recorded:.4f} s recorded, {seconds:.4f} s planted")
        worst = max(worst, abs(recorded / seconds - 1))
    return f"the worst is off by {100 * worst:.2f} %"


def _calls(report: Report, truth: Truth, events: int) -> str:
    for operation, calls in truth.calls.items():
        found = report.facts.operation(operation)
        if found is None or found.calls != calls:
            raise WrongError(f"{operation}: {found.calls if found else 0} calls recorded, {calls} made")
    if events != sum(truth.calls.values()):
        raise WrongError(f"{events} spans on the timeline, {sum(truth.calls.values())} made")
    return f"{events} spans"


def _counts(report: Report) -> str:
    progress = report.facts.progress
    found = (progress.iterations, progress.steps, progress.episodes)
    planted = (STEPS, STEPS * ENV_STEPS, STEPS)
    if found != planted:
        raise WrongError(f"{found} recorded, {planted} planted")
    if sum(report.facts.series.steps) != STEPS * ENV_STEPS:
        raise WrongError("the series and the total have different numbers of steps")
    return f"{STEPS} iterations of {ENV_STEPS} steps"


def _memory(report: Report) -> str:
    found = report.facts.operation("simulated_model_update")
    rise = found.memory_rise if found else None
    if rise is None or not 0.9 * MEMORY < rise < 1.5 * MEMORY:
        raise WrongError(f"{rise} bytes recorded, {MEMORY} touched")
    return f"{rise >> 20} MB, {MEMORY >> 20} MB touched"


def _analysis(report: Report, truth: Truth) -> str:
    found = {(item.severity, item.operation) for item in report.findings.recommendations}
    # Collection, unless the machine took very long to provide the memory of the update.
    longest = max(("simulated_data_collection", "simulated_model_update"), key=truth.seconds.__getitem__)
    for planted in (("CRITICAL", longest), ("MEMORY", "simulated_model_update")):
        if planted not in found:
            raise WrongError(f"no {planted[0]} for {planted[1]}")
    if longest not in analysis_text(report):
        raise WrongError(f"the analysis does not name {longest}")
    return f"{len(found)} recommendations"


def _samples(report: Report) -> str:
    used = report.facts.resources
    if not used.samples.time_ns or not used.rss_peak:
        raise WrongError("no sample of CPU and memory")
    return f"{len(used.samples.time_ns)} samples, at {used.sampling_share or 0:.2f} % of one core"


def _shows_names(text: str) -> str:
    if "simulated_data_collection" not in text:
        raise WrongError("simulated_data_collection is missing in it")
    return f"{len(text):,} characters"


def _round_trip(report: Report) -> str:
    text = renderer("json")(report)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        path.write_text(text, encoding="utf-8")
        if load_facts(path) != report.facts:
            raise WrongError("the facts that were read back differ from those written")
    return f"{len(text):,} characters"


def _charts(report: Report) -> str:
    from rlprof.report.charts import to_picture  # noqa: PLC0415 - half a second

    picture = to_picture(report)
    if not picture.startswith(b"\x89PNG"):
        raise WrongError("not a PNG")
    return f"{len(picture):,} bytes"
