"""The first screen of a report, and the last lines of a run: short, whatever was recorded."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from anything import of_type
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from sessions import Written, facts_of, report_of, sample

from rlprof.analysis.advice.finding import Finding, Gain
from rlprof.analysis.advice.notes import Note
from rlprof.analysis.code import Code, Line
from rlprof.analysis.facts import Facts
from rlprof.analysis.report import Findings, Report, find
from rlprof.ledger.catalogue import PHASES
from rlprof.report.answer import end_of_run, gain_text, no_cause, speed
from rlprof.report.first_screen import MOST_LINES, lines, to_text
from rlprof.report.tree import OWN_CODE, TreeRow, _by_size, largest_parts, tree_rows

MS = 1_000_000
WORDS = ["environment", "steps", "x" * 70, "`np.stack(x)`", "日本語", "1.5x", "and"]
VALID = st.sampled_from([0, 1, 20, 1_000, 10**6, 10**9, 10**12, 2**62])
"""What a report may have that was accepted."""


def planted(folder, iterations=20, startup=True):
    """A PPO: 2 s of start-up, then per iteration 60 ms of rollout, 10 of them its own code, and 40 of update."""
    written = Written(folder)
    if startup:
        written.work("startup", 2_000 * MS)
    for number in range(iterations):
        with written.fake.profiler.iteration():
            with written.fake.profile("rollout"):
                written.fake.tick(10 * MS)
                for _ in range(2):
                    written.work("policy_forward", 10 * MS)
                    written.work("env_step", 15 * MS, cpu=0)
                    written.fake.profiler.add_steps(64)
            with written.fake.profile("update"):
                written.work("loss", 10 * MS)
                written.work("backward", 30 * MS)
        written.samples.append(sample((2_000 + 100 * (number + 1)) * MS))
    return report_of(written.end())


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("first"))


def finding(rule="copying", words=("A cause.",), place=None, gain=None):
    text = " ".join(words)
    return Finding(rule, text, place, ("env_step",), (text,), text, gain, text)


def words(count, start):
    """Some words, long and short ones."""
    return [WORDS[(start + number) % len(WORDS)] for number in range(count)]


TEXTS = st.tuples(st.integers(0, 80), st.integers(0, len(WORDS)))
FINDINGS = st.lists(st.tuples(TEXTS, st.none() | st.floats(1, 1_000)), max_size=6)
NOTES = st.lists(TEXTS, max_size=3)


@cache
def usual():
    """A report, for tests whose failures must not print it."""
    with TemporaryDirectory() as folder:
        return planted(Path(folder))


def drawn(findings, notes):
    """The report with these findings and notes."""
    report = usual()
    place = Line("train.py", 37, "actor", " ".join(words(30, 0)), 1e9, 0.5, ())
    made = [
        finding(words=words(*text), place=place if number % 2 else None, gain=gain and Gain(gain, 1.0, 2 * gain))
        for number, (text, gain) in enumerate(findings)
    ]
    return with_findings(report, made, [Note("crowded_machine", " ".join(words(*text))) for text in notes])


def with_findings(report, findings=(), notes=()):
    return replace(report, findings=replace(report.findings, findings=tuple(findings), notes=tuple(notes)))


def check(text, width=100):
    shown = text.splitlines()
    assert len(shown) <= MOST_LINES == 30
    # Commands are whole, so that they can be copied.
    wrapped = [line for line in shown if not line.lstrip().removeprefix("Check: ").startswith("rlprof ")]
    assert max(map(cell_len, wrapped), default=0) <= width


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(findings=FINDINGS, notes=NOTES)
def test_thirty_lines_are_enough_whatever_was_found(findings, notes):
    check(to_text(drawn(findings, notes), 100))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(width=st.integers(40, 120), findings=FINDINGS, notes=NOTES)
def test_every_width_fits(width, findings, notes):
    check(to_text(drawn(findings, notes), width), min(width, 100))


@pytest.mark.parametrize("width", range(40, 121))
def test_every_width_fits_a_usual_report(report, width):
    check(to_text(report, width), min(width, 100))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), phases=(Phase.generate,))
@given(facts=of_type(Facts, VALID, VALID.map(float)))
def test_any_facts_fit(facts):
    rows = tuple(replace(row, depth=row.depth % 4) for row in facts.breakdown.rows)
    facts = replace(facts, breakdown=replace(facts.breakdown, rows=rows))
    for width in (40, 100):
        check(to_text(Report(2, facts, find(facts)), width), width)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_deep_and_wide_trees_fit(tmp_path_factory, data):
    written = Written(tmp_path_factory.mktemp("tree"))

    def spans(depth):
        for name in data.draw(st.lists(st.sampled_from(["rollout", "env_step", "a" * 90, "loss", "日本"]), max_size=4)):
            with written.fake.profile(name):
                written.fake.tick(data.draw(st.integers(0, 50)) * MS)
                if depth < 5:
                    spans(depth + 1)

    spans(0)
    check(to_text(report_of(written.end()), 100))


def test_the_first_lines_are_the_run_and_its_speed(report):
    shown = to_text(report, 100).splitlines()
    assert shown[0].startswith("planted, ")
    assert shown[1].startswith("1,280 steps/s over 2.00 s of training (20 iterations)")
    assert "2.00 s of start-up" in shown[2]


def test_the_tree_has_own_code_as_a_row_and_start_up_in_none(report):
    rows = {row.name: row.share for row in tree_rows(report.facts, 14)}
    assert rows["rollout"] == 60.0
    assert rows["your code in rollout"] == pytest.approx(10)
    assert (rows["env_step"], rows["policy_forward"], rows["backward"]) == (30.0, 20.0, 30.0)
    assert "startup" not in rows
    assert "your code in update" not in rows  # it has none


def test_the_smallest_rows_go_first(report):
    names = [row.name for row in tree_rows(report.facts, 5)]
    assert names == ["rollout", "env_step", "policy_forward", "update", "backward"]


def test_two_or_three_findings_with_gain_change_and_check(report):
    found = [finding(words=(f"Cause {n}.",), gain=Gain(2.0 - n / 10, 1.5 - n / 10, 2.5)) for n in range(5)]
    text = to_text(with_findings(report, found), 100)
    assert "1. Cause 0. Expected: 2.0x as fast (95% interval 1.50 to 2.5)." in text
    assert all(word in text for word in ("Change: Cause 1.", "Check: Cause 1.", "more in --full"))
    assert "Cause 4." not in text


def test_findings_with_the_same_check_have_it_once(report):
    command = "rlprof compare 'run train.py' 'run train_changed.py'"
    found = [replace(finding(words=(f"Cause {n}.",)), check=command) for n in range(2)]
    text = to_text(with_findings(report, found), 100)
    assert text.count(command) == 1
    assert "Check: make the change in a copy, train_changed.py, and run" in text


def test_a_finding_begins_with_its_place(report):
    place = Line("train.py", 12, "act", "policy(obs)", 0.0, 0.5, ())
    found = [finding(words=("The policy is slow.",), place=place), finding(words=("train.py:12 copies.",), place=place)]
    text = to_text(with_findings(report, found), 100)
    assert "1. train.py:12: The policy is slow." in text
    assert "2. train.py:12 copies." in text


def test_the_largest_row_of_each_level_comes_first(written):
    with written.fake.profile("rollout"):
        written.fake.tick(20 * MS)
        written.work("env_step", 10 * MS)
        written.work("policy_forward", 40 * MS)
    written.fake.tick(100 * MS)
    names = [row.name for row in tree_rows(report_of(written.end()).facts, 14)]
    assert names == [OWN_CODE, "rollout", "policy_forward", "your code in rollout", "env_step"]


def test_a_row_that_is_nearly_all_own_time_is_not_split(written):
    with written.fake.profile("env_step"):
        written.fake.tick(97 * MS)
        written.work("env_reset", 3 * MS)
    assert [row.name for row in tree_rows(report_of(written.end()).facts, 14)] == ["env_step"]


def test_a_note_stands_above_the_findings_and_is_none(report):
    text = to_text(with_findings(report, [finding(words=("Copies.",))], [Note("crowded_machine", "Others run.")]), 100)
    assert text.index("Note: Others run.") < text.index("1. Copies.")
    assert "Others run. Fixed" not in text


def test_the_text_of_the_line_stands_below_its_finding(report):
    """A reader who sees only what a line is called for may change it wrongly."""
    source = "net.load_state_dict(torch.load(WEIGHTS))"
    place = Line("train.py", 37, "actor", source, 1e9, 0.5, ())
    shown = [finding(words=("Copies.",), place=place)]
    assert f"   Code: {source}\n" in to_text(with_findings(report, shown), 100)
    narrow = to_text(with_findings(report, shown), 40)
    assert "   Code: net.load_state_dict(torch.load…\n" in narrow


def test_no_container_is_a_finding(report):
    for item in report.findings.findings:
        assert not PHASES & set(item.operations)
    text = to_text(with_findings(report), 100)
    (answer,) = (line for line in text.splitlines() if line.startswith("No known problem found."))
    assert not any(f"is {phase} " in answer for phase in PHASES)


def test_without_a_cause_the_largest_operation_is_named_with_its_hottest_lines(report):
    largest = largest_parts(report.facts)[0].name
    hot = [Line("env.py", 10 * n, "step", f"work{n}()", 1e9, 1 / n, ()) for n in (1, 2, 3)]
    facts = replace(report.facts, code=Code(1, {largest: tuple(hot)}, {}, ()))
    text = no_cause(facts)
    assert largest in text
    assert "env.py:10" in text
    assert "env.py:20" in text
    assert "env.py:30" not in text
    assert f"The largest operation is {largest} (" in text
    shown = " ".join(to_text(Report(2, facts, find_nothing(report.findings)), 100).split())
    assert text in shown


def find_nothing(findings: Findings) -> Findings:
    return replace(findings, findings=(), notes=())


def test_without_a_cause_the_own_code_of_a_phase_is_not_the_phase(written):
    with written.fake.profile("rollout"):
        written.fake.tick(80 * MS)
        written.work("env_step", 20 * MS)
    assert "your code in rollout (80.0%)" in no_cause(report_of(written.end()).facts)


def test_the_hottest_line_of_a_row_stands_beside_it(report):
    hot = Line("env.py", 12, "step", "self.world.step()", 1e9, 0.61, ())
    facts = replace(report.facts, code=Code(1, {"env_step": (hot,)}, {}, ()))
    (row,) = (line.plain for line in lines(replace(report, facts=facts), 100) if line.plain.strip().startswith("env_s"))
    assert "env.py:12 `self.world.step()` (61% of it)" in row


@pytest.mark.parametrize("train", [False, True])
def test_nothing_is_said_about_a_program_without_training(written, train):
    written.work("startup", 100 * MS)
    if train:
        written.work("env_step", 100 * MS)
    text = to_text(report_of(written.end()), 100)
    assert ("No training was seen" in text) == (not train)
    assert ("Part of training" in text) == train


def test_a_terminal_without_unicode_gets_ascii(report):
    long = with_findings(report, [finding(words=["word"] * 200)])
    assert all(line.plain.isascii() for line in lines(long, 100, ascii_only=True))


@pytest.mark.parametrize(
    ("gain", "text"),
    [
        (Gain(1.6, 1.4, 1.9), "1.60x as fast (95% interval 1.40 to 1.90)"),
        (Gain(4.3, 2.0, 12.0), "4.3x as fast (95% interval 2.0 to 12)"),
        (None, None),
    ],
)
def test_a_gain_is_given_with_its_interval(gain, text):
    assert gain_text(finding(gain=gain)) == text


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(findings=FINDINGS, notes=NOTES)
def test_the_end_of_a_run_is_at_most_eight_lines_with_the_next_command(findings, notes):
    """The next command is the eighth."""
    shown = list(end_of_run(drawn(findings, notes)))
    assert 0 < len(shown) <= 7
    assert all("\n" not in line for line in shown)


def test_the_end_of_a_run_has_speed_largest_operations_and_the_first_finding(report):
    found = [finding(words=("Copies.",), gain=Gain(1.6, 1.4, 1.9)), finding(words=("Prints.",))]
    shown = list(end_of_run(with_findings(report, found)))
    assert shown[0].startswith("1,280 steps/s over 2.00 s of training")
    assert shown[1].startswith("Not counted: 2.00 s of start-up")
    assert shown[2].startswith("Most time: ")
    assert "env_step 30.0%" in shown[2]
    assert shown[3] == "Change first, 1.60x as fast (95% interval 1.40 to 1.90): Copies."
    assert len(shown) == 4


def test_the_end_of_a_run_without_training_says_only_that(written):
    written.work("startup", 100 * MS)
    (line,) = end_of_run(report_of(written.end()))
    assert line.startswith("No training was seen")


def test_a_trend_is_named_only_if_the_mean_speed_lies_in_it(tmp_path):
    """A training that is fastest in the middle neither rises nor falls."""
    written = Written(tmp_path)
    for number in range(60):
        with written.fake.profiler.iteration():
            written.work("env_step", (10 + number) * MS)
            written.fake.profiler.add_steps(8)
    facts = facts_of(written.end())
    assert "falling from" in speed(facts)
    assert facts.progress.steps_per_second is not None
    faster = replace(facts.progress, steps_per_second=10 * facts.progress.steps_per_second)
    assert speed(replace(facts, progress=faster)).endswith("(60 iterations).")


def test_the_largest_row_of_each_level_comes_first_however_deep_the_tree_is():
    deep = [TreeRow(f"level {depth}", "loss", depth, 50.0, 1.0, True) for depth in range(3_000)]
    rows = [TreeRow("small", "env_step", 0, 10.0, 1.0, True), *deep, TreeRow("largest", "update", 0, 60.0, 1.0, True)]
    assert [row.name for row in _by_size(rows)] == ["largest", *(row.name for row in deep), "small"]
