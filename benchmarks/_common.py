"""Code that all benchmarks share: a description of the machine, limits for figures, tables and the JSON output."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table

from rlprof import Profiler, Snapshot
from rlprof.analysis.facts import Facts
from rlprof.analysis.load import load_facts
from rlprof.session.info import gather

try:
    from rlprof.ledger import _core
except ImportError:  # the Python twin is used, and the description of the machine shows it
    _core = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Bar:
    """A limit that a figure must keep. It is fixed before the measurement and never adapted to the result."""

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
    """The reason why the ledger cannot use the TSC as its clock on this machine, or None if it can."""
    return "rlprof's C core is not built here" if _core is None else _core.tsc_refusal()


def describe_machine() -> dict[str, Any]:
    """Where and when the figures were measured, and with which core and clocks of rlprof."""
    profiler = Profiler()
    profiler.enable()
    snapshot = profiler.snapshot()
    profiler.disable()
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": gather("benchmark", 0, profiler.core, {}).processor,
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "clocksource": _first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "rlprof_core": profiler.core,
        "rlprof_clock": snapshot.clock,
        "rlprof_cpu": snapshot.cpu,
    }


def _first_line(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Adds the default value to the help of each option that has one."""

    def _get_help_string(self, action: argparse.Action) -> str:
        shown = "" if action.default in (None, False, argparse.SUPPRESS) else " (default: %(default)s)"
        return (action.help or "") + shown


class Options(argparse.ArgumentParser):
    """A parser with the options that every benchmark has."""

    def __init__(self, explanation: str | None) -> None:
        super().__init__(description=explanation, formatter_class=_HelpFormatter, allow_abbrev=False)
        self.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
        self.add_argument("--output", type=Path, metavar="FILE", help="also write the JSON object to FILE")

    def number(self, name: str, default: float, explanation: str) -> None:
        """Add an option for a number of the type of its default."""
        self.add_argument(name, type=type(default), default=default, help=explanation)

    def only(self, what: str, names: Iterable[str]) -> None:
        """Add an option that chooses what is measured."""
        self.add_argument(f"--{what}", choices=names, action="append", help=f"measure only this {what} (repeatable)")


def progress(message: str) -> None:
    """Print a message to standard error, so that it does not mix with the results."""
    print(message, file=sys.stderr, flush=True)


def run_recorded(
    script: Path, arguments: Iterable[str], folder: Path, truth_variable: str
) -> tuple[Facts, dict[str, Any]]:
    """Run a script once under `rlprof run`. Returns what rlprof recorded, and what the script itself wrote as JSON to
    the file that the given environment variable names."""
    sessions = Path(tempfile.mkdtemp(dir=folder))
    truth = sessions.with_suffix(".json")
    command = [sys.executable, "-m", "rlprof", "run", "--quiet", "--dir", str(sessions), str(script), *arguments]
    environment = {**os.environ, truth_variable: str(truth), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or not truth.exists():
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
    (session,) = sessions.iterdir()
    return load_facts(str(session)), json.loads(truth.read_text())


def measure_each(trainings: Iterable[str], measure: Callable[[str, Path, Any], Any], options: Any) -> dict[str, Any]:
    """The results of measuring each training, in a folder of its own."""
    results: dict[str, Any] = {"machine": describe_machine(), "trainings": {}}
    for training in trainings:
        with tempfile.TemporaryDirectory() as folder:
            results["trainings"][training] = measure(training, Path(folder), options)
    return results


def sum_error(snapshot: Snapshot) -> int:
    """How many nanoseconds the accounts of a snapshot differ from its wall time."""
    accounts = sum(account.ledger_ns for account in snapshot.accounts)
    return abs(accounts + snapshot.unattributed_ns + snapshot.rlprof_ns - snapshot.wall_ns)


def judge(bars: Iterable[Bar], figures: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each limit with its figure, and whether the figure keeps it; None if there is no figure."""
    return {bar.key: {**asdict(bar), "figure": figures[bar.key], "holds": bar.holds(figures[bar.key])} for bar in bars}


def readable(figure: Any) -> str:
    if figure is None:
        return "-"
    if isinstance(figure, list):
        return ", ".join(map(readable, figure))
    if isinstance(figure, (bool, str, dict)):
        return str(figure)
    return f"{figure:,}" if isinstance(figure, int) else f"{figure:,.4f}".rstrip("0").rstrip(".")


def empty_table(title: str, *columns: str, left: Iterable[str] = ()) -> Table:
    """A table with columns of figures. The first column and those in `left` hold text."""
    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 or column in left else "right")
    return table


def figure_table(title: str, results: dict[str, Any]) -> Table:
    """All results that are single figures."""
    table = empty_table(title, "figure", "measured")
    for key, value in results.items():
        if not isinstance(value, dict):
            table.add_row(key, readable(value))
    return table


def bar_table(judged: dict[str, dict[str, Any]]) -> Table:
    table = empty_table("Limits", "figure", "measured", "limit", "kept", left=("kept",))
    for key, row in judged.items():
        figure = readable(row["figure"]) + row["unit"]
        answer = {None: "no figure", True: "[green]yes[/]", False: "[red]NO[/]"}[row["holds"]]
        table.add_row(key, figure, f"{row['relation']} {readable(row['limit'])}{row['unit']}", answer)
    return table


def conclude(results: dict[str, Any], bars: Iterable[Bar], options: argparse.Namespace, *shown: RenderableType) -> None:
    """Judge the results, and write them to standard output as JSON or as tables, and to the requested file."""
    results["bars"] = judge(bars, results)
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
    for part in (*shown, bar_table(results["bars"])):
        console.print()
        console.print(part)
