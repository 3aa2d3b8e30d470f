"""Small trainings with worker processes. They are scripts, because children of multiprocessing import them again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sessions import facts_of

from rlprof.analysis.facts import Facts

# Workers join by hand: doing that at the interpreter's start is what `rlprof run` does.
HEAD = """
import multiprocessing, os, signal, subprocess, sys, threading, time
from rlprof import get_profiler, profile, record
from rlprof.recording.worker import join

profiler = get_profiler()

def env(pipe, folder, seconds, how):
    if how != "fork":
        assert join(profiler, folder)
    while pipe.recv():
        with profile("env_step"):
            time.sleep(seconds)
        pipe.send(os.getpid())

class Envs:
    def __init__(self, recording, seconds, how="fork"):
        context = multiprocessing.get_context(how)
        self.pipes, self.processes = [], []
        for i, each in enumerate(seconds):
            ours, theirs = context.Pipe()
            process = context.Process(target=env, args=(theirs, recording.folder, each, how), name=f"env-{i}")
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def step(self):
        for pipe in self.pipes:
            pipe.send(True)
        with profile("env_wait", wait=True):
            answers = [pipe.recv() for pipe in self.pipes]
        profiler.add_steps(len(answers))
        return answers

    def close(self):
        for pipe in self.pipes:
            pipe.send(False)
        for process in self.processes:
            process.join()

def train(envs, iterations=20, steps=5):
    for _ in range(iterations):
        with profiler.iteration():
            for _ in range(steps):
                envs.step()
                with profile("policy_forward"):
                    time.sleep(0.001)
"""

MAIN = "\nif __name__ == '__main__':\n"


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.strip().splitlines())


def write_script(folder: Path, main: str, head: str = HEAD) -> Path:
    script = folder / "training.py"
    script.write_text(head + MAIN + indented(main))
    return script


def start_training(folder: Path, main: str, head: str = HEAD) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(write_script(folder, main, head))],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        env={**os.environ, "RLPROF_DIR": str(folder / "runs"), "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def run_script(folder: Path, main: str, head: str = HEAD) -> str:
    """The output of a training that must succeed and warn of nothing."""
    process = start_training(folder, main, head)
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert err == ""
    return out


def run_training(folder: Path, main: str, head: str = HEAD) -> tuple[str, Facts]:
    """The output of a training and the facts of its session, whose sums are checked."""
    return run_script(folder, main, head), facts_of(only_session(folder))


def run_envs(folder: Path, envs: str, main: str = "train(envs)") -> tuple[str, Facts]:
    """A recorded training with environments. envs: the arguments of Envs after the recording."""
    begin = f'recording = record("run")\nenvs = Envs(recording, {envs})\n'
    return run_training(folder, f"{begin}{main.strip()}\nenvs.close()\nrecording.stop()")


def only_session(folder: Path) -> Path:
    (session,) = (folder / "runs").iterdir()
    return session


def lanes_of(facts: Facts, operation: str) -> dict[str, int]:
    """Calls by lane."""
    found = facts.operation(operation)
    return {} if found is None else {lane.lane: lane.calls for lane in found.lanes}
