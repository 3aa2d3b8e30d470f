"""PPO on robots that a server simulates. The server answers over TCP."""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import Any

import gymnasium as gym
import numpy as np
import stopwatch
import torch
from ppo import Agent, collect, gae, update

ENVS, STEPS, INPUTS, LATENCY = 4, 32, 16, 0.002
ANSWER = struct.Struct(f"<{INPUTS}fB")


def serve(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection: socket.socket) -> None:
    random = np.random.default_rng(1)
    while connection.recv(1):
        time.sleep(LATENCY)  # the simulation on the other machine
        connection.sendall(ANSWER.pack(*random.uniform(-1, 1, INPUTS), random.random() < 0.02))


class Robot:
    """One connection to the server."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, action: int) -> None:
        self.socket.sendall(bytes([action]))

    def receive(self) -> tuple[Any, bool]:
        data = b""
        while len(data) < ANSWER.size:
            data += self.socket.recv(ANSWER.size - len(data))
        *values, done = ANSWER.unpack(data)
        return np.array(values, np.float32), bool(done)


class Robots(gym.vector.VectorEnv):
    num_envs = ENVS
    single_observation_space = gym.spaces.Box(-1, 1, (INPUTS,), np.float32)
    single_action_space = gym.spaces.Discrete(3)

    def __init__(self, port: int, together: bool) -> None:
        self.robots = [Robot(port) for _ in range(ENVS)]
        self.together = together

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.zeros((ENVS, INPUTS), np.float32), {}

    def step(self, actions: Any) -> Any:
        with stopwatch.section():
            if self.together:
                for robot, action in zip(self.robots, actions):
                    robot.send(int(action))
                answers = [robot.receive() for robot in self.robots]
            else:
                answers = []
                for robot, action in zip(self.robots, actions):
                    robot.send(int(action))
                    answers.append(robot.receive())
        obs = np.stack([values for values, _ in answers])
        dones = np.array([done for _, done in answers])
        return obs, obs.sum(1, dtype=np.float64), dones, np.zeros(ENVS, bool), {}


def main() -> None:
    options = stopwatch.arguments(18, __doc__)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    envs = Robots(listener.getsockname()[1], together=options.fix)
    agent = Agent(INPUTS, 3)
    optimizer = torch.optim.Adam(agent.parameters(), 2.5e-4)
    obs, _ = envs.reset(seed=options.seed)
    stopwatch.start()
    for _ in range(options.iterations):
        obs, rollout = collect(envs, agent, obs, STEPS)
        update(agent, optimizer, rollout.batch(gae(rollout)), epochs=10, size=32)
        stopwatch.iteration(ENVS * STEPS)
    stopwatch.write()


if __name__ == "__main__":
    main()
