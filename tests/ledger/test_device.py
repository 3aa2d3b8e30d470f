"""Device time and memory, on a device that is made up and works later than it is told to."""

from __future__ import annotations

import pytest
from fakes import Fake

from rlprof import RlprofWarning


class Event:
    def __init__(self, at: int) -> None:
        self.at = at


class LateDevice:
    """Work queued on it takes time, and is done only when `run` is called."""

    name = "made up"

    def __init__(self) -> None:
        self.queued = 0
        self.done = 0
        self.allocated = 0
        self.highest = 0
        self.synchronised = False

    def work(self, ns: int) -> None:
        self.queued += ns

    def run(self) -> None:
        self.done = self.queued + 1

    def allocate(self, size: int) -> None:
        self.allocated += size
        self.highest = max(self.highest, self.allocated)

    def record(self) -> Event:
        return Event(self.queued)

    def elapsed_ns(self, start: Event, end: Event) -> int | None:
        return end.at - start.at if end.at < self.done else None

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


def test_only_work_that_runs_on_a_device_is_timed_there_unless_told(fake, device):
    for name, options in [
        ("env_step", {}),
        ("backward", {}),
        ("env_reset", {"device": True}),
        ("loss", {"device": False}),
    ]:
        with fake.profile(name, **options):
            device.work(10)
    device.run()
    snapshot = fake.snapshot()
    assert {a.operation: a.device_calls for a in snapshot.accounts} == {
        "env_step": 0,
        "backward": 1,
        "env_reset": 1,
        "loss": 0,
    }


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
    def fails() -> None:
        raise RuntimeError("lost the bus")

    device.record = fails
    with pytest.warns(RlprofWarning, match="the device failed.*lost the bus") as warned:
        for _ in range(3):
            with fake.profile("backward", track_memory=True):
                fake.tick(5)
    assert len(warned) == 1
    assert fake.ledger() == {"backward": 15, "unattributed": 0}


def test_a_device_that_fails_later_does_not_hurt_either(fake, device):
    def fails(start: Event, end: Event) -> int:
        raise RuntimeError("lost the bus")

    device.elapsed_ns = fails
    with fake.profile("backward"):
        fake.tick(5)
    with pytest.warns(RlprofWarning, match="the device failed"):
        assert fake.snapshot().account("backward").device_calls == 0


def test_a_device_error_does_not_replace_the_trainings_own(fake, device):
    def fails() -> None:
        raise RuntimeError("lost the bus")

    with pytest.warns(RlprofWarning), pytest.raises(KeyError, match="mine"):
        with fake.profile("backward"):
            device.record = fails
            raise KeyError("mine")


def test_a_device_whose_own_code_is_profiled_keeps_the_account(fake, device):
    record = device.record

    def profiled_record() -> Event:
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


def test_an_interrupt_in_the_devices_code_reaches_the_training(core):
    fake = Fake(core)
    device = LateDevice()
    fake.profiler.use_device(device)

    def interrupted() -> Event:
        raise KeyboardInterrupt

    def train() -> None:
        with fake.profile("backward"):
            pass
        for _ in range(10_000):
            pass

    device.record = interrupted
    with pytest.raises(KeyboardInterrupt):
        train()
    fake.profiler.disable()


def test_a_decorated_functions_error_survives_the_measuring(fake, device):
    @fake.profile("backward", track_memory=True, device=True)
    def fails() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fails()


@pytest.mark.long
def test_a_device_that_never_finishes_costs_bounded_memory(fake, device):
    for _ in range(66_000):
        with fake.profile("backward"):
            device.work(1)
    snapshot = fake.snapshot()
    assert snapshot.device_pending <= 65_537
    assert snapshot.device_lost == 66_000 - snapshot.device_pending
