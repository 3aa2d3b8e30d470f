"""Networks compute in double precision, which takes twice as long and helps no policy.

Two MLPs with Adam and 256 rows, CPU time of an update: in float64 1.8 to 1.9 times that of float32 with 2 x 256 units,
and 1.4 to 1.7 times with 2 x 64.
"""

from __future__ import annotations

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left, gain_if
from rlprof.analysis.advice.lines import loop_of
from rlprof.analysis.advice.lookup import CONSIDERABLE, number, share_of
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, count
from rlprof.ledger.catalogue import PHASES

DOUBLE = "float64"
LEFT = Left(0.58, 0.45, 0.85)


def float64(facts: Facts) -> Finding | None:
    """Speaks if the parameters are float64 and networks take a tenth of the training time."""
    found = [item for item in facts.evidence.optimizers if item.dtype == DOUBLE]
    networks = [item for item in facts.of_category("policy", "learning") if item.operation not in PHASES]
    share = share_of(facts, networks)
    if not found or share < 2 * CONSIDERABLE:
        return None
    by_default = facts.evidence.torch is not None and facts.evidence.torch.dtype == DOUBLE
    where = "torch.set_default_dtype(torch.float64) is on" if by_default else "the parameters were converted"
    names = tuple(item.operation for item in networks)
    return Finding(
        rule="float64",
        cause=f"The networks compute in float64, and take {as_percent(share)} of the training time.",
        place=loop_of(facts, *names),
        operations=names,
        evidence=(
            f"{count(sum(number(item.elements) for item in found))} parameters are {DOUBLE}: {where}.",
            "float32 needs half the memory traffic, and a CPU computes twice as many of them at once.",
        ),
        change="Use float32: remove `torch.set_default_dtype(torch.float64)` and `.double()`, and convert observations "
        "with `torch.as_tensor(obs, dtype=torch.float32)`.",
        gain=gain_if(facts, dict.fromkeys(names, LEFT)),
        check=compare_with_change(facts),
    )
