"""Records a training without edits to it, together with the processes that it starts."""

OUTPUT = "output.log"
"""Name of the file in the session's folder with the output of a run that has a dashboard."""
