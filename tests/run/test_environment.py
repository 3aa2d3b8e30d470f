"""The environment variables between processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from alike import alone

from rlprof.ledger import profiler
from rlprof.recording import environment
from rlprof.recording.environment import INJECT, announce, options_of, session_to_join, switch_on
from rlprof.session.process import identity_of


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, [INJECT]),
        ("", [INJECT]),
        ("/a", [INJECT, "/a"]),
        (os.pathsep.join(["/a", INJECT]), ["/a", INJECT]),
    ],
)
def test_the_folder_is_on_the_path_once(before, after):
    variables = {} if before is None else {"PYTHONPATH": before}
    switch_on(variables)
    switch_on(variables)
    assert variables == {"RLPROF": "1", "PYTHONPATH": os.pathsep.join(after)}


def test_options_are_read_as_they_were_written():
    variables: dict[str, str] = {}
    assert options_of(variables) == {}
    switch_on(variables, {"name": "über", "timeline": 5})
    assert options_of(variables) == {"name": "über", "timeline": 5}


def test_a_session_is_joined_while_its_driver_lives(tmp_path):
    living = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    variables = {
        environment.SESSION: str(tmp_path),
        environment.DRIVER: f"{living.pid}:{identity_of(living.pid)}",
    }
    assert session_to_join(variables) == str(tmp_path)
    living.communicate(b"\n")
    assert session_to_join(variables) is None


def test_a_process_that_reuses_the_pid_of_a_driver_is_not_joined(tmp_path):
    """A stale variable, as in a script that a recorded run has written: another process has the PID."""
    variables: dict[str, str] = {}
    announce(variables, tmp_path, "")
    parent = os.getppid()
    driver = {environment.DRIVER: f"{parent}:{identity_of(parent)}"}
    assert session_to_join(variables | driver) == str(tmp_path)
    assert session_to_join({**variables, environment.DRIVER: f"{parent}:1"}) is None


def test_no_process_joins_itself(tmp_path):
    variables: dict[str, str] = {}
    announce(variables, tmp_path, "")
    assert session_to_join(variables) is None
    assert session_to_join({**variables, environment.DRIVER: "nobody"}) is None
    assert session_to_join({}) is None


PROGRAM = "import rlprof; from rlprof.ledger import _core; print(_core.tsc_rate())"


@pytest.mark.skipif(
    profiler._core is None or profiler._core.tsc_refusal() is not None, reason="only the C core measures the TSC"
)
def test_the_clock_rate_is_inherited_only_from_a_process_of_this_machine(tmp_path):
    measured = alone(["-c", PROGRAM], tmp_path).stdout.strip()
    rate, boot = measured.split()
    inherited = f"{int(rate) + 1} {boot}"
    assert alone(["-c", PROGRAM], tmp_path, RLPROF_TSC=inherited).stdout.strip() == inherited
    for wrong in (f"1 {boot[:-1]}", f"1 {boot}x", "1", "", "x", f"0 {boot}"):
        again = int(alone(["-c", PROGRAM], tmp_path, RLPROF_TSC=wrong).stdout.split()[0])
        assert again == pytest.approx(int(rate), rel=1e-4)
