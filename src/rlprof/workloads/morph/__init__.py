"""PPO that controls the training of small convolutional networks: a step of its environment is an epoch of a host.

The bottleneck is data loading: a DataLoader augments image by image and collates the images.
`--experimental-gpu-preload-gather` cuts whole batches out of a tensor that is already on the device. Both yield the
same batches, bit for bit.
"""

from __future__ import annotations

from rlprof.workloads.morph.settings import MorphSettings
from rlprof.workloads.workload import Workload, declare

WORKLOAD = Workload("morph", MorphSettings, cure="experimental_gpu_preload_gather")

declare(environment="host_statistics host_morph")
