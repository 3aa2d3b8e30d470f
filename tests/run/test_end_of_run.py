"""The last lines of a run that crashed, or in which no training was seen: that, and the folder."""

from __future__ import annotations

import pytest
from alike import only_session, recorded

TRAINED = """
import rlprof
for _ in range(5):
    with rlprof.iteration(), rlprof.profile("env_step"):
        rlprof.add_steps(3)
"""


@pytest.mark.parametrize(
    ("program", "beginning", "end"),
    [
        ("raise ValueError('no data')", "The program failed after ", " (ValueError: no data)."),
        (TRAINED + "raise ValueError('no data')", "The program failed after ", " (ValueError: no data)."),
        ("import os; os._exit(4)", "The program failed after ", " (os._exit(4))."),
        ("raise SystemExit(3)", "No training was seen in this program, which ended after ", "s."),
        ("print()", "No training was seen in this program, which ended after ", "s."),
        ("raise KeyboardInterrupt", "No training was seen in this program, which ended after ", "s."),
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
