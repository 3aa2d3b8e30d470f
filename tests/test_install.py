"""Installation from source, with and without a compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


PROGRAM = """
import rlprof
rlprof.enable()
rlprof.Profiler().enable()
print(rlprof.__file__, rlprof.get_profiler().core)
"""


def build(into: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Install a copy of the source."""
    source = into / "source"
    source.mkdir()
    for name in ("src", "setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    for built in source.rglob("*.so"):
        built.unlink()
    shutil.rmtree(source / "build", ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--verbose", "--no-deps", "--no-build-isolation"]
    return subprocess.run(
        [*pip, "--target", str(into / "site"), str(source)],
        check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment},
    )  # fmt: skip


def use(site: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Record with the installed copy."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(site), **environment},
    )  # fmt: skip


def core_of(done: subprocess.CompletedProcess[str], site: Path) -> str:
    path, core = done.stdout.split()
    assert Path(path).is_relative_to(site)
    return core


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_it_builds_its_c_core(tmp_path):
    done = build(tmp_path, RLPROF_CFLAGS="-O0", RLPROF_REQUIRE_CORE="1")
    assert done.returncode == 0, done.stdout
    used = use(tmp_path / "site", RLPROF_REQUIRE_CORE="1")
    assert core_of(used, tmp_path / "site") == "c"
    assert used.stderr == ""


@pytest.mark.long
def test_without_a_compiler_it_says_so_when_built_and_when_used_and_runs_on_the_twin(tmp_path):
    done = build(tmp_path, CC="no-such-compiler")
    assert done.returncode == 0, done.stdout
    assert "rlprof.ledger._core is not built" in done.stdout
    assert "rlprof.trace._scan is not built" in done.stdout
    used = use(tmp_path / "site", RLPROF_REQUIRE_CORE="")
    assert core_of(used, tmp_path / "site") == "python"
    assert used.stderr.count("the C core cannot be used: it was not compiled when rlprof was installed") == 1
    required = use(tmp_path / "site", RLPROF_REQUIRE_CORE="1")
    assert required.returncode != 0
    assert "RuntimeError: the C core cannot be used" in required.stderr
    chosen = use(tmp_path / "site", RLPROF_REQUIRE_CORE="1", RLPROF_CORE="python")
    assert (chosen.returncode, chosen.stderr) == (0, "")


@pytest.mark.long
def test_where_the_core_is_required_an_installation_without_a_compiler_fails(tmp_path):
    done = build(tmp_path, CC="no-such-compiler", RLPROF_REQUIRE_CORE="1")
    assert done.returncode != 0
    assert "rlprof.ledger._core cannot be built" in done.stdout
