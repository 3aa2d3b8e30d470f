"""Shows the dashboard on the terminal until the user leaves it."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

from rlprof.errors import RlprofError
from rlprof.live.priority import give_way

if TYPE_CHECKING:
    from rlprof.live.feed import Feed

NO_TERMINAL = "rlprof: --top needs a terminal, and there is none here. The training runs without the dashboard."


def show_dashboard(feed: Feed, interval: float) -> str | None:
    """Returns the reason if there was nothing to show."""
    try:
        from rlprof.top.app import TopApp  # noqa: PLC0415 - textual is not part of every installation
    except ModuleNotFoundError as error:
        raise missing(error) from error
    give_way()
    app = TopApp(feed, interval)
    gc.freeze()  # what was imported stays, and need not be looked at again and again
    try:
        return app.run(mouse=False)
    finally:
        app.finish()
        feed.close()


def missing(error: ModuleNotFoundError) -> RlprofError:
    """The sentence for an installation without textual or pyte."""
    return RlprofError(f"the dashboard needs {error.name}. Install it with: pip install 'rlprof[top]'")


def on_terminal() -> bool:
    """Textual draws on stderr, and reads the keys from stdin."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
