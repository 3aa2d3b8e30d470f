"""distill as a training: it learns, recording changes nothing, and its session is complete."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
import torch
from sessions import facts_of
from workload_runs import Twice, rlprof, scores_of, settings_of, train_twice

from rlprof import get_profiler
from rlprof.cli.main import main
from rlprof.workloads.distill import ROLLOUT
from rlprof.workloads.distill.policy import Student, precision
from rlprof.workloads.distill.settings import DistillSettings
from rlprof.workloads.distill.timing import to_text
from rlprof.workloads.distill.training import parts
from rlprof.workloads.distill.world import Worlds

SMALL = (
    "envs=4", "agents=4", "bptt=16", "trainer.batch_size=64", "policy.tokens=16", "policy.latents=2",
    "policy.width=8", "policy.heads=2", "policy.layers=1",
)  # fmt: skip
"""An iteration has 256 agent steps."""


def small(*words: str) -> DistillSettings:
    return settings_of("distill", *SMALL, *words)


def train(*words: str) -> list[float | None]:
    return scores_of("distill", small(*words))


# ---- the training, in this process ----


@pytest.mark.long
def test_the_seed_and_the_mission_decide_the_scores():
    words = ("iterations=1", "evaluator.evaluate_local=False", "batched_teacher=True", "envs=8")
    scores = train(*words, "seed=4")
    assert train(*words, "seed=4") == scores
    assert train(*words, "seed=5") != scores
    assert train(*words, "seed=4", "base_missions=extractor_hub_14") != scores


def test_an_evaluation_is_printed(capsys):
    train("iterations=3", "evaluator.epoch_interval=2", "supervised_steps=0")
    assert re.findall(r"evaluation after (\d) iterations: mean return \d", capsys.readouterr().err) == ["2"]


@pytest.mark.parametrize(("wanted", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_mixed_precision_multiplies_in_bfloat16(wanted, dtype):
    settings = small(f"trainer.mixed_precision={wanted}")
    student = Student(settings.policy)
    dtypes = []
    for layer in (student.embed, student.layers[0].query, student.gather):
        layer.register_forward_hook(lambda _layer, _inputs, output: dtypes.append(output.dtype))
    observations = torch.from_numpy(Worlds("extractor_hub_30", 1, 2, (1, 0)).observe())
    with precision(settings, torch.device("cpu")):
        log_probs, values, _ = student(observations, student.first_state(2))
    assert dtypes == [dtype] * 3
    assert (log_probs.dtype, values.dtype) == (torch.float32, torch.float32)


def test_a_capture_warns_if_the_run_is_too_short_or_not_recorded(capsys):
    words = ("iterations=2", "supervised_steps=0", "trainer.profiler.enabled=True")
    plain = train(*words)
    assert "trainer.profiler writes no trace, because nothing is recorded" in capsys.readouterr().err
    get_profiler().enable()
    try:
        assert train(*words, "trainer.profiler.wait_steps=5", "timing_every=0") == plain
    finally:
        get_profiler().disable()
        get_profiler().reset()
    printed = capsys.readouterr().err
    assert "this run has 2 iterations, but the torch capture needs 9" in printed
    assert "trainer.profiler.wait_steps=0 trainer.profiler.warmup_steps=1 trainer.profiler.active_steps=1" in printed
    assert "Rollout Timing Profile" not in printed


def test_each_part_does_a_piece_of_the_training():
    settings = small("iterations=10", "supervised_steps=1_280", "evaluator.epoch_interval=5")
    assert {name: do() for name, do in parts(settings).items()} == {
        "env_step": 16,
        "policy_forward": 16,
        "teacher_total": 32,  # in half of the iterations
        "update, imitating": 512,
        "update, PPO": 512,
        "evaluation": 1280,
    }
    alone = small("supervised_steps=0", "evaluator.evaluate_local=False")
    assert set(parts(alone)) == {"env_step", "policy_forward", "update, PPO"}


# ---- settings ----


def test_the_lengths_of_a_run_are_in_agent_steps():
    words = ("envs=3", "agents=5", "bptt=10", "supervised_steps=301", "trainer.total_timesteps=1_000")
    settings = settings_of("distill", *words)
    assert settings.steps_per_iteration == 150
    assert (settings.total_iterations, settings.supervised_iterations) == (7, 3)
    assert settings_of("distill", "run=msb_profile").session_name == "msb_profile"
    assert settings_of("distill", "timesteps=2048").total_iterations == 2
    assert settings_of("distill", "supervised_steps=0").supervised_iterations == 0


# ---- the timing tree ----


def lines_of(text: str) -> list[tuple[int, str, int]]:
    """Depth, title and hundredths of a millisecond."""
    found = re.findall(r"^( +)(?:[-•] )?(.+?): +(\d+)\.(\d\d) ms", text, re.MULTILINE)
    return [(len(indent) // 4, title, int(whole + part)) for indent, title, whole, part in found]


def test_the_timing_tree_adds_up_as_it_is_shown_and_marks_the_largest():
    times = {
        ("Student Forward",): 3.4567e6,
        ("Teacher Total", "GPU->CPU"): 1.005e6,
        ("Teacher Total", "Agent Calls"): 3.895e6,
    }
    text = to_text(times, agent_step=5120)
    assert "Rollout Timing Profile (agent_step=5120)" in text
    (_, _, total), student, (_, _, teacher), copies, calls = lines_of(text)
    assert student == (1, "Student Forward", 346)
    assert copies[2] + calls[2] == teacher
    assert student[2] + teacher == total
    (marked,) = [line for line in text.splitlines() if "BOTTLENECK" in line]
    assert marked.strip().startswith("• Agent Calls:")


# ---- the training, as users run it ----


@pytest.mark.long
def test_it_learns_from_the_teacher():
    words = ("policy.tokens=24", "policy.layers=1", "policy.latents=4", "policy.width=32", "learning_rate=0.004")
    more = ("batched_teacher=True", "iterations=14", "evaluator.evaluate_local=False")
    scores = scores_of("distill", settings_of("distill", *more, *words))
    first, last = sum(scores[:3]), sum(scores[-3:])
    assert last > 4 * first > 0


@pytest.fixture(scope="module")
def twice(tmp_path_factory) -> Twice:
    """Two taught iterations, then two of PPO; the variant has both cures."""
    words = ("iterations=4", "supervised_steps=512", "base_missions=extractor_hub_14", "evaluator.epoch_interval=3")
    cured = ("batched_teacher=True", "preallocated=True", "evaluator.evaluate_local=False", "timing_every=1")
    return train_twice("distill", tmp_path_factory.mktemp("twice"), *SMALL, *words, "--", *cured)


def test_neither_recording_nor_a_cure_nor_an_evaluation_changes_a_score(twice):
    assert len(set(twice.alone)) > 1
    assert len(twice.variant) == 4
    twice.check(steps=4 * 4 * 4 * 16, iterations=4)
    assert twice.facts.progress.episodes == 4 * 4 // 2


def test_the_teacher_is_off_after_the_supervised_steps(twice):
    calls = {name: list(series) for name, series in twice.facts.series.calls.items()}
    for operation in ("teacher_total", "teacher_reshape", "device_to_host", "stack_and_back"):
        assert calls[operation] == [16, 16, 0, 0], operation
    assert calls["agent_calls"] == [64, 64, 0, 0]  # one per environment
    assert calls["env_step"] == [16] * 4
    assert calls["evaluation"] == [0, 0, 1, 0]


@pytest.fixture(scope="module")
def documented(tmp_path_factory) -> tuple[Path, str]:
    """The document's command line with fewer steps. Returns its session and its output."""
    folder = tmp_path_factory.mktemp("documented")
    done = rlprof(
        folder, "train", "distill", "--timing-every", "5", "run=msb_profile", "base_missions=extractor_hub_30",
        "supervised_steps=640", "trainer.total_timesteps=1_280", "trainer.profiler.enabled=True",
        "trainer.profiler.wait_steps=2", "trainer.profiler.warmup_steps=2", "trainer.profiler.active_steps=4",
        "trainer.profiler.record_shapes=True", "evaluator.evaluate_local=False", *SMALL, "bptt=8",
    )  # fmt: skip
    (session,) = (folder / "rlprof-runs").glob("msb_profile_*")
    return session, done.stderr


@pytest.mark.long
def test_the_documents_command_line_leaves_a_session_and_a_trace(documented):
    session, printed = documented
    (trace,) = (session / "traces").iterdir()
    assert b"Input Dims" in gzip.decompress(trace.read_bytes())  # record_shapes
    assert "torch capture" not in printed
    facts = facts_of(session)
    assert facts.progress.steps == 1280
    assert list(facts.series.calls["agent_calls"]) == [32] * 5 + [0] * 5
    assert "evaluation" not in facts.series.calls


@pytest.mark.long
def test_the_timing_tree_is_printed_from_the_ledger(documented):
    taught, alone = documented[1].split("Rollout Timing Profile ")[1:]
    assert taught.startswith("(agent_step=640)")
    (_, _, total), *lines = lines_of(taught)
    outer = {title: time for depth, title, time in lines if depth == 1}
    inner = {title: time for depth, title, time in lines if depth == 2}
    assert list(outer) == list(ROLLOUT)
    assert sum(outer.values()) == total
    assert set(inner) <= set(ROLLOUT["Teacher Total"])
    assert sum(inner.values()) == outer["Teacher Total"]
    assert max(inner, key=inner.__getitem__) == "Agent Calls"
    assert "Teacher" not in alone


@pytest.mark.parametrize(
    "words", ["evaluator.epoch_interval=50", "trainer.batch_size=256", "trainer.mixed_precision=True", "timesteps=256"]
)
def test_the_settings_that_the_document_recommends_run(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["train", "distill", "--no-profile", "--no-progress", "--preallocated", *SMALL, "iterations=1", words])
    assert not ended.value.code
    assert "distill: 256 steps" in capsys.readouterr().out
