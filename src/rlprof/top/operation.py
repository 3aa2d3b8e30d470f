"""One operation as text: its figures, how its calls are distributed, and the lines of code that it comes from."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.cells import cell_len
from rich.text import Text

from rlprof.analysis.figures import as_percent, count, duration, if_known, percent
from rlprof.ledger.histogram import BUCKETS_PER_OCTAVE
from rlprof.live.frame import OperationDetail
from rlprof.top.drawing import fit, name_of
from rlprof.top.look import Look

MOST_BINS = 14
USUAL = 0.995
"""Fraction of the calls that have lines of their own."""
MOST_LINES = 10


def operation_lines(detail: OperationDetail, width: int, look: Look) -> list[Text]:
    """As many lines as it needs."""
    ink, muted = look.style("ink"), look.style("muted")
    own = f"{percent(detail.share)} of the training time is its own"
    lines = [Text(f"{count(detail.calls)} {'call' if detail.calls == 1 else 'calls'}, {own}.", ink), Text()]
    if detail.calls and detail.histogram:
        lines += [Text("Duration of a call", look.style("title")), *_quantiles(detail, width, look), Text()]
        lines += [*histogram(detail.histogram, width, look, detail.category), Text()]
    lines.append(Text("Hottest lines of your code", look.style("title")))
    if not detail.lines:
        lines.append(Text("No line was sampled in it.", muted))
    for line in detail.lines[:MOST_LINES]:
        place = name_of(line.where, max(16, width * 2 // 5), look)
        function = name_of(line.function, max(1, width - cell_len(place) - 10), look)
        figure = f"{as_percent(line.share):>6}  "
        lines.append(Text.assemble((figure, ink), (place, look.style("accent")), (f"  {function}", muted)))
        if line.source:
            lines.append(Text(f"{'':8}{name_of(' '.join(line.source.split()), max(8, width - 8), look)}", ink))
    return lines


def _quantiles(detail: OperationDetail, width: int, look: Look) -> list[Text]:
    figures = (
        ("shortest", detail.min_ns), ("median", detail.p50_ns), ("mean", detail.mean_ns), ("95%", detail.p95_ns),
        ("99%", detail.p99_ns), ("longest", detail.max_ns),
    )  # fmt: skip
    column = min(10, width // len(figures))
    names = Text("".join(f"{name:>{column}}" for name, _ in figures), look.style("muted"))
    return [names, Text("".join(f"{if_known(duration, ns) or '-':>{column}}" for _, ns in figures), look.style("ink"))]


def histogram(counts: Mapping[int, int], width: int, look: Look, category: str = "other") -> list[Text]:
    """Bars of calls by duration, on a logarithmic scale. The few longest calls share a line, so that they do not press
    all others into one."""
    ordered = sorted(counts)
    total = sum(counts.values())
    seen, last = 0, ordered[0]
    for last in ordered:
        seen += counts[last]
        if seen >= USUAL * total:
            break
    first = ordered[0]
    step = max(1, math.ceil((last - first + 1) / MOST_BINS))
    bins = [0] * ((last - first) // step + 1)
    longer = 0
    for bucket, calls in counts.items():
        place = (bucket - first) // step
        if place < len(bins):
            bins[place] += calls
        else:
            longer += calls
    rows = []
    for place, calls in enumerate(bins):
        low, high = (2 ** ((first + step * end) / BUCKETS_PER_OCTAVE) for end in (place, place + 1))
        rows.append((f"{duration(low):>8} to {duration(high):>7}", calls))
    if longer:
        rows.append((f"{'longer':>19}", longer))
    most = max(calls for _, calls in rows)
    return [_line(name, calls, calls / most, calls / total, width, look, category) for name, calls in rows]


def _line(name: str, calls: int, length: float, share: float, width: int, look: Look, category: str) -> Text:
    room = max(4, width - 39)
    bar = _bar(length, room, look)
    if calls and not bar.strip():
        bar = look.glyphs.parts[:1] or "."
    return Text.assemble(
        (f"{name}  ", look.style("muted")), fit(Text(bar, look.style(category)), room, look),
        (f"{percent(100 * share) if calls else '':>7}{count(calls) if calls else '':>9}", look.style("ink")),
    )  # fmt: skip


def _bar(fraction: float, width: int, look: Look) -> str:
    """A bar with a resolution of an eighth of a cell."""
    parts = look.glyphs.parts
    eighths = round(8 * width * fraction)
    rest = parts[eighths % 8 - 1] if parts and eighths % 8 else ""
    return look.glyphs.block * (eighths // 8) + rest
