"""Tables on narrow terminals: columns are left out, no line is longer than the terminal, and names stay readable."""

from __future__ import annotations

import pytest
from sessions import Written

from rlprof.analysis.comparison import MeasuredPair, compare
from rlprof.analysis.lane_work import work_of
from rlprof.analysis.prediction import what_if
from rlprof.analysis.work import Measured
from rlprof.compare import text as compare_text
from rlprof.session.reader import Session
from rlprof.whatif import text as whatif_text

NAMES = ("optimizer_step", "policy_forward")


def comparison():
    ledger = dict.fromkeys(NAMES, 500.0)
    pairs = [2.7 + 0.03 * place for place in range(4)]
    return compare("A", "B", [
        MeasuredPair(Measured(1000, 1, 10, ledger), Measured(1000 * f, 1, 10, dict.fromkeys(NAMES, 500 * f)))
        for f in pairs
    ])  # fmt: skip


def prediction(folder):
    written = Written(folder)
    for _ in range(10):
        with written.fake.profiler.iteration():
            for name in NAMES:
                written.work(name, 1_000_000)
            written.fake.profiler.add_steps(8)
    with Session(written.end()) as session:
        return what_if(work_of(session), {})


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_longer_than_the_terminal_and_names_are_whole(width, tmp_path):
    compared = compare_text.to_text(comparison(), width)
    predicted = whatif_text.to_text(prediction(tmp_path / "run"), width=width)
    for text in (compared, predicted):
        assert max(map(len, text.splitlines())) <= width
        if width >= 60:
            assert all(name in text for name in NAMES)
        assert "faster by" in text
    header = compared.partition("\n\n")[2].splitlines()[1].split()
    assert ("saved" in header, "verdict" in header) == (width > 60, width > 60)
    assert header[1:3] == ["A", "B"] if width >= 60 else header[1:] == ["B", "is", "faster", "by"]
