"""Every Python that finds this folder on its PYTHONPATH runs this file before the program, and so starts rlprof.

Afterwards everything is as if this file did not exist: the folder is removed from sys.path, and the sitecustomize that
Python would have found without it is imported instead. If there is none, that import fails as Python expects.
"""

import os
import sys


def _start():  # type: () -> None
    """Ctrl-C in a sitecustomize is a fatal error of Python, and rlprof takes a while to start. So the interrupt is held
    back until the program runs, and is raised there as a KeyboardInterrupt."""
    try:
        import _signal  # type: ignore[import-not-found]  # noqa: PLC0415 - whatever fails here, the program runs on

        before = set(_signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGINT]))
        if os.environ.pop("RLPROF_INTERRUPTS_HELD", None):
            before.discard(_signal.SIGINT)
    except (ImportError, AttributeError):  # Python 2, or no POSIX
        _load()
        return
    try:
        try:
            _load()
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
    except KeyboardInterrupt:
        sys.settrace(_interrupt)


def _interrupt(frame, _event, _argument):  # type: ignore[no-untyped-def]  # any Python reads this file
    """Raises KeyboardInterrupt at the program's first line, from C, so that its traceback shows the program alone."""
    if frame.f_globals.get("__name__") != "__main__":
        return None
    from _functools import partial  # type: ignore[import-not-found]  # noqa: PLC0415
    from _signal import SIGINT, default_int_handler  # noqa: PLC0415

    # Python calls what is returned with three arguments, and C's max() calls its key with the first one, the frame.
    # That raises, and then Python ends the tracing.
    return partial(max, key=partial(default_int_handler, SIGINT))


def _load():  # type: () -> None
    before = list(sys.modules)
    try:
        import rlprof.run.shadowed_modules  # noqa: PLC0415
        import rlprof.run.start  # noqa: PLC0415

        rlprof.run.start.start()
        rlprof.run.shadowed_modules.remove_shadowed_modules(before)
    except Exception as error:  # another Python, without rlprof: its program runs on
        started_file = os.environ.pop("RLPROF_STARTED_FILE", None)
        if started_file and os.path.exists(started_file):
            os.unlink(started_file)  # `rlprof run` need not report it again
        if "RLPROF_SESSION" not in os.environ and sys.stderr is not None:
            if sys.version_info < (3, 11):  # noqa: UP036 - any Python may come here
                remedy = "rlprof needs Python 3.11 or newer"
            else:
                remedy = "install rlprof into it: %s -m pip install %s"
                remedy %= (sys.executable, os.environ.get("RLPROF_SOURCE", "rlprof"))
            sys.stderr.write("rlprof: %s is not recorded (%s); %s\n" % (sys.executable, error, remedy))  # noqa: UP031 - any Python


_here = os.path.dirname(__file__)
sys.path[:] = [path for path in sys.path if path != _here]
sys.path_importer_cache.pop(_here, None)
sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # type: ignore[import-not-found, unused-ignore]  # noqa: F401 - the next one on the path
finally:
    if os.environ.get("RLPROF") == "1":
        _start()
