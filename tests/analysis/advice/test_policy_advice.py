"""Rules about networks: the policy, the teacher, transfers and torch's threads."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace

import pytest
from advised import compute, cured, given, rest, share, speaking, train, train_really, work
from sessions import Written, facts_of, sample

from rlprof.analysis.advice.per_step_sync import per_step_sync
from rlprof.analysis.advice.teacher_one_by_one import teacher_one_by_one
from rlprof.analysis.advice.tiny_batch_inference import tiny_batch_inference
from rlprof.analysis.advice.torch_threads import torch_threads

torch = pytest.importorskip("torch")


@pytest.fixture
def threads():
    """Sets torch's threads, for this test only."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def one_thread(threads):
    threads(1)


def mlp(width):
    layers = [torch.nn.Linear(8, width), torch.nn.Tanh(), torch.nn.Linear(width, width), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 2))


def collecting(envs, steps, count=True, env_step=0.00001):
    """Steps a vector of environments, with one policy call for all of them."""
    net = mlp(64)

    def program(profiler):
        for _ in range(4):
            profiler.iteration()
            for _ in range(steps // 4):
                with profiler.profile("policy_forward"), torch.no_grad():
                    compute(net, torch.zeros(envs, 8))
                    with profiler.profile("value_forward"):
                        compute(net, torch.zeros(envs, 8))
                work(profiler, "env_step", env_step * envs)
                if count:
                    profiler.add_steps(envs)

    return program


def test_a_policy_that_chooses_one_action_per_call_should_have_a_larger_batch(tmp_path, one_thread):
    facts = train(tmp_path, collecting(envs=1, steps=2000))
    advice = given(tiny_batch_inference(facts), "tiny_batch_inference")
    assert advice.operations == ("policy_forward",)  # value_forward is part of its calls
    assert "chose actions 2,000 times for 2,000 env steps" in advice.evidence[0]
    beside = next(row for row in facts.breakdown.rows if row.operation == "unattributed").ledger_ns
    gone = share(facts, "policy_forward", "value_forward") + beside / facts.breakdown.wall_ns
    assert advice.gain == pytest.approx((1.0, 1 / (1 - gone + gone * 1.6 / 64)))


@pytest.mark.long
def test_larger_batches_gain_no_more_than_the_bound(tmp_path, one_thread):
    small, large = (collecting(envs, steps, env_step=0.0001) for envs, steps in ((1, 1000), (64, 60)))
    bound, gain = cured(tmp_path, tiny_batch_inference, small, large)
    assert 1.3 < gain < 1.15 * bound  # by CPU time, which other programs' use of the caches makes a little longer


@pytest.mark.parametrize("phase", [True, False])
def test_an_actor_and_a_critic_before_the_same_step_count_once(phase, written):
    """A scaler, an actor and a critic for 4 environments, and another actor that evaluates."""

    def step():
        for _ in range(3):
            written.work("policy_forward", 50_000)
        written.work("env_step", 20_000)
        written.fake.profiler.add_steps(4)

    for _ in range(10):
        with written.fake.profiler.profile("rollout") if phase else nullcontext():
            for _ in range(20):
                step()
        with written.fake.profiler.profile("evaluation"):
            for _ in range(7):
                written.work("policy_forward", 50_000)
                written.work("env_step", 20_000)
    advice = tiny_batch_inference(facts_of(written.end()))
    assert "for only 4 env steps per call" in advice.title
    assert "chose actions 200 times for 800 env steps" in advice.evidence[0]


def test_a_policy_that_is_called_for_several_environments_one_after_the_other(written):
    for _ in range(50):
        with written.fake.profiler.profile("rollout"):
            written.work("policy_forward", 50_000)
            for _ in range(5):
                written.work("env_step", 2_000)
                written.fake.profiler.add_steps(1)
    advice = tiny_batch_inference(facts_of(written.end()))
    assert "chose actions 50 times for 250 env steps" in advice.evidence[0]


def test_a_large_batch_is_not_tiny_however_long_it_takes(tmp_path, one_thread):
    facts = train(tmp_path, collecting(envs=64, steps=400))
    assert share(facts, "policy_forward", "value_forward") > 0.1
    assert tiny_batch_inference(facts) is None


def test_without_counted_steps_the_batch_is_unknown(tmp_path, one_thread):
    assert tiny_batch_inference(train(tmp_path, collecting(envs=1, steps=400, count=False))) is None


def test_a_long_call_is_computation_that_a_larger_batch_does_not_make_cheaper(tmp_path):
    def program(profiler):
        for _ in range(40):
            work(profiler, "policy_forward", 0.005)
            profiler.add_steps(1)

    assert tiny_batch_inference(train(tmp_path, program)) is None


def fetching(every, seconds, steps=200):
    """A loop that fetches from the device every few steps."""

    def program(profiler):
        for step in range(steps):
            if step % 100 == 0:
                profiler.iteration()
            work(profiler, "env_step", 0.001)
            profiler.add_steps(8)
            if step % every == 0:
                with profiler.profile("device_to_host"):
                    rest(seconds)

    return program


def test_fetching_from_the_device_at_every_step_is_reported(tmp_path):
    facts = train(tmp_path, fetching(every=1, seconds=0.001))
    advice = given(per_step_sync(facts), "per_step_sync")
    assert advice.operations == ("device_to_host",)
    assert "200 calls for 200 steps" in advice.evidence[0]
    assert advice.gain == pytest.approx((1.0, 1 / (1 - share(facts, "device_to_host"))))


def test_fetching_the_same_once_per_rollout_is_fine(tmp_path):
    facts = train(tmp_path, fetching(every=20, seconds=0.02))
    assert share(facts, "device_to_host") > 0.2
    assert per_step_sync(facts) is None


def teaching(calls, seconds, taught=40, steps=40):
    """Eight environments. The teacher is called several times per step and switched off after `taught` steps."""

    def program(profiler):
        for step in range(steps):
            profiler.iteration()
            work(profiler, "policy_forward", 0.002)
            if step < taught:
                with profiler.profile("teacher_total", category="teacher"):
                    for _ in range(calls):
                        work(profiler, "agent_calls", seconds, category="teacher")
            work(profiler, "env_step", 0.002)
            profiler.add_steps(8)

    return program


@pytest.mark.parametrize(("taught", "called"), [(40, 320), (15, 120)])
def test_a_teacher_called_for_each_environment_is_found_by_the_policys_calls(tmp_path, taught, called):
    facts = train(tmp_path, teaching(calls=8, seconds=0.001, taught=taught))
    advice = given(teacher_one_by_one(facts), "teacher_one_by_one")
    assert advice.operations == ("agent_calls", "teacher_total")
    assert "called 8 times per call of policy_forward" in advice.title
    assert f"agent_calls has {called} calls, policy_forward has 40" in advice.evidence[0]
    teacher = share(facts, "agent_calls", "teacher_total")
    assert advice.gain == pytest.approx((1.0, 1 / (1 - teacher + teacher / 8)))


def test_a_teacher_that_answers_for_all_at_once_is_fine(tmp_path):
    assert teacher_one_by_one(train(tmp_path, teaching(calls=1, seconds=0.008))) is None


def updating(width, batch, seconds=0.9, seen=None):
    """`seen` gets the clocks' figures: cores that other threads of this process used, and seconds per update."""
    net = mlp(width)
    optimizer = torch.optim.Adam(net.parameters())

    def program(profiler):
        updates = 0
        wall, helpers = time.perf_counter(), time.process_time() - time.thread_time()
        while time.perf_counter() < wall + seconds:
            updates += 1
            with profiler.profile("loss"):
                loss = net(torch.zeros(batch, 8)).pow(2).mean()
            with profiler.profile("backward"):
                optimizer.zero_grad()
                loss.backward()
            with profiler.profile("optimizer_step"):
                optimizer.step()
        if seen is not None:
            wall = time.perf_counter() - wall
            seen.update(helpers=(time.process_time() - time.thread_time() - helpers) / wall, update=wall / updates)

    return program


def on_a_free_machine(facts):
    """Other programs on the machine are another reason for the same advice."""
    return replace(facts, resources=replace(facts.resources, machine_cpu_mean=60.0))


@pytest.mark.figures
def test_two_threads_for_tiny_operations_keep_another_core_busy(tmp_path, threads):
    threads(2)
    seen = {}
    facts = speaking(torch_threads, lambda: train_really(tmp_path, updating(width=64, batch=256, seen=seen)))
    if torch_threads(facts) is None and (seen["helpers"] < 0.5 or seen["update"] > 0.001):
        pytest.skip(f"others have the cores: helpers got {seen['helpers']:.2f}, an update took {seen['update']:.4f} s")
    advice = given(torch_threads(facts), "torch_threads")
    assert set(advice.operations) == {"loss", "backward", "optimizer_step"}
    assert "uses 2 threads" in advice.evidence[0]
    assert "OMP_NUM_THREADS=1" in advice.check


def test_one_thread_for_tiny_operations_is_right(tmp_path, one_thread):
    assert torch_threads(train_really(tmp_path, updating(width=64, batch=256))) is None


def test_two_threads_for_large_operations_are_right(tmp_path, threads):
    threads(2)
    assert torch_threads(on_a_free_machine(train_really(tmp_path, updating(width=512, batch=1024)))) is None


def contended(folder, on_cpu, machine_cpu):
    """Figures of two torch threads on two busy cores: operations of 50 ms, off the CPU half of the time, that took 1 ms
    on free cores."""
    written = Written(folder)
    for _ in range(5):
        for duration in [50_000_000] * 19 + [50_000_000, 1_000_000]:
            written.work("backward", duration, cpu=int(on_cpu * duration))
        written.samples.append(sample(written.fake.wall, cpu=100.0, machine_cpu=machine_cpu))
        written.flush()
    facts = facts_of(written.end())
    return replace(facts, resources=replace(facts.resources, torch_threads=2))


def test_threads_that_wait_for_each_other_on_busy_cores_have_the_fastest_call_as_bound(tmp_path):
    advice = given(torch_threads(contended(tmp_path, on_cpu=0.5, machine_cpu=100.0)), "torch_threads")
    mean = (20 * 50 + 1) / 21
    assert advice.gain == pytest.approx((1.0, mean / 1), rel=0.01)
    assert "50.0% of their time" in advice.evidence[-1]


@pytest.mark.parametrize(("on_cpu", "machine_cpu"), [(0.95, 100.0), (0.5, 40.0)])
def test_long_operations_that_have_their_cores_may_use_threads(tmp_path, on_cpu, machine_cpu):
    assert torch_threads(contended(tmp_path, on_cpu, machine_cpu)) is None
