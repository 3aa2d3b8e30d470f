"""An evolution strategy: processes of joblib try changed weights in episodes, and the first process learns from
them."""

from __future__ import annotations

import own
import torch
from joblib import Parallel, delayed
from parts import Env, network

CANDIDATES, ITERATIONS = 8, 20


def episode(weights: torch.Tensor, seed: int) -> tuple[float, int]:
    env, net = Env(), network(4, 2)
    torch.nn.utils.vector_to_parameters(weights, net.parameters())
    observation, _ = env.reset(seed=seed)
    total, steps, done = 0.0, 0, False
    while not done:
        with torch.no_grad():
            action = int(net(torch.from_numpy(observation)[None]).argmax())
        observation, reward, terminated, truncated, _ = env.step(action)
        total += reward
        steps += 1
        done = terminated or truncated
    return total, steps


def main() -> None:
    weights = torch.nn.Parameter(torch.nn.utils.parameters_to_vector(network(4, 2).parameters()).detach())
    optimizer = torch.optim.Adam([weights], 1e-2)
    with Parallel(n_jobs=2) as parallel:
        parallel(delayed(network)(4, 2) for _ in range(4))  # starts the processes and their imports
        own.resume()
        for iteration in range(ITERATIONS):
            noise = torch.randn(CANDIDATES, len(weights))
            found = parallel(
                delayed(episode)(weights.detach() + 0.05 * noise[index], iteration) for index in range(CANDIDATES)
            )
            own.steps += sum(steps for _, steps in found)
            scores = torch.tensor([score for score, _ in found])
            optimizer.zero_grad()
            weights.grad = -(scores - scores.mean()) @ noise / CANDIDATES
            optimizer.step()
            own.iterations += 1
        own.pause()
    own.write()


if __name__ == "__main__":
    main()
