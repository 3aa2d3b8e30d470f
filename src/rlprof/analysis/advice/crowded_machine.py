"""Other programs occupy the cores: the training is ready to run but gets no core."""

from __future__ import annotations

from rlprof.analysis.advice.advice import Advice, speedup
from rlprof.analysis.advice.lookup import computing, fraction, names_of, number, share_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration

COMPUTING = ("environment", "rendering", "policy", "teacher", "storage", "learning")
"""Operations that should always be computing. Logging and checkpoints wait for disks, transfers for a device."""

LARGE_SHARE = 0.40
"""Least share of the wall time in such operations. Less is too little to conclude from."""

OFF_CPU = 0.80
"""Highest fraction of their own time on a CPU. It is 97 % with a free core, and 50 % beside two programs on two."""

CORES_TAKEN = 90.0
"""Least CPU use of the whole machine, in percent."""

HELD_UP = 0.10
"""Least fraction of the time that the main thread was ready to run but had no core. Time off the CPU may be sleep."""

OURS = 0.70
"""Highest fraction of the machine's CPU time that is the training's own. Above it, the training blocks itself."""


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
    if fraction(ours, machine / 100 * cores) > OURS:
        return None
    lost = min(share * (1 - on_cpu), delay)
    return Advice(
        rule="crowded_machine",
        title=f"Other programs use the cores: the training had a CPU for {as_percent(on_cpu)} of its computing time.",
        operations=names_of(operations),
        evidence=(
            f"Operations that compute take {as_percent(share)} of the wall time and had no CPU for "
            f"{as_percent(1 - on_cpu)} of their own time.",
            f"The main thread was ready to run but had no core for {as_percent(delay)} of the time, "
            f"{duration(delay * number(facts.breakdown.wall_ns))}.",
            f"The machine's {count(cores)} cores were {as_percent(machine / 100)} busy. This training and its child "
            f"processes used {count(round(ours, 2))} cores.",
        ),
        action="Train when the machine is free, or give the training its own cores (taskset, cgroup, another node).",
        gain=(1.0, speedup(fraction(lost, 1.0), float("inf"))),
        check="Stop the other programs (see `top`) and run again: CPU in `rlprof report` should be near 100%.",
    )
