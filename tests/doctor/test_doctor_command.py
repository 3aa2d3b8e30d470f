"""`rlprof doctor`, run as a user would."""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from doctor.test_rules import barely_measured, good_machine
from sessions import rlprof

from rlprof.cli import doctor as command
from rlprof.cli.doctor import doctor
from rlprof.doctor.machine.machine import Machine
from rlprof.doctor.rules.finding import Finding

PAGE = Path(__file__).parent.parent.parent / "docs" / "doctor.md"


run = partial(rlprof, "doctor", code=None)


@pytest.fixture
def planted(monkeypatch):
    def measure(quick, tell):
        tell("nothing")
        return good_machine()

    monkeypatch.setattr(command, "measure_machine", measure)


@pytest.mark.long
def test_the_whole_of_it_as_json(tmp_path):
    done = run("--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    answer = json.loads(done.stdout)
    assert set(answer) == {"version", "machine", "findings"}
    assert set(answer["machine"]) == {field.name for field in fields(Machine)}
    assert answer["machine"]["processes"]["spawn_ns"] > 0
    assert not answer["machine"]["quick"]
    for finding in answer["findings"]:
        assert set(finding) == {field.name for field in fields(Finding)}
    assert list(tmp_path.iterdir()) == []


def test_a_quick_look_as_text(tmp_path):
    done = run("--quick", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "--quick skipped torch and starting processes." in " ".join(done.stdout.split())
    assert re.search(r"^span cost +\d", done.stdout, re.MULTILINE)
    assert re.search(r"^torch +not measured$", done.stdout, re.MULTILINE)


def test_finding_something_bad_is_not_a_failure(monkeypatch, planted):
    bad = Finding("busy", "bad", "Other programs run.", "They do.", "stop them")
    monkeypatch.setattr(command, "judge", lambda _: (bad,))
    result = CliRunner().invoke(doctor, [])
    assert result.exit_code == 0
    assert result.stdout.startswith("1 problem found.\n")


def test_a_wrong_option_is_misuse():
    assert CliRunner().invoke(doctor, ["--slow"]).exit_code == 2


def test_what_is_not_measured_is_null_in_json(monkeypatch):
    monkeypatch.setattr(command, "measure_machine", lambda *_: barely_measured())
    answer = json.loads(CliRunner().invoke(doctor, ["--format", "json"]).stdout)
    assert answer["machine"]["compute"] is None
    assert answer["machine"]["cores"]["quota"] is None
    assert answer["findings"] == []


def test_the_page_names_every_key_of_the_json(planted):
    page = PAGE.read_text()
    machine = good_machine()
    for field in fields(machine):
        assert f"`{field.name}`" in page, field.name
        part = getattr(machine, field.name)
        for inner in fields(part) if is_dataclass(part) else ():
            assert f"`{inner.name}`" in page, f"{field.name}.{inner.name}"


def test_the_page_names_every_finding():
    rules = PAGE.parent.parent / "src" / "rlprof" / "doctor" / "rules"
    source = "".join(path.read_text() for path in rules.glob("*.py"))
    keys = re.findall(r'Finding\(\s*"(\w+)"', source)
    assert len(keys) > 20
    for key in keys:
        assert f"`{key}`" in PAGE.read_text(), key
