"""`model.learn(total, callback=RlprofCallback())`: a session for as long as learn() runs."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import stable_baselines3
from sb3_trainings import attached, on_policy
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EvalCallback
from stable_baselines3.common.env_util import make_vec_env

from rlprof import get_profiler, record
from rlprof.probes.stable_baselines3 import is_attached
from rlprof.session.reader import Session
from rlprof.stable_baselines3 import RlprofCallback


@pytest.fixture(autouse=True)
def sessions(tmp_path, monkeypatch):
    """Where they go. Nothing may be left behind."""
    monkeypatch.setenv("RLPROF_DIR", str(tmp_path))
    yield tmp_path
    assert not is_attached()
    assert get_profiler().recording is None
    assert not get_profiler().enabled


def read(folder):
    with Session(folder) as session:
        return session.snapshot(), session


def test_it_records_a_session_of_one_training(sessions):
    callback = RlprofCallback(name="demo", settings={"envs": 2})
    on_policy(stable_baselines3.PPO).learn(128, callback=callback)
    (folder,) = sessions.iterdir()
    assert callback.recording.folder == folder
    assert folder.name.startswith("demo_")
    snapshot, session = read(folder)
    assert (snapshot.iterations, snapshot.steps) == (2, 128)
    assert snapshot.account("rollout").calls == snapshot.account("update").calls == 2
    assert snapshot.account("policy_forward").calls == 64
    assert snapshot.account("optimizer_step").calls > 0
    assert session.end.how == "finished"
    assert session.info.settings == {"envs": 2}


def test_without_a_name_the_session_has_the_algorithms(sessions):
    on_policy(stable_baselines3.A2C).learn(32, callback=RlprofCallback())
    (folder,) = sessions.iterdir()
    assert folder.name.startswith("a2c_")


def test_it_stands_in_a_list_with_others_and_again_and_again(sessions):
    evaluation = EvalCallback(make_vec_env("CartPole-v1", 1, seed=4), eval_freq=16, n_eval_episodes=1, verbose=0)
    callback = RlprofCallback()
    model = on_policy(stable_baselines3.PPO)
    for _ in range(2):
        model.learn(64, callback=[evaluation, callback])
        assert not is_attached()
    model.learn(64, callback=CallbackList([callback, evaluation]))
    folders = sorted(sessions.iterdir())
    assert len(folders) == 3
    for folder in folders:
        snapshot, _ = read(folder)
        assert (snapshot.iterations, snapshot.steps) == (1, 64)
        assert snapshot.account("evaluation").calls == 2


def test_the_training_is_the_one_without_it():
    alone, profiled = (
        on_policy(stable_baselines3.PPO).learn(128, callback=callback).policy.state_dict()
        for callback in (None, RlprofCallback())
    )
    assert all((alone[key] == profiled[key]).all() for key in alone)


def test_where_a_recording_runs_it_only_sees_to_the_probes(sessions):
    callback = RlprofCallback()
    with record("outer") as recording:
        on_policy(stable_baselines3.PPO).learn(64, callback=callback)
        assert not is_attached()
        assert not recording.ended
    assert callback.recording is None
    (folder,) = sessions.iterdir()
    assert read(folder)[0].account("rollout").calls == 1


def test_where_probes_are_attached_nothing_is_counted_twice(sessions):
    with attached(get_profiler()), record("outer"):
        on_policy(stable_baselines3.PPO).learn(64, callback=[RlprofCallback(), RlprofCallback()])
        assert is_attached()
    (folder,) = sessions.iterdir()
    snapshot, _ = read(folder)
    assert (snapshot.iterations, snapshot.steps, snapshot.account("buffer_add").calls) == (1, 64, 32)


@pytest.mark.long
def test_two_in_one_list_are_as_good_as_one(sessions):
    on_policy(stable_baselines3.PPO).learn(64, callback=[RlprofCallback(), RlprofCallback()])
    (folder,) = sessions.iterdir()
    assert read(folder)[0].steps == 64


class Fails(BaseCallback):
    def _on_step(self):
        raise KeyboardInterrupt


@pytest.mark.long
def test_a_training_that_was_interrupted_ends_when_the_next_begins(sessions):
    model = on_policy(stable_baselines3.PPO)
    callback = RlprofCallback(name="first")
    with pytest.raises(KeyboardInterrupt):
        model.learn(64, callback=[callback, Fails()])
    model.learn(64, callback=RlprofCallback(name="second"))
    first, second = sorted(sessions.iterdir())
    assert read(first)[1].end.how == "failed"
    assert callback.recording.ended
    assert read(second)[1].end.how == "finished"
    assert read(second)[0].steps == 64


@pytest.mark.long
def test_what_cannot_be_recorded_is_trained_all_the_same(sessions):
    with pytest.warns(match="cannot be recorded as configured"):
        model = on_policy(stable_baselines3.PPO).learn(64, callback=RlprofCallback(unheard_of=1))
    assert model.num_timesteps == 64


def test_a_training_on_another_thread_is_recorded(sessions):
    model = on_policy(stable_baselines3.PPO)
    thread = threading.Thread(target=model.learn, args=(64, RlprofCallback()))
    thread.start()
    thread.join()
    (folder,) = sessions.iterdir()
    assert read(folder)[0].steps == 64


def test_without_stable_baselines3_the_import_says_what_is_missing():
    program = """
import sys
sys.modules["stable_baselines3"] = None
import rlprof
try:
    import rlprof.stable_baselines3
except ImportError as error:
    assert "pip install stable-baselines3" in str(error)
else:
    raise SystemExit("it can be imported")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
