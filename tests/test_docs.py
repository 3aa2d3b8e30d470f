"""The documentation, executed."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import click
import pytest
from showdown import DATA

from rlprof.cli.main import COMMANDS
from rlprof.ledger.catalogue import CATEGORIES, names_of
from rlprof.workloads import WORKLOADS, find_workload

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


PYTHON = [
    pytest.param(block, id=page.name) for page in PAGES for block in blocks(page, "python") if not blocks(page, "sh")
]
"""Of pages that have no commands: those run their examples, too."""


@pytest.mark.long
@pytest.mark.parametrize("program", PYTHON)
def test_a_python_example_runs_as_it_stands(program, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def is_long(page: Path) -> bool:
    """Pages that train, one process after the other, or have many commands."""
    long = ("capture.md", "compare.md", "report.md", "stable-baselines3.md", "trace.md", "whatif.md")
    return "workloads" in str(page.relative_to(ROOT)) or page.name in long


WITH_COMMANDS = [pytest.param(page, id=page.name, marks=[pytest.mark.long] if is_long(page) else []) for page in PAGES]


@pytest.mark.long
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_the_commands_of_a_page_run_one_after_the_other(page, tmp_path):
    """After its Python examples, in the same folder. The README's own `make` is what CI runs, and installing has its
    tests in test_install.py."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment["XDG_DATA_HOME"] = str(DATA)  # what a page installs
    commands = [line for block in blocks(page, "sh") for line in block.splitlines()]
    for program in blocks(page, "python") if commands else []:
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
    for command in commands:
        words = shlex.split(command, comments=True)
        if words[0] == "make":
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        elif words[:2] == ["pip", "install"]:
            assert re.fullmatch(r"\.(\[(report|workloads)\])?", words[2])
        else:
            assert words[0] in ("rlprof", "python"), command
            done = subprocess.run(
                words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
            )
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def test_every_command_and_option_is_documented():
    """In some page, by its name; the settings of a training have their own help."""
    text = "\n".join(page.read_text() for page in PAGES)
    settings = {field.name for name in WORKLOADS for field in fields(find_workload(name).settings)}
    for name in COMMANDS:
        assert f"rlprof {name}" in text, name
        command = getattr(import_module(f"rlprof.cli.{name}"), name)
        context = click.Context(command)
        parts = [
            command.get_command(context, part) for part in getattr(command, "list_commands", lambda _: [])(context)
        ]
        for part in (command, *parts):
            assert f"{part.name}" in text, name
            for option in part.params:
                if option.param_type_name == "option" and option.name not in {"help", *settings}:
                    assert any(spelling in text for spelling in option.opts), f"{name} {option.opts}"


def test_the_page_of_operations_is_the_catalogue():
    """tools/operations writes it."""
    page = (ROOT / "docs" / "operations.md").read_text()
    for category in CATEGORIES:
        (row,) = re.findall(rf"^\| {category} \| (.*) \|$", page, re.MULTILINE)
        assert re.findall(r"`(\w+)`", row) == names_of(category)


def test_every_file_a_page_links_to_is_there():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readmes_figures_are_those_of_the_committed_results():
    readme = (ROOT / "README.md").read_text()
    results = json.loads((ROOT / "benchmarks" / "results" / "span_cost.json").read_text())
    rows = re.findall(r"^\| .* \| ([\d,.]+) \|  *<!-- (\w+) -->$", readme, re.MULTILINE)
    assert len(rows) > 8
    for figure, key in rows:
        rounding = 0.0051 if "." in figure else 0.51
        assert float(figure.replace(",", "")) == pytest.approx(results[key], abs=rounding), key
    overhead = json.loads((ROOT / "benchmarks" / "results" / "run_overhead.json").read_text())
    for tool, name in (
        ("rlprof", "rlprof"),
        ("cProfile", "cProfile"),
        ("py-spy", "py-spy"),
        ("VizTracer", "VizTracer"),
    ):
        row = re.search(rf"^\| `?{name}( run`)? \| (.+) \|$", readme, re.MULTILINE)
        figures = [float(cell.split()[0]) for cell in row[2].split(" | ")]
        measured = [training[tool]["slowdown"] for training in overhead["trainings"].values()]
        assert figures == pytest.approx(measured, abs=0.0051), tool
    coverage = json.loads((ROOT / "benchmarks" / "results" / "run_coverage.json").read_text())
    found = re.search(r"where they are to ([\d.]+) % at worst", readme)
    assert float(found[1]) == pytest.approx(100 * coverage["worst_error"], abs=0.051)
    loading = json.loads((ROOT / "benchmarks" / "results" / "trace_load.json").read_text())
    figures = re.search(
        r"in ([\d.]+) of the time of `orjson.loads`, and gzipped ones in ([\d.]+) of", " ".join(readme.split())
    )
    assert float(figures[1]) == pytest.approx(loading["ratio_to_orjson"], abs=0.0051)
    assert float(figures[2]) == pytest.approx(loading["ratio_to_hta"], abs=0.00051)
    large = re.search(r"one of 2 GB needs ([\d.]+) GB of memory", " ".join(readme.split()))
    assert float(large[1]) == pytest.approx(loading["synthetic_memory_gb"], abs=0.0051)
    accuracy = json.loads((ROOT / "benchmarks" / "results" / "ledger_accuracy.json").read_text())
    worst = re.search(r"off by ([\d.]+) % of the wall time", " ".join(readme.split()))
    assert worst is not None
    assert float(worst[1]) == pytest.approx(100 * accuracy["worst_account_error"], abs=0.006)


def test_the_readmes_answers_are_those_of_the_committed_results():
    """tools/readme_figures writes them."""
    made = runpy.run_path(str(ROOT / "tools" / "readme_figures"))
    table = made["answers_table"](ROOT / "benchmarks" / "results")
    assert len(table) == 2 + 5  # headers, and a line an answer
    assert "\n".join(table) in (ROOT / "README.md").read_text()


def test_the_pages_of_the_trainings_have_the_committed_figures():
    """tools/workload_pages writes them."""
    made = runpy.run_path(str(ROOT / "tools" / "workload_pages"))
    results = json.loads((ROOT / "benchmarks" / "results" / "workloads.json").read_text())
    for name, found in results["workloads"].items():
        page = (ROOT / "docs" / "workloads" / f"{name}.md").read_text()
        for lines in (made["breakdown_table"](found), made["cure_table"](found)):
            assert "\n".join(lines) in page, name
        assert found["unattributed"] <= 0.05
        assert found["breakdown"]
