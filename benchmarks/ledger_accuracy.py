"""How far the ledger is from the truth, on the real clock.

Each program's account of time is known twice. The plan says it on paper. The stamps say it too: the program reads the
clock itself just inside every span, and the ledger's rule is applied to these readings by code that shares nothing with
rlprof, so that a sleep that lasted longer than planned does not count as the ledger's error. Errors are fractions of
the program's wall time. Every program runs several times: the worst error is over all runs, the median over the runs of
the account that has the largest one.

Where a thread lost the CPU between its own stamp and the span's reading, the truth itself is that uncertain. The stamps
tell: the largest gap of a run, between a stamp inside a span and the one outside, stands beside its errors as `slack`.
A run whose slack is above half the bar counts as disturbed; the worst error is given with such runs and without.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import Any

from _common import Bar, argument_parser, bar_table, describe_machine, judge, progress, write_results
from _programs import PROGRAMS, Program, Recorder
from _truth import UNATTRIBUTED, accounts_of
from rich.table import Table

from rlprof import Profiler, Snapshot

LIMIT = 0.01
BARS = (
    Bar("sum_error_ns", "==", 0, " ns"),
    Bar("worst_account_error", "<=", LIMIT),
    Bar("worst_undisturbed_error", "<=", LIMIT),
)


@dataclass(frozen=True)
class Outcome:
    """One run of a program: per account what was due by the stamps, and what the ledger says. ns."""

    wall: float
    truth: dict[str, float]
    measured: dict[str, float]
    rlprof: int
    wall_error: float
    sum_error: int
    slack: float
    """As a share of the wall time."""
    naive: float
    """The account with the longest spans, its durations summed over the threads, as a share of the wall time."""

    @property
    def disturbed(self) -> bool:
        return self.slack > LIMIT / 2

    def error(self, account: str) -> float:
        return abs(self.measured.get(account, 0) - self.truth.get(account, 0)) / self.wall

    @property
    def worst_error(self) -> float:
        return max(self.error(account) for account in {*self.truth, *self.measured})


def run(program: Program, core: str) -> Outcome:
    profiler = Profiler(core=core)
    recorder = Recorder(profiler.profile)
    profiler.enable()
    recorder.history.start = perf_counter_ns()
    program.run(recorder)
    recorder.history.end = perf_counter_ns()
    profiler.disable()
    snapshot = profiler.snapshot()
    history = recorder.history
    return Outcome(
        wall=history.wall,
        truth=accounts_of(history),
        measured=measured_accounts(snapshot),
        rlprof=snapshot.rlprof_ns,
        wall_error=abs(snapshot.wall_ns - history.wall) / history.wall,
        sum_error=sum_error(snapshot),
        slack=max(recorder.slack) / history.wall,
        naive=max(account.busy_ns for account in snapshot.accounts) / history.wall,
    )


def measured_accounts(snapshot: Snapshot) -> dict[str, float]:
    accounts: dict[str, float] = {account.operation: account.ledger_ns for account in snapshot.accounts}
    return {**accounts, UNATTRIBUTED: snapshot.unattributed_ns}


def sum_error(snapshot: Snapshot) -> int:
    accounts = sum(account.ledger_ns for account in snapshot.accounts)
    return abs(accounts + snapshot.unattributed_ns + snapshot.rlprof_ns - snapshot.wall_ns)


def judge_program(program: Program, outcomes: list[Outcome]) -> dict[str, Any]:
    plan = program.plan()
    due = accounts_of(plan)
    names = sorted({name for outcome in outcomes for name in (*outcome.truth, *outcome.measured)} | set(due))
    accounts = {}
    for name in names:
        errors = [outcome.error(name) for outcome in outcomes]
        measured = [outcome.measured.get(name, 0.0) for outcome in outcomes]
        accounts[name] = {
            "planned_ms": due.get(name, 0.0) / 1e6,
            "truth_ms": median(outcome.truth.get(name, 0.0) for outcome in outcomes) / 1e6,
            "measured_ms": median(measured) / 1e6,
            "median_error": median(errors),
            "worst_error": max(errors),
            "median_plan_error": median(abs(ns - due.get(name, 0.0)) / plan.wall for ns in measured),
        }
    return {
        "title": program.title,
        "planned_wall_ms": plan.wall / 1e6,
        "wall_ms": median(outcome.wall for outcome in outcomes) / 1e6,
        "rlprof_ms": median(outcome.rlprof for outcome in outcomes) / 1e6,
        "sum_error_ns": max(outcome.sum_error for outcome in outcomes),
        "worst_error": max(outcome.worst_error for outcome in outcomes),
        "worst_undisturbed_error": max(
            (outcome.worst_error for outcome in outcomes if not outcome.disturbed), default=None
        ),
        "disturbed_runs": sum(outcome.disturbed for outcome in outcomes),
        "median_error": max(account["median_error"] for account in accounts.values()),
        "median_plan_error": max(account["median_plan_error"] for account in accounts.values()),
        "wall_error": max(outcome.wall_error for outcome in outcomes),
        "slack": max(outcome.slack for outcome in outcomes),
        "accounts": accounts,
    }


def seed_case(outcomes: list[Outcome]) -> dict[str, float]:
    """What adding up the threads' durations says, and what the ledger does. Percent of the wall time."""
    return {
        "naive_percent": 100 * median(outcome.naive for outcome in outcomes),
        "ledger_percent": 100 * median(outcome.measured["env_step"] / outcome.wall for outcome in outcomes),
        "truth_percent": 100 * median(outcome.truth["env_step"] / outcome.wall for outcome in outcomes),
    }


def program_table(programs: dict[str, dict[str, Any]]) -> Table:
    table = Table(title="Ledger time by account, medians of the runs; errors in % of wall time", title_justify="left")
    for column in ("program", "account"):
        table.add_column(column)
    for column in ("planned ms", "truth ms", "ledger ms", "median error", "worst error", "from the plan"):
        table.add_column(column, justify="right")
    for key, program in programs.items():
        whole = f"[bold]{key}[/], slack {program['slack']:.3%}, {program['disturbed_runs']} disturbed"
        walls = (f"{program[name]:.1f}" for name in ("planned_wall_ms", "wall_ms", "wall_ms"))
        errors = (f"[bold]{program[name]:.3%}[/]" for name in ("median_error", "worst_error", "median_plan_error"))
        table.add_row(whole, program["title"], *walls, *errors, style="cyan")
        for name, account in program["accounts"].items():
            times = (f"{account[name]:.2f}" for name in ("planned_ms", "truth_ms", "measured_ms"))
            errors = (f"{account[name]:.3%}" for name in ("median_error", "worst_error", "median_plan_error"))
            table.add_row("", name, *times, *errors)
        table.add_row("", "rlprof", "", "", f"{program['rlprof_ms']:.2f}", end_section=True)
    return table


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--repeat", type=int, default=9, metavar="N", help="runs of each program (9)")
    parser.add_argument("--core", default="auto", choices=("auto", "c", "python"), help="the ledger's core (auto)")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error("--repeat: at least 1")
    outcomes: dict[str, list[Outcome]] = {program.key: [] for program in PROGRAMS}
    for turn in range(options.repeat):
        for program in PROGRAMS:
            outcomes[program.key].append(run(program, options.core))
        progress(f"{turn + 1} of {options.repeat} runs")
    programs = {program.key: judge_program(program, outcomes[program.key]) for program in PROGRAMS}
    errors = (program["worst_undisturbed_error"] for program in programs.values())
    undisturbed = [error for error in errors if error is not None]
    results: dict[str, Any] = {
        "machine": describe_machine(),
        "core": Profiler(core=options.core).core,
        "repeat": options.repeat,
        "sum_error_ns": max(program["sum_error_ns"] for program in programs.values()),
        "worst_account_error": max(program["worst_error"] for program in programs.values()),
        "worst_undisturbed_error": max(undisturbed, default=None),
        "disturbed_runs": sum(program["disturbed_runs"] for program in programs.values()),
        "median_account_error": max(program["median_error"] for program in programs.values()),
        "median_plan_error": max(program["median_plan_error"] for program in programs.values()),
        "seed_case": seed_case(outcomes["seed_case"]),
        "programs": programs,
    }
    results["bars"] = judge(BARS, results)
    seed = results["seed_case"]
    told = (
        f"The seed case, 16 threads in env_step: adding up durations says {seed['naive_percent']:.0f} % of the wall "
        f"time, the ledger {seed['ledger_percent']:.1f} %, the truth is {seed['truth_percent']:.1f} %."
    )
    write_results(results, options, [program_table(programs), told, bar_table(results["bars"])])
    return 0


if __name__ == "__main__":
    sys.exit(main())
