"""A session's description of its run."""

from __future__ import annotations

import os
import subprocess

import pytest
from sessions import rlprof

from rlprof.session.reader import Session


def git(folder, *words):
    author = {f"GIT_{who}_{what}": "nobody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **author}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repositories(tmp_path):
    """Two repositories with a script each and different revisions."""
    for name in ("one", "other"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "train.py").write_text(f"print({name!r})\n")
        for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", name)):
            git(folder, *words)
    return tmp_path / "one", tmp_path / "other"


def test_the_revision_is_that_of_the_script_wherever_it_is_started(repositories, tmp_path):
    """As in a comparison of two work trees that is started in one of them."""
    here, there = repositories
    words = ["run", "--quiet", "--dir", tmp_path / "runs", "../other/train.py"]
    rlprof(*words, cwd=here, env={**os.environ, "OMP_PROC_BIND": "true"})
    (database,) = (tmp_path / "runs").glob("*/session.db")
    with Session(database) as session:
        assert session.info.git is not None
        assert session.info.git.revision == git(there, "rev-parse", "HEAD") != git(here, "rev-parse", "HEAD")
        assert session.info.environment["OMP_PROC_BIND"] == "true"
