"""Trainings that wait: for a sleep, a server, a lock, or for workers that do nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advised import actors, at, given, rest, share, spin, train, with_lines, work
from sessions import sample

from rlprof.analysis.advice.waiting import children_unseen, waiting
from rlprof.report.answer import no_cause


def pausing(seconds, operation="env_step", pause=rest):
    """Per iteration 10 ms of learning, and an operation that pauses."""

    def program(profiler):
        for _ in range(20):
            profiler.iteration()
            work(profiler, "backward", 0.01)
            with profiler.profile(operation):
                pause(seconds)

    return program


def about(facts, source, share=1.0, below=(), operation="env_step"):
    """The findings if the time of an operation comes from this line."""
    return waiting(with_lines(facts, {operation: [at("train.py:8", source, share, "step", below)]}))


@pytest.mark.parametrize("source", ["time.sleep(0.01)", "sleep(delay)"])
def test_a_sleep_is_named_by_its_line(tmp_path, source):
    (found,) = about(train(tmp_path, pausing(0.03, "data_loading")), source, operation="data_loading")
    finding = given(found, "sleeping")
    assert finding.place.where == "train.py:8"
    assert finding.operations == ("data_loading",)
    assert "75.0%" in finding.cause
    assert 3.5 < finding.gain.estimate <= 4.0


@pytest.mark.parametrize(
    ("seconds", "source"),
    [
        pytest.param(0.0005, "time.sleep(0.0005)", id="too short to matter"),
        pytest.param(0.03, "self.asleep(state)", id="another function"),
        pytest.param(0.03, "", id="a line without text"),
    ],
)
def test_what_is_no_long_sleep_is_not_called_one(tmp_path, seconds, source):
    assert about(train(tmp_path, pausing(seconds, "data_loading")), source, operation="data_loading") == []


@pytest.mark.parametrize("source", ["time.sleep(0.01)", ""])
def test_an_environment_that_sleeps_waits_instead_of_computing(tmp_path, source):
    (found,) = about(train(tmp_path, pausing(0.03)), source)
    assert given(found, "waiting_env").place.where == "train.py:8"
    assert "75.0%" in found.cause


def test_an_environment_without_a_core_does_not_wait(tmp_path):
    facts = train(tmp_path, pausing(0.03), samples=[sample(1, held_up=80.0)])
    assert about(facts, "work()") == []


SERVER = "reply = self.socket.recv(4096)"


@pytest.mark.parametrize(
    ("source", "below"), [(SERVER, ()), ("return self.call(action)", ("requests.api:post", "socket:readinto"))]
)
def test_an_environment_that_waits_for_a_server_is_named_by_its_line(tmp_path, source, below):
    facts = train(tmp_path, pausing(0.03))
    (found,) = about(facts, source, below=below)
    finding = given(found, "network_env", share=share(facts, "env_step"))
    assert finding.place.where == "train.py:8"
    assert "0.0%" in finding.evidence[0]


@pytest.mark.parametrize(("source", "found"), [(SERVER, True), ("return self.simulate()", False)])
def test_a_server_in_a_child_process_may_have_environments_of_its_own(tmp_path, source, found):
    """Their spans are in the same operation, so that CPU time does not tell whether the caller waits."""
    facts = train(tmp_path, pausing(0.03))
    both = [
        replace(item, lanes=(*item.lanes, replace(item.lanes[0], lane="server", kind="process", on_driver=False)))
        if item.operation == "env_step"
        else item
        for item in facts.operations
    ]
    served = replace(facts, operations=tuple(both))
    assert [one.rule for one in about(served, source)] == (["network_env"] if found else [])


def test_an_environment_that_computes_waits_for_no_server(tmp_path):
    assert about(train(tmp_path, pausing(0.03, pause=spin)), SERVER) == []


def test_a_server_that_no_environment_talks_to_is_not_the_environments(tmp_path):
    facts = train(tmp_path, pausing(0.03, operation="data_loading"))
    assert about(facts, SERVER, operation="data_loading") == []


LOCK = "with self.lock:"


def test_a_wait_for_a_lock_is_named_by_its_line(tmp_path):
    (found,) = about(train(tmp_path, pausing(0.03, "buffer_sample")), LOCK, operation="buffer_sample")
    finding = given(found, "lock_wait")
    assert finding.place.where == "train.py:8"
    assert 1 < finding.gain.low < finding.gain.estimate <= 4.0


def test_computing_while_a_lock_is_held_is_no_wait(tmp_path):
    facts = train(tmp_path, pausing(0.03, "buffer_sample", spin))
    assert about(facts, LOCK, operation="buffer_sample") == []


def test_workers_that_compute_meanwhile_are_worth_the_wait(tmp_path):
    samples = [sample(1, cpu=50.0, children_cpu=180.0)]
    facts = train(tmp_path, pausing(0.03, "buffer_sample"), samples=samples)
    assert about(facts, "batch = self.queue.get()", operation="buffer_sample") == []


def awaiting(works):
    """A training that waits 10 ms at a time for a thread, which works or sleeps meanwhile."""

    def program(profiler):
        with actors(1) as (thread,):
            for _ in range(20):
                span = profiler.profile("env_step")
                with profiler.profile("env_wait", wait=True):
                    if works:
                        thread.enter(span)
                    rest(0.01)
                    if works:
                        thread.exit(span)
                work(profiler, "update", 0.002)

    return program


def test_waiting_is_idle_while_no_lane_works(tmp_path):
    assert waiting(train(tmp_path, awaiting(works=True))) == []
    facts = train(tmp_path, awaiting(works=False))
    (found,) = waiting(facts)
    finding = given(found, "idle_waiting", share=share(facts, "env_wait"))
    assert finding.operations == ("env_wait",)
    assert f"{100 * 10 / 12:.1f}%" in finding.cause


def test_waiting_for_child_processes_that_work_is_not_idle(tmp_path):
    samples = [sample(1, cpu=50.0, children_cpu=180.0)]
    assert waiting(train(tmp_path, awaiting(works=False), samples=samples)) == []


def test_one_wait_has_one_finding(tmp_path):
    """The wait is idle, too, but the line says why."""
    facts = train(tmp_path, awaiting(works=False))
    found = about(facts, "time.sleep(0.01)", operation="env_wait")
    assert [finding.rule for finding in found] == ["sleeping"]


@pytest.mark.parametrize(("children", "wait", "unseen"), [(80.0, 0.02, True), (5.0, 0.02, False), (80.0, 0.001, False)])
def test_children_that_compute_and_record_nothing_are_noticed(tmp_path, children, wait, unseen):
    """The report then says so, and not that only the driver works."""

    def program(profiler):
        for _ in range(30):
            profiler.iteration()
            with profiler.profile("pipe_wait", wait=True):
                rest(wait)
            work(profiler, "backward", 0.01)

    facts = train(tmp_path, program)
    facts = replace(facts, resources=replace(facts.resources, children_cpu_mean=children))
    assert children_unseen(facts) is unseen
    assert ("child processes compute" in no_cause(facts)) is unseen
