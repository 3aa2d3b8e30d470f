"""Installing from the source, with and without a compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def install(into: Path, **environment: str) -> str:
    """Install a copy of the source; returns the core that it then runs on."""
    source = into / "source"
    source.mkdir()
    for name in ("src", "setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    for built in source.rglob("*.so"):
        built.unlink()
    shutil.rmtree(source / "build", ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*pip, "--target", str(into / "site"), str(source)],
        check=True, capture_output=True, env={**os.environ, **environment},
    )  # fmt: skip
    program = "import rlprof; rlprof.enable(); print(rlprof.__file__, rlprof.get_profiler().core)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(into / "site")},
    )  # fmt: skip
    path, core = done.stdout.split()
    assert Path(path).is_relative_to(into / "site")
    return core


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_it_builds_its_c_core(tmp_path):
    assert install(tmp_path, RLPROF_CFLAGS="-O0") == "c"


def test_without_a_compiler_it_installs_and_runs_on_the_twin(tmp_path):
    assert install(tmp_path, CC="no-such-compiler") == "python"
