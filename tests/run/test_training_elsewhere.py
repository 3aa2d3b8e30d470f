"""Trainings in child processes of a driver that only starts them: the session has their time, steps and iterations."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from alike import RUN, execute, facts_of_program, only_session
from sessions import facts_of

from rlprof.analysis.facts import Facts
from rlprof.ledger import profiler as module

pytestmark = pytest.mark.skipif(module._core is None, reason="only the C core shares")
pytest.importorskip("gymnasium")

TRAINING = """
import json, multiprocessing, os, subprocess, sys, time
import gymnasium
from rlprof import get_profiler

class Busy(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)
    spent = 0

    def reset(self, *, seed=None, options=None):
        return self.observation_space.low, {}

    def step(self, action):
        began = time.perf_counter_ns()
        time.sleep(0.004)
        Busy.spent += time.perf_counter_ns() - began
        return self.observation_space.low, 0.0, False, False, {}

def train(file, steps=50, iterations=3):
    env = Busy()
    env.reset()
    began = time.perf_counter_ns()
    for _ in range(iterations):
        with get_profiler().iteration():
            for _ in range(steps):
                env.step(0)
    with open(file, "w") as measured:
        json.dump({"spent": Busy.spent, "took": time.perf_counter_ns() - began}, measured)

def step(file, steps=50):
    env = Busy()
    env.reset()
    for _ in range(steps):
        env.step(0)
"""

START = """
def start(method, target=train, file="times.json"):
    child = multiprocessing.get_context(method).Process(target=target, args=(file,))
    child.start()
    return child
"""

VECTOR = """
def train_vector(file=""):
    envs = gymnasium.vector.AsyncVectorEnv([Busy] * 2, context="fork")
    envs.reset()
    with get_profiler().iteration():
        for _ in range(20):
            envs.step([0, 0])
    envs.close()
"""

WAYS = {
    "joins": "start('fork').join()",
    "sleeps": "child = start('fork')\n    while child.is_alive(): time.sleep(0.02)",
    "polls in C": "child = start('fork')\n    while child.is_alive(): ctypes.CDLL(None).usleep(20_000)",
    "spawns": "start('spawn').join()",
}


def run(folder: Path, main: str, head: str = TRAINING) -> Facts:
    body = f"{head}{START}\nimport ctypes\nif __name__ == '__main__':\n    {main}\n"
    return facts_of_program(folder, body)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_a_training_in_a_child_process_is_not_start_up(way, tmp_path):
    facts = run(tmp_path, WAYS[way])
    measured = json.loads((tmp_path / "times.json").read_text())
    assert (facts.progress.steps, facts.progress.iterations) == (150, 3)
    assert facts.progress.training_ns >= 0.99 * measured["took"]
    step = facts.operation("env_step")
    # Both clocks stand around the same sleeps; the driver runs only to look whether the child lives.
    assert step.ledger_ns == pytest.approx(measured["spent"], rel=0.1)
    assert step.calls == 150
    facts.check()


def test_steps_of_workers_count_once(tmp_path):
    """The driver steps a vector environment, and its workers step and count too."""
    facts = run(tmp_path, "train_vector()", TRAINING + VECTOR)
    assert (facts.progress.steps, facts.progress.iterations) == (40, 1)
    assert facts.operation("env_step").calls == 20 + 40


def test_workers_of_a_training_in_a_child_count_once(tmp_path):
    facts = run(tmp_path, "start('fork', train_vector).join()", TRAINING + VECTOR)
    assert (facts.progress.steps, facts.progress.iterations) == (40, 1)


@pytest.mark.long
def test_trainings_side_by_side_add_up(tmp_path):
    main = "children = [start('fork', file=f'{i}.json') for i in range(2)]; [child.join() for child in children]"
    facts = run(tmp_path, main)
    assert (facts.progress.steps, facts.progress.iterations) == (300, 6)


@pytest.mark.long
def test_a_launcher_that_starts_a_training_by_command(tmp_path):
    (tmp_path / "train.py").write_text(TRAINING + "train('times.json')\n")
    launcher = "import subprocess, sys; subprocess.Popen([sys.executable, 'train.py']).wait()"
    done = execute([*RUN, "--", sys.executable, "-c", launcher], tmp_path)
    assert done.returncode == 0, done.stderr
    facts = facts_of(only_session(tmp_path))
    measured = json.loads((tmp_path / "times.json").read_text())
    assert (facts.progress.steps, facts.progress.iterations) == (150, 3)
    assert facts.operation("env_step").ledger_ns == pytest.approx(measured["spent"], rel=0.1)


@pytest.mark.long
def test_a_training_on_another_thread_is_not_start_up(tmp_path):
    main = "import threading; one = threading.Thread(target=train, args=('times.json',)); one.start(); one.join()"
    head = TRAINING.replace("with get_profiler().iteration():", "if True:")
    facts = run(tmp_path, main, head)
    measured = json.loads((tmp_path / "times.json").read_text())
    assert facts.progress.steps == 150
    assert facts.operation("env_step").ledger_ns == pytest.approx(measured["spent"], rel=0.1)
    assert facts.progress.training_ns >= 0.99 * measured["took"]


@pytest.mark.long
def test_waits_during_start_up_are_not_training(tmp_path):
    """Workers of environments start slowly. The driver waits for them, and no process works."""
    head = TRAINING.replace("    spent = 0\n", "    spent = 0\n\n    def __init__(self):\n        time.sleep(1.0)\n")
    main = """
    envs = gymnasium.vector.AsyncVectorEnv([Busy] * 2, context="spawn")
    envs.reset()
    began = time.perf_counter_ns()
    with get_profiler().iteration():
        for _ in range(40):
            envs.step([0, 0])
    took = time.perf_counter_ns() - began
    json.dump(took, open("times.json", "w"))
    get_profiler().recording.stop()
"""
    facts = run(tmp_path, main.strip(), head)
    took = json.loads((tmp_path / "times.json").read_text())
    assert facts.progress.steps == 80
    assert facts.progress.startup_ns > 1e9
    assert facts.progress.training_ns == pytest.approx(took, rel=0.1)
    assert {part.name for part in facts.breakdown.outside} <= {"startup", "after_training"}


LEARNER = """
import json, multiprocessing, sys
import gymnasium

def train(file, iterations=3, steps=32):
    import torch
    env = gymnasium.make("CartPole-v1")
    policy = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(policy.parameters(), 0.01)
    seen, _ = env.reset(seed=1)
    for _ in range(iterations):
        batch = []
        for _ in range(steps):
            with torch.no_grad():
                action = int(policy(torch.as_tensor(seen)[None]).argmax())
            seen, _, terminated, truncated, _ = env.step(action)
            batch.append(torch.as_tensor(seen))
            if terminated or truncated:
                seen, _ = env.reset()
        optimizer.zero_grad()
        policy(torch.stack(batch)).pow(2).mean().backward()
        optimizer.step()
"""


@pytest.mark.long
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_learner_in_a_child_has_its_iterations_found_by_rule(method, tmp_path):
    """The driver evaluates at the end. Neither its steps nor its time count as training."""
    pytest.importorskip("torch")
    main = f"""start({method!r}).join()
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=2)
    for _ in range(5):
        env.step(0)"""
    facts = run(tmp_path, main, LEARNER)
    assert (facts.progress.steps, facts.progress.iterations) == (96, 3)
    assert facts.operation("optimizer_step").calls == 3
    assert facts.operation("optimizer_step").ledger_ns > 0


@pytest.mark.long
def test_a_driver_that_learns_from_its_workers_steps_begins_an_iteration_each_time(tmp_path):
    """Like an evolution strategy: two optimizer steps after each round of episodes in other processes."""
    pytest.importorskip("torch")
    main = """
    import torch
    weights = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([weights], 0.1)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        began = time.perf_counter_ns()
        for _ in range(5):
            pool.starmap(step, [("", 10)] * 4)
            for _ in range(2):
                optimizer.zero_grad()
                weights.grad = torch.ones(3)
                optimizer.step()
        json.dump(time.perf_counter_ns() - began, open("times.json", "w"))
        pool.close()
        pool.join()"""
    facts = run(tmp_path, main.strip())
    assert (facts.progress.steps, facts.progress.iterations) == (200, 5)
    assert facts.operation("optimizer_step").calls == 10
    took = json.loads((tmp_path / "times.json").read_text())
    assert 0.9 * took < facts.progress.training_ns < took  # the first of five rounds is no start-up


ACTOR = """
def collect(queue):
    env = Busy()
    env.reset()
    for _ in range(6):
        for _ in range(20):
            env.step(0)
        queue.put(20)

def learn():
    import torch
    torch.set_num_threads(1)
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.Adam(net.parameters())
    queue = multiprocessing.get_context("fork").SimpleQueue()
    child = start("fork", collect, queue)
    for _ in range(6):
        queue.get()
        for _ in range(10):
            net(torch.zeros(8, 4)).sum().backward()
            optimizer.step()
            end = time.perf_counter() + 0.005  # the actor takes a step meanwhile
            while time.perf_counter() < end:
                pass
    child.join()
"""


@pytest.mark.long
def test_a_learner_begins_an_iteration_when_it_receives_data(tmp_path):
    """Its actor goes on stepping while it learns, which begins no iteration."""
    pytest.importorskip("torch")
    facts = run(tmp_path, "learn()", TRAINING + ACTOR)
    assert (facts.progress.steps, facts.progress.iterations) == (120, 6)
