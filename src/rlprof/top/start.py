"""Shows the dashboard on the terminal until the user leaves it."""

from __future__ import annotations

import gc

from rlprof.errors import RlprofError
from rlprof.live.feed import Feed


def show_dashboard(feed: Feed, interval: float) -> str | None:
    """Returns the reason if there was nothing to show."""
    try:
        from rlprof.top.app import TopApp  # noqa: PLC0415 - textual is not part of every installation
    except ModuleNotFoundError as error:
        raise missing(error) from error
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
