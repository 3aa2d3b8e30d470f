"""The training waits: it sleeps, waits for a server, for a lock, or for workers that do nothing."""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import gain_of, match, place_of
from rlprof.analysis.advice.lookup import CONSIDERABLE, computing, fraction, names_of, number, ratio, share_of
from rlprof.analysis.advice.updates import trains_with_sb3
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration

SLEEPING = r"\btime\.sleep\(|(?<![\w.])sleep\("
LOCKS = r"\.acquire\(|\bwith\s+\S*lock\b"
WAITS = r"\.wait\(|\.join\(\)|\.get\((?:timeout|block|\))"
NETWORK = r"^(?:socket|ssl|select|selectors|http|urllib|urllib3|requests|aiohttp|httpx|grpc|websockets?|zmq)\b"
NETWORK_SOURCE = r"\.recv(?:_into)?\(|\.sendall\(|\burlopen\(|requests\.\w+\(|\.readline\(\)|\bsocket\.|\.getresponse\("

WAIT = "env_wait"
"""Waiting for the workers of a vector is not what an environment does."""

OFF_CPU = 0.5
"""Highest fraction of its own time that an environment which waits for a server spends on a CPU."""

LARGE_SHARE = 0.20
"""Least fraction of the training time in which no lane works."""
CHILDREN_AT_WORK = 20.0
"""Percent of one core. Above it, the training waits for child processes whose spans are not in this session."""
UNSEEN_AT_WORK = 0.05
"""Fraction of the idle time. If threads without spans used this much CPU time, the training may be waiting for them."""


def waiting(facts: Facts) -> list[Finding]:
    """At most one: the waits of one training usually have one cause."""
    for rule in (_sleeping, _waiting_env, _lock_wait, _idle):
        if (finding := rule(facts)) is not None:
            return [finding]
    return []


def _sleeping(facts: Facts) -> Finding | None:
    """Not in environments: their waits have a rule of their own."""
    env = {item.operation for item in facts.of_category("environment", "rendering")} - {WAIT}
    found = match(facts, SLEEPING, operations=facts.code.lines.keys() - env) if facts.code.lines.keys() - env else None
    if found is None or found.share < CONSIDERABLE:
        return None
    return Finding(
        rule="sleeping",
        cause=f"{found.place.where} sleeps in the training loop: {as_percent(found.share)} of the training time.",
        place=found.place,
        operations=found.operations,
        evidence=found.evidence(),
        change="Remove the sleep. If it waits for something, wait for exactly that: `queue.get()`, `event.wait()` or "
        "`future.result()` return at once when it is there.",
        gain=gain_of(facts, found, Left(0.02, 0.0, 0.3)),
        check=compare_with_change(facts),
    )


def _waiting_env(facts: Facts) -> Finding | None:
    """Environments on the driver's thread that are off the CPU: they wait for a server, a file or a sleep."""
    env = [item for item in facts.of_category("environment") if any(lane.on_driver for lane in item.lanes)]
    env = [item for item in env if item.operation != WAIT]
    parallel = any(lane.kind == "process" for item in env for lane in item.lanes)
    share, on_cpu = share_of(facts, env), computing(env)
    # Time in which it was ready to run but had no core is no wait.
    held_up = number(facts.resources.held_up_mean) / 100
    found = match(facts, NETWORK_SOURCE, NETWORK, operations=[item.operation for item in env])
    if parallel and found is not None and found.share >= CONSIDERABLE:
        # The server is a child process with environments of its own: only the samples tell the two apart.
        lost, on_cpu = found.share, 1 - fraction(found.share, share)
    elif parallel or share < CONSIDERABLE or on_cpu is None or on_cpu + held_up > OFF_CPU:
        return None
    else:
        lost = share * (1 - on_cpu - held_up)
    network = found is not None and found.share >= max(CONSIDERABLE, 0.5 * lost)
    if found is not None and network:
        lost = found.share  # with the work for its requests, which one request for all would save, too
    if lost < CONSIDERABLE:
        return None
    place = found.place if found is not None and network else place_of(facts, *names_of(env))
    calls = sum(number(item.calls) for item in env if item.operation == "env_step") or 1
    vector = "`SubprocVecEnv` of stable-baselines3" if trains_with_sb3(facts) else "gymnasium's `AsyncVectorEnv`"
    what = "waits for a server, one request at a time" if network else "waits instead of computing"
    return Finding(
        rule="network_env" if network else "waiting_env",
        cause=f"The environment {what}: {as_percent(lost)} of the training time"
        f"{f', most of it at {place.where}' if place is not None else ''}.",
        place=place,
        operations=names_of(env),
        evidence=(
            f"Environment operations were on a CPU for {as_percent(on_cpu)} of their own time.",
            f"{count(calls)} steps, one after the other, {'talk to it' if network else 'wait'} for "
            f"{duration(ratio(lost * facts.breakdown.training_ns, calls))} each.",
            *(found.evidence() if found is not None and network else ()),
        ),
        change=f"Keep several requests in flight: step many environments at once with {vector}, with threads, or with "
        "asyncio. Send one request for a batch if the server allows it, keep one connection open, and keep answers "
        "that are always the same.",
        gain=gain_if(facts, dict.fromkeys(names_of(env), Left(0.35, 0.05, 0.75))),
        check=compare_with_change(facts),
    )


def _lock_wait(facts: Facts) -> Finding | None:
    waits = [item for item in facts.operations if item.operation in ("thread_wait", "queue_wait", "future_wait")]
    # Who waits for a lock waits for the thread that holds it, whatever that one does.
    found, what = match(facts, LOCKS), "a lock that another thread holds"
    if found is None or found.share < CONSIDERABLE:
        what = "another thread or process"
        found = match(facts, WAITS, r"^(?:threading|queue|multiprocessing\.synchronize|concurrent\.futures)")
        if found is None or found.share < CONSIDERABLE or _others_work(facts):
            return None
    on_cpu = computing([item for item in facts.operations if item.operation in found.operations])
    if on_cpu is not None and on_cpu > OFF_CPU and not waits:
        return None
    return Finding(
        rule="lock_wait",
        cause=f"{found.place.where} waits for {what}: {as_percent(found.share)} of the training time.",
        place=found.place,
        operations=found.operations,
        evidence=found.evidence(),
        change="Hold the lock only while shared data is touched, not while computing or writing. Give each thread its "
        "own data and merge once per iteration, or pass data through a queue and continue without waiting.",
        gain=gain_of(facts, found, Left(0.1, 0.0, 0.6)),
        check=compare_with_change(facts),
    )


def _idle(facts: Facts) -> Finding | None:
    idle = {
        operation.operation: min(number(operation.ledger_ns), number(operation.idle_ns))
        for operation in facts.operations
        if operation.idle_ns > 0
    }
    training = number(facts.breakdown.training_ns)
    share = fraction(sum(idle.values()), training)
    if share < LARGE_SHARE or _others_work(facts):
        return None
    names = sorted((name for name in idle if idle[name]), key=lambda name: -idle[name])
    children = number(facts.resources.children_cpu_mean)
    evidence = [
        f"{name} waited for {duration(idle[name])} while no lane worked, "
        f"{as_percent(fraction(idle[name], training))} of the training time."
        for name in names[:3]
    ]
    evidence.append(f"Child processes used {count(round(children))}% of one core.")
    return Finding(
        rule="idle_waiting",
        cause=f"For {as_percent(share)} of its time the training waits while none of its lanes works.",
        place=place_of(facts, *names),
        operations=tuple(names),
        evidence=tuple(evidence),
        change="Use the waiting time: keep more environments or requests in flight than you wait for, or let the "
        "learner update on the previous batch while the next one is collected.",
        gain=gain_if(facts, {name: Left(0.3, 0.0, 0.8) for name in names}),
        check=compare_with_change(facts),
    )


def _others_work(facts: Facts) -> bool:
    """Threads without spans or child processes work while the driver waits."""
    idle = sum(min(number(item.ledger_ns), number(item.idle_ns)) for item in facts.operations)
    if number(facts.resources.children_cpu_mean) >= CHILDREN_AT_WORK:
        return True
    return bool(idle) and number(facts.resources.unseen_cpu_ns) >= UNSEEN_AT_WORK * idle


def children_unseen(facts: Facts) -> bool:
    """True if the training waits while child processes compute, and none of them recorded anything."""
    seen = any(lane.kind == "process" for item in facts.operations for lane in item.lanes)
    waits = share_of(facts, [item for item in facts.operations if item.waited_ns > 0])
    return not seen and waits >= LARGE_SHARE and number(facts.resources.children_cpu_mean) >= CHILDREN_AT_WORK
