"""Other programs have the cores: the training is ready to compute, and does not get to."""

from __future__ import annotations

from rlprof.analysis.advice.advice import Advice, speedup
from rlprof.analysis.advice.arithmetic import fraction, number
from rlprof.analysis.advice.lookup import computing, names_of, share_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration

COMPUTING = ("environment", "rendering", "policy", "teacher", "storage", "learning")
"""What computes by its nature. Logging and checkpoints wait for disks, transfers for a device."""

LARGE_SHARE = 0.40
"""Of the wall time in such operations: with less, there is too little to conclude from."""

OFF_CPU = 0.80
"""Of their own time on a CPU. A training that has its core is on it for 97 % and more; it was 50 % with two other
programs on two cores."""

CORES_TAKEN = 90.0
"""Percent of the whole machine."""

HELD_UP = 0.10
"""Of the time that the main thread was ready to run and had no core, by the kernel's own account. Off the CPU may also
mean asleep; this does not."""

OURS = 0.70
"""Of the machine's CPU time. Above it the training holds itself up: too many threads or processes of its own."""


def crowded_machine(facts: Facts) -> Advice | None:
    used = facts.resources
    operations = [item for item in facts.of_category(*COMPUTING) if number(item.waited_ns) < 0.1 * number(item.self_ns)]
    share = share_of(facts, operations)
    on_cpu = computing(operations)
    machine = number(used.machine_cpu_mean)
    delay = number(used.held_up_mean) / 100
    if on_cpu is None or on_cpu > OFF_CPU or share < LARGE_SHARE or machine < CORES_TAKEN or delay < HELD_UP:
        return None
    cores = max(1, facts.session.machine_cores)
    ours = (number(used.cpu_mean) + number(used.children_cpu_mean)) / 100
    all_busy = machine / 100 * cores
    if fraction(ours, all_busy) > OURS:
        return None
    lost = min(share * (1 - on_cpu), delay)
    return Advice(
        rule="crowded_machine",
        title=f"Other programs have the cores: the training was on a CPU for {as_percent(on_cpu)} of its computing "
        "time.",
        operations=names_of(operations),
        evidence=(
            f"Operations that compute take {as_percent(share)} of the wall time, and were off the CPU for "
            f"{as_percent(1 - on_cpu)} of their own time.",
            f"The main thread was ready to run and had no core for {as_percent(delay)} of the time, "
            f"{duration(delay * number(facts.breakdown.wall_ns))}.",
            f"The machine's {count(cores)} cores were {as_percent(machine / 100)} busy; this training and its children "
            f"used {count(round(ours, 2))} of them.",
        ),
        action="Measure and train when the machine is free, or give the training cores of its own (taskset, a cgroup, "
        "another node).",
        gain=(1.0, speedup(fraction(lost, 1.0), float("inf"))),
        check="See what else runs with `top`, then run again: the CPU column of `rlprof report` should be near 100%.",
    )
