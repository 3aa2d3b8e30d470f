"""`rlprof serve [DIR]`: all runs in the browser, live."""

from __future__ import annotations

import webbrowser
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import click

from rlprof.cli.help import command, option
from rlprof.errors import MissingLibraryError
from rlprof.session.folder import sessions_folder


@command(examples=("rlprof serve", "rlprof serve old-runs --open", "rlprof serve --host 0.0.0.0 --port 9000"))
@click.argument("dir", required=False, type=click.Path())
@option(
    "--port",
    type=click.IntRange(0, 65535),
    default_text="8765, or the next free one",
    help="Port to listen on.",
)
@option("--host", metavar="ADDRESS", default="127.0.0.1", help="Address to listen on. Others let other machines in.")
@option("--open", "open_", is_flag=True, help="Open the browser.")
@option("--no-token", is_flag=True, help="Need no token. Every user of this machine can then read the runs.")
def serve(dir: str | None, port: int | None, host: str, open_: bool, no_token: bool) -> None:
    """Show all runs in the browser, and what a training does now.

    DIR is a folder of sessions (default: $RLPROF_DIR or ./rlprof-runs), or one session. The printed address has a
    token, without which no request is answered.
    """
    for library in ("starlette", "uvicorn"):
        if find_spec(library) is None:
            raise MissingLibraryError("serve", library, "serve")
    from rlprof.serve.guard import is_loopback  # noqa: PLC0415 - they import the web server
    from rlprof.serve.server import Served  # noqa: PLC0415

    served = Served(Path(dir) if dir else sessions_folder(), host, port, not no_token)
    if not is_loopback(host):
        click.echo(
            f"rlprof: warning: {host} can be reached from other machines, and without encryption. Whoever sees the"
            " address below can read the runs and capture traces.",
            err=True,
        )

    def ready() -> None:
        click.echo(f"{served.folder} is at {served.address}\nPress Ctrl-C to stop.", err=True)
        if open_:
            # In a thread, because some browsers only return when they are closed.
            Thread(target=webbrowser.open, args=(served.address,), daemon=True).start()

    served.run(ready)
