"""The gymnasium probe: every kind of environment, timed once and counted once."""

from __future__ import annotations

import pickle
import threading

import gymnasium as gym
import numpy as np
import pytest
from generic_probes import calls, places, profiled, snapshot_of

from rlprof.probes import gymnasium as gymnasium_probe

PROBE = gymnasium_probe.PROBE


class Short(gym.Env):
    """Episodes of five steps."""

    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - gymnasium's way
    render_mode = "rgb_array"
    count = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.count += 1
        return np.zeros(2, np.float32), 1.0, self.count >= 5, False, {}

    def render(self):
        return np.zeros((2, 2, 3), np.uint8)


def wrapped():
    env = gym.wrappers.TimeLimit(gym.wrappers.OrderEnforcing(Short()), 100)
    return gym.wrappers.RecordEpisodeStatistics(gym.wrappers.TransformReward(env, lambda reward: reward * 2))


@pytest.mark.parametrize("core", ["c", "python"])
def test_the_outermost_wrapper_is_timed_and_steps_and_episodes_are_counted(core):
    with profiled(PROBE, core=core) as profiler:
        env = wrapped()
        for _ in range(3):
            env.reset(seed=1)
            ended = False
            while not ended:
                _, reward, terminated, truncated, _ = env.step(0)
                ended = terminated or truncated
        assert reward == 2.0
        env.render()
        snapshot = snapshot_of(profiler)
    counted = calls(snapshot)
    assert {name: counted[name] for name in ("env_step", "env_reset", "env_render")} == {
        "env_step": 15, "env_reset": 3, "env_render": 1,
    }  # fmt: skip
    assert (snapshot.steps, snapshot.episodes) == (15, 3)


@pytest.mark.parametrize("mode", [gym.vector.AutoresetMode.NEXT_STEP, gym.vector.AutoresetMode.SAME_STEP])
def test_a_vector_is_one_step_for_all_of_its_environments(mode):
    with profiled(PROBE) as profiler:
        envs = gym.vector.SyncVectorEnv([Short] * 3, autoreset_mode=mode)
        envs = gym.wrappers.vector.RecordEpisodeStatistics(envs)
        envs.reset(seed=1)
        ended = 0
        for _ in range(13):
            _, _, terminated, truncated, _ = envs.step(envs.action_space.sample())
            ended += int((terminated | truncated).sum())
        snapshot = snapshot_of(profiler)
    assert calls(snapshot)["env_step"] == 13
    assert (snapshot.steps, snapshot.episodes) == (39, ended)
    assert ended > 3
    assert {"env_step", "env_reset", "env_step/env_reset"} <= places(snapshot)


@pytest.mark.long
def test_a_vector_of_processes_is_waited_for():
    with profiled(PROBE) as profiler:
        envs = gym.vector.AsyncVectorEnv([wrapped] * 2)
        envs.reset(seed=1)
        for _ in range(7):
            envs.step(envs.action_space.sample())
        envs.step_async(envs.action_space.sample())
        envs.step_wait()
        envs.close()
        snapshot = snapshot_of(profiler)
    assert calls(snapshot)["env_step"] == 7
    assert snapshot.steps == 16
    assert {"env_step/env_wait", "env_reset/env_wait", "env_wait"} <= places(snapshot)
    assert snapshot.account("env_wait").waited_ns > 0


def test_classes_defined_later_are_timed_and_ask_their_bases():
    with profiled(PROBE) as profiler:

        class Later(Short):
            def __init_subclass__(cls, flavour="", **kwargs):
                super().__init_subclass__(**kwargs)
                cls.flavour = flavour

            def step(self, action):
                return super().step(action)

        class Latest(Later, flavour="sweet"):
            step = Later.step

        env = Latest()
        env.reset()
        env.step(0)
        snapshot = snapshot_of(profiler)
    assert Latest.flavour == "sweet"
    assert calls(snapshot)["env_step"] == snapshot.steps == 1
    assert Latest().reset()[1] == {}


def test_steps_inside_a_reset_are_not_counted():
    class Settling(gym.Wrapper):
        def reset(self, **kwargs):
            super().reset(**kwargs)
            observation, _, _, _, info = self.env.step(0)
            return observation, info

    with profiled(PROBE) as profiler:
        Settling(Short()).reset()
        snapshot = snapshot_of(profiler)
    assert "env_reset/env_step" in places(snapshot)
    assert snapshot.steps == 0


def test_threads_that_the_driver_lets_step_are_counted():
    with profiled(PROBE) as profiler:

        def work():
            env = Short()
            env.reset()
            for _ in range(5):
                env.step(0)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        snapshot = snapshot_of(profiler)
    assert (snapshot.steps, snapshot.episodes) == (15, 3)


def test_a_program_that_counts_for_itself_is_believed():
    with profiled(PROBE) as profiler:
        env = Short()
        env.reset()
        for _ in range(5):
            env.step(0)
            profiler.add_steps(4)
        snapshot = snapshot_of(profiler)
    assert (snapshot.steps, snapshot.episodes) == (20, 1)


def test_an_environment_that_fails_raises_what_it_raised():
    class Failing(Short):
        def step(self, action):
            raise KeyError(action)

    with profiled(PROBE) as profiler:
        env = Failing()
        env.reset()
        for _ in range(2):
            with pytest.raises(KeyError, match="7"):
                env.step(7)
        assert profiler.ledger.depth() == 0
        assert snapshot_of(profiler).steps == 0


@pytest.mark.filterwarnings("error")
def test_results_of_the_old_kind_and_odd_ones_are_passed_on():
    class Odd(Short):
        def step(self, action):
            return [(1, 2, 3, 4), None, (0, 1.0, [True, False], [False, False], {})][action]

    with profiled(PROBE) as profiler:
        env = Odd()
        with pytest.warns(match="episodes could not be counted"):
            assert env.step(0) == (1, 2, 3, 4)
        assert env.step(1) is None
        assert env.step(2)[2] == [True, False]
        assert snapshot_of(profiler).steps == 3


def test_methods_that_are_no_functions_are_left_alone():
    class Static(Short):
        @staticmethod
        def render():
            return "static"

        reset = None

    with profiled(PROBE):

        class Later(Static):
            @classmethod
            def step(cls, action):
                return cls, action

        assert Static.render() == "static"
        assert Later().step(3) == (Later, 3)
        assert Later.reset is None


def test_environments_are_pickled_and_looked_at_as_ever():
    import inspect

    before = inspect.signature(gym.Wrapper.step)
    with profiled(PROBE):
        env = pickle.loads(pickle.dumps(Short()))
        assert env.step(0)[1] == 1.0
        assert inspect.signature(gym.Wrapper.step) == before
        assert inspect.isfunction(Short.step)
        assert pickle.loads(pickle.dumps(Short.step)) is not None
        assert isinstance(wrapped(), gym.Wrapper)
        bound = env.step
        assert bound(0)[1] == 1.0


def test_registered_environments_work():
    with profiled(PROBE) as profiler:
        env = gym.make("CartPole-v1", render_mode="rgb_array")
        env = gym.wrappers.FrameStackObservation(gym.wrappers.NormalizeObservation(env), 2)
        env.reset(seed=1)
        env.step(0)
        vec = gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point")
        vec.reset(seed=1)
        vec.step(vec.action_space.sample())
        env.close()
        vec.close()
        snapshot = snapshot_of(profiler)
    assert snapshot.steps == 3
    assert calls(snapshot)["env_step"] == 2
