"""A wafer cluster tool as a timed Petri net, scheduled by TorchRL's PPO.

`--no-turbo` is a net of objects: places with tokens and transitions with arcs. `--turbo` does the same, step for step,
on numbers. The rest of an environment's step is TorchRL's and has its own account.
"""

from __future__ import annotations

from rlprof.workloads.petri.settings import PetriSettings
from rlprof.workloads.workload import Workload, declare

COMPONENTS = {
    "Data Collection": {
        "Env Step": "net_step",
        "Policy Forward": "policy_forward",
        "Env Reset": "net_reset",
        "TensorDict and framework": "rollout env_step env_reset",
    },
    "GAE": "advantage",
    "Replay Buffer": "replay_add replay_sample",
    "Training Loop": {
        "Loss": "loss",
        "Backward": "backward",
        "Optimizer": "optimizer_step zero_grad gradient_clip",
        "TensorDict and framework": "update",
    },
    "TensorDict Ops": "tensordict_ops",
    "Logging": "logging",
}

WORKLOAD = Workload("petri", PetriSettings, COMPONENTS, cure="turbo")

declare(environment="net_step net_reset")
