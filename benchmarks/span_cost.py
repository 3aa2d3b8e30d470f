"""Measure what one empty span costs, in units of two `perf_counter_ns()` calls (a pair).

Every variant runs once per round, in random order, as a batch of a few milliseconds of thread CPU time. The time of
the empty loop in the same round is subtracted, and the rest is divided by the time of a pair in the same round. The
figure is the median of these ratios over all rounds, with their interquartile range. So neither a slow machine nor one
whose speed drifts during the run changes the figures much.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import repeat
from statistics import median, quantiles
from time import perf_counter_ns, thread_time_ns
from typing import Any

import torch
from _common import Bar, Options, conclude, describe_machine, progress, tsc_refusal
from opentelemetry.sdk.trace import TracerProvider
from rich.table import Table
from torch._C._profiler import _RecordFunctionFast
from torch.profiler import ProfilerActivity, record_function
from torchrl import timeit
from viztracer import VizTracer

from rlprof import Profiler

BARS = (
    Bar("with_profile", "<=", 0.75),
    Bar("with_profile_tsc", "<=", 0.50),
    Bar("all_features", "<=", 0.85),
    Bar("disabled", "<=", 0.40),
    Bar("decorator", "<=", 0.55),
    Bar("record_function_off_over_with_profile", ">=", 80),
)
LOOP, PAIR, CALL = "empty_loop", "pair", "empty_call"
TIMELINE = 65536

# The timed code reads its names as globals, as user code does. The iterator creates no integers.
TEMPLATE = """
def loop(count):
    begin = thread_time_ns()
    for _ in repeat(None, count):
        {body}
    return thread_time_ns() - begin
"""

Loop = Callable[[int], int]


@dataclass
class Variant:
    """One way to time nothing."""

    key: str
    label: str
    body: str
    names: dict[str, Any]
    base: str = LOOP
    """The variant whose cost is subtracted from this one."""
    spans: int = 1
    """Spans per repetition of the loop."""
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    """A context that is entered for each batch, outside of the timed code."""
    wrap: Callable[[Loop], Loop] = field(default=lambda loop: loop)
    """Makes the loop run elsewhere, such as in another thread."""
    loop: Loop = field(init=False)
    repetitions: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        names = {"repeat": repeat, "thread_time_ns": thread_time_ns, **self.names}
        exec(TEMPLATE.format(body=self.body), names)
        self.loop = self.wrap(names["loop"])

    def choose_repetitions(self, batch_ns: float) -> None:
        """Warm up, and find how many repetitions fill a batch."""
        self._run(100)  # the first calls of a library may take milliseconds to set it up
        repetitions = 8
        while self._run(repetitions) < batch_ns / 2:
            repetitions *= 2
        fastest = min(self._run(repetitions) for _ in range(3))
        self.repetitions = max(8, round(repetitions * batch_ns / fastest))

    def batch(self) -> float:
        """The ns per repetition, including the loop."""
        return self._run(self.repetitions) / self.repetitions

    def _run(self, repetitions: int) -> int:
        with self.around():
            gc.disable()
            try:
                return self.loop(repetitions)
            finally:
                gc.enable()


class Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


@contextmanager
def nothing() -> Iterator[None]:
    yield


def empty() -> None:
    pass


def recording(clock: str = "auto", cpu: str = "auto", core: str = "c", timeline: int | None = None) -> Profiler:
    profiler = Profiler(core=core, clock=clock, cpu=cpu)
    profiler.enable(timeline=timeline)
    return profiler


def with_span(key: str, label: str, profiler: Profiler, **options: Any) -> Variant:
    return Variant(key, label, 'with profile("n"): pass', {"profile": profiler.profile}, **options)


def decorated(key: str, label: str, profiler: Profiler) -> Variant:
    return Variant(key, label, "empty()", {"empty": profiler.profile_function("n")(empty)}, base=CALL)


def on(pool: ThreadPoolExecutor) -> Callable[[Loop], Loop]:
    return lambda loop: lambda count: pool.submit(loop, count).result()


def base_variants() -> list[Variant]:
    return [
        Variant(LOOP, "empty loop", "pass", {}),
        Variant(PAIR, "perf_counter_ns() twice", "now(); now()", {"now": perf_counter_ns}),
        Variant(CALL, "empty Python call", "empty()", {"empty": empty}),
    ]  # fmt: skip


def rlprof_variants(pool: ThreadPoolExecutor) -> list[Variant]:
    names = [f'with profile("operation_{i}"): pass' for i in range(100)]
    variants = [
        with_span("with_profile", "with profile(), monotonic, no CPU time", recording("monotonic", "off")),
        with_span("all_features", f"default clock, CPU time, timeline of {TIMELINE:,}", recording(timeline=TIMELINE)),
        with_span("all_features_monotonic", "the same, monotonic", recording("monotonic", timeline=TIMELINE)),
        with_span("disabled", "disabled", Profiler(core="c")),
        decorated("decorator", "@profile_function, added to the call", recording()),
        decorated("decorator_monotonic", "the same, monotonic", recording("monotonic")),
        decorated("decorator_disabled", "the same, disabled", Profiler(core="c")),
        Variant(
            "hundred_names", "100 names one after the other, default clock", "\n        ".join(names),
            {"profile": recording().profile}, spans=100,
        ),
        with_span("worker_thread", "as with_profile, not on the driver", recording("monotonic", "off"), wrap=on(pool)),
        with_span("twin", "the Python twin", recording(core="python")),
    ]  # fmt: skip
    if tsc_refusal() is None:
        tsc = with_span("with_profile_tsc", "the same with the TSC", recording("tsc", "off"))
        variants.insert(1, tsc)
    return variants


def other_variants() -> list[Variant]:
    record = {"record_function": record_function}
    viztracer = VizTracer(verbose=0, log_sparse=True)
    sys.setprofile(None)  # only its events should cost: a new VizTracer hooks every call of every variant
    threading.setprofile(None)
    tracer = TracerProvider().get_tracer("benchmark")  # without a span processor, the cheapest setting

    @contextmanager
    def torch_profiler() -> Iterator[None]:
        with torch.profiler.profile(activities=[ProfilerActivity.CPU]):
            yield

    @contextmanager
    def cleared() -> Iterator[None]:
        yield
        viztracer.clear()

    return [
        Variant("record_function_off", "torch record_function, no profiler", 'with record_function("n"): pass', record),
        Variant(
            "record_function_on", "torch record_function, profiler on", 'with record_function("n"): pass', record,
            around=torch_profiler,
        ),
        Variant(
            "record_function_fast_off", "torch _RecordFunctionFast, no profiler", 'with fast("n"): pass',
            {"fast": _RecordFunctionFast},
        ),
        Variant("torchrl_timeit", "TorchRL timeit", 'with timeit("n"): pass', {"timeit": timeit}),
        Variant(
            "viztracer_log_event", "VizTracer log_event, no function tracing", 'with tracer.log_event("n"): pass',
            {"tracer": viztracer}, around=cleared,
        ),
        Variant(
            "opentelemetry", "OpenTelemetry SDK span, no processor", 'with tracer.start_as_current_span("n"): pass',
            {"tracer": tracer},
        ),
        Variant("contextmanager", "an empty contextlib.contextmanager", "with nothing(): pass", {"nothing": nothing}),
        Variant("noop_with_python", "a Python class, empty methods", "with Nothing(): pass", {"Nothing": Nothing}),
    ]  # fmt: skip


def measure(variants: list[Variant], rounds: int, batch_ms: float) -> dict[str, list[float]]:
    """The ns per repetition of each variant in each round."""
    for variant in variants:
        variant.choose_repetitions(batch_ms * 1e6)
    gc.collect()
    gc.freeze()
    times: dict[str, list[float]] = {variant.key: [] for variant in variants}
    order = list(variants)
    for done in range(rounds):
        random.shuffle(order)
        for variant in order:
            times[variant.key].append(variant.batch())
        gc.collect()
        if (done + 1) % 20 == 0:
            progress(f"{done + 1} of {rounds} rounds")
    gc.unfreeze()
    return times


def net(variant: Variant, times: dict[str, list[float]]) -> list[float]:
    """The ns of one span without the loop, in each round."""
    return [(own - base) / variant.spans for own, base in zip(times[variant.key], times[variant.base])]


def ratios(own: list[float], unit: list[float]) -> list[float]:
    return [mine / other for mine, other in zip(own, unit)]


def evaluate(variants: list[Variant], times: dict[str, list[float]]) -> dict[str, Any]:
    """The figures by key: ratio to a pair, its quartiles, and ns."""
    costs = {variant.key: net(variant, times) for variant in variants if variant.key != LOOP}
    over_pair = {key: ratios(cost, costs[PAIR]) for key, cost in costs.items() if key not in (PAIR, CALL)}
    over_pair["record_function_off_over_with_profile"] = ratios(costs["record_function_off"], costs["with_profile"])
    figures: dict[str, Any] = {key: median(values) for key, values in over_pair.items()}
    reasons = {}
    if "with_profile_tsc" not in figures:
        figures["with_profile_tsc"] = None
        reasons["with_profile_tsc"] = tsc_refusal()
    return {
        **figures,
        "floor": figures["disabled"],
        "pair_ns": median(costs[PAIR]),
        "empty_call_ns": median(costs[CALL]),
        "empty_loop_ns": median(times[LOOP]),
        "iqr": {key: _quartiles(values) for key, values in over_pair.items()},
        "ns": {key: median(cost) for key, cost in costs.items()},
        "repetitions": {variant.key: variant.repetitions for variant in variants},
        "reasons": reasons,
    }


def _quartiles(values: list[float]) -> list[float]:
    low, _, high = quantiles(values, n=4)
    return [low, high]


def cost_table(variants: list[Variant], results: dict[str, Any]) -> Table:
    table = Table(
        title=f"One empty span in pairs of perf_counter_ns() ({results['pair_ns']:.1f} ns), {results['rounds']} rounds",
        title_justify="left",
        caption=(
            f"An empty Python call takes {results['empty_call_ns']:.1f} ns. The empty loop takes "
            f"{results['empty_loop_ns']:.1f} ns per repetition, which is subtracted. IQR: interquartile range of the "
            f"rounds. `disabled` ({results['floor']:.3f}) is taken as the least cost of a `with` statement here."
        ),
        caption_justify="left",
    )
    for column in ("variant", "what", "x pair", "IQR", "ns"):
        table.add_column(column, justify="left" if column in ("variant", "what") else "right", no_wrap=column != "what")
    for variant in variants:
        if variant.key in results["iqr"]:
            low, high = results["iqr"][variant.key]
            figures = f"{results[variant.key]:.3f}", f"{low:.3f} - {high:.3f}", f"{results['ns'][variant.key]:,.1f}"
            table.add_row(variant.key, variant.label, *figures)
    for key, reason in results["reasons"].items():
        table.add_row(key, str(reason), "-", "-", "-")
    return table


def main() -> None:
    parser = Options(__doc__)
    parser.number("--rounds", 101, "number of rounds; use 41 or more for figures to quote")
    parser.number("--batch-ms", 3.0, "thread CPU time of a batch in ms")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds must be at least 2, because quartiles need two rounds")
    os.environ.pop("RLPROF_CORE", None)  # it would override the core that a variant chooses
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    try:
        Profiler(core="c")
    except RuntimeError as error:
        parser.error(str(error))
    with ThreadPoolExecutor(1) as pool:
        variants = [*base_variants(), *rlprof_variants(pool), *other_variants()]
        times = measure(variants, options.rounds, options.batch_ms)
    results = {"machine": describe_machine(), "rounds": options.rounds, **evaluate(variants, times)}
    conclude(results, BARS, options, cost_table(variants, results))


if __name__ == "__main__":
    main()
