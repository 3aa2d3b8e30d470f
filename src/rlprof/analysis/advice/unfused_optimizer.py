"""An optimizer that updates many tensors one after the other, where one call could update them all.

Adam on a CPU, one thread, time per step as torch does it by default and with fused=True: 6 tensors of 9k parameters
0.26 to 0.46 ms and 0.06 ms, 22 tensors 1.0 and 0.17 ms, 102 tensors 4.2 and 0.5 ms, 2.1M parameters 18 and 1.8 ms.
RMSprop has no fused version; with foreach=True it takes 0.36 instead of 0.74 ms for 22 tensors, and 1.7 instead of 3.8
ms for 102. SGD gains nothing.
"""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import place_of
from rlprof.analysis.advice.lookup import CONSIDERABLE, ENOUGH_CALLS, number, ratio, share_of
from rlprof.analysis.advice.updates import trains_with_sb3
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration, many
from rlprof.session.evidence import Optimizer

FUSED = frozenset({"Adam", "AdamW"})
FOREACH = frozenset({"RMSprop", "NAdam", "RAdam", "Adamax", "Adadelta", "Rprop"})
MANY_TENSORS = 30
"""Least number of tensors, unless foreach=False was chosen. Policies of two MLPs have a dozen, for which the default
is common, and changing it saves a tenth of the training time at most."""

FUSED_LEFT = Left(0.22, 0.10, 0.45)
FOREACH_LEFT = Left(0.55, 0.4, 0.8)
ON_DEVICE_LEFT = Left(0.65, 0.4, 0.95)
"""On a GPU, torch uses foreach by default. Untested; torch's documentation calls fused the fastest."""

FUSED_ON_CPU = (2, 4)
"""First version of torch with fused Adam on a CPU."""


def unfused_optimizer(facts: Facts) -> Finding | None:
    """Speaks if optimizer steps take a tenth of the training time, in a class with a faster version that is not
    used."""
    steps = facts.operation("optimizer_step")
    if steps is None or steps.calls < ENOUGH_CALLS or not facts.evidence.optimizers:
        return None
    share = share_of(facts, [steps])
    largest = max(facts.evidence.optimizers, key=lambda one: number(one.tensors) * number(one.number))
    option, left = _faster(facts, largest)
    if left is None or share < CONSIDERABLE:
        return None
    step = ratio(steps.busy_ns, steps.calls)
    return Finding(
        rule="unfused_optimizer",
        cause=f"{largest.name} updates its {count(largest.tensors)} tensors one after the other: "
        f"{as_percent(share)} of the training time.",
        place=place_of(facts, "optimizer_step"),
        operations=("optimizer_step",),
        evidence=(
            f"{count(steps.calls)} optimizer steps of {duration(step)} each, for {count(largest.tensors)} tensors with "
            f"{count(largest.elements)} parameters: {duration(step / max(1, largest.tensors))} per tensor.",
            f"{many(largest.number, 'optimizer')} of class {largest.name} on {largest.device}, with "
            f"fused={largest.fused} and foreach={largest.foreach}.",
        ),
        change=_change(facts, largest, option),
        gain=gain_if(facts, {"optimizer_step": left}),
        check=compare_with_change(facts),
    )


def _faster(facts: Facts, optimizer: Optimizer) -> tuple[str, Left | None]:
    """The option that makes it faster, and what is left then."""
    if optimizer.fused or optimizer.number < 1 or not optimizer.dtype.startswith(("float", "bfloat")):
        return "", None
    on_cpu = optimizer.device == "cpu"
    if optimizer.foreach is not False and optimizer.tensors < MANY_TENSORS:
        return "", None
    if optimizer.name in FUSED and (on_cpu or optimizer.device == "cuda"):
        if on_cpu and _version(facts) < FUSED_ON_CPU:
            return "", None
        return "fused=True", FUSED_LEFT if on_cpu else ON_DEVICE_LEFT
    by_tensor = optimizer.foreach is False or (on_cpu and not optimizer.foreach)
    if optimizer.name in FOREACH and by_tensor:
        return "foreach=True", FOREACH_LEFT
    return "", None


def _version(facts: Facts) -> tuple[int, ...]:
    parts = facts.session.packages.get("torch", "").split(".")
    return tuple(int(part) for part in parts[:2] if part.isdecimal())


def _change(facts: Facts, optimizer: Optimizer, option: str) -> str:
    name, _, value = option.partition("=")
    change = f"Make it with `torch.optim.{optimizer.name}(params, {option})`."
    if trains_with_sb3(facts):
        change = (
            f"Pass `policy_kwargs=dict(optimizer_kwargs=dict({name}={value}))` to the model. PPO and A2C set eps=1e-5 "
            f"only without these, so keep it there: `dict(eps=1e-5, {name}={value})`."
        )
    return f"{change} It computes the same, but rounds differently in the last digits."
