"""Device time and memory, on a fake device that works later than requested."""

from __future__ import annotations

import pytest
from fakes import Fake

from rlprof import RlprofWarning


def fails(*_arguments: object) -> None:
    raise RuntimeError("lost the bus")


class LateDevice:
    """Work queued on it takes time, and is done only when `run` is called."""

    name = "made up"

    def __init__(self) -> None:
        self.queued = 0
        self.done = 0
        self.allocated = 0
        self.highest = 0

    def work(self, ns: int) -> None:
        self.queued += ns

    def run(self) -> None:
        self.done = self.queued + 1

    def allocate(self, size: int) -> None:
        self.allocated += size
        self.highest = max(self.highest, self.allocated)

    def record(self) -> int:
        """An event is its place in the queue, in ns."""
        return self.queued

    def elapsed_ns(self, start: int, end: int) -> int | None:
        return end - start if end < self.done else None

    def peak(self) -> int:
        return self.highest

    def reset_peak(self) -> int:
        self.highest = self.allocated
        return self.allocated


@pytest.fixture
def device(fake: Fake) -> LateDevice:
    device = LateDevice()
    fake.profiler.use_device(device)
    return device


def test_device_time_is_where_the_work_was_launched(fake, device):
    with fake.profile("policy_forward"):
        fake.tick(1)
        device.work(500)
    with fake.profile("to_host"):
        fake.tick(600)
    snapshot = fake.snapshot()
    assert snapshot.device_pending == 2
    assert snapshot.account("policy_forward").device_ns == 0
    device.run()
    snapshot = fake.snapshot()
    assert snapshot.device_pending == 0
    forward, copy = snapshot.account("policy_forward"), snapshot.account("to_host")
    assert (forward.device_ns, forward.device_calls, forward.ledger_ns) == (500, 1, 1)
    assert (copy.device_ns, copy.device_calls, copy.ledger_ns) == (0, 1, 600)


def test_the_category_decides_what_is_timed_on_a_device_or_the_caller(fake, device):
    for name, choice in [("env_step", None), ("backward", None), ("env_reset", True), ("loss", False)]:
        with fake.profile(name, device=choice):
            device.work(10)
    device.run()
    calls = {account.operation: account.device_calls for account in fake.snapshot().accounts}
    assert calls == {"env_step": 0, "backward": 1, "env_reset": 1, "loss": 0}


def test_device_peaks_are_folded_into_the_spans_around(fake, device):
    with fake.profile("update", track_memory=True):
        device.allocate(50)
        with fake.profile("backward", track_memory=True):
            device.allocate(100)
            device.allocate(-100)
        with fake.profile("optimizer_step", track_memory=True):
            device.allocate(7)
    snapshot = fake.snapshot()
    rises = {a.operation: (a.device_rise, a.device_peak) for a in snapshot.accounts}
    assert rises == {"update": (150, 150), "backward": (100, 150), "optimizer_step": (7, 57)}


def test_a_device_that_fails_is_left_out_with_one_warning(fake, device):
    device.record = fails
    with pytest.warns(RlprofWarning, match="the device failed.*lost the bus") as warned:
        for _ in range(3):
            with fake.profile("backward", track_memory=True):
                fake.tick(5)
    assert len(warned) == 1
    assert fake.ledger() == {"backward": 15, "unattributed": 0}


def test_a_device_that_fails_later_does_not_hurt_either(fake, device):
    device.elapsed_ns = fails
    with fake.profile("backward"):
        fake.tick(5)
    with pytest.warns(RlprofWarning, match="the device failed"):
        assert fake.snapshot().account("backward").device_calls == 0


def test_a_device_error_does_not_replace_the_trainings_own(fake, device):
    with pytest.warns(RlprofWarning), pytest.raises(KeyError, match="mine"):
        with fake.profile("backward"):
            device.record = fails
            raise KeyError("mine")


def test_a_device_whose_own_code_is_profiled_keeps_the_account(fake, device):
    record = device.record

    def profiled_record() -> int:
        for _ in range(20):  # deep enough to make the stack grow
            fake.profile("driver_call").__enter__()
        fake.tick(3)
        for _ in range(20):
            fake.profile("driver_call").__exit__(None, None, None)
        return record()

    device.record = profiled_record
    with fake.profile("backward", wait=True):
        fake.tick(10)
    ledger = fake.ledger()
    assert ledger["backward"] == 10
    assert ledger["driver_call"] == 6


def test_an_interrupt_in_the_devices_code_reaches_the_training(fake, device):
    def interrupted() -> int:
        raise KeyboardInterrupt

    def train() -> None:
        with fake.profile("backward"):
            pass
        for _ in range(10_000):
            pass

    device.record = interrupted
    with pytest.raises(KeyboardInterrupt):
        train()


def test_a_decorated_functions_error_survives_the_measuring(fake, device):
    @fake.profile("backward", track_memory=True, device=True)
    def backward() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        backward()


@pytest.mark.long
def test_a_device_that_never_finishes_costs_bounded_memory(fake, device):
    for _ in range(66_000):
        with fake.profile("backward"):
            device.work(1)
    snapshot = fake.snapshot()
    assert snapshot.device_pending <= 65_537
    assert snapshot.device_lost == 66_000 - snapshot.device_pending
