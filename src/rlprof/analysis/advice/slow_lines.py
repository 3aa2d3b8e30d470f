"""Lines that are known to be slow, by their text or by what they call in libraries. `line_patterns` looks for them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rlprof.analysis.advice.gain import Left
from rlprof.analysis.advice.lines import function_of
from rlprof.analysis.code import Line


@dataclass(frozen=True, slots=True)
class Pattern:
    rule: str
    does: str
    """What the lines do, after the place: `train.py:12 in collect ...`."""
    change: str
    left: Left
    source: str = ""
    """Regular expression for the text of a line. `below` is one for a `module:function` that it calls, `function` one
    for the name of its function, and `without` one for texts that are left out."""
    below: str = ""
    without: str = ""
    function: str = ""
    direct: float = 0.0
    """Least fraction of the time in the line itself, without functions of libraries in Python."""
    in_env: str = ""
    """Inside an environment the text must match this, too: there, arithmetic on small arrays is no mistake."""
    unless_growing: bool = False
    """True if the operation may take longer and longer instead of matching `in_env`."""
    one_by_one: bool = False
    """True if the line handles entries of a list or array one by one. All such lines of a function are one problem."""
    telling: bool = False
    """True if this pattern says what such a function does, even if other lines of it take longer."""

    def fits(self, line: Line) -> bool:
        by_source = bool(self.source) and re.search(self.source, line.source) and line.direct >= self.direct
        by_path = bool(self.below) and any(re.search(self.below, name) for name in line.below)
        by_name = bool(self.function) and re.search(self.function, function_of(line))
        left_out = bool(self.without) and re.search(self.without, line.source)
        return bool(by_source or by_path or by_name) and not left_out


NUMBERS = r"(?:np|numpy|jnp)\.(?:array|asarray|asanyarray)\("
TENSORS = r"(?:torch|th)\.(?:tensor|as_tensor|Tensor|FloatTensor|LongTensor|IntTensor|BoolTensor|DoubleTensor)\("

RUNNING = (
    "If the list holds everything collected so far, keep running sums instead: add each new value to a count, a sum "
    "and a sum of squares. Or keep only the last values: `deque(maxlen=1000)`. Insert into a sorted list with "
    "`bisect.insort` instead of sorting it again. Of losses keep `loss.item()`: a loss holds its whole graph."
)
"""What to do instead of going through a whole list at every call."""

HISTORY_NAMES = r"(?i)hist|past|\ball\b|all_|seen|visit|log|memor|buffer|trace|record|rewards|returns|scores|episodes"
"""What lists and arrays are called that hold everything so far."""

PATTERNS = (
    Pattern(
        "copying",
        "copies a whole object at every call",
        "Copy only what has changed, and reuse the memory. Write an array into a preallocated one: `buffer[i] = obs`. "
        "Keep one copy of a target network, and update it in place: "
        "`torch._foreach_lerp_(list(target.parameters()), list(online.parameters()), tau)`.",
        Left(0.05, 0.0, 0.45),
        source=r"\bdeepcopy\(|copy\.copy\(|\.copy\(\)|(?:np|torch)\.(?:copy|clone|roll)\(|\.clone\(\)|pickle\.(?:loads|dumps)\("
        r"|\.state_dict\(\)|\.data\.copy_\(|\.copy_\([^)]*\btau\b|\.data\s*=\s*",
        below=r"^copy:|^pickle:",
    ),
    Pattern(
        "growing_container",
        "builds a larger array from the old one each time, so it takes longer and longer",
        "Allocate the whole array once, for example `buffer = np.empty((capacity, *shape), dtype)`, and write rows in "
        "place: `buffer[i] = row`.",
        Left(0.05, 0.0, 0.4),
        source=r"np\.append\(|np\.insert\(|\b(\w[\w.]*)\s*=\s*(?:np\.(?:concatenate|vstack|hstack)|torch\.(?:cat|"
        r"vstack|hstack|concat))\(\s*[\[(]\s*\1\b|\b(\w[\w.]*)\s*=\s*\2\s*\+\s*\[|\bpd\.concat\(|\.loc\[len\(",
    ),
    Pattern(
        "restacking",
        "picks and joins the entries of a Python list for every batch",
        "Keep the replay buffer in preallocated arrays, one per column: `storage = np.empty((capacity, *shape))`. "
        "Write with `storage[position] = obs`, and read a batch with one index: "
        "`torch.from_numpy(storage[np.random.randint(0, filled, batch)])`.",
        Left(0.05, 0.0, 0.5),
        one_by_one=True,
        telling=True,
        source=r"\brandom\.sample\(|\bzip\(\*",
    ),
    Pattern(
        "weighted_sampling",
        "goes through all priorities to draw from them",
        "Keep the priorities in a sum tree, which draws and updates in log(n) steps, as torchrl's `PrioritizedSampler` "
        "does. Or compute the cumulative sum once per many draws, and draw with `np.searchsorted`.",
        Left(0.05, 0.0, 0.5),
        one_by_one=True,
        telling=True,
        source=r"\.choice\((?=.*\bp\s*=)\s*(?:len\(|self\.|np\.arange\()|\.choices\(.*weights|"
        r"\*\*.*\bfor\s+\w+\s+in\s+[\w.]*prio|prio\w*[^=]*(?:\*\*|/\s*[\w.]+\.sum\(|\.sum\()|\bp\w*\s*(?:/=|=\s*p\w*\s*/)\s*[\w.]+\.sum\(",
    ),
    Pattern(
        "growing_container",
        "goes through a whole list at every call",
        RUNNING,
        Left(0.05, 0.0, 0.35),
        source=r"(?:np|numpy|torch|th)\.(?:concatenate|stack|vstack|cat|array|asarray|tensor)\((?:list\()?[\w.]+\)+"
        r"\.(?:mean|std|var|sum|max|min|median)\(",
        in_env=HISTORY_NAMES,
        unless_growing=True,
    ),
    Pattern(
        "restacking",
        "builds an array from a Python list of arrays again and again",
        "Keep the data in one preallocated array and index it: `storage = np.empty((capacity, *shape), dtype)`, write "
        "with `storage[i] = obs`, read with `torch.from_numpy(storage[indices])`.",
        Left(0.05, 0.0, 0.5),
        one_by_one=True,
        source=r"(?:np|numpy)\.(?:stack|vstack|hstack|concatenate|column_stack)\(|(?:torch|th)\.(?:stack|cat|vstack|"
        r"hstack|concat)\(|" + NUMBERS + r"\s*(?:\[\s*\w+(?:\.\w+|\[[^\]]*\])+\s+for\b|list\()",
        in_env=r"\bfor\b|\(\s*(?:list\(|tuple\()?(?:self\.)?\w+\s*[,)]",
        below=r"^numpy.*:(?:stack|vstack|hstack|concatenate)$",
    ),
    Pattern(
        "per_element_call",
        "calls a Python function for every element",
        "`np.vectorize`, `np.apply_along_axis` and pandas' `apply` are loops in Python. Write the function for whole "
        "arrays: `np.where(x > 0, x, 0.1 * x)` instead of an `if` per element.",
        Left(0.05, 0.0, 0.5),
        one_by_one=True,
        source=r"np\.(?:vectorize|apply_along_axis|apply_over_axes|fromiter|frompyfunc)\(|\.(?:apply|applymap|iterrows|"
        r"itertuples)\(|(?:torch\.(?:stack|tensor)|np\.array|list)\(\s*(?:list\(\s*)?map\(",
        below=r"^numpy.*:(?:vectorize|apply_along_axis)|^pandas.*:(?:apply|iterrows|itertuples)$",
        without=r"\.apply\(\s*(?:self\.)?_?(?:init|reset)\w*",
    ),
    Pattern(
        "per_item_conversion",
        "converts numbers or arrays one by one into a tensor or an array",
        "Convert the whole batch at once: `torch.from_numpy(np.asarray(batch, dtype=np.float32))`, with the batch in "
        "one preallocated numpy array instead of a list. If the line computes its elements, compute them on the whole "
        "array, such as `np.sqrt((xy ** 2).sum(-1))`.",
        Left(0.05, 0.0, 0.5),
        one_by_one=True,
        source=TENSORS
        + r"|"
        + NUMBERS
        + r"\s*(?:\[|[\w.]+\s*[,)])|\.tolist\(\)|(?:float|int)\(\w+\)\s+for\s+|\.append\((?:float|int)\(",
        without=r"\.item\(\)",
        in_env=r"\bfor\b|\.tolist\(\)|\b(?:torch|th)\.|\.append\(|\(\s*self\.\w+\s*[,)]",
        direct=0.5,
    ),
    Pattern(
        "growing_container",
        "goes through a whole list or array at every call",
        RUNNING,
        Left(0.05, 0.0, 0.35),
        one_by_one=True,
        source=r"(?:np|numpy|statistics|st)\.(?:f?mean|median|p?std(?:ev)?|var|sum|percentile|quantile|sort|argsort|"
        r"max|min|cumsum|unique)\(\s*(?:np\.\w+\()?(?:self\.)?\w+|(?<![\w.])(?:sum|sorted|max|min)\((?:self\.)?[\w.]*[a-zA-Z_]\w*[,)]|\.sort\(key|random\.shuffle\("
        r"|\[[^\[\]]*\sfor\s+\w+\s+in\s+self\.\w+\]",
        in_env=HISTORY_NAMES,
        unless_growing=True,
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
        "growing_container",
        "moves all elements of a list to insert or remove one at its front",
        "Use a ring: `collections.deque(maxlen=capacity)` drops the oldest entry by itself. A preallocated array with "
        "`position = (position + 1) % capacity` also has fast indexing.",
        Left(0.05, 0.0, 0.35),
        one_by_one=True,
        source=r"\.pop\(0\)|\.insert\(0,|\bdel\s+[\w.]+\[(?:0|:[^\]]*)\]|\.remove\(\w",
    ),
    Pattern(
        "file_in_loop",
        "loads network weights from a file at every call",
        "Load them only when there are new ones, or once per episode: `changed = os.stat(path).st_mtime_ns`, and load "
        "if `changed` differs from the last time. Loading less often means acting with older weights, so check the "
        "returns, too.",
        Left(0.05, 0.0, 0.35),
        source=r"load_state_dict\(\s*(?:torch|th)\.load\(",
    ),
    Pattern(
        "file_in_loop",
        "reads a file at every call",
        "Read the file once before the loop, and keep what was read: `table = json.load(file)` at the start, or "
        "`@functools.lru_cache` on the function that reads.",
        Left(0.05, 0.0, 0.35),
        source=r"\bopen\((?![^)]*[\"'][wax])|\b(?:json|yaml|pickle|toml|tomllib|np|torch|joblib)\.(?:safe_)?load\(|\bread_(?:csv|json|"
        r"parquet|pickle|text|bytes)\(|\bimread\(|\bImage\.open\(|\bloadtxt\(|\bgenfromtxt\(",
        below=r"^(?:yaml|tomllib)\b|^json:load|^pandas\.io.*:read",
    ),
    Pattern(
        "system_call_in_loop",
        "asks the operating system or starts a program at every call",
        "Do this once per minute, or in another thread, so that the training does not wait for it. rlprof records CPU, "
        "memory and GPU use without slowing the training: `rlprof report --full`.",
        Left(0.05, 0.0, 0.35),
        source=r"\bsubprocess\.\w+\(|\bos\.(?:system|popen|listdir|walk|stat)\(|\bpsutil\.|\bglob\.glob\(|\.cpu_percent\(|"
        r"\.memory_(?:full_)?info\(|\bnvml\w+\(|\btracemalloc\.\w+\(|\bshutil\.\w+\(",
        below=r"^(?:subprocess|psutil|tracemalloc)\b",
    ),
    Pattern(
        "logging_in_loop",
        "draws a plot inside the innermost loop",
        "Draw once after many iterations, or at the end, from values that you keep in a list.",
        Left(0.05, 0.0, 0.4),
        source=r"\.savefig\(|\bplt\.\w+\(|\.imshow\(",
        below=r"^matplotlib\b",
    ),
    Pattern(
        "logging_in_loop",
        "writes a file inside the innermost loop",
        "Keep the file open, and append only what is new, every hundredth time or at the end: "
        "`file.write(json.dumps(row) + '\\n')`. To write all rows again takes longer and longer.",
        Left(0.05, 0.0, 0.4),
        source=r"\.to_(?:csv|json|parquet)\(|\bsavetxt\(|\bimwrite\(|"
        r"\bopen\([^)]*[\"'][wax]|\.write(?:row|rows|lines|_text|_bytes)?\(|\.flush\(\)|os\.fsync\(|json\.dump\(",
        below=r"^csv\b|^pandas\.io.*:(?:to_|write|save)",
    ),
    Pattern(
        "logging_in_loop",
        "writes or collects log values inside the innermost loop",
        "Keep the values as tensors, average them once per iteration, and log only then: `losses.append(loss.detach())`"
        " in the loop, `torch.stack(losses).mean().item()` after it.",
        Left(0.05, 0.0, 0.4),
        source=r"\bprint\(|\blog(?:ger|ging)?\.\w+\(|\.add_(?:scalar|scalars|histogram)\(|\bwriter\.\w+\(|wandb\.log\("
        r"|json\.dumps\(|set_postfix\(|\bmlflow\.",
        below=r"^(?:logging|json|mlflow|tqdm)\b|tensorboard|^wandb",
        function=r"(?:^|\.)(?:add_(?:scalars?|histogram|image|text|figure)|log|log_(?:metrics|scalars?|stats|step|"
        r"values|params|weights)|_?write_?(?:row|line|log|metrics)?|record_metrics|dump)$",
    ),
    Pattern(
        "item_in_loop",
        "computes statistics inside the innermost loop",
        "For a log, compute them once per iteration, or after every hundredth update. If the training needs them, "
        "update them with what is new instead of computing them again from everything. On a GPU, leave the values as "
        "tensors, because each `.item()` waits for the device.",
        Left(0.05, 0.0, 0.4),
        source=r"\.item\(\)|\.(?:norm|std|var|quantile|median|histc|kthvalue|svd)\(",
        without=r"linalg\.norm\(|\bact(?:ion)?s?\b|sample\(|argmax\(|multinomial\(|\.step\(",
    ),
)

HISTORY = Pattern(
    "growing_container",
    "goes through everything collected so far at every call, so it takes longer and longer",
    "Keep running sums instead: add each new value to a count, a sum and a sum of squares, or keep only the last "
    "values: `deque(maxlen=1000)`. If you need all values, write them into one preallocated array, and compute with "
    "them once per iteration.",
    Left(0.05, 0.0, 0.35),
    one_by_one=True,
    source=r"(?:np|numpy|torch|th|statistics)\.\w+\(|\.(?:mean|std|var|sum|max|min|sort|median|norm|copy|clone|tolist)\(|"
    r"(?<![\w.])(?:sum|sorted|max|min|len|list|tuple)\(|\bfor\b.*\bin\b|\bin\s+self\.\w+",
)
"""Any line that can go through a whole list or array. It counts only in an operation that takes longer and longer."""

OF_HISTORY = ("copying", "item_in_loop", "per_element_call", "per_item_conversion", "restacking")
"""Rules whose lines go through whole lists or arrays, too."""
