"""Frames of sessions, against planted times and against the report of the same session."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace

import pytest
from sessions import INFO, Written, report_of, run_program, sample

from rlprof.errors import RlprofError
from rlprof.live.choose import running_session
from rlprof.live.feed import Feed
from rlprof.live.frame import Frame
from rlprof.session.records import Mark

SECOND = 10**9


def train(written: Written, iterations: int, env_step: float = 0.5, update: float = 0.3) -> None:
    """Iterations of these times in seconds, and 0.2 s of the program's own code. 8 steps each."""
    for _ in range(iterations):
        with written.fake.profiler.iteration():
            with written.fake.profile("rollout"):
                written.work("env_step", round(env_step * SECOND))
            written.work("backward", round(update * SECOND))
            written.fake.tick(SECOND // 5)
            written.fake.profiler.add_steps(8)


def frame_of(written: Written, ago: float = 0.0) -> Frame:
    """A frame of the session as it would be so many seconds after its last flush."""
    return feed_of(written, ago).frame()


def feed_of(written: Written, ago: float = 0.0) -> Feed:
    feed = Feed(written.path)
    feed.refresh(force=True)
    now = feed.frame().written + ago
    feed._now = lambda: now
    return feed


def test_shares_now_are_those_of_the_last_ten_seconds(written):
    train(written, 40)
    train(written, 20, env_step=1.5)
    written.flush()
    frame = frame_of(written)
    parts = {part.path: part for part in frame.parts}
    assert (frame.window_iterations, frame.window_ns) == (5, 10 * SECOND)
    assert parts["rollout", "env_step"].now == parts["rollout",].now == 75
    assert parts["rollout",].own_now == 0
    assert parts["rollout",].is_phase
    assert not parts["backward",].is_phase
    assert parts["backward",].now == 15
    assert parts["unattributed",].now == 10
    assert parts["rollout", "env_step"].share == pytest.approx(100 * 50 / 80, abs=0.1)
    assert frame.speed.now == 4
    assert frame.speed.mean == 60 * 8 / 80
    assert frame.iterations == 60
    assert frame.steps == 480


def test_the_figures_of_a_finished_run_are_those_of_its_report(written):
    train(written, 30)
    written.samples = [sample(number * SECOND, cpu=40.0 + number, rss=number << 20) for number in range(1, 30)]
    path = written.end()
    frame, report = frame_of(written), report_of(path)
    assert frame.state == "finished"
    assert [(part.operation, part.depth, part.share, part.ns, part.calls) for part in frame.parts] == [
        (row.operation, row.depth, row.share, row.subtree_ledger_ns, row.calls) for row in report.facts.breakdown.rows
    ]
    assert sum(part.own_share for part in frame.parts) == pytest.approx(100)
    assert frame.speed.mean == report.facts.progress.steps_per_second
    assert frame.iteration_ns == report.facts.progress.iteration_ns.p50_ns
    assert frame.training_s == report.facts.breakdown.training_ns / 1e9
    assert frame.findings == report.findings.findings
    assert (frame.usage.cpu, frame.usage.memory) == (report.facts.resources.cpu_mean, 29 << 20)
    assert (frame.speed.now, frame.age_s, frame.eta_s, frame.problem) == (None, 0.0, None, "")
    assert all(part.now is None for part in frame.parts)


def test_the_end_comes_from_the_plan_and_the_pace_of_now(written):
    written.fake.profiler.plan(iteration=100)
    train(written, 40)
    batch = written.batch()
    batch.planned = {"iteration": 100}
    written.writer.write(batch)
    frame = frame_of(written)
    assert frame.planned == 100
    assert frame.eta_s == pytest.approx(60)


def test_a_lane_shows_what_is_open_and_since_when(written, actor):
    with written.fake.profiler.iteration():
        outer, inner = written.fake.profile("rollout"), written.fake.profile("queue_wait", wait=True)
        with outer:
            written.fake.tick(3 * SECOND)
            actor.enter(written.fake.profile("env_step"))
            with inner:
                written.fake.tick(2 * SECOND)
                written.flush()
                main, worker = frame_of(written).lanes
                actor.exit(written.fake.profile("env_step"))
    assert (main.doing, main.waits, main.since_s) == (("rollout", "queue_wait"), True, 2)
    assert main.waits_for == (worker.name,)
    assert (worker.doing, worker.waits, worker.since_s, worker.alive) == (("env_step",), False, 2, True)
    assert worker.waits_for == ()


def test_without_iterations_now_is_what_came_since_an_earlier_reading(written):
    feed = Feed(written.path)
    for number in range(20):
        written.work("env_step" if number < 10 else "backward", SECOND)
        written.flush()
        frame = feed.frame()
    feed.refresh(force=True)
    frame = feed.frame()
    assert frame.window_iterations == 0
    assert {part.operation: part.now for part in frame.parts} == {
        "backward": 100, "env_step": 0, "unattributed": 0, "rlprof": 0,
    }  # fmt: skip
    assert frame.lanes[0].busy == 100


def test_time_between_iterations_is_a_part_of_now(written):
    """As in `while True: with iteration(): ...; save()`."""
    feed = Feed(written.path)
    for _ in range(30):
        train(written, 1)
        written.work("checkpoint", 3 * SECOND)
        written.flush()
        first = feed.frame()
    assert Feed(written.path).frame().speed.now == pytest.approx(8 / 4, rel=0.3)  # with no earlier reading
    feed.refresh(force=True)
    frame = feed.frame()
    parts = {part.operation: part for part in frame.parts}
    assert first.speed.now == frame.speed.now == 2
    assert frame.speed.mean == pytest.approx(2, rel=0.05)  # the last checkpoint lies after the training
    assert set(frame.speed.history[:-1]) == {2}
    assert parts["checkpoint"].now == 75
    assert parts["checkpoint"].share == pytest.approx(75, rel=0.05)
    assert parts["env_step"].now == 12.5


def test_past_iterations_sum_to_their_wall_time(written):
    train(written, 3)
    train(written, 1, env_step=0.7)
    written.flush()
    feed = feed_of(written)
    newest, before = feed.past(0), feed.past(1)
    assert (newest.first, newest.last, newest.steps) == (4, 4, 8)
    assert newest.operations[0] == ("env_step", "environment", 7 * SECOND // 10, 1)
    assert sum(ns for _, _, ns, _ in newest.operations) == newest.wall_ns == 12 * SECOND // 10
    assert before.wall_ns == SECOND
    assert feed.past(4) is None
    assert feed.past(-1) is None


def test_an_operation_has_its_distribution(written):
    train(written, 10)
    written.flush()
    found = feed_of(written).operation("env_step")
    assert (found.calls, found.min_ns, found.max_ns) == (10, SECOND / 2, SECOND / 2)
    assert sum(found.histogram.values()) == 10
    assert feed_of(written).operation("render") is None


def test_marks_have_the_time_of_day(written):
    written.work("env_step", 10 * SECOND)
    batch = written.batch()
    batch.marks = [Mark(3 * SECOND, "alert", "memory is 21 GB")]
    written.writer.write(batch)
    (mark,) = frame_of(written).marks
    assert mark.time == INFO.started + 3 * SECOND


def test_a_training_in_which_nothing_ends_is_stuck(written):
    train(written, 10)
    with written.fake.profile("rollout"), written.fake.profile("env_step"):
        written.fake.tick(20 * SECOND)
        batch = written.batch()
        batch.idle_ns = 20 * SECOND
        written.writer.write(batch)
        assert frame_of(written).stuck is None
        written.fake.tick(20 * SECOND)
        batch = written.batch()
        batch.idle_ns = 40 * SECOND
        written.writer.write(batch)
        stuck = frame_of(written).stuck
    assert stuck.seconds == 40
    assert stuck.reason == "The driver has been inside env_step for 40 s."
    assert [lane.doing for lane in stuck.lanes] == [("rollout", "env_step")]


def test_old_figures_are_called_old(written):
    train(written, 10)
    written.flush()
    assert frame_of(written, ago=2).problem == ""
    frame = frame_of(written, ago=95)
    assert frame.problem == "The training has not written for 95 s. All figures are as of then."
    assert (frame.age_s, frame.wall_s) == (pytest.approx(95), pytest.approx(105))


def test_a_session_that_cannot_be_read_any_more_keeps_its_last_frame(written, tmp_path):
    train(written, 10)
    written.flush()
    feed = feed_of(written)
    before = feed.frame()
    shutil.copyfile(written.path, tmp_path / "copy")
    written.path.write_bytes(b"no session")
    after = feed.frame()
    assert after.problem.startswith(f"{written.path} ")
    assert replace(after, problem="", age_s=0.0) == replace(before, age_s=0.0)
    written.path.unlink()
    assert "was deleted" in feed.frame().problem


def test_a_session_that_was_never_readable_is_an_error(tmp_path):
    (tmp_path / "session.db").write_bytes(b"no session")
    with pytest.raises(RlprofError, match="not an SQLite file"):
        Feed(tmp_path).frame()


def test_a_session_before_its_first_flush_says_so(written):
    frame = Feed(written.path).frame()
    assert frame.problem == "Nothing was written yet: the training is starting."
    assert (frame.iterations, frame.parts, frame.speed.now) == (0, (), None)


def test_the_whole_session_is_read_again_only_if_it_changed(written):
    train(written, 10)
    written.flush()
    feed = Feed(written.path)
    assert feed.refresh(force=True)
    assert not feed.refresh(force=True)
    assert not feed.refresh()
    train(written, 1)
    written.flush()
    assert feed.refresh(force=True)


def test_the_end_of_a_run_is_read_at_once(written):
    train(written, 10)
    written.flush()
    feed = Feed(written.path)
    feed.refresh(force=True)
    assert feed.report.facts.progress.iterations == 10
    train(written, 1)
    written.end()
    feed.frame()
    assert feed.refresh()  # although it is not due for seconds
    assert feed.report.facts.progress.iterations == 11


def test_without_a_name_the_newest_running_session_is_chosen(tmp_path):
    with pytest.raises(RlprofError, match="no session"):
        running_session(tmp_path)
    for name in ("one_20260101-000000", "two_20260102-000000"):
        Written(tmp_path / name).end()
    assert running_session(tmp_path).name == "two_20260102-000000"
    done = run_program(
        "import rlprof, shutil\n"
        "from pathlib import Path\n"
        "from rlprof.live.choose import running_session\n"
        f"parent = Path({str(tmp_path)!r})\n"
        "with rlprof.record('running') as recording:\n"
        "    shutil.copytree(parent / 'one_20260101-000000', parent / 'later_29990101-000000')\n"
        "    assert running_session(parent) == recording.folder\n"
        "assert running_session(parent).name == 'later_29990101-000000'\n",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_reading_holds_no_lock_between_frames(written):
    train(written, 3)
    written.flush()
    feed = feed_of(written)
    for _ in range(3):
        feed.frame()
        began = time.thread_time()
        train(written, 1)
        written.flush()  # waits up to 2 s for a reader, and then raises
        assert time.thread_time() - began < 2
    assert feed.frame().iterations == 6


def test_a_worker_that_hangs_shows_in_what_is_done_now(written, actor):
    """The iterations before it no longer say what happens now."""
    feed = Feed(written.path)
    feed.refresh(force=True)
    train(written, 30)
    with written.fake.profile("rollout"), written.fake.profile("env_wait", wait=True):
        actor.enter(written.fake.profile("env_step"))
        for _ in range(20):
            written.fake.tick(SECOND)
            written.flush()
            feed.frame()
        feed.refresh(force=True)
        frame = feed.frame()
        actor.exit(written.fake.profile("env_step"))
    parts = {part.path: part for part in frame.parts}
    assert frame.speed.now == 0
    assert frame.eta_s is None
    assert parts["env_step",].now == 100
    assert frame.lanes[1].busy == 100


def test_the_time_of_an_operation_that_is_open_is_training_until_the_run_ends(written):
    train(written, 10)
    with written.fake.profile("rollout"), written.fake.profile("env_step"):
        written.fake.tick(90 * SECOND)
        batch = written.batch()
        batch.after_ns = 90 * SECOND
        written.writer.write(batch)
        report = report_of(written.path)  # it was killed there
    assert report.facts.progress.training_ns == 100 * SECOND
    assert report.facts.progress.after_ns == 0
