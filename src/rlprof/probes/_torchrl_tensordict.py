"""The cost of tensordict itself: copying, reshaping and rebuilding whole tensordicts.

`get`, `set` and indexing are not timed. They are many and short, and torch.compile has rules of its own for indexing.
`to`, `cpu` and `permute` break torch.compile's graphs, and would break them in another place if they were timed. Their
work is in `_fast_apply`.
"""

from __future__ import annotations

from types import ModuleType

from rlprof.probes.patches import Patches

_COPIES = ("clone", "contiguous", "detach", "from_any", "memmap", "memmap_", "share_memory_", "to_tensordict")
_ENTRIES = ("exclude", "flatten_keys", "select", "unflatten_keys", "update", "update_")
_SHAPES = ("chunk", "expand", "flatten", "reshape", "squeeze", "transpose", "unflatten", "unsqueeze", "view")
_PARTS = ("gather", "masked_select", "split", "unbind", "where")
_STACKS = ("__torch_function__", "lazy_stack", "maybe_dense_stack")
_LEAVES = ("_fast_apply", "apply", "consolidate", "to_module")

OPERATIONS = (*_COPIES, *_ENTRIES, *_SHAPES, *_PARTS, *_STACKS, *_LEAVES)


def attach_tensordict(module: ModuleType, patches: Patches) -> None:
    for kind in (module.TensorDictBase, module.TensorDict, module.LazyStackedTensorDict):
        for name in OPERATIONS:
            patches.time(kind, name, "tensordict_ops", outermost=True)
