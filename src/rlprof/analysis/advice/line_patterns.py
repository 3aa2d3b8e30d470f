"""Lines that are known to be slow: the text of a hot line, and what it calls in libraries, tell what it does.

Each pattern speaks only if the lines of one function that match it take a tenth of the training time. How much of that
a change saves is a range, set by judgement: benchmarks/answers.py compares it with measured fixes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rlprof.analysis.advice.check import compare_with_change
from rlprof.analysis.advice.finding import Finding
from rlprof.analysis.advice.gain import Left
from rlprof.analysis.advice.lines import Match, function_of, gain_of, match
from rlprof.analysis.advice.lookup import CONSIDERABLE
from rlprof.analysis.code import Line
from rlprof.analysis.facts import Facts
from rlprof.analysis.figures import as_percent, many
from rlprof.ledger.catalogue import PHASES


@dataclass(frozen=True, slots=True)
class Pattern:
    rule: str
    does: str
    """What the lines do, after the place: `train.py:12 in collect ...`."""
    change: str
    left: Left
    source: str = ""
    below: str = ""
    without: str = ""
    direct: float = 0.0
    function: str = ""


NETWORKS = ("policy", "learning", "teacher")
"""Inside these operations a line runs a network, whatever else it does. Phases are none of them."""

NUMBERS = r"(?:np|numpy|jnp)\.(?:array|asarray|asanyarray)\("
TENSORS = r"(?:torch|th)\.(?:tensor|as_tensor|Tensor|FloatTensor|LongTensor|IntTensor|BoolTensor|DoubleTensor)\("

PATTERNS = (
    Pattern(
        "copying",
        "copies a whole object at every call",
        "Copy only what changes, and reuse the memory: for a target network keep one copy and update it in place with "
        "`torch._foreach_lerp_(list(target.parameters()), list(online.parameters()), tau)` or `load_state_dict`; for "
        "observations write into a preallocated array, `buffer[i] = obs`.",
        Left(0.08, 0.0, 0.45),
        source=r"\bdeepcopy\(|copy\.copy\(|\.copy\(\)|np\.copy\(|\.clone\(\)|pickle\.(?:loads|dumps)\(|\.state_dict\(\)",
        below=r"^copy:|^pickle:",
    ),
    Pattern(
        "growing_container",
        "builds a larger array from the old one each time, so it takes longer and longer",
        "Allocate the whole array once, for example `buffer = np.empty((capacity, *shape), dtype)`, and write rows in "
        "place: `buffer[i] = row`.",
        Left(0.05, 0.0, 0.4),
        source=r"np\.append\(|np\.insert\(|\b(\w[\w.]*)\s*=\s*(?:np\.(?:concatenate|vstack|hstack)|torch\.(?:cat|"
        r"vstack|hstack|concat))\(\s*[\[(]\s*\1\b|\b(\w[\w.]*)\s*=\s*\2\s*\+\s*\[",
    ),
    Pattern(
        "restacking",
        "builds an array from a Python list of arrays again and again",
        "Keep the data in one preallocated array and index it: `storage = np.empty((capacity, *shape), dtype)`, write "
        "with `storage[i] = obs`, read with `torch.from_numpy(storage[indices])`.",
        Left(0.1, 0.0, 0.5),
        source=r"(?:np|numpy)\.(?:stack|vstack|hstack|concatenate|column_stack)\(|(?:torch|th)\.(?:stack|cat|vstack|"
        r"hstack|concat)\(|" + NUMBERS + r"\s*(?:\[\s*\w+(?:\.\w+|\[[^\]]*\])+\s+for\b|list\()",
        below=r"^numpy.*:(?:stack|vstack|hstack|concatenate)$",
    ),
    Pattern(
        "per_item_conversion",
        "converts numbers or arrays one by one into a tensor or an array",
        "Convert the whole batch at once: `torch.from_numpy(np.asarray(batch, dtype=np.float32))`, with the batch in "
        "one preallocated numpy array instead of a list.",
        Left(0.1, 0.0, 0.5),
        source=TENSORS + r"|" + NUMBERS + r"\s*\[|\.tolist\(\)|(?:float|int)\(\w+\)\s+for\s+|\.append\((?:float|int)\(",
        without=r"\.item\(\)",
        direct=0.5,
    ),
    Pattern(
        "growing_container",
        "goes through a whole list or array at every call",
        "If the list holds everything collected so far, keep running sums instead: add each new value to a count, a "
        "sum and a sum of squares. Or keep only the last values: `deque(maxlen=1000)`.",
        Left(0.05, 0.0, 0.35),
        source=r"(?:np|numpy|statistics|st)\.(?:f?mean|median|p?std(?:ev)?|var|sum|percentile|quantile|sort|argsort|"
        r"max|min|cumsum|unique)\(\s*(?:np\.\w+\()?(?:self\.)?\w+|\b(?:sum|sorted|max|min)\((?:self\.)?[\w.]+\)|random\.(?:choices|sample|shuffle)\("
        r"|\[[^\[\]]*\sfor\s+\w+\s+in\s+self\.\w+\]",
        below=r"^statistics:",
    ),
    Pattern(
        "growing_container",
        "searches a whole list at every call",
        "Keep what the search finds: a `Counter` instead of `.count(x)` (`counts[x] += 1` where the list grows, then "
        "`counts[x]`), a set instead of `x in list`, a dict of positions instead of `.index(x)`.",
        Left(0.05, 0.0, 0.35),
        source=r"(?<![\w.])(?!self\.(?:count|index)\()[\w.]+\.(?:count|index)\([^)]|\bif\s.*\bin\s+self\.\w+\s*:",
    ),
    Pattern(
        "logging_in_loop",
        "writes or collects log values inside the innermost loop",
        "Keep the values as tensors, average them once per iteration, and log only then: `losses.append(loss.detach())`"
        " in the loop, `torch.stack(losses).mean().item()` after it. Write files in large pieces, without `flush()`.",
        Left(0.05, 0.0, 0.4),
        source=r"\bprint\(|\blog(?:ger|ging)?\.\w+\(|\.add_(?:scalar|scalars|histogram)\(|\bwriter\.\w+\(|wandb\.log\("
        r"|json\.dumps?\(|\.write(?:row|rows|lines)?\(|\.flush\(\)|os\.fsync\(|set_postfix\(",
        below=r"^(?:logging|json|csv)\b|tensorboard|^wandb",
        function=r"(?:^|\.)(?:add_(?:scalars?|histogram|image|text|figure)|log|log_(?:metrics|scalars?|stats|step|"
        r"values|params|weights)|_?write_?(?:row|line|log|metrics)?|record_metrics|dump)$",
    ),
    Pattern(
        "item_in_loop",
        "turns tensors into single numbers inside the innermost loop",
        "Leave the values as tensors in the loop, `values.append(value.detach())`, and convert them together after it: "
        "`torch.stack(values).tolist()`. If they are only for a log, compute them once per iteration.",
        Left(0.05, 0.0, 0.4),
        source=r"\.item\(\)|\.norm\(",
    ),
)


def line_patterns(facts: Facts) -> list[Finding]:
    """One finding per pattern at most. A line that one pattern has explained is not explained again by the next."""
    found: list[Finding] = []
    explained: set[tuple[str, int]] = set()
    among = facts.code.lines.keys() - ({item.operation for item in facts.of_category(*NETWORKS)} - PHASES)
    if not among:
        return []
    for pattern in PATTERNS:
        matched = match(facts, pattern.source, pattern.below, pattern.without, among, pattern.direct, pattern.function)
        if matched is None:
            continue
        left = tuple(hot for hot in matched.lines if (hot.line.file, hot.line.line) not in explained)
        matched = replace(matched, lines=left, share=sum(hot.line.share for hot in left))
        if left and matched.share >= CONSIDERABLE:
            explained |= {(hot.line.file, hot.line.line) for hot in left}
            found.append(_finding(facts, pattern, matched))
    return found


def _finding(facts: Facts, pattern: Pattern, matched: Match) -> Finding:
    place, others = matched.place, len(matched.lines) - 1
    where = f"{place.where} in {_function(place)}"
    if others:
        where = f"{place.where} (with {many(others, 'more line')} in {_function(place)})"
    return Finding(
        rule=pattern.rule,
        cause=f"{where} {pattern.does}: {as_percent(matched.share)} of the training time.",
        place=place,
        operations=_operations(facts, matched),
        evidence=matched.evidence() + _calls(place),
        change=pattern.change,
        gain=gain_of(facts, matched, pattern.left),
        check=compare_with_change(facts),
    )


def _operations(facts: Facts, matched: Match) -> tuple[str, ...]:
    """The operations that have a considerable part of the lines' time. A phase is never named: its own code is."""
    lines = [hot.line for hot in matched.lines]
    whole = sum(line.ns for line in lines)
    times = {name: sum(facts.code.ns_in(name, line) for line in lines) for name in matched.operations}
    return tuple(name for name, ns in times.items() if name not in PHASES and ns >= CONSIDERABLE * whole)


def _function(place: Line) -> str:
    name = function_of(place)
    return "the main program" if name == "<module>" else f"{name}()"


def _calls(place: Line) -> tuple[str, ...]:
    return (f"Most of its time is in {place.below[-1]}.",) if place.below else ()
