"""The speedscope file, against the types of its published format and the rules of its importer."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import msgspec
import pytest
from timelines import BACKWARD, COLLECT, ITERATION, MS, NASTY, SPANS, STEP, Kept, exported, training

from rlprof import SpanCost
from rlprof.export.speedscope import write_speedscope


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    pass


class Event(Strict):
    type: Literal["O", "C"]
    frame: int
    at: int


class Profile(Strict, tag_field="type"):
    name: str
    unit: Literal["nanoseconds"]
    startValue: int  # noqa: N815 - the format's
    endValue: int  # noqa: N815


class Evented(Profile, tag="evented"):
    events: list[Event]


class Sampled(Profile, tag="sampled"):
    samples: list[list[int]]
    weights: list[int]


class Frame(Strict):
    name: str
    file: str


class Shared(Strict):
    frames: list[Frame]


class File(Strict):
    schema: Literal["https://www.speedscope.app/file-format-schema.json"] = msgspec.field(name="$schema")
    exporter: str
    name: str
    activeProfileIndex: int  # noqa: N815
    shared: Shared
    profiles: list[Evented | Sampled]

    def profile(self, name: str) -> Evented | Sampled:
        (found,) = [profile for profile in self.profiles if profile.name == name]
        return found


def scope(session) -> tuple[File, str | None]:
    written, remark = exported(session, write_speedscope)
    made = msgspec.json.decode(written, type=File)
    for profile in made.profiles:
        check(profile, len(made.shared.frames))
    assert 0 <= made.activeProfileIndex < max(1, len(made.profiles))
    return made, remark


def check(profile: Evented | Sampled, frames: int) -> None:
    """What the importer refuses: times that go backwards, and an end that does not belong to the innermost open
    frame."""
    if isinstance(profile, Sampled):
        assert len(profile.samples) == len(profile.weights)
        assert sum(profile.weights) == profile.endValue - profile.startValue
        assert all(0 <= frame < frames for stack in profile.samples for frame in stack)
        return
    stack: list[int] = []
    at = profile.startValue
    for event in profile.events:
        assert at <= event.at <= profile.endValue
        at = event.at
        if event.type == "O":
            stack.append(event.frame)
        else:
            assert stack.pop() == event.frame
    assert stack == []


def spans(made: File, profile: str) -> Counter:
    """(path, duration) of each span."""
    found: Counter = Counter()
    stack: list[tuple[str, int]] = []
    for event in made.profile(profile).events:
        if event.type == "O":
            stack.append((made.shared.frames[event.frame].name, event.at))
        else:
            path = tuple(name for name, _ in stack)
            found[path, event.at - stack.pop()[1]] += 1
    return found


def test_a_lanes_spans_are_events_in_the_order_of_time(tmp_path):
    made, remark = scope(training(tmp_path))
    assert remark is None
    assert spans(made, "main") == {
        (("collect",), COLLECT): 3,
        **{((name,), MS): 3 for name in NASTY},
        (("update",), BACKWARD + MS): 3,
        (("update", "backward"), BACKWARD): 3,
        (("update", "clip"), 0): 3,
    }
    assert spans(made, 'env "0" <b>\n') == {(("env_step",), STEP): 3, (("env_reset",), 0): 3}
    events = [len(profile.events) for profile in made.profiles if isinstance(profile, Evented)]
    assert sum(events) == 2 * SPANS


def test_the_drivers_profile_is_the_one_that_is_shown(tmp_path):
    made, _ = scope(training(tmp_path))
    assert made.profiles[made.activeProfileIndex].name == "main"
    assert made.exporter.startswith("rlprof@")
    assert made.name == 'run "<b>"'


@pytest.mark.parametrize("timeline", [0, 1024])
@pytest.mark.parametrize("cost", [SpanCost(), SpanCost(inside_ns=700, outside_ns=300)])
def test_the_self_times_of_the_driver_sum_to_the_wall_time(tmp_path, timeline, cost):
    made, _ = scope(training(tmp_path, timeline, cost))
    tree = made.profile("main: call tree (self time)")
    assert sum(tree.weights) == 3 * ITERATION
    names = {made.shared.frames[stack[-1]].name for stack in tree.samples}
    assert ("rlprof" in names) == bool(cost.inside_ns)


def test_the_call_tree_has_each_place_with_its_self_time(tmp_path):
    made, _ = scope(training(tmp_path, timeline=0))
    tree = made.profile("main: call tree (self time)")
    found = {
        tuple(made.shared.frames[frame].name for frame in stack): weight
        for stack, weight in zip(tree.samples, tree.weights)
    }
    assert found == {
        ("unattributed",): 3 * MS,
        ("collect",): 3 * COLLECT,
        **{(name,): 3 * MS for name in NASTY},
        ("update",): 3 * MS,
        ("update", "backward"): 3 * BACKWARD,
    }


def test_without_a_timeline_there_are_call_trees_and_a_remark(tmp_path):
    made, remark = scope(training(tmp_path, timeline=0))
    assert {type(profile) for profile in made.profiles} == {Sampled}
    assert "record(timeline=" in remark


def test_spans_whose_parents_were_lost_still_nest(tmp_path):
    kept = Kept(tmp_path, timeline=4)
    with kept.profile("training"):
        for _ in range(5):
            with kept.profile("update"):
                for _ in range(4):
                    kept.work("backward", 3)
                kept.flush()
    made, remark = scope(kept.session())
    found = spans(made, "main")
    assert found[("training", "backward"), 3] + found[("training", "update", "backward"), 3] > 0
    assert sum(found.values()) == int(remark.split(" of ")[1].split()[0]) - int(remark.split()[0])


def test_frames_are_distinguished_by_category_and_listed_once(tmp_path):
    made, _ = scope(training(tmp_path))
    frames = [(frame.name, frame.file) for frame in made.shared.frames]
    assert len(frames) == len(set(frames))
    assert ("backward", "learning") in frames
    assert {name for name, _ in frames} >= set(NASTY)


def test_deep_recursion_keeps_its_depth(tmp_path):
    kept = Kept(tmp_path, timeline=4096)
    opened = [kept.profile("search") for _ in range(500)]
    for span in opened:
        span.__enter__()
        kept.tick(1)
    for span in reversed(opened):
        span.__exit__(None, None, None)
    made, _ = scope(kept.session())
    assert len(spans(made, "main")) == 500
    assert max(map(len, made.profile("main: call tree (self time)").samples)) == 500


def test_an_empty_session_is_still_a_file(tmp_path):
    made, _ = scope(Kept(tmp_path).session())
    assert made.profiles == []
