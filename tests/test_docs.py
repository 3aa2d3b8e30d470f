"""The documentation, executed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


PYTHON = [pytest.param(block, id=page.name) for page in PAGES for block in blocks(page, "python")]
COMMANDS = [line for page in PAGES for block in blocks(page, "sh") for line in block.splitlines()]


@pytest.mark.parametrize("program", PYTHON)
def test_a_python_example_runs_as_it_stands(program, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_readme_shows_a_breakdown(tmp_path):
    (program,) = blocks(ROOT / "README.md", "python")
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "in 20 iterations of" in printed
    assert "env_step" in printed
    assert "unattributed" in printed


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_exists(command):
    """The README's own are what CI runs; `pip install .` is tested in test_install.py."""
    words = command.split("#")[0].split()
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    else:
        assert words == ["pip", "install", "."]


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
    accuracy = json.loads((ROOT / "benchmarks" / "results" / "ledger_accuracy.json").read_text())
    worst = re.search(r"off by ([\d.]+) % of the wall time", " ".join(readme.split()))
    assert worst is not None
    assert float(worst[1]) == pytest.approx(100 * accuracy["worst_account_error"], abs=0.006)
