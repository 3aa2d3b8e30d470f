"""Pokemon battles on a local Pokemon Showdown server: recurrent PPO, one thread per environment.

The bottleneck is in the agents: every thread calls the networks by itself, with one observation at a time.
`--batched-inference` answers all threads together, in one forward pass.
"""

from __future__ import annotations

from rlprof.workloads.battle.install import prepare
from rlprof.workloads.battle.settings import BattleSettings
from rlprof.workloads.workload import Workload, declare

COMPONENTS = {
    "Environment Operations": {
        "Reset": "env_reset",
        "Step": "env_step",
        "Parallel execution": "env_parallel_execution",
    },
    "Learning Operations": {
        "Gradient Calculation": "gradient_calculation",
        "Optimizer Step": "optimizer_step zero_grad gradient_clip",
        "Loss Calculation": "loss_calculation",
        "Advantages": "advantage",
        "Batches": "update",
    },
    "Agent Operations": {"Action Selection": "agent_action_selection", "Value Calculation": "agent_value_calculation"},
}

WORKLOAD = Workload("battle", BattleSettings, COMPONENTS, cure="batched_inference", prepare=prepare)

declare(
    environment="env_parallel_execution server_reply message_parsing observation_encoding",
    policy="agent_action_selection agent_value_calculation",
    learning="gradient_calculation loss_calculation",
)
