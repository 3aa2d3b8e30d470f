"""morph: its hosts and batches against their rules, and the training of the controller."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import pstats
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from workload_runs import calls_of, rlprof, scores_of, settings_of, train_twice

from rlprof import get_profiler
from rlprof.workloads.morph.controller import Rollout, advantages_of
from rlprof.workloads.morph.environment import GROW, KEEP, OBSERVATION, PRUNE, VALIDATION_LOSS
from rlprof.workloads.morph.host import Host
from rlprof.workloads.morph.images import HOLE, MARGIN, Augmented, Images, draw_batches, feed, make_images, normalize
from rlprof.workloads.morph.settings import BLOCKS, ControllerSettings, MorphSettings
from rlprof.workloads.morph.training import set_up, train
from rlprof.workloads.progress import Progress

TINY = (
    "envs=3", "iterations=2", "episode_length=3", "host.batch_size=16", "host.batches=2", "images.classes=4",
    "images.validation=16", "controller.hidden=16",
)  # fmt: skip
CPU = torch.device("cpu")


def tiny(*words: str) -> MorphSettings:
    return settings_of("morph", *TINY, *words)


# ---- batches ----


@pytest.fixture
def images():
    return make_images(tiny().images, 32, seed=1, split=0)


def test_in_an_epoch_every_host_sees_every_image_once_in_an_order_of_its_own():
    draws = draw_batches(tiny())
    first, second = next(draws), next(draws)
    seen = np.concatenate((first.image, second.image), axis=1)
    assert np.array_equal(np.sort(seen, axis=1), np.tile(np.arange(32), (3, 1)))
    assert not np.array_equal(seen[0], seen[1])
    assert not np.array_equal(next(draws).image, first.image)
    many = [next(draws) for _ in range(20)]
    for part, end in (("top", 2 * MARGIN), ("left", 2 * MARGIN), ("mirrored", 1), ("hole_top", 8 - HOLE)):
        drawn = np.concatenate([getattr(draw, part) for draw in many])
        assert (drawn.min(), drawn.max()) == (0, end), part


def test_an_image_is_shifted_mirrored_brightened_and_cut_as_drawn():
    size = 8
    pixels = torch.arange(3 * 12 * 12, dtype=torch.int64).view(1, 3, 12, 12).remainder(256).to(torch.uint8)
    images = Images(pixels, torch.tensor([7]))
    image, label = Augmented(images)[0, 1, 3, 1, 0.5, 2, 4]
    assert label == 7
    assert image.shape == (3, size, size)
    for channel, row, column in ((0, 0, 0), (1, 7, 2), (2, 5, 7)):
        there = pixels[0, channel, 1 + row, 3 + (size - 1 - column)]
        assert image[channel, row, column] == normalize(there) * 0.5
    assert (image[:, 2 : 2 + HOLE, 4 : 4 + HOLE] == 0).all()
    assert (image == 0).sum() == 3 * HOLE * HOLE


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "devices"),
    [
        (["num_workers=2"], [CPU] * 3),
        (["gpu_preload=true"], [CPU] * 3),
        (["gpu_preload=true", "num_workers=2"], [CPU, torch.device("cpu:0"), CPU]),
        (["experimental_gpu_preload_gather=true"], [CPU] * 3),
        (["experimental_gpu_preload_gather=true"], [CPU, torch.device("cpu:0"), CPU]),
    ],
    ids=["workers", "preloaded", "preloaded on two devices", "gathered", "gathered on two devices"],
)
def test_however_it_is_loaded_a_batch_is_the_same_bit_for_bit(words, devices, images):
    with closing(feed(tiny(), images, [CPU] * 3)) as plain, closing(feed(tiny(*words), images, devices)) as other:
        for _ in range(5):
            expected, found = next(plain), next(other)
            assert len(found) == 3
            for (pixels, labels), (same_pixels, same_labels) in zip(expected, found, strict=True):
                assert pixels.shape == (16, 3, 8, 8)
                assert torch.equal(pixels, same_pixels)
                assert torch.equal(labels, same_labels)


@pytest.mark.long
def test_a_feed_that_is_closed_leaves_no_workers(images):
    before = set(multiprocessing.active_children())
    batches = feed(tiny("num_workers=2"), images, [CPU] * 3)
    next(batches)
    assert len(set(multiprocessing.active_children()) - before) == 2
    batches.close()
    assert not set(multiprocessing.active_children()) - before


def test_making_batches_and_hosts_uses_no_random_number_of_the_controller(images):
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    next(feed(tiny(), images, [CPU] * 3))
    Host(tiny(), CPU, seed=5).grow()
    assert torch.equal(torch.rand(1), expected)


def test_the_images_of_a_class_are_alike_and_those_of_the_splits_are_not_the_same():
    settings = tiny("images.noise=0.1").images
    images, others = (make_images(settings, 40, seed=1, split=split) for split in (0, 1))
    assert not torch.equal(images.pixels, others.pixels)
    patterns = torch.stack([images.pixels[images.labels == label].float().mean(0) for label in range(4)])
    distances = (others.pixels.float()[:, None] - patterns[None]).square().mean((2, 3, 4))
    assert torch.equal(distances.argmin(1), others.labels)
    assert images.pixels.shape[-1] == 8 + 2 * MARGIN


# ---- hosts ----


@pytest.fixture
def batch(images):
    with closing(feed(tiny(), images, [CPU] * 3)) as batches:
        return next(batches)[0]


def test_a_grown_branch_changes_nothing_at_first_and_then_learns(batch):
    host = Host(tiny(), CPU, seed=1)
    before = host.network(batch[0])
    for number in range(1, BLOCKS + 1):
        host.grow()
        assert host.grown == number
    assert torch.equal(host.network(batch[0]), before)
    host.grow()
    assert host.grown == BLOCKS
    host.learn(batch)
    assert all(block.branch.weight.abs().sum() > 0 for block in host.network.blocks)


def test_pruning_takes_the_last_branch_with_its_momentum(batch):
    host = Host(tiny(), CPU, seed=1)
    host.prune()
    assert host.grown == 0
    bare = len(list(host.network.parameters()))
    host.grow()
    host.learn(batch)
    assert len(host.optimizer.state) == bare + 2
    host.prune()
    assert (host.grown, len(host.optimizer.state)) == (0, bare)
    assert len(list(host.network.parameters())) == bare


def test_each_part_of_an_action_changes_the_training_of_its_host():
    made = set_up(tiny("envs=6", "host.momentum=0"))
    made.environments.reset()
    hosts = made.environments.hosts
    start = {name: weights.clone() for name, weights in hosts[0].network.state_dict().items()}
    for host in hosts:
        host.network.load_state_dict(start)
    batches = next(made.feed)
    made.environments.feed = iter([[batches[0]] * 6] * 2)
    made.environments.step(
        np.array([[0, 0, KEEP], [1, 0, KEEP], [0, 2, KEEP], [0, 0, GROW], [0, 0, PRUNE], [0, 0, KEEP]])
    )
    assert [host.grown for host in hosts] == [0, 0, 0, 1, 0, 0]
    ends = [host.network.classify.weight.detach() for host in hosts]
    assert torch.equal(ends[0], ends[5])
    moved = [(end - start["classify.weight"]).norm() for end in ends]
    assert moved[1] > 5 * moved[0]
    assert ends[2].norm() < ends[0].norm()
    made.feed.close()


def test_the_reward_is_the_fall_of_the_validation_loss_less_the_rent():
    made = set_up(tiny("host.rent=0.25"))
    environments = made.environments
    assert environments.reset().shape == (3, OBSERVATION)
    before = environments.measured[:, VALIDATION_LOSS].copy()
    seen, rewards = environments.step(np.array([[2, 0, GROW], [2, 0, KEEP], [2, 0, PRUNE]]))
    after = environments.measured[:, VALIDATION_LOSS]
    assert rewards.tolist() == pytest.approx((before - after - [0.25, 0, 0]).tolist())
    for host, loss in zip(environments.hosts, after, strict=True):
        assert host.judge(environments._validation[CPU])[0].item() == pytest.approx(loss)
    assert seen[0, :1].item() == pytest.approx(1 / 3)
    assert torch.isfinite(seen).all()
    assert seen[:, 80:].abs().sum() == 0
    made.feed.close()


def test_advantages_are_those_of_the_definition():
    rollout = Rollout.empty(3, 1, CPU)
    rollout.rewards[:, 0] = torch.tensor([1.0, 0.0, 2.0])
    rollout.values[:, 0] = torch.tensor([0.5, 0.25, 1.0])
    found = advantages_of(rollout, ControllerSettings(gamma=0.5, gae_lambda=0.5))
    last = 2.0 - 1.0
    middle = 0.5 * 1.0 - 0.25 + 0.25 * last
    first = 1.0 + 0.5 * 0.25 - 0.5 + 0.25 * middle
    assert found[:, 0].tolist() == pytest.approx([first, middle, last])


# ---- the training ----


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    words = (
        "envs=10", "episode_length=3", "iterations=10", "host.batch_size=32", "host.batches=1", "images.classes=4",
        "images.noise=0.2", "controller.hidden=64", "controller.learning_rate=0.005", "controller.passes=8",
        "--", "iterations=3", "experimental_gpu_preload_gather=true", "devices=[cpu, 'cpu:0']",
    )  # fmt: skip
    return train_twice("morph", tmp_path_factory.mktemp("morph"), *words)


@pytest.mark.long
def test_it_learns(trained):
    assert sum(trained.alone[-3:]) / 3 > sum(trained.alone[:3]) / 3 + 0.2


@pytest.mark.long
def test_neither_recording_nor_the_cure_changes_a_return(trained):
    trained.check(steps=10 * 10 * 3, iterations=10)


@pytest.mark.long
def test_episodes_and_calls_are_those_of_the_training(trained):
    facts = trained.facts
    assert facts.progress.episodes == 10 * 10
    calls = calls_of(facts)
    assert calls["rollout"] == calls["update"] == calls["env_reset"] == 10
    assert calls["env_step"] == calls["policy_forward"] == calls["data_loading"] == 10 * 3
    assert calls["host_forward"] == calls["host_backward"] == calls["host_optimizer_step"] == 10 * 3 * 10
    assert calls["backward"] == calls["optimizer_step"] == 10 * 8, "the controller's: those of hosts have other names"
    assert "loss_forward" not in calls


def test_every_epoch_of_the_hosts_is_announced_so_that_captures_can_step_with_it():
    announced: list[str] = []
    end = get_profiler().listen(announced.append)
    scores_of("morph", tiny())
    end()
    assert announced == ["plan", *["iteration", "epoch", "epoch", "epoch"] * 2]


def test_telemetry_has_rounds_and_in_debug_every_epoch_of_every_host(tmp_path):
    progress = Progress("morph", "mean return", show=False)
    for level in ("off", "normal", "debug"):
        settings = replace(tiny(), telemetry_dir=str(tmp_path / level), telemetry_level=level)
        train(settings, progress)
    assert not (tmp_path / "off").exists()
    normal, debug = (
        [json.loads(line) for line in (tmp_path / level / "events.jsonl").read_text().splitlines()]
        for level in ("normal", "debug")
    )
    assert [event["event"] for event in normal] == ["run_began", "round_ended", "round_ended"]
    assert [event["mean_return"] for event in normal[1:]] == progress.scores[2:4] == progress.scores[4:]
    epochs = [event for event in debug if event["event"] == "epoch_ended"]
    assert len(epochs) == 2 * 3 * 3
    returns = [sum(event["reward"] for event in epochs[:9] if event["env"] == env) for env in range(3)]
    assert sum(returns) / 3 == pytest.approx(progress.scores[0], abs=1e-5)


@pytest.mark.long
def test_the_documents_command_lines_leave_a_trace_with_the_update_in_it_and_count_every_image(tmp_path):
    """Runs both in one: the trace, and cProfile."""
    (tmp_path / "config.json").write_text(json.dumps({"host": {"batch_size": 16}, "controller": {"hidden": 16}}))
    done = rlprof(
        tmp_path, "train", "morph", "--devices", "cpu", "cpu", "--config-json", "config.json", "--gpu-preload",
        "--rounds", "2", "--envs", "4", "--num-workers", "16", "--episode-length", "3",
        "--telemetry-dir", "./telemetry", "--telemetry-level", "debug", "--summary-every", "1", "--no-tui",
        "--torch-profiler", "--torch-profiler-dir", "./profiler_traces/ppo_scale16", "--torch-profiler-wait", "1",
        "--torch-profiler-warmup", "1", "--torch-profiler-active", "2", "--torch-profiler-repeat", "1",
        "--torch-profiler-record-shapes", "--torch-profiler-profile-memory", "--torch-profiler-summary", "--cprofile",
    )  # fmt: skip
    assert "morph: 24 steps, mean return" in done.stdout
    assert "2 steps of" in done.stderr
    (path,) = (tmp_path / "profiler_traces" / "ppo_scale16").glob("*.pt.trace.json.gz")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    names = [event["name"] for event in events if event.get("cat") == "user_annotation"]
    assert names.count("env_step") == 2
    assert names.count("host_backward") == 2 * 2 * 4
    assert names.count("update") == 1
    assert names.count("evaluate_actions") == 4
    assert (tmp_path / "telemetry" / "events.jsonl").read_text().count("epoch_ended") == 24
    (functions,) = tmp_path.glob("rlprof-runs/*/functions/whole.pstats")
    calls = {(Path(file).name, name): found[0] for (file, _, name), found in pstats.Stats(str(functions)).stats.items()}
    assert calls["images.py", "__getitem__"] == 2 * 3 * 2 * 4 * 16
