"""Torch traces of real trainings: the right steps, with every phase named."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sessions import rlprof

from rlprof.session.reader import Session
from rlprof.trace.analysis.summarize import summarize
from rlprof.trace.read import read_trace

PPO = """
import sys, torch
from stable_baselines3 import PPO
torch.set_num_threads(1)
model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, n_epochs=4, batch_size=32, seed=1, device="cpu")
model.learn(64 * int(sys.argv[1]))
total = sum(parameter.double().sum().item() for parameter in model.policy.parameters())
print("weights", total.hex())
"""

HANDWRITTEN = """
import sys, numpy as np, gymnasium as gym, torch
from torch import nn
torch.manual_seed(0); torch.set_num_threads(1)
envs = gym.make_vec("CartPole-v1", num_envs=4, vectorization_mode="sync")
actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)
observation, _ = envs.reset(seed=0)
for _ in range(int(sys.argv[1])):
    kept = []
    for _ in range(32):
        with torch.no_grad():
            logits = actor(torch.as_tensor(observation))
        action = torch.distributions.Categorical(logits=logits).sample().numpy()
        kept.append(torch.as_tensor(observation))
        observation, reward, *_ = envs.step(action)
    data = torch.cat(kept)
    for _ in range(3):
        for batch in torch.randperm(128).split(32):
            loss = actor(data[batch]).pow(2).mean() + critic(data[batch]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""


def run(folder, program, *options, arguments=("10",), check=True):
    script = Path(folder) / "train.py"
    script.write_text(program)
    return rlprof("run", "--dir", "runs", *options, script, *arguments, cwd=folder, code=0 if check else None)


def schedule(wait, warmup, active, *more):
    return ["--torch-profiler", "--torch-profiler-wait", str(wait), "--torch-profiler-warmup", str(warmup),
            "--torch-profiler-active", str(active), *more]  # fmt: skip


def session_of(folder):
    (found,) = (folder / "runs").iterdir()
    return found


def traces_of(folder):
    return sorted((session_of(folder) / "traces").iterdir())


def only_summary(folder):
    (path,) = traces_of(folder)
    return summarize(read_trace(path))


def capture(folder, *options):
    return rlprof("capture", session_of(folder), *options, code=None)


def run_code(folder, program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=folder, check=True)


@pytest.mark.long
def test_a_capture_of_ppo_has_all_phases_and_was_predicted(tmp_path):
    done = run(tmp_path, PPO, *schedule(4, 4, 8, "--torch-profiler-record-shapes"))
    (path,) = traces_of(tmp_path)
    assert path.name.endswith(".pt.trace.json.gz")
    found = summarize(read_trace(path))
    assert found.problems == ()
    assert [step.name for step in found.steps] == [f"ProfilerStep#{number}" for number in range(8, 16)]
    names = {phase.name for phase in found.phases}
    assert {
        "rollout", "env_step", "policy_forward", "buffer_add", "advantage", "update", "buffer_get", "evaluate_actions",
        "backward", "gradient_clip", "optimizer_step",
    } <= names  # fmt: skip
    assert any(total.shapes for total in found.operators)
    with Session(session_of(tmp_path)) as session:
        (artifact,) = session.artifacts()
        (mark,) = (mark for mark in session.marks() if mark.kind == "torch_trace")
    assert (artifact.path, artifact.kind) == (f"traces/{path.name}", "torch_trace")
    predicted = float(mark.text.partition("predicted ")[2].split()[0])
    assert predicted == pytest.approx(path.stat().st_size, rel=0.25)
    plain = subprocess.run([sys.executable, "train.py", "10"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if line.startswith("weights")] == plain.stdout.splitlines()[-1:]


@pytest.mark.long
def test_epochs_of_a_loop_without_a_framework_are_found_by_the_data_it_learns_from(tmp_path):
    run(tmp_path, HANDWRITTEN, *schedule(3, 3, 4))
    found = only_summary(tmp_path)
    assert len(found.steps) == 4
    optimizer = next(phase for phase in found.phases if phase.name == "optimizer_step")
    assert optimizer.calls == 4 * 4  # an epoch has four minibatches
    assert {"rollout", "update", "env_step", "policy_forward", "backward"} <= {phase.name for phase in found.phases}


@pytest.mark.long
@pytest.mark.parametrize(("kind", "steps"), [("iteration", 2), ("env_step", 20)])
def test_a_step_may_be_an_iteration_or_an_environment_step(tmp_path, kind, steps):
    run(tmp_path, HANDWRITTEN, *schedule(1, 1, steps, "--torch-profiler-step", kind))
    found = only_summary(tmp_path)
    assert len(found.steps) == steps
    stepped = next(phase for phase in found.phases if phase.name == "env_step")
    assert stepped.calls == {"iteration": 2 * 32, "env_step": 20}[kind]


@pytest.mark.long
def test_a_run_that_is_too_short_warns_at_the_start_and_at_the_end(tmp_path):
    done = run(tmp_path, PPO, *schedule(6, 1, 3), arguments=("2",))
    start, end = (line for line in done.stderr.splitlines() if "torch capture need" in line)
    assert start.startswith(
        "rlprof: this run has 8 epochs, but the torch capture needs 10 (wait 6 + warmup 1 + active 3)"
    )
    assert start.endswith("would fit: --torch-profiler-wait 4 --torch-profiler-warmup 1 --torch-profiler-active 3")
    assert "the run ended after 8 epochs, but the torch capture needed 10" in end
    assert "only 1 of 3 active steps were captured" in end
    assert len(traces_of(tmp_path)) == 1


@pytest.mark.long
def test_repeats_folders_and_the_summary(tmp_path):
    folder = tmp_path / "elsewhere"
    options = ("--torch-profiler-repeat", "2", "--torch-profiler-dir", str(folder), "--torch-profiler-summary")
    done = run(tmp_path, HANDWRITTEN, *schedule(1, 1, 2, *options))
    assert len(list(folder.iterdir())) == 2
    assert "Operators, by their own time on the host" in done.stderr


@pytest.mark.long
def test_a_running_training_is_captured_on_request(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(HANDWRITTEN)
    command = [sys.executable, "-m", "rlprof", "run", "--quiet", "--dir", str(tmp_path / "runs"), str(script), "100000"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            end = time.monotonic() + 60
            while not list(tmp_path.glob("runs/*/session.db")) and time.monotonic() < end:
                time.sleep(0.1)
            requested = capture(tmp_path, "--step", "iteration", "--active", "2")
            assert requested.returncode == 0, requested.stderr
        finally:
            process.terminate()
            process.wait(30)
    found = summarize(read_trace(requested.stdout.strip()))
    assert len(found.steps) == 2
    assert {"rollout", "update"} <= {phase.name for phase in found.phases}
    late = capture(tmp_path)
    assert late.returncode == 2
    assert "is not running any more" in late.stderr


@pytest.mark.long
def test_a_capture_in_code_with_its_own_steps(tmp_path):
    program = f"""
import json, os, sys, torch
from rlprof import TorchCapture, get_profiler, profile
get_profiler().enable()
net = torch.nn.Linear(8, 8)
with TorchCapture(wait_steps=1, warmup_steps=1, active_steps=2, step="mark", dir={str(tmp_path)!r}) as capture:
    with profile("around"):
        for _ in range(5):
            with profile("forward"):
                net(torch.zeros(4, 8))
            capture.step()
            print("a line of its own", file=sys.stderr)
assert "KINETO_LOG_LEVEL" not in os.environ
print(json.dumps([str(path) for path in capture.files]))
"""
    done = run_code(tmp_path, program)
    assert done.stderr == 5 * "a line of its own\n"  # and nothing of Kineto's
    (path,) = json.loads(done.stdout)
    found = {phase.name: phase.calls for phase in summarize(read_trace(path)).phases}
    found.pop("(unmarked)", None)
    assert found == {"around": 2, "forward": 2}
    assert [file.name for file in tmp_path.iterdir()] == [Path(path).name]


@pytest.mark.long
def test_a_program_marks_its_steps_itself(tmp_path):
    program = """
import torch
from rlprof import get_profiler
net = torch.nn.Linear(8, 8)
for _ in range(6):
    net(torch.zeros(4, 8))
    get_profiler().end_step()
"""
    run(tmp_path, program, *schedule(1, 1, 3, "--torch-profiler-step", "mark"))
    found = only_summary(tmp_path)
    assert [step.name for step in found.steps] == [f"ProfilerStep#{number}" for number in (2, 3, 4)]
    assert {total.name: total.calls for total in found.operators}["aten::linear"] == 3


@pytest.mark.long
def test_a_trace_that_will_be_large_is_announced_after_the_warm_up(tmp_path):
    program = """
import torch
from rlprof import TorchCapture
from rlprof.capture.torch import capture as module
module.LARGE = 2_000
with TorchCapture(wait_steps=1, warmup_steps=1, active_steps=2, step="mark", dir=".") as capture:
    for _ in range(4):
        torch.zeros(4, 8).relu()
        capture.step()
"""
    done = run_code(tmp_path, program)
    (message,) = (line for line in done.stderr.splitlines() if line.startswith("rlprof:"))
    assert message.startswith("rlprof: the torch trace of 2 marked steps will have about 0 MB of JSON")


@pytest.mark.long
def test_a_program_that_profiles_itself_goes_on(tmp_path):
    program = """
import torch
from torch.profiler import profile
from rlprof import get_profiler
with profile() as own:
    for _ in range(6):
        torch.zeros(4, 8).relu()
        get_profiler().end_step()
print(len(own.events()) > 0)
"""
    done = run(tmp_path, program, *schedule(1, 1, 3, "--torch-profiler-step", "mark"))
    assert done.stdout == "True\n"
    assert done.stderr.count("the torch capture has failed and was stopped") == 1


def test_a_capture_that_is_not_enabled_does_nothing(tmp_path):
    program = """
from rlprof import TorchCapture
with TorchCapture(enabled=False) as capture:
    capture.step()
import sys
assert "torch" not in sys.modules
"""
    done = run_code(tmp_path, program)
    assert (done.stderr, list(tmp_path.iterdir())) == ("", [])
