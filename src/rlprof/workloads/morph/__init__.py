"""PPO that controls the training of small convolutional networks: a step of its environment is an epoch of a host.

The bottleneck is planted in how the hosts are fed: a DataLoader augments image by image, and collates them.
`--experimental-gpu-preload-gather` cuts whole batches out of a tensor that is on the device already. Both yield the
same batches, bit for bit.
"""

from __future__ import annotations

from rlprof.workloads.categories import declare
from rlprof.workloads.morph.settings import MorphSettings
from rlprof.workloads.workload import Workload

WORKLOAD = Workload(
    name="morph",
    settings=MorphSettings,
    program="rlprof.workloads.morph.training",
    score="mean return",
    cure="experimental_gpu_preload_gather",
)

declare(environment="host_statistics host_morph")
