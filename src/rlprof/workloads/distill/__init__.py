"""From a scripted teacher to PPO: agents that carry ore in a grid world, with a recurrent Perceiver as their policy.

The bottleneck is the teacher. It is called environment by environment, and reads one agent's observation after the
other in Python. `--batched-teacher` computes the same actions for all agents at once on arrays. `--preallocated` keeps
the tensors of the copies and of the replay, instead of allocating new ones.
"""

from __future__ import annotations

from rlprof.workloads.distill.settings import DistillSettings
from rlprof.workloads.workload import Workload, declare

ROLLOUT = {
    "Student Forward": "policy_forward action_sampling",
    "Teacher Total": {
        "Reshape": "teacher_reshape",
        "GPU->CPU": "device_to_host",
        "Agent Calls": "agent_calls",
        "Stack+Back": "stack_and_back",
        "Other": "teacher_total",
    },
    "Env Step": "env_step env_reset",
    "Replay Store": "replay_store",
    "Other": "rollout host_to_device",
}

COMPONENTS = {
    "Rollout Total": ROLLOUT,
    "Advantages": "value_forward advantage",
    "Update": {
        "Batch": "buffer_sample",
        "Forward": "evaluate_actions",
        "Loss": "loss",
        "Backward": "backward",
        "Optimizer": "zero_grad gradient_clip optimizer_step",
        "Other": "update",
    },
    "Evaluation": "evaluation policy_predict",
    "Logging": "logging",
}

WORKLOAD = Workload("distill", DistillSettings, COMPONENTS, cure="batched_teacher")

declare(teacher="teacher_total teacher_reshape agent_calls", transfer="stack_and_back", storage="replay_store")
