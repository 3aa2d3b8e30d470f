"""The compiled modules: where they are refused, and what their small functions refuse."""

from __future__ import annotations

import sys

import pytest

from rlprof import Profiler, RlprofWarning
from rlprof.ledger import _core, native, profiler


@pytest.mark.parametrize(("abiflags", "free_threaded"), [("", False), ("d", False), ("t", True), ("td", True)])
def test_free_threaded_builds_are_known_by_their_flags(abiflags, free_threaded):
    assert native.is_free_threaded(abiflags) is free_threaded


@pytest.fixture
def free_threaded(monkeypatch):
    monkeypatch.setattr(sys, "abiflags", "t")
    monkeypatch.setattr(profiler, "_core", None)  # as its import is refused
    monkeypatch.setattr(native, "_warned", set())


@pytest.mark.usefixtures("free_threaded")
def test_on_a_free_threaded_build_the_twin_serves_with_one_warning(monkeypatch):
    monkeypatch.delenv(native.REQUIRED, raising=False)
    first, second = Profiler(), Profiler()
    with pytest.warns(RlprofWarning, match="free-threaded") as warned:
        first.enable()
        second.enable()
    assert len(warned) == 1
    assert first.core == "python"
    first.disable()
    second.disable()


@pytest.mark.usefixtures("free_threaded")
def test_a_required_core_that_is_missing_is_an_error(monkeypatch):
    monkeypatch.setenv(native.REQUIRED, "1")
    with pytest.raises(RuntimeError, match="free-threaded"):
        Profiler().enable()
    chosen = Profiler("python")  # the requested core is not missing
    chosen.enable()
    chosen.disable()


def test_a_module_that_loads_is_not_missing():
    assert native.why_missing("rlprof.ledger._core") is None
    assert "not compiled" in str(native.why_missing("rlprof.ledger._no_such_module"))


def test_a_file_is_not_read_by_a_negative_size(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10_000)
    with path.open("rb") as file:
        assert _core.read_held(file.fileno(), 5) == b"xxxxx"
        assert len(_core.read_held(file.fileno(), 10_000)) == 4096
        with pytest.raises(ValueError, match="0 or more"):
            _core.read_held(file.fileno(), -1)
