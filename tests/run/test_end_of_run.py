"""The last lines of a run that crashed, or in which no training was seen: that, and the folder."""

from __future__ import annotations

import sys

import pytest
from alike import only_session, recorded, sessions

from rlprof.run.end_of_run import MOST_LINES, NO_SESSION, summary_lines

TRAINED = """
import rlprof
for _ in range(5):
    with rlprof.iteration(), rlprof.profile("env_step"):
        rlprof.add_steps(3)
"""


@pytest.mark.parametrize(
    ("program", "beginning", "end"),
    [
        (TRAINED + "raise ValueError('no data')", "The program failed after ", " (ValueError: no data)."),
        ("import os; os._exit(4)", "The program failed after ", " (os._exit(4))."),
        (TRAINED + "raise SystemExit(3)", "The program failed after ", " (exit 3)."),
        ("print()", "No training was seen in this program, which ended after ", "s."),
    ],
)
def test_there_is_one_sentence_and_the_folder(program, beginning, end, tmp_path):
    (tmp_path / "train.py").write_text(program)
    done = recorded(["train.py"], tmp_path)
    sentence, folder = [line for line in done.stderr.splitlines() if line.startswith("rlprof: ")]
    assert sentence.startswith(f"rlprof: {beginning}")
    assert sentence.endswith(end)
    assert folder == f"rlprof: Details: rlprof report sessions/{only_session(tmp_path).name}"


def test_a_training_that_somebody_stopped_has_its_verdict(tmp_path):
    (tmp_path / "train.py").write_text(TRAINED + "raise KeyboardInterrupt")
    assert " steps/s over " in recorded(["train.py"], tmp_path).stderr


@pytest.mark.parametrize(
    "program",
    [
        "import argparse; argparse.ArgumentParser().parse_args(['--help'])",
        "import sys; sys.exit(3)",
        "def train(:",
        "raise ValueError('no data')",
    ],
)
def test_a_program_that_exits_before_anything_was_recorded_leaves_no_session(program, tmp_path):
    (tmp_path / "train.py").write_text(program)
    lines = recorded(["train.py"], tmp_path).stderr.splitlines()
    assert [line for line in lines if line.startswith("rlprof: ")] == [NO_SESSION]
    assert sessions(tmp_path) == []


@pytest.mark.parametrize(
    "recorded_first",
    [
        "rlprof.add_steps(1)",
        "with rlprof.profile('load'): pass",
        "with rlprof.iteration(): pass",
        "rlprof.get_profiler().recording.mark('note', 'text')",
        "(rlprof.get_profiler().recording.folder / 'mine').touch()",
        "rlprof.record('mine')",
    ],
)
def test_a_session_with_any_data_is_kept(recorded_first, tmp_path):
    (tmp_path / "train.py").write_text(f"import rlprof, sys\n{recorded_first}\nsys.exit(3)")
    recorded(["train.py"], tmp_path)
    assert (only_session(tmp_path) / "session.db").exists()


def test_a_long_summary_is_wrapped_and_keeps_its_first_and_last_sentence():
    sentences = [f"{name} {'word ' * 30}end." for name in ("speed", "around", "time", "note", "advice")]
    lines = summary_lines(sentences, 80)
    assert len(lines) < MOST_LINES
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("rlprof: speed word")
    assert lines[1].startswith("        word")
    assert [line.split()[1] for line in lines if line.startswith("rlprof: ")][-1] == "advice"
    assert len(summary_lines(sentences[:1] * 9, 40)) == MOST_LINES - 1


def test_summaries_of_several_programs_have_the_names_of_their_sessions(tmp_path):
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(TRAINED)
    run = f"{sys.executable} first.py; {sys.executable} second.py"
    lines = recorded(["--", "sh", "-c", run], tmp_path).stderr.splitlines()
    named = [line for line in lines if " steps/s over " in line]
    assert [line.split("_")[0] for line in named] == ["rlprof: first", "rlprof: second"]
