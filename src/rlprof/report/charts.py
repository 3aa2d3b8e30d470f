"""Bottlenecks as a chart: shares of the time, scores and their parts, categories, speed over the iterations."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from rlprof.analysis.bottlenecks import WEIGHTS
from rlprof.analysis.report import Report
from rlprof.errors import MissingLibraryError
from rlprof.render.names import literal, shorten

MOST_BARS = 10
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#777777", "#BBBBBB")
"""The palette of Okabe and Ito, which is distinguishable with any colour vision; grey for the rest."""


FORMATS = ("png", "svg", "pdf")


def to_picture(report: Report, format_: str = "png") -> bytes:
    try:
        import matplotlib  # noqa: PLC0415 - half a second, and optional
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise MissingLibraryError("a chart", "matplotlib", "report") from error
    with matplotlib.rc_context({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(14, 9), dpi=110, layout="constrained")
        figure.suptitle(_plain(report.facts.session.name, 80), fontsize=14, parse_math=False)
        (time, scores), (categories, speed) = figure.subplots(2, 2)
        operations = sorted(report.facts.operations, key=lambda operation: -operation.share)[:MOST_BARS]
        _shares(time, [(item.operation, item.share) for item in operations], "Wall time by operation", _COLOURS[0])
        _scores(scores, report)
        portions = [(item.name, item.share) for item in report.facts.breakdown.categories if item.ledger_ns]
        _shares(categories, portions, "Wall time by category", _COLOURS[2])
        _speed(speed, report)
        file = io.BytesIO()
        figure.savefig(file, format=format_)
    return file.getvalue()


def _plain(name: str, width: int = 28) -> str:
    return shorten(literal(name), width)


def _nothing(axes: Any, text: str) -> None:
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, ha="center", va="center", color="#666666", transform=axes.transAxes)


def _bars(axes: Any, names: list[str], title: str, label: str) -> None:
    axes.set_yticks(range(len(names)), [_plain(name) for name in names], parse_math=False)
    axes.invert_yaxis()
    axes.set_title(title, loc="left")
    axes.set_xlabel(label)


def _shares(axes: Any, shares: Sequence[tuple[str, float]], title: str, colour: str) -> None:
    if not shares:
        return _nothing(axes, "nothing was recorded")
    bars = axes.barh(range(len(shares)), [share for _, share in shares], color=colour)
    axes.bar_label(bars, [f"{share:.1f}%" for _, share in shares], padding=3)
    axes.margins(x=0.12)
    return _bars(axes, [name for name, _ in shares], title, "% of the training time")


def _scores(axes: Any, report: Report) -> None:
    found = report.findings.bottlenecks[:MOST_BARS]
    if not found:
        return _nothing(axes, "no bottleneck")
    left = [0.0] * len(found)
    for (part, weight), colour in zip(WEIGHTS.items(), _COLOURS):
        widths = [weight * getattr(bottleneck, part) for bottleneck in found]
        axes.barh(range(len(found)), widths, left=left, color=colour, label=f"{part.replace('_', ' ')} (of {weight})")
        left = [start + width for start, width in zip(left, widths)]
    axes.set_xlim(0, 100)
    axes.legend(loc="lower right", frameon=False)
    return _bars(axes, [bottleneck.operation for bottleneck in found], "Bottleneck score", "score, 0 to 100")


def _speed(axes: Any, report: Report) -> None:
    series = report.facts.series
    if len(series) < 2:
        return _nothing(axes, "fewer than two iterations were marked")
    counted = any(series.steps)
    amounts = series.steps if counted else [last - first + 1 for first, last in zip(series.first, series.last)]
    rates = [amount / wall * 1e9 if wall else 0.0 for amount, wall in zip(amounts, series.wall_ns)]
    # A point is as wide as the iterations that it is the mean of.
    axes.stairs(
        rates, [*(first - 0.5 for first in series.first), series.last[-1] + 0.5], color=_COLOURS[0], baseline=None
    )
    axes.set_ylim(bottom=0)
    axes.set_title("Speed over the iterations", loc="left")
    axes.set_xlabel("iteration")
    axes.set_ylabel("steps per second" if counted else "iterations per second")
    return None
