"""`rlprof trace open FILE`."""

from __future__ import annotations

import os
import shutil
import sys
import webbrowser
from pathlib import Path

import click

from rlprof.cli.trace.server import Viewer, perfetto_folder
from rlprof.errors import MissingLibraryError, UnreadableError


@click.command("open")
@click.argument("file", metavar="FILE")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0: any that is free.")
@click.option("--no-browser", is_flag=True, help="Only say where it is.")
@click.option("--tensorboard", is_flag=True, help="Start TensorBoard on the trace's folder instead of Perfetto.")
def open_(file: str, port: int, no_browser: bool, tensorboard: bool) -> None:
    """Look at a trace in Perfetto, without a network: the page and the trace come from 127.0.0.1 only."""
    path = Path(file)
    if not path.is_file():
        raise UnreadableError(f"{path} is not a file; give a trace (*.pt.trace.json, gzipped or not)")
    if tensorboard:
        _tensorboard(path.absolute().parent, port)
        return
    with Viewer(path, perfetto_folder(), port) as viewer:
        click.echo(f"{path.name} is at {viewer.address}\nCtrl-C ends it.", err=True)
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
        "TensorBoard shows traces with the plugin torch-tb-profiler only, which is no longer maintained; "
        "without it, use rlprof trace open or rlprof trace summary.",
        err=True,
    )
    chosen = ["--port", str(port)] if port else []
    os.execv(found, [found, "--logdir", str(folder), "--host", "127.0.0.1", *chosen])  # it ends with this process
