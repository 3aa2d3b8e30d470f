"""Sessions that were recorded separately: intervals against scipy's own, and planted sessions."""

from __future__ import annotations

import json
import math
import time

import pytest
from scipy import stats
from sessions import Written, report_of

from rlprof import Profiler
from rlprof.analysis.comparison import MeasuredPair, compare
from rlprof.analysis.differences import changes
from rlprof.analysis.load import load_facts
from rlprof.analysis.work import Measured
from rlprof.api import record
from rlprof.cli.main import main
from rlprof.compare.separate_sessions import WARM_UP, compare_separate, measure_session
from rlprof.report.json import to_json

A = (1000.0, 1100.0, 1050.0, 990.0)
B = (800.0, 850.0, 790.0)


def measured(*walls):
    return [Measured(wall, 0.0, 10.0, {"env_step": wall - 300, "update": 300.0}) for wall in walls]


def test_the_interval_is_welchs():
    found = compare_separate("a", "b", measured(*A), measured(*B), alpha=0.03)
    logs = [[math.log(wall / 10) for wall in side] for side in (A, B)]
    low, high = stats.ttest_ind(*logs, equal_var=False).confidence_interval(0.97)
    assert found.speedup.low == pytest.approx(math.expm1(low))
    assert found.speedup.high == pytest.approx(math.expm1(high))
    assert found.verdict == "faster"
    assert (found.a_ns, found.sessions) == (pytest.approx(103.5), (4, 3))
    saved = sum(component.contribution for component in found.components)
    assert saved == pytest.approx((found.a_ns - found.b_ns) / found.a_ns)


def test_the_interval_of_pairs_is_the_t_tests():
    pairs = [MeasuredPair(*pair) for pair in zip(measured(*A), measured(*B, 820.0))]
    found = compare("a", "b", pairs, alpha=0.03)
    test = stats.ttest_1samp([math.log(pair.a.wall_ns / pair.b.wall_ns) for pair in pairs], 0)
    low, high = test.confidence_interval(0.97)
    assert (found.speedup.low, found.speedup.high) == pytest.approx((math.expm1(low), math.expm1(high)))


def test_one_session_per_side_has_no_interval():
    found = compare_separate("a", "b", measured(800.0), measured(1000.0), alpha=0.03)
    assert found.speedup.low is None
    assert found.verdict == "unknown"


def session(folder, name, seconds, updates=0, **settings):
    profiler = Profiler()
    with record(name, dir=folder, profiler=profiler, settings=settings) as recording:
        for number in range(8):
            profiler.iteration()
            with profiler.profile("env_step"):
                time.sleep(0.3 if number < WARM_UP else seconds)
            for _ in range(updates):
                with profiler.profile("optimizer_step"):
                    pass
            profiler.add_steps(4)
    return recording.folder


@pytest.fixture
def compared(capsys):
    """Runs `rlprof compare`: its exit code, its output and its messages."""

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(["compare", *map(str, words)])
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.mark.long
def test_sessions_that_did_different_work_pass_no_gate(tmp_path, compared):
    """One with half the optimizer steps is no faster for that, though it takes a fifth of the time."""
    a = [str(session(tmp_path, f"a{i}", 0.05, updates=8)) for i in range(2)]
    b = [str(session(tmp_path, f"b{i}", 0.01, updates=4)) for i in range(2)]
    code, out, err = compared(",".join(a), ",".join(b), "--fail-if-slower", "1%")
    assert code == 2
    differs = "2,000 optimizer steps per 1,000 environment steps in A, 1,000 in B"
    assert out.startswith("No verdict: A and B do different work: 2,000 optimizer steps per 1,000")
    assert f"A and B do different work, so --fail-if-slower has no answer: {differs}" in err


@pytest.mark.long
def test_sessions_are_measured_without_their_first_iterations_and_their_differences_named(tmp_path, compared):
    a, b = session(tmp_path, "a", 0.02, envs=4), session(tmp_path, "b", 0.01, envs=8)
    found = measure_session(load_facts(a), "a")
    assert found.steps == 4
    assert 0.02e9 < found.ledger["env_step"] < 0.1e9  # the first three would make it 0.125
    infos = [load_facts(folder).session for folder in (a, b)]
    assert "setting envs: 4 -> 8" in changes(*infos)
    code, out, err = compared(a, b, "--fail-if-slower", "1%")
    assert code == 2
    assert "No verdict: a side with a single session has no error rate." in out
    assert "setting envs: 4 -> 8" in out
    assert "--fail-if-slower has no answer: a side with a single session has no error rate." in err


def counted(folder, name, steps, wall):
    """Three sessions whose iterations take the same time, with a little noise, and have this number of steps."""
    for number in range(3):
        written = Written(folder / name / f"run_20260101-12000{number}")
        for _ in range(6):
            with written.fake.profiler.iteration():
                written.work("env_step", wall + 1_000 * number)
                written.fake.profiler.add_steps(steps)
        written.end()
    return folder / name


def test_sessions_with_other_steps_per_iteration_are_compared_in_the_unit_that_is_chosen(tmp_path, compared):
    """As after a cure: B no longer counts the steps of evaluations, and takes half the time per iteration."""
    a, b = counted(tmp_path, "a", 3051, 8_000_000), counted(tmp_path, "b", 642, 4_000_000)
    code, out, err = compared(a, b, "--fail-if-slower", "5%")
    assert code == 2
    assert " ".join(out.split()).startswith(
        "No verdict: A and B do different work: 3,051 steps per iteration in A, 642 in B. Compare per training"
        " iteration with --per iteration, or per environment step with --per step."
    )
    assert "--fail-if-slower has no answer: 3,051 steps per iteration in A, 642 in B. Compare per" in err
    code, out, _ = compared(a, b, "--fail-if-slower", "5%", "--per", "iteration")
    assert code == 0
    assert out.startswith("Per training iteration: B is faster by 100.0%")
    assert "Iterations per second: 125 in A, 250 in B." in out
    assert "3,051 steps per iteration in A, 642 in B" in out
    code, out, err = compared(a, b, "--fail-if-slower", "5%", "--per", "step", "--format", "json")
    assert code == 1
    found = json.loads(out)
    assert (found["verdict"], found["per_step"], found["unit_chosen"]) == ("slower", True, True)
    assert found["sentence"].startswith("Per environment step: B is slower by 57.9%")


def test_a_file_gets_the_page_and_the_terminal_the_verdict(tmp_path, compared):
    a, b = counted(tmp_path, "a", 8, 8_000_000), counted(tmp_path, "b", 8, 4_000_000)
    code, out, err = compared(a, b, "--html", tmp_path / "page.html")
    assert (code, out) == (0, "")
    assert "B is faster by 100.0%" in err
    assert "B is faster by 100.0%" in (tmp_path / "page.html").read_text()


def test_no_steps_cannot_be_the_unit(tmp_path, compared):
    a, b = counted(tmp_path, "a", 0, 8_000_000), counted(tmp_path, "b", 642, 4_000_000)
    code, _, err = compared(a, b, "--per", "step")
    assert (code, err) == (
        2, "rlprof: A counts no environment steps, so there is no --per step. Use --per iteration.\n"
    )  # fmt: skip
    assert compared(a, b, "--per", "iteration")[1].startswith("Per training iteration: B is faster by 100.0%")


def test_a_session_among_several_that_is_missing_is_named(tmp_path, compared):
    a = session(tmp_path / "runs", "a", 0.001)
    (tmp_path / "empty").mkdir()
    for given, message in (
        (f"{a},{tmp_path}/none", "none"),
        (f"{tmp_path}/empty", "holds no sessions"),
        ("run train.py", "A session cannot be compared with a command line"),
    ):
        code, _, err = compared(a, given)
        assert code == 2
        assert message in err


def test_a_session_is_not_compared_with_itself(tmp_path, compared, monkeypatch):
    first, last = (Written(tmp_path / f"run_20260101-12000{number}").end() for number in range(2))
    monkeypatch.setenv("RLPROF_DIR", str(tmp_path))
    for sides in (("last", "last"), (tmp_path, "last"), (f"{first},{last}", last.parent)):
        code, _, err = compared(*sides)
        assert code == 2
        assert err == (f"rlprof: The session {last} is on both sides. Compare two different sessions.\n")


def test_a_missing_script_is_named_with_the_folder(tmp_path, compared, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = compared("run nosuch.py", "run nosuch.py")
    assert (code, err) == (2, f"rlprof: A (run nosuch.py): there is no script nosuch.py in {tmp_path}\n")


def test_iterations_without_any_training_time_are_refused_in_one_sentence(tmp_path, compared):
    """All the time of these iterations is start-up, so nothing is left to compare."""
    trained, started = Written(tmp_path / "trained"), Written(tmp_path / "started")
    for written, operation in ((trained, "env_step"), (started, "startup")):
        for _ in range(6):
            with written.fake.profiler.iteration():
                written.work(operation, 1_000)
    a, b = trained.end(), started.end()
    for sides in ((a, b), (b, a)):
        code, _, err = compared(*sides)
        assert code == 2
        assert err == f"rlprof: {b} has no training time in its iterations, so it cannot be compared.\n"


@pytest.mark.parametrize(
    ("wrong", "because"),
    [
        ({"first": [4, 5], "last": [3, 4]}, "ends before it begins"),
        ({"first": [1, 1], "last": [1, 2]}, "out of order"),
        ({"wall_ns": [-1_000, -1_000], "ledger_ns": {"env_step": [-1_000, -1_000]}}, "wall_ns"),
        ({"wall_ns": [0, 0], "ledger_ns": {"env_step": [0, 0]}}, "has no training time"),
        ({"ledger_ns": {"env_step": [-1_000, -1_000], "startup": [2_000, 2_000]}}, "has no training time"),
    ],
)
def test_a_damaged_report_is_refused_in_one_sentence(wrong, because, tmp_path, compared):
    written = Written(tmp_path / "run")
    for _ in range(2):
        with written.fake.profiler.iteration():
            written.work("env_step", 1_000)
    session = written.end()
    report = json.loads(to_json(report_of(session)))
    report["facts"]["series"].update({"calls": {}, "ledger_ns": {"env_step": [1_000, 1_000]}, **wrong})
    damaged = tmp_path / "report.json"
    damaged.write_text(json.dumps(report))
    code, _, err = compared(session, damaged)
    assert (code, err.count("\n")) == (2, 1)
    assert because in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run a.py"], "Give two trainings"),
        (["report last", "run b.py"], "There is no session report last. A command line begins with run or train."),
        (["python a.py", "python b.py"], "A command line begins with run or train"),
        (["", "run b.py"], "'' names no session"),
        (["missing.db", "missing.db"], "There is no session missing.db"),
        (["run a.py", "run b.py", "--noise"], "--noise takes one training"),
        (["--noise", "--html", "x.html"], "--noise takes one training, and neither --html nor --fail-if-slower"),
        (["run a.py", "run b.py", "--html", "x.html", "-o", "y.html"], "--html FILE means --format html --output FILE"),
        (["run a.py", "run b.py", "--per", "episode"], "'episode' is not one of 'step', 'iteration'"),
        (["run a.py", "run b.py", "--output", "x.pdf"], "no format ends with .pdf"),
        (["run a.py", "run b.py", "--max-time", "soon"], "soon is not a time"),
        (["run a.py", "run b.py", "--precision", "much"], "much is not a percentage"),
        (["run a.py", "run b.py", "--precision", "0"], "0 is never reached. Write 2%."),
        *(
            (["run a.py", "run b.py", name, given], f"{given} is not a percentage between 0 and 100. Write 5%.")
            for name in ("--precision", "--fail-if-slower")
            for given in ("-1", "nan%", "inf", "100%")
        ),
        *(
            (["run a.py", "run b.py", name, given], f"{given} is not a time")
            for name in ("--max-time", "--patience")
            for given in ("-1", "nan", "inf", "0s", "9" * 400)
        ),
        (
            [__file__, f"run {__file__}"],
            f"{__file__} is a script and no session. To compare it, write 'run {__file__}'",
        ),
        ([f"{__file__} 4", f"run {__file__} 8"], f"write 'run {__file__} 4'"),
        (["run nosuch.py", f"run {__file__}"], "A (run nosuch.py): there is no script nosuch.py"),
        ([f"run {__file__}", "run nosuch.py"], "B (run nosuch.py): there is no script nosuch.py"),
        ([f"run {__file__}", "run -- nosuch --fast"], "B (run -- nosuch --fast): there is no command nosuch"),
        ([f"run {__file__}", "run -m no.such"], "B (run -m no.such): There is no module no.such"),
        ([f"run {__file__}", "run -m rlprof.nosuch"], "B (run -m rlprof.nosuch): There is no module rlprof.nosuch"),
        ([f"run {__file__}", "run -m rlprof.api.x"], "There is no module rlprof.api.x: rlprof.api is not a package"),
        ([f"run {__file__}", "train petri sed=3"], "B (train petri sed=3): "),
        ([f"run {__file__}", "train petri --sed 3"], "B (train petri --sed 3): No such option"),
        ([f"run {__file__}", "run --no-such x.py"], "B (run --no-such x.py): No such option"),
        (["train nosuch", f"run {__file__}"], "A (train nosuch): No such workload 'nosuch'"),
        (["train", f"run {__file__}"], "A (train): No workload is named"),
        (["--noise", "run nosuch.py"], "A (run nosuch.py): there is no script nosuch.py"),
    ],
)
def test_wrong_use_is_reported_with_exit_code_2(words, message, compared):
    code, _, err = compared(*words)
    assert code == 2
    assert message in err
