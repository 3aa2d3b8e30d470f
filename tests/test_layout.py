"""The shape of the package: imports point one way, and importing it is light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "rlprof"

# What a measurement flows through. A folder may import itself and those before it.
PIPELINE = ("errors", "ledger", "session", "probes", "recording", "analysis", "render")

# One folder per command. A feature sees the pipeline, and no other feature but these, each for the reason beside it.
FEATURES: dict[str, set[str]] = {
    "run": {"api"},  # it records with record(), as a program does that records itself
    "list": set(),
    "report": set(),
    "capture": {"trace"},  # it reads what torch has written, to say how large the next trace will be
    "trace": set(),
    "experiment": set(),
    "compare": {"experiment"},
    "whatif": {"experiment"},
    "export": set(),
    "live": {"report"},  # the sentences of a report, in the same words
    "top": {"live", "capture", "report", "run"},  # its keys are the commands of these
    "serve": {"live", "capture", "compare", "list", "report", "trace"},  # its pages are those of these
    "doctor": {"report", "api"},  # the self-test checks the whole way, to the report
}

# The reference trainings use the public API, as any user does.
PUBLIC = {"profile", "profile_function", "get_profiler", "record", "TorchCapture", "errors"}

ALLOWED = {
    **{folder: set(PIPELINE[:place]) for place, folder in enumerate(PIPELINE) if place},
    **{feature: set(PIPELINE) | others for feature, others in FEATURES.items()},
    "workloads": PUBLIC,
    "cli": {*PIPELINE, *FEATURES, "workloads", "interrupts"},
}

# Modules beside the folders: the public API, entry points, and one line for a training with a framework.
ROOT = {
    "__init__": {*PIPELINE, "api", "run", "capture", "interrupts"},
    "__main__": {"cli"},
    "analyze": {"cli"},
    "api": {*PIPELINE, "report", "capture"},
    "auto": {"recording", "run"},
    "errors": set(),
    "interrupts": set(),
    "pytest_plugin": {*PIPELINE, "compare"},
    "stable_baselines3": {*PIPELINE, "api"},
    "torchrl": {*PIPELINE, "api"},
}


def imported_folders(path: Path) -> set[str]:
    folders = set()
    for node in ast.walk(ast.parse(path.read_text())):
        modules = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the direction"
            modules = [node.module]
            if node.module == "rlprof":
                modules = [f"rlprof.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        for module in modules:
            parts = (module or "").split(".")
            if parts[0] == "rlprof" and len(parts) > 1:
                folders.add(parts[1])
    return folders


def test_every_folder_has_its_place_in_the_order():
    assert {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"} == set(ALLOWED)


@pytest.mark.parametrize("folder", ALLOWED)
def test_imports_point_one_way(folder):
    for path in (PACKAGE / folder).rglob("*.py"):
        assert imported_folders(path) <= ALLOWED[folder] | {folder}, path


def test_every_module_beside_the_folders_has_its_directions():
    modules = {path.stem: imported_folders(path) for path in PACKAGE.glob("*.py")}
    assert modules.keys() == ROOT.keys()
    for name, folders in modules.items():
        assert folders <= ROOT[name] | {name}, name


def is_profiler(node: ast.expr) -> bool:
    """`profiler`, `x._profiler`, `get_profiler()`, `(profiler or get_profiler())`; torch.ops.profiler is torch's."""
    if isinstance(node, ast.BoolOp):
        return any(map(is_profiler, node.values))
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).endswith(("Profiler", "get_profiler", "get_global_profiler"))
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.lstrip("_") == "profiler" and ast.unparse(node) != "torch.ops.profiler"


def private_uses(source: str) -> list[str]:
    """Expressions that use a private attribute of a profiler."""
    attributes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute))
    return [ast.unparse(node) for node in attributes if re.match("_[^_]", node.attr) and is_profiler(node.value)]


def test_private_uses_are_found():
    found = ["profiler._ledger", "self._profiler._hooks", "get_profiler()._x", "(profiler or get_profiler())._module"]
    for use in found:
        assert private_uses(f"{use}.do()") == [use]
    assert private_uses("torch.ops.profiler._enter(); profiler.ledger; self._ledger; profiler.__reduce__") == []


def test_only_the_ledger_uses_private_attributes_of_the_profiler():
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] != "ledger":
            assert private_uses(path.read_text()) == [], path


def test_importing_rlprof_imports_nothing_heavy():
    program = "import sys, rlprof; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"torch", "numpy", "gymnasium", "rich", "asyncio", "psutil"})


def test_analysis_and_ledger_print_nothing():
    for folder in ("ledger", "analysis"):
        for path in (PACKAGE / folder).rglob("*.py"):
            calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
            prints = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
            assert len(prints) == (1 if path.name == "hooks.py" else 0), path
