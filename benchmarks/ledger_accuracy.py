"""Measure how far the ledger is from the truth, on the real clock.

The correct accounts of each program are known in two ways: from its plan, and from its own timestamps. The program
reads the clock just inside every span, and code that shares nothing with rlprof applies the rules of the ledger to
these timestamps. So a sleep that lasts longer than planned does not count as an error of the ledger. Errors are
fractions of the wall time of the program. Every program runs several times. The worst error is that of all runs and
accounts; the median error is that of the account with the largest median.

If a thread loses the CPU between its own timestamp and the span's, the truth itself is uncertain. `slack` is the
largest gap in a run between a timestamp inside a span and the one outside. A run whose slack is above half the limit
counts as disturbed. The worst error is reported with and without such runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import Any

from _common import Bar, Options, conclude, describe_machine, empty_table, progress, sum_error
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
    """One run of a program: the correct time of each account, from its timestamps, and the ledger's. ns."""

    wall: float
    truth: dict[str, float]
    measured: dict[str, float]
    rlprof: int
    wall_error: float
    sum_error: int
    slack: float
    """Fraction of the wall time."""
    naive: float
    """Durations of the largest account, summed over the threads, as a fraction of the wall time."""

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
    """The sum of the durations of all threads, the ledger's time and the truth, in percent of the wall time."""
    return {
        "naive_percent": 100 * median(outcome.naive for outcome in outcomes),
        "ledger_percent": 100 * median(outcome.measured["env_step"] / outcome.wall for outcome in outcomes),
        "truth_percent": 100 * median(outcome.truth["env_step"] / outcome.wall for outcome in outcomes),
    }


def program_table(programs: dict[str, dict[str, Any]]) -> Table:
    columns = ("planned ms", "truth ms", "ledger ms", "median error", "worst error", "error to the plan")
    title = "Time of each account, medians of the runs; errors in % of the wall time"
    table = empty_table(title, "program", "account", *columns, left=("account",))
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


def main() -> None:
    parser = Options(__doc__)
    parser.add_argument("--repeat", type=int, default=9, metavar="N", help="runs of each program")
    parser.add_argument("--core", default="auto", choices=("auto", "c", "python"), help="core of the ledger")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    outcomes: dict[str, list[Outcome]] = {program.key: [] for program in PROGRAMS}
    for number in range(options.repeat):
        for program in PROGRAMS:
            outcomes[program.key].append(run(program, options.core))
        progress(f"{number + 1} of {options.repeat} runs")
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
    seed = results["seed_case"]
    explained = (
        f"Seed case, 16 threads in env_step: adding up durations gives {seed['naive_percent']:.0f} % of the wall time. "
        f"The ledger gives {seed['ledger_percent']:.1f} %, and the truth is {seed['truth_percent']:.1f} %."
    )
    conclude(results, BARS, options, program_table(programs), explained)


if __name__ == "__main__":
    main()
