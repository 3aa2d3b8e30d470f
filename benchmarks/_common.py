"""What the benchmarks share: the machine they ran on, a bar and whether it holds, and how results are written."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table

from rlprof import Profiler

try:
    from rlprof.ledger import _core
except ImportError:  # the Python twin serves, and the machine's description says so
    _core = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Bar:
    """A limit that a figure has to keep. It is written down beforehand: nothing here adapts to what comes out."""

    key: str
    relation: str
    """`<=`, `>=` or `==`."""
    limit: float
    unit: str = ""

    def holds(self, figure: float | None) -> bool | None:
        if figure is None:
            return None
        if self.relation == "==":
            return figure == self.limit
        return figure <= self.limit if self.relation == "<=" else figure >= self.limit


def tsc_refusal() -> str | None:
    """Why the TSC cannot be the ledger's clock here, or None where it can."""
    return "rlprof's C core is not built here" if _core is None else _core.tsc_refusal()


def describe_machine() -> dict[str, Any]:
    """Where and when the figures were measured, and with which rlprof."""
    profiler = Profiler()
    profiler.enable()
    snapshot = profiler.snapshot()
    profiler.disable()
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "clocksource": _first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "rlprof_core": profiler.core,
        "rlprof_clock": snapshot.clock,
        "rlprof_cpu": snapshot.cpu,
    }


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _first_line(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def argument_parser(explanation: str | None) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(
        description=explanation, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the JSON object to FILE")
    return parser


def progress(message: str) -> None:
    """Say how far it is, where it does not get into the results."""
    print(message, file=sys.stderr, flush=True)


def judge(bars: Iterable[Bar], figures: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each bar with the figure it is about and whether it holds; None where there is no figure."""
    return {bar.key: {**asdict(bar), "figure": figures[bar.key], "holds": bar.holds(figures[bar.key])} for bar in bars}


def readable(figure: Any) -> str:
    if figure is None:
        return "-"
    if isinstance(figure, (bool, str, dict)):
        return str(figure)
    return f"{figure:,}" if isinstance(figure, int) else f"{figure:,.4f}".rstrip("0").rstrip(".")


def bar_table(judged: dict[str, dict[str, Any]]) -> Table:
    table = Table(title="Bars", title_justify="left")
    for column in ("figure", "measured", "bar", "holds"):
        table.add_column(column, justify="left" if column in ("figure", "holds") else "right")
    for key, row in judged.items():
        figure = readable(row["figure"]) + row["unit"]
        answer = {None: "no figure", True: "[green]yes[/]", False: "[red]NO[/]"}[row["holds"]]
        table.add_row(key, figure, f"{row['relation']} {readable(row['limit'])}{row['unit']}", answer)
    return table


def write_results(results: dict[str, Any], options: argparse.Namespace, shown: Iterable[RenderableType]) -> None:
    """To standard output as JSON or as tables, and to the file that was asked for."""
    text = json.dumps(results, indent=2)
    if options.output is not None:
        options.output.write_text(text + "\n")
    if options.json:
        print(text)
        return
    console = Console() if sys.stdout.isatty() else Console(width=120)
    console.print(
        " | ".join(f"{key} {value}" for key, value in results["machine"].items()), style="dim", highlight=False
    )
    for part in shown:
        console.print()
        console.print(part)
