"""`rlprof trace open FILE`."""

from __future__ import annotations

import os
import shutil
import sys
import webbrowser
from pathlib import Path

import click

from rlprof.cli.help import command, option
from rlprof.errors import MissingLibraryError, UnreadableError
from rlprof.trace.viewer import Viewer, perfetto_folder


@command("open")
@click.argument("file", metavar="FILE")
@option("--port", type=click.IntRange(0, 65535), default=0, default_text="any free port", help="Port to listen on.")
@option("--no-browser", is_flag=True, help="Print the address and open no browser.")
@option("--tensorboard", is_flag=True, help="Open the folder of the trace in TensorBoard instead of Perfetto.")
def open_(file: str, port: int, no_browser: bool, tensorboard: bool) -> None:
    """Open a trace in Perfetto, without a network.

    The page and the trace come from 127.0.0.1 only.
    """
    path = Path(file)
    if not path.is_file():
        raise UnreadableError(f"{path} is not a file. Give a trace (*.pt.trace.json, gzipped or not).")
    if tensorboard:
        _tensorboard(path.absolute().parent, port)
        return
    with Viewer(path, perfetto_folder(), port) as viewer:
        click.echo(f"{path.name} is at {viewer.address}\nPress Ctrl-C to stop.", err=True)
        if not no_browser:
            webbrowser.open(viewer.address)
        try:
            viewer.serve_forever()
        except KeyboardInterrupt:
            click.echo("", err=True)


def _tensorboard(folder: Path, port: int) -> None:
    found = shutil.which("tensorboard", path=str(Path(sys.executable).parent)) or shutil.which("tensorboard")
    if found is None:
        raise MissingLibraryError("trace open --tensorboard", "tensorboard", "tensorboard")
    click.echo(
        "TensorBoard shows traces only with the plugin torch-tb-profiler, which is no longer maintained. "
        "Without it, use rlprof trace open or rlprof trace summary.",
        err=True,
    )
    chosen = ["--port", str(port)] if port else []
    os.execv(found, [found, "--logdir", str(folder), "--host", "127.0.0.1", *chosen])  # so that Ctrl-C ends TensorBoard
