"""Run by every Python that finds this folder on its PYTHONPATH, before the program: starts rlprof in it.

It then is as if this file were not there: the folder leaves sys.path, and the sitecustomize that Python would have
found without it is imported in its place. If there is none, that import fails in the way that Python expects.
"""

import os
import sys


def _start():  # type: () -> None
    """Ctrl-C in a sitecustomize is a fatal error of Python, and starting takes a while: the interrupt waits until the
    program runs, and is a KeyboardInterrupt of the program."""
    try:
        import _signal  # type: ignore[import-not-found]  # noqa: PLC0415 - whatever fails here, the program runs on

        before = _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGINT])
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
    if frame.f_globals.get("__name__") == "__main__":
        sys.settrace(None)
        raise KeyboardInterrupt


def _load():  # type: () -> None
    before = list(sys.modules)
    try:
        import rlprof.run.shadowed_modules  # noqa: PLC0415
        import rlprof.run.start  # noqa: PLC0415

        rlprof.run.start.start()
        rlprof.run.shadowed_modules.make_room(before)
    except Exception as error:  # another Python, which has no rlprof: its program runs on
        heard = os.environ.pop("RLPROF_HEARD", None)
        if heard and os.path.exists(heard):
            os.unlink(heard)  # rlprof run need not say it again
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
    import sitecustomize  # type: ignore[import-not-found, unused-ignore]  # noqa: F401 - the one further on
finally:
    if os.environ.get("RLPROF") == "1":
        _start()
