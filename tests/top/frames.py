"""Frames with planted figures, as the feed would make them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rlprof.analysis.advice.finding import Finding, Gain
from rlprof.analysis.code import Line
from rlprof.ledger.histogram import bucket_of
from rlprof.live.frame import Change, Frame, LaneNow, OperationDetail, Part, PastIteration, Speed, Stuck, Usage
from rlprof.session.records import Mark
from rlprof.top.drawing import name_of
from rlprof.top.look import UNICODE, Look

MS = 1_000_000
PLAIN = Look(UNICODE, None)

LINE = Line("train.py", 45, "collect", "obs, reward, done, _, info = env.step(action)", 1e9, 0.91, ("gymnasium:step",))

TREE = (
    # operation, category, depth, is phase, share, own share, now, own now, calls, mean
    ("rollout", "other", 0, True, 69.8, 1.2, 71.2, 1.1, 41, 1100 * MS),
    ("env_step", "environment", 1, False, 43.2, 43.2, 51.4, 51.4, 20_992, 1.36 * MS),
    ("policy_forward", "policy", 1, False, 22.1, 22.1, 16.0, 16.0, 20_992, 0.69 * MS),
    ("to_device", "transfer", 1, False, 3.3, 3.3, 2.7, 2.7, 20_992, 0.1 * MS),
    ("update", "other", 0, True, 28.4, 0.9, 27.1, 0.8, 41, 450 * MS),
    ("backward", "learning", 1, False, 17.9, 17.9, 17.5, 17.5, 1_640, 7.2 * MS),
    ("optimizer_step", "learning", 1, False, 9.4, 9.4, 8.6, 8.6, 1_640, 3.8 * MS),
    ("zero_grad", "learning", 1, False, 0.2, 0.2, 0.2, 0.2, 1_640, 0.08 * MS),
    ("unattributed", "unattributed", 0, False, 1.7, 1.7, 1.6, 1.6, 0, None),
    ("rlprof", "rlprof", 0, False, 0.1, 0.1, 0.1, 0.1, 0, None),
)

FINDING = Finding(
    rule="step_in_python",
    cause="env.step() computes in Python loops, which takes 43.2% of the training time.",
    place=LINE,
    operations=("env_step",),
    evidence=("91% of env_step is in one line.",),
    change="Step all environments at once: replace the loop by gymnasium.make_vec(name, num_envs=8).",
    gain=Gain(1.62, 1.41, 1.87),
    check="rlprof compare 'run train.py' 'run train_changed.py'",
)


def parts(tree: tuple[Any, ...] = TREE) -> tuple[Part, ...]:
    made, path = [], []
    for name, category, depth, phase, share, own, now, own_now, calls, mean in tree:
        path[depth:] = [name]
        made.append(
            Part(
                name, category, depth, phase, share, own, now, own_now, int(share * 600 * MS), calls, mean, tuple(path)
            )
        )
    return tuple(made)


def lane(name: str = "main", **known: Any) -> LaneNow:
    usual: dict[str, Any] = {
        "kind": "thread", "on_driver": name == "main", "alive": True, "doing": ("rollout", "env_step"),
        "since_s": 0.012, "busy": 83.4,
    }  # fmt: skip
    return LaneNow(name, **(usual | known))


WORKERS = tuple(
    lane(f"worker-{number}", kind="process", doing=("env_step",) if number % 2 else (), since_s=0.004 * (number + 1),
         busy=40.0 + number)
    for number in range(4)
)  # fmt: skip


def frame(**known: Any) -> Frame:
    usual: dict[str, Any] = {
        "folder": Path("rlprof-runs/cartpole_ppo_20260101-120000"), "name": "cartpole_ppo", "state": "running",
        "started": 1_790_000_000.0, "written": 1_790_000_134.0, "age_s": 0.4, "wall_s": 134.2, "iterations": 41,
        "planned": 100, "eta_s": 192.0, "iteration_ns": 1_600 * MS, "open_s": 0.6, "steps": 1_230_000, "episodes": 812,
        "training_s": 131.0,
        "speed": Speed("step", 12_345.0, 11_900.0, tuple(9_000 + 900 * (n % 7) + 40 * n for n in range(90))),
        "window_iterations": 6, "window_ns": 10_200 * MS, "parts": parts(),
        "lanes": (lane(waits=True, doing=("rollout", "worker_wait"), waits_for=("worker-1", "worker-3")), *WORKERS),
        "usage": Usage(
            cpu=92.0, children_cpu=95.0, machine_cpu=97.0, cores=2, memory=1_320 << 20, memory_available=8 << 30,
            memory_machine=16 << 30, cpu_history=tuple(100 + 20 * (place % 5) for place in range(100)),
            memory_history=tuple((1_000 + 3 * place) << 20 for place in range(100)),
        ),
        "findings": (FINDING, FINDING),
        "changes": (Change("env_step", 1.41, 0.96 * MS, 1.36 * MS, 600.0, 51.4),),
        "marks": (Mark(1_790_000_100 * 10**9, "alert", "memory is above 1 GB: 1.29 GB"),),
    }  # fmt: skip
    return Frame(**(usual | known))


def stuck_frame(**known: Any) -> Frame:
    held = lane(doing=("rollout", "worker_wait"), since_s=312.0, waits=True, waits_for=("worker-3",), busy=0.0)
    other = lane("worker-3", kind="process", doing=("env_step",), since_s=312.0, busy=0.0)
    stuck = Stuck(
        since=1_790_000_000.0, seconds=312.0, reason="No operation has ended for 195 times the usual iteration.",
        lanes=(held, other),
    )  # fmt: skip
    return frame(stuck=stuck, lanes=(held, other), **known)


def past(back: int = 0) -> PastIteration:
    last = 41 - back
    own = (("env_step", "environment", 800 * MS, 512), ("policy_forward", "policy", 300 * MS, 512),
           ("backward", "learning", 380 * MS, 40), ("unattributed", "unattributed", 15 * MS, 0),
           ("rlprof", "rlprof", 5 * MS, 0))  # fmt: skip
    return PastIteration(last, last, 1_790_000_100.0 - back, 1_500 * MS, 512, 341.3, own)


def detail(name: str = "env_step") -> OperationDetail:
    histogram: dict[int, int] = {}
    for ns, calls in (
        (0.9, 400),
        (1.0, 3_000),
        (1.1, 9_000),
        (1.3, 5_000),
        (1.6, 2_000),
        (3.0, 500),
        (9.0, 90),
        (40.0, 2),
    ):
        histogram[bucket_of(int(ns * MS))] = calls
    return OperationDetail(
        name, "environment", 20_992, 43.2, 1.36 * MS, 1.2 * MS, 3.1 * MS, 9.2 * MS, 0.88 * MS, 41 * MS, histogram,
        (LINE, replace(LINE, line=52, source="frames.append(obs)", share=0.06)),
    )  # fmt: skip


def many_lanes(number: int = 1_000) -> tuple[LaneNow, ...]:
    return (
        lane(),
        *(
            lane(f"env-worker-{place}", kind="process", doing=("env_step",) if place % 3 else ())
            for place in range(1, number)
        ),
    )


def many_parts(number: int = 500) -> tuple[Part, ...]:
    share = 100 / number
    return parts(tuple(
        (f"operation_{place}", "other", place % 3, False, share * (3 - place % 3), share, share, share, 10, MS)
        for place in range(number)
    ))  # fmt: skip


def text_of(lines: list[Any]) -> str:
    return "\n".join(line.plain for line in lines)


HOSTILE = (
    "[red]bold[/red]", "a\x1b[31mb\x07c", "x" * 5_000,
    "環境を一歩進める環境を一歩進める環境を一歩進める", "שלום עולם\u202etest",
    "line\nbreak\ttab", "é́́́́", "👩\u200d💻 coder", "",
)  # fmt: skip


def clean(name: str) -> str:
    return name_of(name, 20, PLAIN)
