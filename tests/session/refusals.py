"""Changes a session's file, and checks that it is refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rlprof.analysis.load import load_facts
from rlprof.errors import UnreadableError


def change(path: Path, *statements: str, values: tuple[object, ...] = ()) -> None:
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement, values)
        database.commit()


def refused(path: Path | str, because: str, read=load_facts) -> None:
    """In one short sentence that names the file."""
    with pytest.raises(UnreadableError, match=because) as refusal:
        read(path)
    message = str(refusal.value)
    assert "\n" not in message
    assert len(message) < 500
    assert str(path) in message or path == "last"
