"""torch.compile compiles the same function again and again, for inputs that its last version does not fit."""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import place_of
from rlprof.analysis.advice.lookup import fraction, number, ratio
from rlprof.analysis.code import Line
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count, duration
from rlprof.session.evidence import Frame

LEAST_SHARE = 0.05
"""Least share of the training time in compilations after the first. A recompilation takes 0.1 to 20 seconds, so that
even a few are a large part of a short run."""

FEWEST = 3
"""Compilations of functions that were compiled already. The first one is normal: Dynamo sees that a size varies, and
makes a version for all sizes."""

COMPILE = "compile"

CHANGES = (
    ("size mismatch", "Compile for all sizes, `torch.compile(model, dynamic=True)`, or keep the batch size the same: "
     "drop the last smaller minibatch, or pad it."),
    ("stride mismatch", "Pass tensors with the same memory layout: call `.contiguous()` on the input."),
    ("dtype mismatch", "Pass tensors of one type: convert the input with `.float()` before the call."),
    ("grad_mode", "Call the compiled function in one gradient mode only: compile one version for acting under "
     "`torch.no_grad()` and another for learning, `act = torch.compile(policy)` and `learn = torch.compile(policy)`."),
    ("requires_grad", "Pass inputs that always, or never, require gradients: call `.detach()` on them."),
    ("len(", "Pass a tensor instead of a list or dict whose length varies, `torch.stack(items)`."),
    ("type_id", "Pass arguments of one type. Wrap numbers in a tensor: `torch.tensor(value)`."),
    ("==", "A Python number that changes is compiled into the code. Pass it as a tensor, `torch.tensor(value)`, or "
     "compute with it outside of the compiled function."),
)  # fmt: skip
"""By a part of Dynamo's reason: what to change. The first that fits."""

ANYWHERE = "Run once with `TORCH_LOGS=recompiles` to see every reason, and keep what it names constant."


def recompiling(facts: Facts) -> Finding | None:
    """Speaks if compilations after the first of each function take 5 % of the training time."""
    compiling = facts.evidence.compiling
    operation = facts.operation(COMPILE)
    if operation is None or not compiling.frames or compiling.again < FEWEST:
        return None
    again = fraction(compiling.again_ns, compiling.ns)
    spent = min(number(operation.ledger_ns), number(compiling.again_ns))
    share = fraction(spent, facts.breakdown.training_ns)
    if share < LEAST_SHARE:
        return None
    worst = compiling.frames[0]
    reasons = tuple(dict.fromkeys(reason for frame in compiling.frames for reason in frame.reasons))[:3]
    left = 1 - fraction(spent, operation.ledger_ns)
    return Finding(
        rule="recompiling",
        cause=f"torch.compile compiled {worst.function}() {count(worst.again)} times again: {as_percent(share)} of the "
        "training time.",
        place=place_of(facts, COMPILE) or _line(facts, worst, share),
        operations=(COMPILE,),
        evidence=(
            f"{count(compiling.number)} compilations in {duration(compiling.ns)}. {count(compiling.again)} of them "
            f"were of a function that was compiled already: {duration(compiling.again_ns)}, "
            f"{duration(ratio(compiling.again_ns, compiling.again))} each.",
            *(f"Dynamo's reason: {reason}." for reason in reasons),
        ),
        change=_change(reasons),
        gain=gain_if(facts, {COMPILE: Left(left, max(0.0, left - 0.1), min(1.0, left + 0.3 * again))}),
        check=compare_with_change(facts),
    )


def _change(reasons: tuple[str, ...]) -> str:
    return next((change for reason in reasons for part, change in CHANGES if part in reason), ANYWHERE)


def _line(facts: Facts, frame: Frame, share: float) -> Line | None:
    """The place that Dynamo's records name."""
    if not frame.file or not frame.line:
        return None
    file = frame.file.removeprefix(facts.session.folder.rstrip("/") + "/")
    return Line(file, frame.line, frame.function, "", float(frame.again_ns), share, ())
