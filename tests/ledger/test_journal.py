"""The timeline of span events and the rows of iterations."""

from __future__ import annotations

import pytest
from fakes import Fake
from ledger.helpers import inside

from rlprof import RlprofWarning
from rlprof.ledger.rows import GAIN, MARK, IterationGain, IterationMark, unpack_events, unpack_gains, unpack_marks


def events(fake: Fake) -> list[tuple[int, int, str, int]]:
    packed, _lost = fake.profiler.drain_timeline()
    names = {node.id: node.operation for node in fake.snapshot().nodes}
    return [(event.start, event.duration, names[event.node], event.depth) for event in unpack_events(packed)]


def test_the_timeline_holds_closed_spans_with_start_length_and_depth(fake):
    fake.profiler.enable(timeline=16)
    with fake.profile("outer"):
        fake.tick(1)
        with fake.profile("inner"):
            fake.tick(10)
    assert events(fake) == [(1_001, 10, "inner", 2), (1_000, 11, "outer", 1)]
    assert events(fake) == []


def test_the_timeline_keeps_the_latest_and_says_how_many_were_lost(fake):
    fake.profiler.enable(timeline=16)
    for _ in range(100):
        with fake.profile("a"):
            fake.tick(1)
    packed, lost = fake.profiler.drain_timeline()
    starts = [event.start for event in unpack_events(packed)]
    assert lost == 84
    assert starts == list(range(1_084, 1_100))


def test_without_a_timeline_there_are_no_events(fake):
    with fake.profile("a"):
        fake.tick(1)
    assert fake.profiler.drain_timeline() == (b"", 0)
    fake.profiler.enable(timeline=16)
    fake.profiler.enable(timeline=0)
    with fake.profile("a"):
        fake.tick(1)
    assert fake.profiler.drain_timeline() == (b"", 0)


def test_worker_lanes_feed_the_timeline_too(fake, actors):
    fake.profiler.enable(timeline=16)
    with inside(actors(), fake.profile("env_step")):
        fake.tick(3)
    assert events(fake) == [(1_000, 3, "env_step", 1)]


def drained(fake: Fake) -> tuple[list[IterationMark], dict[tuple[int, str | None], IterationGain]]:
    """The marks, and the gains by iteration and operation."""
    marks, gains = fake.profiler.drain_iterations()
    names = {node.id: node.operation for node in fake.snapshot().nodes}
    by_place = {(gain.iteration, names[gain.node]): gain for gain in unpack_gains(gains)}
    return list(unpack_marks(marks)), by_place


def times(marks: list[IterationMark]) -> list[tuple[int, int]]:
    return [(mark.start, mark.end) for mark in marks]


def test_an_iteration_has_what_each_place_gained_in_it(fake):
    fake.tick(5)
    for i in range(3):
        fake.profiler.iteration()
        with fake.profile("env_step"):
            fake.tick(10 + i, cpu=4)
    fake.profiler.iteration()
    fake.tick(100)
    marks, by_place = drained(fake)
    assert times(marks) == [(1_005, 1_015), (1_015, 1_026), (1_026, 1_038)]
    assert [(mark.first, mark.last) for mark in marks] == [(0, 0), (1, 1), (2, 2)]
    assert {place: (gain.calls, gain.self, gain.ledger) for place, gain in by_place.items()} == {
        (0, "env_step"): (1, 10, 10),
        (1, "env_step"): (1, 11, 11),
        (2, "env_step"): (1, 12, 12),
    }
    assert by_place[2, "env_step"].off_cpu == 12 - 4
    assert fake.snapshot().iterations == 3


def test_an_iterations_rows_sum_to_its_wall_time_with_spans_open(fake, actors):
    with inside(actors(), fake.profile("env_step")), fake.profile("training"):
        for _ in range(4):
            fake.profiler.iteration()
            fake.tick(7)
            with fake.profile("collect", wait=True):
                fake.tick(20)
        fake.profiler.iteration()
    marks, by_place = drained(fake)
    assert len(marks) == 4
    for i, mark in enumerate(marks):
        assert sum(gain.ledger for gain in by_place.values() if gain.iteration == i) == mark.end - mark.start == 27


def test_as_a_context_manager_it_ends_with_the_block(fake):
    for _ in range(2):
        with fake.profiler.iteration() as iteration:
            fake.tick(10)
        fake.tick(1_000)
    assert iteration.index == 1
    marks, _ = drained(fake)
    assert times(marks) == [(1_000, 1_010), (2_010, 2_020)]
    assert [(mark.first, mark.last) for mark in marks] == [(0, 0), (1, 1)]
    assert fake.snapshot().iterations == 2


def test_undrained_iterations_are_merged_and_not_lost(fake):
    def iterate(times: int) -> None:
        for _ in range(times):
            fake.profiler.ledger.iteration(False)
            with fake.profile("env_step"):
                fake.tick(1)
        fake.profiler.ledger.iteration(True)

    total = 270_000
    iterate(total)
    first_marks, first = drained(fake)
    iterate(1)
    later_marks, later = drained(fake)
    assert fake.snapshot().iterations == total + 1
    assert sum(gain.calls for gain in (*first.values(), *later.values())) == total + 1
    assert first_marks[-1].last + 1 == later_marks[0].first, "the next mark goes on where the last one ended"
    assert later_marks[0].last == total


def test_nothing_is_counted_while_off(fake):
    fake.profiler.disable()
    fake.profiler.iteration()
    fake.profiler.iteration()
    fake.profiler.add_steps(8)
    assert (fake.snapshot().iterations, fake.snapshot().steps) == (0, 0)


@pytest.mark.parametrize("capacity", [1, 3, 16])
def test_a_timelines_capacity_is_rounded_up_to_a_power_of_two(fake, capacity):
    fake.profiler.enable(timeline=capacity)
    for _ in range(100):
        with fake.profile("a"):
            pass
    packed, lost = fake.profiler.drain_timeline()
    kept = len(packed) // 24
    assert kept + lost == 100
    assert capacity <= kept < 2 * capacity + 1


def test_steps_and_episodes_are_counted_by_iteration(fake):
    fake.profiler.add_steps(3)  # before the first iteration: in the total only
    for steps in (8, 16):
        with fake.profiler.iteration():
            fake.profiler.add_steps(steps)
            fake.profiler.add_episodes(1)
            fake.tick(10)
    marks, _ = fake.profiler.drain_iterations()
    assert [(mark.steps, mark.episodes) for mark in unpack_marks(marks)] == [(8, 1), (16, 1)]
    assert (fake.snapshot().steps, fake.snapshot().episodes) == (27, 2)
    fake.profiler.reset()
    assert (fake.snapshot().steps, fake.snapshot().episodes) == (0, 0)


def test_what_is_no_number_is_not_counted_and_does_not_stop_the_training(fake):
    with pytest.warns(RlprofWarning, match="environment steps are counted in whole numbers"):
        fake.profiler.add_steps(1.5)
    with pytest.warns(RlprofWarning, match="episodes are counted in whole numbers"):
        fake.profiler.add_episodes(2**70)
    fake.profiler.add_episodes(-1)
    assert (fake.snapshot().steps, fake.snapshot().episodes) == (0, 0)
    fake.profiler.add_steps(2**62 + 5)
    fake.profiler.add_steps(3)
    assert fake.snapshot().steps == 2**62


def test_what_did_not_fit_when_recording_stopped_is_drained_next(fake):
    """More rows than are kept between two drains: the rest is merged, and comes out when nothing more can be added."""
    for _ in range(5_000):
        with fake.profiler.iteration():
            with fake.profile("env_step"):
                fake.tick(3)
            fake.tick(1)
            fake.profiler.add_steps(2)
    fake.profiler.disable()
    marks = []
    total = 0
    for _ in range(2):
        packed, gains = fake.profiler.drain_iterations()
        marks += unpack_marks(packed)
        total += sum(gain.ledger for gain in unpack_gains(gains))
    assert total == 20_000
    assert marks[-1].last == 4_999
    assert sum(mark.steps for mark in marks) == 10_000
    assert [mark.first for mark in marks] == [0, *(mark.last + 1 for mark in marks[:-1])]


def test_an_iteration_with_more_places_than_rows_are_kept_is_written_whole(fake):
    for _ in range(2):
        with fake.profiler.iteration():
            for place in range(9_000):
                with fake.profile(f"operation {place}"):
                    fake.tick(1)
        marks, gains = fake.profiler.drain_iterations()
        assert len(marks) == MARK.size
        assert len(gains) // GAIN.size >= 9_000
