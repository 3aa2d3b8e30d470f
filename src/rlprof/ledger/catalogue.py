"""Categories of well-known operations.

Any name may be used. A name that is not listed here has the category that `profile(name, category=...)` gives it. Once
is enough: later spans of that name have it, too. Without one, the category is `other`.
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
    # Operations named host_ are those of an environment that trains a network itself: see rlprof.probes.torch.
    "environment": "env_step env_reset env_close env_make env_wait env_forward host_forward host_backward "
    "host_optimizer_step host_evaluation",
    "rendering": "render env_render observation_render image_resize",
    "policy": "policy_forward policy_predict value_forward action_selection action_sampling value_estimation "
    "feature_extraction conv_forward lstm_forward",
    "teacher": "teacher_forward",
    "transfer": "weight_sync to_device to_host host_to_device device_to_host device_synchronize",
    "storage": "buffer_add buffer_sample buffer_get buffer_reset replay_add replay_sample replay_priority "
    "advantage advantages gae compute_gae compute_advantages compute_returns tensordict_ops data_loading "
    "batch_preparation loader_workers",
    "learning": "update train_step learn loss compute_loss loss_forward evaluate_actions backward gradient_clip "
    "optimizer_step zero_grad target_update",
    "system": "startup prefill logging checkpoint evaluation callback telemetry thread_wait future_wait queue_wait "
    "pipe_wait process_wait inference_wait sleep trace_export turn_wait suspended "
    "after_training",
    "other": "rollout pool_task compile",
}

STARTUP = "startup"
"""What a program does before its training. It happens once, so it does not affect the training's speed."""
PREFILL = "prefill"
"""Steps that fill a replay buffer before anything is learned."""
EVALUATION = "evaluation"
TRACE_EXPORT = "trace_export"
"""Writing a torch trace: no part of the training."""
TURN_WAIT = "turn_wait"
"""One training of a comparison waits while the other one runs."""
SUSPENDED = "suspended"
"""The process was stopped: SIGSTOP, a paused container, a suspended machine."""
AFTER_TRAINING = "after_training"
"""What a program does after the last step, or after the last thing that it learned."""
BESIDE_TRAINING = frozenset({STARTUP, PREFILL, TRACE_EXPORT, TURN_WAIT, SUSPENDED, AFTER_TRAINING})

PHASES = frozenset({"rollout", "update", "training_total"})
"""Operations that only contain others. They structure the tree and are never a finding."""

WAITS = frozenset({"thread_wait", "future_wait", "queue_wait", "pipe_wait", "process_wait", "inference_wait", "sleep"})
"""Operations that wait for others. They cannot be made faster themselves."""

_CATEGORY_OF = {name: category for category, names in _OPERATIONS.items() for name in names.split()}

# Work that is queued on a device and goes on after the call has returned.
_ON_DEVICE = frozenset({"policy", "teacher", "transfer", "learning"})


def category_of(name: str) -> str:
    """Category of an operation in the catalogue."""
    return _CATEGORY_OF.get(name, "other")


def names_of(category: str) -> list[str]:
    """Names that the catalogue lists in a category."""
    return _OPERATIONS.get(category, "").split()


def classify(name: str, category: str | None) -> tuple[str, bool]:
    """Category of an operation, and whether its spans are timed on the GPU where there is one."""
    if category is None:
        category = category_of(name)
    elif category not in CATEGORIES:
        raise ValueError(f"category {category!r} of {name!r} is not one of {', '.join(CATEGORIES)}")
    return category, category in _ON_DEVICE
