"""DQN on CartPole. A thread writes snapshots of the network while the training goes on."""

from __future__ import annotations

import copy
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from off_policy import ReplayBuffer, act, descend, dqn_loss, q_network


class Snapshots:
    def __init__(self, q: Any, copies: bool) -> None:
        self.q, self.copies = q, copies
        self.lock = threading.Lock()
        self.path = Path(tempfile.mkdtemp()) / "snapshot.bin"
        self.running = True
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        while self.running:
            with self.lock:
                state = copy.deepcopy(self.q.state_dict())
                if not self.copies:
                    self.store(state)
            if self.copies:
                self.store(state)
            time.sleep(0.05)

    def stop(self) -> None:
        self.running = False
        self.thread.join()

    def store(self, state: dict[str, Any]) -> None:
        """Write to a slow disk of the network."""
        with self.path.open("wb") as file:
            for tensor in state.values():
                file.write(tensor.numpy().tobytes())
                time.sleep(0.004)


def main() -> None:
    options = stopwatch.arguments(70, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    env = gym.make("CartPole-v1")
    q, target = q_network(4, 2), q_network(4, 2)
    optimizer = torch.optim.Adam(q.parameters(), 1e-3)
    buffer = ReplayBuffer(10_000, 4)
    snapshots = Snapshots(q, copies=options.fix)
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        for _ in range(100):
            action = act(q, obs, 2)
            following, reward, terminated, truncated, _ = env.step(action)
            buffer.add(obs, action, reward, following, terminated)
            obs = env.reset()[0] if terminated or truncated else following
            loss = dqn_loss(q, target, buffer.sample(64))
            with stopwatch.section():
                snapshots.lock.acquire()
            descend(optimizer, loss)
            snapshots.lock.release()
        target.load_state_dict(q.state_dict())
        stopwatch.iteration(100)
    stopwatch.write()
    snapshots.stop()


if __name__ == "__main__":
    main()
