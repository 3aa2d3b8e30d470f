"""docs/architecture.md names files that exist and that import one another in the order of the page."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "rlprof"
EXTENSIONS = {"ledger/core": "rlprof.ledger._core", "trace/core": "rlprof.trace._scan"}
SECTIONS = re.split(r"^## ", (ROOT / "docs" / "architecture.md").read_text(), flags=re.MULTILINE)[1:]
WAYS = {
    section.partition("\n")[0]: re.findall(r"^\d+\. (.*(?:\n   .*)*)", section, re.MULTILINE) for section in SECTIONS
}


def files_of(line: str) -> list[str]:
    return re.findall(r"`([\w/]+\.(?:py|c))`", line)


def module_of(file: str) -> str:
    folder = str(Path(file).parent)
    return EXTENSIONS.get(folder) or "rlprof." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def imports_of(file: str) -> frozenset[str]:
    """The modules that a Python file imports, anywhere in it."""
    if file.endswith(".c"):
        return frozenset()
    found = set()
    for node in ast.walk(ast.parse((PACKAGE / file).read_text())):
        if isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return frozenset(found)


def are_connected(one: str, other: str) -> bool:
    mine, its = module_of(one), module_of(other)
    return mine == its or its in imports_of(one) or mine in imports_of(other)


def test_the_page_has_the_five_ways():
    assert [title.split()[-1].strip("`") for title in WAYS] == ["span", "run", "comparison", "trace", "view"]


@pytest.mark.parametrize("title", WAYS)
def test_the_files_of_a_way_exist_and_import_one_another_in_its_order(title):
    lines = [files_of(line) for line in WAYS[title]]
    for file in (file for line in lines for file in line):
        assert (PACKAGE / file).is_file(), file
    firsts = [line[0] for line in lines]
    assert len(set(firsts)) == len(firsts) >= 6
    for one, other in pairwise(firsts):
        assert are_connected(one, other), f"{one} and {other} do not import one another"
    for first, *others in lines:
        for other in others:
            assert are_connected(first, other), f"{first} and {other} do not import one another"


def test_files_that_do_not_import_one_another_are_recognized():
    assert are_connected("session/writer.py", "session/schema.py")
    assert are_connected("ledger/profiler.py", "ledger/core/span.c")
    assert not are_connected("session/writer.py", "session/reader.py")
    assert not are_connected("trace/read.py", "ledger/core/span.c")
