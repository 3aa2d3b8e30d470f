"""The state of the machine, where it makes the figures doubtful. A note stands above the findings and is none."""

from __future__ import annotations

from dataclasses import dataclass

from rlprof.analysis.advice.lookup import computing, fraction, number, share_of
from rlprof.analysis.advice.slowing_down import is_alike, slower_as_a_whole
from rlprof.analysis.breakdown import RLPROF, UNATTRIBUTED
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration, size

COMPUTING = ("environment", "rendering", "policy", "teacher", "storage", "learning")
"""Operations that should always be computing. Logging and checkpoints wait for disks, transfers for a device."""

LARGE_SHARE = 0.40
"""Least share of the training time in such operations. Less is too little to conclude from."""
OFF_CPU = 0.80
"""Highest fraction of their own time on a CPU. It is 97 % with a free core, and 50 % beside two programs on two."""
CORES_TAKEN = 90.0
"""Least CPU use of the whole machine, in percent."""
HELD_UP = 0.10
"""Least fraction of the time that the main thread was ready to run but had no core. Time off the CPU may be sleep."""
OURS = 0.70
"""Highest fraction of the machine's CPU time that is the training's own. Above it, the training blocks itself."""
LITTLE_MEMORY = 0.05
"""Fraction of the machine's memory. With less available, the kernel drops caches and swaps."""
COSTLY = 0.05
"""Least share of rlprof's own cost. It is taken out of the accounts; its uncertainty, nearly half of it, is not."""


@dataclass(frozen=True, slots=True)
class Note:
    rule: str
    text: str


def notes(facts: Facts) -> tuple[Note, ...]:
    found = (crowded_machine(facts), slowed_machine(facts), little_memory(facts), rlprof_cost(facts))
    return tuple(note for note in found if note is not None)


def crowded_machine(facts: Facts) -> Note | None:
    used = facts.resources
    operations = [item for item in facts.of_category(*COMPUTING) if number(item.waited_ns) < 0.1 * number(item.self_ns)]
    on_cpu = computing(operations)
    machine = number(used.machine_cpu_mean)
    delay = number(used.held_up_mean) / 100
    enough = share_of(facts, operations) >= LARGE_SHARE
    if on_cpu is None or on_cpu > OFF_CPU or not enough or machine < CORES_TAKEN or delay < HELD_UP:
        return None
    cores = max(1, facts.session.machine_cores)
    ours = (number(used.cpu_mean) + number(used.children_cpu_mean)) / 100
    if fraction(ours, machine / 100 * cores) > OURS:
        return None
    return Note(
        "crowded_machine",
        f"Other programs used the cores: the main thread was ready to run but had no core for {as_percent(delay)} of "
        f"the time, and this training used {count(round(ours, 1))} of {count(cores)} cores. Speeds measured on a free "
        "machine will be higher.",
    )


def slowed_machine(facts: Facts) -> Note | None:
    found = slower_as_a_whole(facts)
    if found is None:
        return None
    if not is_alike(found):
        most = next((grown for grown in found.grown if grown.operation not in (UNATTRIBUTED, RLPROF)), None)
        text = f"The training became {as_percent(found.fall)} slower during the run."
        if most is not None:
            before, after = duration(most.before_ns), duration(most.after_ns)
            text += f" {most.operation} grew most, from {before} to {after} per {found.unit}."
        return Note("slowed_machine", text)
    return Note(
        "slowed_machine",
        f"The training became {as_percent(found.fall)} slower during the run, all of its operations alike. Look at the "
        "machine first: other programs, temperature, swapping.",
    )


def little_memory(facts: Facts) -> Note | None:
    known = [left for left in facts.resources.samples.machine_available if left is not None]
    least = min(known, default=None)
    whole = number(facts.session.memory)
    if least is None or not whole or least >= LITTLE_MEMORY * whole:
        return None
    return Note(
        "little_memory",
        f"The machine was nearly out of memory: {size(least)} of {size(whole)} were left. It may have been swapping.",
    )


def rlprof_cost(facts: Facts) -> Note | None:
    row = next((row for row in facts.breakdown.rows if row.category == RLPROF), None)
    share = fraction(row.ledger_ns, facts.breakdown.training_ns) if row is not None else 0.0
    called = sorted((item for item in facts.operations if item.calls > 0), key=lambda item: -item.calls)
    if row is None or share < COSTLY or not called:
        return None
    most = called[0]
    return Note(
        "rlprof_cost",
        f"rlprof itself took {as_percent(share)} of the training time (± {duration(number(row.uncertainty_ns))}): "
        f"{most.operation} was called {count(most.calls)} times, which is too often for a span. Put one span around "
        "many calls instead.",
    )
