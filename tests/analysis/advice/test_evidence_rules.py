"""Rules that rest on what the probes know besides times, on hand-made evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advised import at, on_cores, train, with_lines, work

from rlprof.analysis.advice import RULES, advise
from rlprof.analysis.advice.anomaly_mode import anomaly_mode
from rlprof.analysis.advice.dataloader_restarts import dataloader_restarts
from rlprof.analysis.advice.gc_pauses import gc_pauses
from rlprof.analysis.advice.heavy_wrapper import heavy_wrapper
from rlprof.analysis.advice.recompiling import recompiling
from rlprof.analysis.advice.small_minibatch import small_minibatch
from rlprof.analysis.advice.unfused_optimizer import unfused_optimizer
from rlprof.analysis.advice.worker_threads import worker_threads
from rlprof.ledger.catalogue import PHASES
from rlprof.session.evidence import (
    Batch,
    Batches,
    Compiling,
    Environment,
    Evidence,
    Frame,
    Generation,
    Level,
    Loader,
    Optimizer,
    Torch,
    Worker,
)

OPERATIONS = ("loss_forward", "backward", "optimizer_step", "compile", "loader_workers", "data_loading")


def program(updates=20, collects=0.01, **seconds):
    """Iterations that collect, and then learn: the times are those of one update."""

    def run(profiler):
        for _ in range(10):
            profiler.iteration()
            with profiler.profile("rollout"):
                for _ in range(64):
                    work(profiler, "env_step", collects / 64)
                    profiler.add_steps(4)
            with profiler.profile("update"):
                for _ in range(updates):
                    for operation in OPERATIONS:
                        if operation in seconds:
                            work(profiler, operation, seconds[operation])

    return run


@pytest.fixture
def facts(tmp_path):
    """10 iterations of 10 ms of env_step and 20 updates of 1 ms: two thirds of the time are updates."""
    learned = train(tmp_path, program(loss_forward=0.0003, backward=0.0004, optimizer_step=0.0003))
    session = replace(learned.session, packages={"torch": "2.13.0"})
    return replace(learned, session=session)


def adam(**changes):
    usual = Optimizer("Adam", 1, 12, 10_000, None, None, "cpu", "float32")
    return replace(usual, **changes)


def knowing(facts, **evidence):
    return replace(facts, evidence=Evidence(**evidence))


def said(finding, rule):
    """The finding of a rule, after checking what holds for every finding."""
    assert finding is not None, f"{rule} is silent"
    assert finding.rule == rule
    assert finding.evidence
    assert not set(finding.operations) & PHASES
    for sentence in (finding.cause, *finding.evidence, finding.change):
        assert sentence.endswith("."), sentence
    assert 1.0 <= finding.gain.low <= finding.gain.estimate <= finding.gain.high
    return finding


def test_without_evidence_no_rule_speaks(facts):
    names = {"small_minibatch", "unfused_optimizer", "recompiling", "gc_pauses", "dataloader_restarts"}
    names |= {"heavy_wrapper", "worker_threads", "anomaly_mode"}
    assert names <= {rule.__name__ for rule in RULES}
    assert not names & {finding.rule for finding in advise(facts)}


def batches(*sizes):
    return Batches(learning=tuple(Batch(size, count) for size, count in sizes))


def test_a_minibatch_of_8_rows_is_mostly_overhead(facts):
    known = knowing(facts, batches=batches((8, 190), (3, 10)), optimizers=(adam(),))
    finding = said(small_minibatch(known), "small_minibatch")
    assert "only 8 rows" in finding.cause
    assert "200 optimizer steps, 20 per iteration" in finding.evidence[0]
    assert "minibatches of 64 rows instead of 8" in finding.change
    # Updates are 2/3 of the time. 64 rows cost 4 us more each than 8, so 8 times fewer steps leave about 1/7.
    step, row = 1_000_000, 0.2 * 10_000 + 2_000
    left = (step + 56 * row) / step / 8
    assert finding.gain.estimate == pytest.approx(1 / (1 / 3 + 2 / 3 * left), rel=0.02)


def test_the_advised_batch_is_not_larger_than_what_is_collected(facts):
    known = knowing(facts, batches=batches((32, 200)), optimizers=(adam(),))
    assert "minibatches of 256 rows" in said(small_minibatch(known), "small_minibatch").change


def test_an_update_from_all_that_was_collected_needs_more_of_it(tmp_path):
    """As A2C does with one environment: there is no minibatch to enlarge."""

    def run(profiler):
        for _ in range(50):
            profiler.iteration()
            with profiler.profile("rollout"):
                for _ in range(5):
                    work(profiler, "env_step", 0.0001)
                    profiler.add_steps(1)
            with profiler.profile("update"):
                work(profiler, "backward", 0.001)
                work(profiler, "optimizer_step", 0.001)

    known = knowing(train(tmp_path, run), batches=batches((5, 50)), optimizers=(adam(),))
    finding = said(small_minibatch(known), "small_minibatch")
    assert "Collect 8 times as much" in finding.change


@pytest.mark.parametrize(("rows", "small"), [(32, False), (16, True)])
def test_32_rows_from_a_replay_buffer_are_usual(facts, rows, small):
    known = knowing(facts, batches=batches((rows, 200)), optimizers=(adam(),))
    replaying = with_lines(known, {"update": [at("dqn.py:5", "batch = replay.sample(32)", 1.0)]})
    assert small_minibatch(known) is not None
    assert (small_minibatch(replaying) is not None) == small


@pytest.mark.parametrize(
    ("rows", "elements"),
    [(64, 10_000), (256, 10_000), (8, 500_000), (32, 100_000)],
    ids=["64 rows", "256 rows", "a large network", "many rows of a network"],
)
def test_a_step_that_computes_is_not_a_small_minibatch(facts, rows, elements):
    known = knowing(facts, batches=batches((rows, 200)), optimizers=(adam(elements=elements),))
    assert small_minibatch(known) is None


def test_small_minibatches_do_not_matter_if_updates_are_short(tmp_path):
    facts = train(tmp_path, program(collects=0.1, loss_forward=0.0003, backward=0.0004, optimizer_step=0.0003))
    assert small_minibatch(knowing(facts, batches=batches((8, 200)), optimizers=(adam(),))) is None


def test_an_adam_that_is_not_fused_is_found(facts):
    finding = said(unfused_optimizer(knowing(facts, optimizers=(adam(tensors=40),))), "unfused_optimizer")
    assert finding.operations == ("optimizer_step",)
    assert "`torch.optim.Adam(params, fused=True)`" in finding.change
    assert "20.0%" in finding.cause
    assert finding.gain.estimate == pytest.approx(1 / (1 - 0.2 * 0.78), rel=0.02)


@pytest.mark.parametrize(
    "optimizer",
    [
        adam(fused=True, tensors=40),
        adam(name="SGD", tensors=40),
        adam(),
        adam(name="RMSprop", foreach=True, tensors=40),
    ],
    ids=["fused", "SGD", "few tensors", "foreach"],
)
def test_an_optimizer_that_cannot_be_faster_is_none(facts, optimizer):
    assert unfused_optimizer(knowing(facts, optimizers=(optimizer,))) is None


def test_many_tensors_without_a_fused_version_should_be_updated_together(facts):
    found = unfused_optimizer(knowing(facts, optimizers=(adam(name="RMSprop", tensors=40),)))
    assert "`torch.optim.RMSprop(params, foreach=True)`" in said(found, "unfused_optimizer").change


def test_an_old_torch_has_no_fused_adam_on_a_cpu(facts):
    old = replace(facts, session=replace(facts.session, packages={"torch": "2.3.1"}))
    assert unfused_optimizer(knowing(old, optimizers=(adam(),))) is None


def compiling(reason, again=8, again_ns=80_000_000, ns=100_000_000):
    frame = Frame("forward", "/home/user/project/train.py", 12, again, again_ns, (reason,))
    return Compiling(number=again + 1, ns=ns, again=again, again_ns=again_ns, frames=(frame,))


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("tensor 'args[0]' size mismatch at index 0. expected 2, actual 3", "dynamic=True"),
        ("k == 2", "torch.tensor(value)"),
        ("GLOBAL_STATE changed: grad_mode", "one gradient mode"),
        ("something new", "TORCH_LOGS=recompiles"),
    ],
)
def test_recompilations_come_with_dynamos_reason(tmp_path, reason, change):
    facts = train(tmp_path, program(updates=10, loss_forward=0.001, compile=0.001))
    finding = said(recompiling(knowing(facts, compiling=compiling(reason))), "recompiling")
    assert f"Dynamo's reason: {reason}." in finding.evidence
    assert change in finding.change
    assert (finding.place.file, finding.place.line) == ("train.py", 12)
    # 100 of 300 ms are compilation, 80 of them again.
    assert finding.gain.estimate == pytest.approx(300 / 220, rel=0.02)


def test_the_first_compilation_and_one_for_all_sizes_are_no_finding(tmp_path):
    facts = train(tmp_path, program(updates=10, loss_forward=0.001, compile=0.001))
    assert recompiling(knowing(facts, compiling=compiling("size mismatch", again=1))) is None
    assert recompiling(knowing(facts, compiling=compiling("size mismatch", again_ns=1_000_000))) is None


def collections(young, middle, full, runs=(500, 50, 4)):
    times = zip(runs, (young, middle, full))
    return tuple(Generation(number, 1_000_000 * ms, 1_000_000, 0, 0) for number, ms in times)


def test_garbage_collections_that_take_a_tenth_are_found(facts):
    finding = said(gc_pauses(knowing(facts, collections=collections(5, 5, 20))), "gc_pauses")
    assert "10.0%" in finding.cause
    assert "gc.freeze()" in finding.change
    assert finding.gain.estimate == pytest.approx(1 / (1 - 0.09), rel=0.02)


def test_a_program_that_collects_by_itself_is_told_to_stop(facts):
    finding = gc_pauses(knowing(facts, collections=collections(1, 1, 60, runs=(20, 2, 200))))
    assert "calls `gc.collect()`" in said(finding, "gc_pauses").cause
    assert "Remove `gc.collect()`" in finding.change


def test_a_few_percent_of_collections_are_usual(facts):
    assert gc_pauses(knowing(facts, collections=collections(3, 2, 5))) is None


def loader(**changes):
    usual = Loader(workers=2, persistent=False, dataset=100_000, batch=64, loaders=10, iterators=10)
    return replace(usual, **changes)


def restarting(tmp_path):
    return train(tmp_path, program(updates=1, loss_forward=0.002, loader_workers=0.01, data_loading=0.001))


def test_workers_that_are_started_for_each_pass_are_found(tmp_path):
    finding = dataloader_restarts(knowing(restarting(tmp_path), loaders=(loader(),)))
    assert "starts 2 worker processes anew" in said(finding, "dataloader_restarts").cause
    assert "Make the DataLoader once" in finding.change
    assert "persistent_workers=True" in finding.change
    assert finding.gain.estimate == pytest.approx(23 / 13.2, rel=0.03)


def test_a_small_dataset_needs_no_workers(tmp_path):
    finding = dataloader_restarts(knowing(restarting(tmp_path), loaders=(loader(dataset=256),)))
    assert "num_workers=0" in said(finding, "dataloader_restarts").change


@pytest.mark.parametrize("healthy", [{"persistent": True}, {"workers": 0}, {"iterators": 1, "loaders": 1}])
def test_workers_that_stay_are_no_finding(tmp_path, healthy):
    assert dataloader_restarts(knowing(restarting(tmp_path), loaders=(loader(**healthy),))) is None


def levels(wrapper, env, vector=1, calls=100):
    return (
        Level("SyncVectorEnv", "gymnasium.vector", 0, False, calls, calls * vector * 1000),
        Level("Stack", "__main__", 1, True, calls, calls * wrapper * 1000),
        Level("CartPoleEnv", "gymnasium.envs", 2, False, calls, calls * env * 1000),
    )


def test_a_wrapper_that_takes_longer_than_its_environment_is_found(facts):
    finding = said(heavy_wrapper(knowing(facts, levels=levels(60, 19, 21))), "heavy_wrapper")
    assert "The wrapper Stack takes 20.0% of the training time, 3.2 times as long as CartPoleEnv" in finding.cause
    assert "Stack 60.0 us, SyncVectorEnv 21.0 us, CartPoleEnv 19.0 us" in finding.evidence[0]
    # 60 % of env_step, which takes a third of the time; 15 % of the wrapper is left.
    assert finding.gain.estimate == pytest.approx(1 / (1 - 0.6 * 0.85 / 3), rel=0.02)


def test_what_a_vector_waits_for_its_workers_is_not_its_own(facts):
    workers = (Environment(("AsyncVectorEnv",), "workers", 8, None),)
    known = knowing(facts, levels=levels(60, 40, 100_000), environments=workers)
    assert "60.0%" in said(heavy_wrapper(known), "heavy_wrapper").evidence[1]


def test_a_wrapper_around_worker_processes_waits_for_them(facts):
    workers = (Environment(("Stack", "AsyncVectorEnv"), "workers", 8, None),)
    assert heavy_wrapper(knowing(facts, levels=levels(100_000, 40), environments=workers)) is None


@pytest.mark.parametrize(("wrapper", "env"), [(20, 60), (59, 60), (1, 0)])
def test_cheap_wrappers_are_no_finding(facts, wrapper, env):
    assert heavy_wrapper(knowing(facts, levels=levels(wrapper, env, vector=100))) is None


def test_a_wrapper_that_waits_is_none_that_computes_too_much(facts):
    waiting = tuple(replace(item, cpu_ns=item.self_ns // 5) for item in facts.operations)
    assert heavy_wrapper(knowing(replace(facts, operations=waiting), levels=levels(60, 19, 21))) is None


def in_workers(facts, threads, helpers, number=4):
    """The environments are stepped by processes."""
    lanes = [replace(lane, kind="process") for item in facts.operations[:1] for lane in item.lanes]
    moved = tuple(replace(item, lanes=tuple(lanes)) for item in facts.operations)
    workers = tuple(Worker(f"Worker-{i}", threads, 100_000_000, helpers * 1_000_000) for i in range(number))
    return on_cores(replace(facts, operations=moved, evidence=Evidence(workers=workers)), 4)


def test_more_torch_threads_in_workers_than_cores_are_found(facts):
    finding = said(worker_threads(in_workers(facts, threads=4, helpers=50)), "worker_threads")
    assert "4 threads in each of 4 worker processes, on 4 cores" in finding.cause
    assert "torch.set_num_threads(1)" in finding.change
    assert "50.0%" in finding.evidence[1]


@pytest.mark.parametrize(
    ("threads", "helpers", "number"), [(1, 50, 4), (4, 1, 4), (4, 50, 1), (None, 0, 4), (2, 50, 2)]
)
def test_workers_that_do_not_share_cores_are_no_finding(facts, threads, helpers, number):
    assert worker_threads(in_workers(facts, threads, helpers, number)) is None


def anomalous(number, of=200):
    return Torch(1, 1, None, False, "float32", True, of, number)


def test_anomaly_mode_is_found(facts):
    finding = said(anomaly_mode(knowing(facts, torch=anomalous(200))), "anomaly_mode")
    assert "200 of 200 backward passes" in finding.evidence[0]
    assert finding.gain.estimate == pytest.approx(1 / (1 / 3 + 2 / 3 * 0.45), rel=0.02)


@pytest.mark.parametrize("number", [0, 50])
def test_a_search_for_a_nan_is_no_finding(facts, number):
    assert anomaly_mode(knowing(facts, torch=anomalous(number))) is None
