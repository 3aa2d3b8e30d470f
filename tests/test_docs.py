"""Every command, example, link and figure of the documentation is checked."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import signal
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

TRAINING = """
import gymnasium

env = gymnasium.make("CartPole-v1")
env.reset(seed=1)
for step in range(2_000):
    *_, terminated, truncated, _ = env.step(env.action_space.sample())
    if terminated or truncated:
        env.reset()
"""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def serve(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """A server is ended as a user does it, once it has printed its address."""
    process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert any("http://127.0.0.1:" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=60)
        assert process.returncode == 0, rest
    finally:
        process.kill()
        process.wait()


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


PYTHON = [
    pytest.param(block, id=page.name) for page in PAGES for block in blocks(page, "python") if not blocks(page, "sh")
]
"""The examples of pages without commands. The examples of the other pages run together with their commands."""


@pytest.mark.long
@pytest.mark.parametrize("program", PYTHON)
def test_a_python_example_runs_as_it_stands(program, tmp_path):
    run([sys.executable, "-c", program], tmp_path)


def is_long(page: Path) -> bool:
    """True for pages that run several trainings one after the other, or have many commands."""
    long = ("capture.md", "compare.md", "report.md", "stable-baselines3.md", "trace.md", "whatif.md")
    return "workloads" in str(page.relative_to(ROOT)) or page.name in long


WITH_COMMANDS = [pytest.param(page, id=page.name, marks=[pytest.mark.long] if is_long(page) else []) for page in PAGES]


@pytest.mark.long
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_the_commands_of_a_page_run_one_after_the_other(page, tmp_path):
    """They run after the page's Python examples, in the same folder, which has a train.py. CI runs the `make` targets,
    and test_install.py covers installing."""
    (tmp_path / "train.py").write_text(TRAINING)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment["XDG_DATA_HOME"] = str(DATA)  # for what a page installs
    commands = [line for block in blocks(page, "sh") for line in block.splitlines()]
    for program in blocks(page, "python") if commands else []:
        run([sys.executable, "-c", program], tmp_path)
    for command in commands:
        words = shlex.split(command, comments=True)
        if words[0] == "make":
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        elif words[:2] == ["pip", "install"]:
            assert re.fullmatch(r"\.(\[(report|workloads)\])?", words[2])
        else:
            assert words[0] in ("rlprof", "python"), command
            (serve if words[:2] == ["rlprof", "serve"] else run)(words, tmp_path, environment)


def test_every_command_and_option_is_documented():
    """Some page has its name. The settings of a reference training are documented by its own help."""
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


def test_the_figures_of_the_readme_are_those_of_the_committed_results():
    """tools/readme_figures writes them."""
    tool = runpy.run_path(str(ROOT / "tools" / "readme_figures"))
    for page in tool["PAGES"]:
        assert tool["filled"](page) == (ROOT / page).read_text()
    readme = (ROOT / "README.md").read_text()
    overhead = json.loads((ROOT / "benchmarks" / "results" / "run_overhead.json").read_text())
    row = re.search(r"^\| cProfile \| (.+) \|$", readme, re.MULTILINE)  # read here without the tool
    figures = [float(cell) for cell in row[1].split(" | ")]
    measured = [training["cProfile"]["slowdown"] for training in overhead["trainings"].values()]
    assert figures == pytest.approx(measured, abs=0.0051)


def test_the_readme_fits_three_screens():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    assert max(len(line) for line in text.splitlines() if not line.startswith(("|", "!"))) <= 100


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
