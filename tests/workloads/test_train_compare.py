"""The default duration of `rlprof train WORKLOAD --compare`."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from rlprof.cli.main import cli
from rlprof.cli.train import compare
from rlprof.compare.paired import Plan


class PlannedError(Exception):
    pass


@pytest.mark.parametrize(
    ("flags", "pairs", "blocks", "seconds"),
    [
        ([], 100, 5, 105.0),  # two minutes, with its own start
        (["--batches", "7"], 100, 7, 105.0),
        (["--pairs", "9"], 9, 5, Plan("", "").seconds),
    ],
)
def test_a_comparison_takes_two_minutes_or_the_given_pairs(monkeypatch, flags, pairs, blocks, seconds):
    found = []

    def planned(plan, _):
        found.append(plan)
        raise PlannedError

    monkeypatch.setattr(compare, "run_comparison", planned)
    done = CliRunner().invoke(cli, ["train", "petri", "--compare", *flags])
    assert isinstance(done.exception, PlannedError), done.output
    (plan,) = found
    assert (plan.pairs, plan.blocks, plan.seconds) == (pairs, blocks, seconds)
    assert "turbo=false" in plan.a
    assert "turbo=true" in plan.b
