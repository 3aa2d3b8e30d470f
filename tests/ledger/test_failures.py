"""A failure inside rlprof warns once and lets the training go on; only wrong use raises."""

from __future__ import annotations

import asyncio
import warnings

import pytest
from ledger.helpers import run_program

from rlprof import Profiler, RlprofWarning


def break_hook(profiler: Profiler, name: str):
    """Make one of the core's hooks fail."""

    def broken(*_args):
        raise RuntimeError("broken on purpose")

    setattr(profiler._hooks, name, broken)


def test_a_thread_that_cannot_be_registered_trains_on(profiler, actors):
    break_hook(profiler, "name_thread")
    actor = actors()

    def train() -> int:
        total = 0
        for i in range(5):
            with profiler.profile("env_step"):
                total += i
        return total

    with pytest.warns(RlprofWarning, match="a thread could not be registered.*broken on purpose") as warned:
        assert actor.do(train) == 10
    assert len(warned) == 1
    profiler.snapshot().check()


def test_a_task_that_cannot_be_found_is_booked_to_its_thread(profiler):
    break_hook(profiler, "find_asyncio")

    async def main() -> str:
        with profiler.profile("request"):
            await asyncio.sleep(0)
        return "trained"

    with pytest.warns(RlprofWarning, match="asyncio task cannot be found"):
        assert asyncio.run(main()) == "trained"
    assert profiler.snapshot().account("request").calls == 1


def test_warnings_turned_into_errors_do_not_stop_the_training_either(profiler, actors):
    break_hook(profiler, "name_thread")

    def train() -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with profiler.profile("env_step"):
                return "trained"

    assert actors().do(train) == "trained"


def test_a_process_that_ends_inside_spans_ends_as_it_would(core):
    program = f"""
        import threading, sys
        from rlprof import Profiler
        profiler = Profiler({core!r})
        profiler.enable()
        def forever():
            with profiler.profile("daemon"):
                threading.Event().wait()
        threading.Thread(target=forever, daemon=True).start()
        profiler.profile("open").__enter__()
        sys.exit(7)
    """
    done = run_program(program)
    assert (done.returncode, done.stderr) == (7, "")


def test_it_runs_on_the_twin_where_the_c_core_is_missing():
    program = """
        import sys
        sys.modules["rlprof.ledger._core"] = None
        import rlprof
        rlprof.enable()
        with rlprof.profile("a"):
            pass
        assert rlprof.get_profiler().core == "python"
        assert rlprof.snapshot().account("a").calls == 1
        try:
            rlprof.Profiler("c")
        except RuntimeError as error:
            print(error)
    """
    done = run_program(program, RLPROF_REQUIRE_CORE="")
    assert done.stderr.count("RlprofWarning: rlprof: the C core cannot be used: it was not compiled") == 1
    assert done.stdout.startswith("rlprof's C core is not built here; use core='auto'")


@pytest.mark.parametrize(("chosen", "expected"), [("python", "python"), ("c", "c"), ("auto", "c")])
def test_the_environment_chooses_the_core(chosen, expected):
    done = run_program("import rlprof; print(rlprof.get_profiler().core)", RLPROF_CORE=chosen)
    assert done.stdout.strip() == expected
