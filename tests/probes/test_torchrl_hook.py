"""`RlprofHook().register(trainer)`: a session for as long as train() runs."""

from __future__ import annotations

import pytest
import torch
from quiet_torchrl import PROBES
from torchrl.collectors import BaseCollector
from torchrl.trainers import ReplayBufferTrainer, Trainer
from torchrl.trainers.trainers import LogScalar
from trainings.torchrl_ppo import Args, Training

from rlprof import get_profiler, record
from rlprof.probes._torchrl_iterations import is_attached
from rlprof.probes.registry import Attached
from rlprof.session.reader import Session
from rlprof.torchrl import RlprofHook

pytestmark = pytest.mark.filterwarnings("default")  # TorchRL warns of itself


@pytest.fixture(autouse=True)
def sessions(tmp_path, monkeypatch):
    """Where they go. Nothing may be left behind."""
    monkeypatch.setenv("RLPROF_DIR", str(tmp_path / "sessions"))
    names = ",".join(f"rlprof.probes.{name}:PROBE" for name in ("gymnasium", "torch", "torchrl"))
    monkeypatch.setenv("RLPROF_PROBES", names)
    yield tmp_path / "sessions"
    assert not is_attached(get_profiler())
    assert get_profiler().recording is None
    assert not get_profiler().enabled


def make_trainer(frames=128, **options):
    training = Training(Args(frames=frames, batch=64))
    trainer = Trainer(
        collector=training.collector,
        total_frames=frames,
        frame_skip=1,
        optim_steps_per_batch=2,
        loss_module=training.loss_module,
        optimizer=training.optimizer,
        progress_bar=False,
        **options,
    )
    trainer.register_op("batch_process", training.advantage)
    ReplayBufferTrainer(training.buffer, batch_size=32, flatten_tensordicts=True).register(trainer)
    LogScalar(("next", "reward")).register(trainer)
    return trainer


def weights(trainer):
    return {name: value.detach().clone() for name, value in trainer.loss_module.named_parameters()}


@pytest.mark.long
def test_it_records_a_session_of_one_training(sessions):
    trainer = make_trainer()
    hook = RlprofHook(name="demo", settings={"envs": 1})
    hook.register(trainer)
    iterate = BaseCollector.__iter__
    trainer.train()
    assert BaseCollector.__iter__ is iterate
    (folder,) = sessions.iterdir()
    assert hook.recording.folder == folder
    with Session(folder) as session:
        snapshot = session.snapshot()
        assert session.end.how == "finished"
        assert session.info.settings == {"envs": 1}
    assert (snapshot.iterations, snapshot.steps) == (2, 128)
    assert snapshot.account("rollout").calls == snapshot.account("update").calls == 2
    assert snapshot.account("loss").calls == snapshot.account("optimizer_step").calls == 4
    assert snapshot.account("logging").calls > 0


@pytest.mark.long
def test_the_training_is_what_it_would_be_without():
    alone, hooked = make_trainer(), make_trainer()
    RlprofHook().register(hooked)
    torch.manual_seed(0)
    alone.train()
    torch.manual_seed(0)
    hooked.train()
    assert all(torch.equal(value, weights(hooked)[name]) for name, value in weights(alone).items())


@pytest.mark.long
def test_inside_a_recording_it_only_attaches(sessions):
    trainer = make_trainer()
    (hook := RlprofHook()).register(trainer)
    with record("outer") as recording:
        trainer.train()
        assert hook.recording is None
    assert list(sessions.iterdir()) == [recording.folder]
    with Session(recording.folder) as session:
        assert session.snapshot().steps == 128


@pytest.mark.long
def test_what_is_attached_stays_attached():
    attached = Attached(get_profiler())
    attached.attach(PROBES)
    try:
        trainer = make_trainer()
        RlprofHook().register(trainer)
        trainer.train()
        assert is_attached(get_profiler())
    finally:
        attached.undo()


@pytest.mark.long
def test_its_state_is_part_of_a_checkpoint_and_is_nothing(tmp_path):
    trainer = make_trainer(save_trainer_file=tmp_path / "trainer.pt")
    RlprofHook(dir=tmp_path / "sessions").register(trainer)
    assert trainer.state_dict()["rlprof"] == {}
    trainer.train()
    assert (tmp_path / "trainer.pt").exists()


@pytest.mark.long
def test_after_a_training_that_failed_the_next_one_has_a_session_of_its_own(sessions):
    trainer = make_trainer()
    RlprofHook().register(trainer)
    failing = True

    def fail():
        if failing:
            raise ArithmeticError("planted")

    trainer.register_op("pre_optim_steps", fail)
    with pytest.raises(ArithmeticError, match="planted"):
        trainer.train()
    failing = False
    trainer.train()
    ends = []
    for folder in sorted(sessions.iterdir()):
        with Session(folder) as session:
            ends.append(session.end.how)
    assert sorted(ends) == ["failed", "finished"]
