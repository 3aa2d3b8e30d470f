"""Which kind of work each known operation is.

Names nobody knows are welcome: they are of the category `other` unless the caller tells.
"""

from __future__ import annotations

CATEGORIES = (
    "environment",
    "rendering",
    "policy",
    "teacher",
    "transfer",
    "storage",
    "learning",
    "system",
    "other",
)

_OPERATIONS = {
    "environment": "env_step env_reset env_close env_make env_wait env_forward env_parallel_execution net_step "
    "net_reset host_forward host_backward host_optimizer_step host_evaluation host_statistics host_morph "
    "server_reply message_parsing observation_encoding "
    "simulated_data_collection",
    "rendering": "render env_render observation_render draw_grid draw_robots draw_walls image_resize "
    "env_rgb_observation_generation env_rgb_rendering env_rgb_resizing env_rgb_draw_grid env_rgb_draw_walls "
    "env_rgb_draw_robots env_rgb_draw_target",
    "policy": "policy_forward policy_predict value_forward action_selection action_sampling value_estimation "
    "feature_extraction conv_forward lstm_forward agent_action_selection agent_value_calculation "
    "convlstm_forward_pass convlstm_boundary_padding convlstm_conv_encoder convlstm_skip_connection convlstm_layers "
    "convlstm_global_pooling convlstm_projection recurrent_policy_forward recurrent_policy_get_hidden_states "
    "recurrent_policy_action_value recurrent_policy_action_dist recurrent_policy_action_sampling",
    "teacher": "teacher_forward teacher_total teacher_reshape agent_calls",
    "transfer": "weight_sync to_device to_host host_to_device device_to_host device_synchronize stack_and_back",
    "storage": "buffer_add buffer_sample buffer_get buffer_reset replay_add replay_sample replay_store replay_priority "
    "advantage advantages gae compute_gae compute_advantages compute_returns tensordict_ops data_loading "
    "batch_preparation",
    "learning": "update train_step learn loss compute_loss loss_forward evaluate_actions backward gradient_clip "
    "optimizer_step zero_grad target_update "
    "gradient_calculation loss_calculation simulated_model_update",
    "system": "startup prefill logging checkpoint evaluation callback telemetry thread_wait future_wait queue_wait "
    "pipe_wait process_wait inference_wait sleep trace_export turn_wait suspended "
    "after_training",
    "other": "rollout pool_task",
}

STARTUP = "startup"
"""What a program does before its training. It is done once, so it says nothing of the training's speed."""
PREFILL = "prefill"
"""Steps that fill a replay buffer before anything is learned."""
EVALUATION = "evaluation"
TRACE_EXPORT = "trace_export"
"""Writing a torch trace, which nobody trains for."""
TURN_WAIT = "turn_wait"
"""An arm of a comparison while it is the other one's turn."""
SUSPENDED = "suspended"
"""The process was stopped: SIGSTOP, a paused container, a suspended machine."""
AFTER_TRAINING = "after_training"
"""What a program does after the last step, or after the last thing that it learned."""
BESIDE_TRAINING = frozenset({STARTUP, PREFILL, TRACE_EXPORT, TURN_WAIT, SUSPENDED, AFTER_TRAINING})

PHASES = frozenset({"rollout", "update", "training_total"})
"""Operations that only contain others. They structure the tree and are never a finding."""

WAITS = frozenset({"thread_wait", "future_wait", "queue_wait", "pipe_wait", "process_wait", "inference_wait", "sleep"})
"""What probes name a wait for others: nothing that could be made faster in itself."""

_CATEGORY_OF = {name: category for category, names in _OPERATIONS.items() for name in names.split()}

# Work that is queued on a device and goes on after the call has returned.
_ON_DEVICE = frozenset({"policy", "teacher", "transfer", "learning"})


def category_of(name: str) -> str:
    """The category the catalogue gives an operation."""
    return _CATEGORY_OF.get(name, "other")


def names_of(category: str) -> list[str]:
    """The names the catalogue has in a category."""
    return _OPERATIONS.get(category, "").split()


def classify(name: str, category: str | None) -> tuple[str, bool]:
    """An operation's category, and whether it is timed on the device where there is one."""
    if category is None:
        category = category_of(name)
    elif category not in CATEGORIES:
        raise ValueError(f"category {category!r} of {name!r} is not one of {', '.join(CATEGORIES)}")
    return category, category in _ON_DEVICE
