"""Ricochet Robots from RGB images, with a ConvLSTM on sb3-contrib's RecurrentPPO.

The bottleneck is the drawing: the grid and the walls of a board never change, but are drawn again for every
observation. `--cached-rendering` draws them once per board. The images are the same to the last bit.
"""

from __future__ import annotations

from rlprof.workloads.ricochet.settings import RicochetSettings
from rlprof.workloads.workload import Workload, declare

COMPONENTS = {
    "Environment": {
        "Moves and resets": "env_step env_reset",
        "Observation": "env_rgb_observation_generation",
        "Rendering": "env_rgb_rendering",
        "Grid": "env_rgb_draw_grid",
        "Walls": "env_rgb_draw_walls",
        "Robots": "env_rgb_draw_robots",
        "Target": "env_rgb_draw_target",
        "Resizing": "env_rgb_resizing",
    },
    "Model": {
        "Forward pass": "convlstm_forward_pass lstm_forward",
        "Boundary padding": "convlstm_boundary_padding",
        "Conv encoder": "convlstm_conv_encoder",
        "ConvLSTM layers": "convlstm_layers",
        "Skip connection": "convlstm_skip_connection",
        "Global pooling": "convlstm_global_pooling",
        "Projection": "convlstm_projection",
    },
    "Policy": {
        "Forward": "recurrent_policy_forward value_forward evaluate_actions",
        "Hidden states": "recurrent_policy_get_hidden_states",
        "Action and value": "recurrent_policy_action_value",
        "Action distribution": "recurrent_policy_action_dist",
        "Action sampling": "recurrent_policy_action_sampling action_sampling",
    },
    "Training": {
        "Data collection": "rollout callback buffer_add buffer_reset advantage",
        "Sequences and padding": "buffer_get",
        "Backward": "backward",
        "Optimizer": "optimizer_step zero_grad gradient_clip",
        "Update": "update",
        "Rest": "training_total logging",
    },
}

WORKLOAD = Workload("ricochet", RicochetSettings, COMPONENTS, cure="cached_rendering", score="targets per 100 steps")

_operations = " ".join(words for inside in COMPONENTS.values() for words in inside.values()).split()
declare(
    rendering=" ".join(name for name in _operations if name.startswith("env_rgb_")),
    policy=" ".join(name for name in _operations if name.startswith(("convlstm_", "recurrent_policy_"))),
)
