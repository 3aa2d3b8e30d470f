"""The command lines of docs/workloads.md, run as written there, with the words of the last column."""

from __future__ import annotations

import json
import re
import shlex
from itertools import groupby
from pathlib import Path

import pytest
from showdown import DATA, installed_server
from workload_runs import rlprof

PAGE = Path(__file__).parent.parent.parent / "docs" / "workloads.md"
CONFIG = {"morph": {"seed": 2, "images": {"classes": 4}}}
"""The documents' own config.json are not published. Those of the workloads here are short."""


def command_lines() -> list[tuple[str, list[str]]]:
    """The workload of each line (or of the line before it) and its words."""
    (table,) = re.findall(r"<!-- command lines -->\n(.*?)<!-- end -->", PAGE.read_text(), re.DOTALL)
    found: list[tuple[str, list[str]]] = []
    for row in table.splitlines()[2:]:
        *_, here, added, _ = (cell.strip().strip("`") for cell in row.split("|"))
        words = shlex.split(here)[1:] + shlex.split(added)
        found.append((words[1] if words[0] == "train" else found[-1][0], words))
    return found


GROUPS = {name: [words for _, words in lines] for name, lines in groupby(command_lines(), key=lambda line: line[0])}


def test_every_workload_has_its_documents_lines():
    assert list(GROUPS) == ["petri", "ricochet", "distill", "morph", "battle"]
    assert all(GROUPS.values())


@pytest.mark.long
@pytest.mark.parametrize("name", GROUPS)
def test_the_lines_of_a_document_run(name, tmp_path, monkeypatch):
    if name == "battle":
        installed_server()
        monkeypatch.setenv("XDG_DATA_HOME", str(DATA))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG.get(name, {})))
    for words in GROUPS[name]:
        rlprof(tmp_path, *words)
