"""DQN on a game that runs in another program. Its state is read over TCP."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
import time
from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from off_policy import ReplayBuffer, act, descend, dqn_loss, q_network


class Game(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            request = json.loads(line)
            time.sleep(0.003)  # the next frame of the game
            self.wfile.write(json.dumps({"state": [request["action"]] * 8}).encode() + b"\n")


class GameEnv(gym.Env):
    observation_space = gym.spaces.Box(-1, 9, (8,), np.float32)
    action_space: Any = gym.spaces.Discrete(4)

    def __init__(self, port: int, whole: bool) -> None:
        self.port, self.whole = port, whole
        self.connection: Any = None

    def request(self, message: dict[str, Any]) -> Any:
        if self.connection is None:
            self.connection = socket.create_connection(("127.0.0.1", self.port)).makefile("rw")
        self.connection.write(json.dumps(message) + "\n")
        self.connection.flush()
        return json.loads(self.connection.readline())["state"]

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(30, 60))
        return np.zeros(8, np.float32), {}

    def step(self, action: Any) -> Any:
        with stopwatch.section():
            if self.whole:
                state = self.request({"action": int(action)})
            else:
                parts = [self.request({"action": int(action), "part": part}) for part in ("player", "map")]
                state = parts[0]
        self.left -= 1
        return np.array(state, np.float32), float(state[0]), self.left <= 0, False, {}


def main() -> None:
    options = stopwatch.arguments(6, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Game)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = GameEnv(server.server_address[1], whole=options.fix)
    q, target = q_network(8, 4), q_network(8, 4)
    optimizer = torch.optim.Adam(q.parameters(), 1e-3)
    buffer = ReplayBuffer(10_000, 8)
    obs, _ = env.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        for _ in range(100):
            action = act(q, obs, 4)
            following, reward, terminated, truncated, _ = env.step(action)
            buffer.add(obs, action, reward, following, terminated)
            obs = env.reset()[0] if terminated or truncated else following
            for _ in range(2):
                descend(optimizer, dqn_loss(q, target, buffer.sample(128)))
        target.load_state_dict(q.state_dict())
        stopwatch.iteration(100)
    stopwatch.write()


if __name__ == "__main__":
    main()
